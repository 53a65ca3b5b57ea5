"""Views of groups: the list, and one group with its generations, members and lag."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from ...admin import (
    Generation,
    GroupAdmin,
    GroupDescription,
    GroupHistory,
    ListedGroup,
    PartitionMove,
)
from ...admin.groups.results import SHARE, HistoryEntry
from ...admin.pages import lanes_page
from ...admin.pages.lanes import (
    Lanes,
    Person,
    Sample,
    keep_sample,
    lanes_of,
    owners_now,
    people_of,
)
from ...admin.pages.lists import ListQuery
from ...admin.pages.markup import Html
from ...admin.visibility import ask_hidden_groups
from ...lag import GroupLag, LagTracker
from ...protocol import (
    SHARE_EVENTS,
    EventName,
    KafkaError,
    KohortError,
    TopicPartition,
)
from ...service.share.share_group import read_delivery_limit
from ...spark.status import BatchHistory, history_in
from ..observer import View, now_ms
from ..recording import ClusterRecorder, samples_of

#: Most generations of a group that are shown, and most groups of a list that are shown with details.
_GENERATIONS: Final = 60
MOST_DETAILED: Final = 200
#: Most members of a group, former ones included, whose names are kept.
_MOST_PEOPLE: Final = 5_000
#: How long groups that a page has shown are asked about, and how many at once.
_SHOWN_FOR_S: Final = 30.0
#: Time between two looks at the lag of a group in time, in ms.
_LAG_EVERY_MS: Final = 5_000
#: Time between two looks at the configs of a share group, in ms.
_LIMIT_EVERY_MS: Final = 60_000
_AT_ONCE: Final = 8
#: Most offsets of __consumer_offsets that are read at first, after a change, and for a row of the list.
MANY_OFFSETS: Final = 200_000
_FEW_OFFSETS: Final = 20_000
_ROW_OFFSETS: Final = 2_000
#: Source of a history that was seen from looks, and states of groups in which no rebalance is under way.
_OBSERVED: Final = "observed"
_SETTLED: Final = ("Stable", "Empty")


class GroupView(View):
    """A group with its lanes: from the coordinator's events, else from records and from observed changes."""

    every_s = 1.0

    def __init__(self, group: str, recorder: ClusterRecorder | None = None) -> None:
        super().__init__()
        self.group = group
        self._recorder = recorder
        self.lanes: Lanes | None = None
        #: Batches, if the group is that of a Spark job.
        self.batches: BatchHistory | None = None
        self._parts: tuple[ListQuery, Html] | None = None
        self._history: GroupHistory | None = None
        self._before: GroupDescription | None = None
        self._sequence = -1
        self._since_ms: int | None = None
        self._samples: list[Sample] = []
        self._people: dict[str, Person] = {}
        self._told: object = None
        self._tracker = LagTracker()
        self._behind: GroupLag | None = None
        #: How often a share group delivers a record, None if unknown, and when it was asked for.
        self._delivery_limit: int | None = None
        self._limit_at_ms = 0

    def parts(self, query: ListQuery) -> Html | None:
        """The page's parts, rendered once for each look where all ask for the same."""
        if self.lanes is None:
            return None
        if self._parts is None or self._parts[0] != query:
            self._parts = query, lanes_page.parts(self.lanes, self._behind, query, self._delivery_limit)
        return self._parts[1]

    async def look(self, admin: GroupAdmin) -> None:
        now = (await admin.describe([self.group]))[self.group]
        at_ms = now_ms()
        if self._since_ms is None:
            self._since_ms = at_ms
        if now.total_lag is not None:
            keep_sample(self._samples, Sample(at_ms, now.total_lag))
        if not now.exists:
            # another group may get its name
            self._tracker, self._behind = LagTracker(), None
        elif self._behind is None or at_ms - self._behind.timestamp_ms >= _LAG_EVERY_MS:
            [self._behind] = self._tracker.track(await admin.lag([self.group]))
        history = await self._learn_history(admin, now, at_ms)
        if now.group_type == SHARE:
            history = await self._learn_records(admin, history)
            await self._learn_limit(admin, at_ms)
        self.batches = history_in({TopicPartition(p.topic, p.partition): p.metadata for p in now.partitions})
        lanes = self.lanes
        if lanes is not None and history is self._history and _is_alike(lanes.now, now):
            # lanes of a large group take long
            self.lanes = lanes.later(now, at_ms, self._samples)
        else:
            self.lanes = self._draw_lanes(now, history, at_ms)
        self._history, self._before, self._parts = history, now, None
        self._send_lanes(self.lanes)

    def _draw_lanes(self, now: GroupDescription, history: GroupHistory, at_ms: int) -> Lanes:
        # the most recent ones are kept
        self._people = dict([*(self._people | people_of(now, history)).items()][-_MOST_PEOPLE:])
        return lanes_of(
            now, history, at_ms, since_ms=self._since_ms, samples=self._samples, people=self._people
        )

    def _send_lanes(self, lanes: Lanes) -> None:
        found = lanes.now
        people = [(member.member_id, member.assignment, member.target) for member in found.members]
        made = [(row.generation, row.timestamp_ms) for row in lanes.generations]
        places = [(lane.topic, lane.partition) for lane in lanes.lanes]
        told = (
            *(found.state, found.epoch, people, made, places, found.hold_ups, found.notes, lanes.unknown),
            *(found.shared, lanes.entries if found.shared else None, self.batches),
        )
        if told != self._told:
            self._told = told
            self.tell("model", lanes.document())
        else:
            lags = [lane.lag for lane in lanes.lanes]
            oldest, trend = (None, None) if self._behind is None else lanes_page.lag_texts(self._behind)
            now = {"now": lanes.now_ms, "lag": found.total_lag, "lags": lags}
            self.tell("tick", {**now, "oldest": oldest, "trend": trend})

    async def _learn_history(self, admin: GroupAdmin, now: GroupDescription, at_ms: int) -> GroupHistory:
        known = self._history
        entries = await admin.events(self.group, self._sequence)
        if entries is None:
            return await self._read_recorded(admin, now, at_ms)
        anew = bool(entries) and entries[0].sequence <= self._sequence
        self._sequence = entries[-1].sequence if entries else self._sequence if now.exists else -1
        if known is None or anew or _has_rebalanced(entries):
            return await self._add_recorded(await admin.history(self.group, _GENERATIONS, every_move=True))
        if not entries:
            return known
        # a history that is not read again must be bounded, too
        return replace(known, entries=(*known.entries, *entries)[-200:])

    async def _add_recorded(self, history: GroupHistory) -> GroupHistory:
        """The history with what is recorded here of older times; lags once, before those that were seen."""
        if self._recorder is not None:
            history = await self._recorder.with_recorded(history)
        if self._history is None and history.lag:
            self._samples[:0] = samples_of(history)
        return history

    async def _learn_records(self, admin: GroupAdmin, history: GroupHistory) -> GroupHistory:
        """The history with what happened to records of a share group; the same one if nothing is new."""
        told = await admin.share_events(self.group)
        own = [entry for entry in history.entries if entry.kind not in SHARE_EVENTS]
        entries = tuple(sorted((*own, *told), key=lambda entry: entry.timestamp_ms))
        return history if entries == history.entries else replace(history, entries=entries)

    async def _learn_limit(self, admin: GroupAdmin, at_ms: int) -> None:
        """Ask how often the group delivers a record: seldom, as it seldom changes, and may be refused."""
        if at_ms - self._limit_at_ms < _LIMIT_EVERY_MS:
            return
        self._limit_at_ms = at_ms
        try:
            self._delivery_limit = await read_delivery_limit(admin.cluster, self.group)
        except KafkaError:
            self._delivery_limit = None

    async def _read_recorded(self, admin: GroupAdmin, now: GroupDescription, at_ms: int) -> GroupHistory:
        """The history where the broker has no events: from records and from differences between two looks."""
        known = self._history
        if known is not None and self._before is not None and not _is_different(self._before, now):
            return known
        try:
            limit, most = (_GENERATIONS, MANY_OFFSETS) if known is None else (10, _FEW_OFFSETS)
            found = await admin.history(self.group, limit, max_offsets=most)
        except KafkaError as error:
            found = GroupHistory(self.group, _OBSERVED, (), (), (f"records cannot be read: {error}",))
        if known is None or self._before is None:
            return await self._add_recorded(found)
        newest = max((row.timestamp_ms for row in known.generations), default=0)
        newer = [row for row in found.generations if row.timestamp_ms > newest]
        # records of a rebalance that is under way say more when it is over
        if not newer and (found.source == _OBSERVED or now.state in _SETTLED):
            newer = list(_generation_between(self._before, now, at_ms))
        generations = (*known.generations, *newer)[-max(_GENERATIONS, len(known.generations)) :]
        return replace(known, generations=generations, unknown=found.unknown)


def _has_rebalanced(entries: Iterable[HistoryEntry]) -> bool:
    """Return whether a rebalance was completed."""
    return any(entry.kind == EventName.REBALANCE_COMPLETED for entry in entries)


def _is_alike(before: GroupDescription, now: GroupDescription) -> bool:
    """Return whether the same partitions have the same owners."""
    if owners_now(before) != owners_now(now):
        return False
    return [(row.topic, row.partition) for row in before.partitions] == [
        (row.topic, row.partition) for row in now.partitions
    ]


def _is_different(before: GroupDescription, now: GroupDescription) -> bool:
    if before.state != now.state or before.epoch != now.epoch:
        return True
    return [(m.member_id, m.assignment) for m in before.members] != [
        (m.member_id, m.assignment) for m in now.members
    ]


def _generation_between(before: GroupDescription, now: GroupDescription, at_ms: int) -> Iterable[Generation]:
    """A generation for the partitions that moved between two looks; None if none did."""
    old, new = owners_now(before), owners_now(now)
    if old is None or new is None or old == new:
        return
    moves = tuple(
        PartitionMove(*place, old.get(place), new.get(place))
        for place in sorted({*old, *new})
        if old.get(place) != new.get(place)
    )
    were, are = ({member.owner for member in found.members} for found in (before, now))
    yield Generation(
        -1 if now.epoch is None else now.epoch,
        at_ms,
        now.state,
        protocol=now.protocol or None,
        members=len(are),
        members_before=len(were),
        joined=tuple(sorted(are - were)),
        left=tuple(sorted(were - are)),
        moves=moves,
        partitions_moved=sum(move.to_owner is not None for move in moves),
    )


@dataclass(frozen=True, slots=True)
class Detail:
    """Details of a group in a list. ``behind`` has its lag in time, ``last`` is its last rebalance, ``error``
    why nothing is known. With ``only_lag`` the last rebalance has not been asked for.
    """

    members: int | None = None
    lag: int | None = None
    behind: GroupLag | None = None
    last: Generation | None = None
    error: str | None = None
    only_lag: bool = False


def _detail_of_lag(found: GroupLag) -> Detail:
    return Detail(found.member_count, found.records, found, error=found.error, only_lag=True)


class GroupsView(View):
    """All groups; with members, lag and the last rebalance of those that pages show."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[ListedGroup] = []
        self.hidden: tuple[str, ...] = ()
        self.details: dict[str, Detail] = {}
        self._shown: dict[str, float] = {}
        self._all_until = 0.0
        self._last: dict[str, tuple[object, Generation | None]] = {}
        self._tracker = LagTracker()
        self._told: object = None

    def show(self, groups: Iterable[str], *, everything: bool = False) -> bool:
        """Ask for details of these groups; with ``everything`` for lags of all groups, and if
        these are few for their details. Return whether all are known.
        """
        wanted = list(groups)
        if everything:
            self._all_until = time.monotonic() + _SHOWN_FOR_S
            if len(self.rows) <= MOST_DETAILED:
                wanted = [row.group for row in self.rows]
        for group in wanted:
            self._shown.pop(group, None)
            self._shown[group] = time.monotonic()
        while len(self._shown) > MOST_DETAILED:
            del self._shown[next(iter(self._shown))]
        needed = dict.fromkeys([row.group for row in self.rows] if everything else (), False)
        needed.update(dict.fromkeys(wanted, True))
        found = {group: self.details.get(group) for group in needed}
        return all(
            each is not None and not (is_shown and each.only_lag)
            for each, is_shown in zip(found.values(), needed.values(), strict=True)
        )

    async def look(self, admin: GroupAdmin) -> None:
        self.rows = await admin.list_groups()
        self.hidden = await ask_hidden_groups(admin.cluster)
        there = {row.group for row in self.rows}
        since = time.monotonic() - _SHOWN_FOR_S
        self._shown = {group: at for group, at in self._shown.items() if group in there and at > since}
        wanted = list(self._shown)
        of_all = time.monotonic() < self._all_until
        lags = self._tracker.track(await admin.lag(None if of_all else wanted)) if wanted or of_all else []
        behind = {each.group: each for each in lags}
        gate = asyncio.Semaphore(_AT_ONCE)

        async def detail(group: str) -> Detail:
            async with gate:
                return await self._learn_detail(admin, group, behind.get(group))

        found = await asyncio.gather(*map(detail, wanted))
        others = {} if not of_all else {each.group: _detail_of_lag(each) for each in lags}
        self.details = others | dict(zip(wanted, found, strict=True))
        self._last = {group: last for group, last in self._last.items() if group in self._shown}
        told = (self.rows, self.details, self.hidden)
        if told != self._told:
            self._told = (list(self.rows), self.details, self.hidden)
            self.tell("page", None)

    async def _learn_detail(self, admin: GroupAdmin, group: str, behind: GroupLag | None) -> Detail:
        try:
            now = (await admin.describe([group]))[group]
            last = await self._last_rebalance(admin, now)
        except KafkaError as error:
            return Detail(error=str(error))
        members = len(now.members) if now.members_known else None
        return Detail(members, now.total_lag if behind is None else behind.records, behind, last)

    async def _last_rebalance(self, admin: GroupAdmin, now: GroupDescription) -> Generation | None:
        """The last rebalance: read again after another one, or, if brokers report none, after a change."""
        mark, last = self._last.get(now.group, (None, None))
        entries = await admin.events(now.group, mark if isinstance(mark, int) else -1)
        seen: object
        if entries is None:
            seen = (now.state, [(member.member_id, member.assignment) for member in now.members])
            again = mark != seen
        else:
            seen = entries[-1].sequence if entries else mark
            again = now.group not in self._last or _has_rebalanced(entries)
        if again:
            try:
                found = await admin.history(now.group, 1, max_offsets=_ROW_OFFSETS)
                last = found.generations[-1] if found.generations else None
            except KohortError:
                last = None  # no right to read the topic: the group's page says so
        self._last[now.group] = (seen, last)
        return last
