"""The group admin client, for the groups of any Kafka cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from ...client import BrokerConnectionError, CommittedOffset, ConfigError
from ...lag import GroupLag
from ...protocol import ErrorCode, EventName, KafkaError, TopicPartition, UnsupportedVersionError
from ...spark.status import keep_history
from ..admin_client import AdminClient
from ..errors import Outcome, advise_error, with_advice
from . import requests, reset
from .requests import lag_rows
from .results import (
    MAX_OFFSETS,
    SHARE,
    GroupDescription,
    GroupHistory,
    HeldBack,
    HistoryEntry,
    ListedGroup,
    Progress,
    ResetPlan,
    TimeStretch,
)
from .share_groups import (
    alter_share_offsets,
    ask_leaders,
    delete_share_offsets,
    share_rows,
    share_starts,
)

T = TypeVar("T")
Item = TypeVar("Item")

#: Events of each generation that are asked for.
_EVENTS_OF_GENERATION: Final = 50

#: Groups that are requested at the same time.
_AT_ONCE: Final = 16


class GroupAdmin(AdminClient):
    """``async with GroupAdmin("localhost:9092") as admin: await admin.list_groups()``

    Works with every broker that speaks Kafka's protocol, from Apache Kafka 2.4 on, and with clusters:
    requests about a group go to its coordinator. ``timeout_ms`` bounds each call, retries included. Calls
    raise KafkaError with the broker's error code and advice, and BrokerConnectionError if no broker answers
    in time.
    ``connection`` has settings of TLS and SASL, as consumers have them; see docs/connections.md.
    """

    @with_advice
    async def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """All groups of all brokers, by name; with ``states`` or ``types`` ("classic", "consumer", ...) only
        groups that match one of them, in upper or lower case.

        Brokers before Kafka 2.6 do not list states: groups are then described one by one.
        """
        rows = await requests.list_groups(self._cluster, states, types)
        if states and any(row.state is None for row in rows):
            rows = await self._call_each(rows, self._with_state)
        return [
            r
            for r in rows
            if _matches_filter(r.state, states) and _matches_filter(r.group_type or "classic", types)
        ]

    async def _with_state(self, row: ListedGroup) -> ListedGroup:
        found = await requests.describe_group(self._cluster, row.group)
        return replace(row, state=found.state)

    @with_advice
    async def describe(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        """State, members and lag of each group. One that does not exist has the state "Dead"."""
        wanted = list(dict.fromkeys(groups))
        return dict(zip(wanted, await self._call_each(wanted, self._describe_one), strict=True))

    @with_advice
    async def lag(self, groups: Iterable[str] | None = None) -> list[GroupLag]:
        """How far behind these groups are, or all, by name: in records, and as the age of the oldest unread
        one. Few requests, however many groups there are; what is wrong with one group is its ``error``.

        Rates, when a group will have caught up and what stands still follow from several looks:
        ``LagTracker.track`` takes each, and returns it with them. The age of records needs the right to READ
        their topic.
        """
        from .lag import measure_lag  # as ``history``

        return await measure_lag(self._cluster, None if groups is None else list(groups))

    async def _describe_one(self, group: str) -> GroupDescription:
        description = await requests.describe_group(self._cluster, group)
        if not description.exists:
            return description
        if description.group_type == SHARE and description.members_known:
            return replace(description, shared=await share_rows(self._cluster, description))
        committed = await self._cluster.committed(group, require_stable=False)
        description = replace(description, partitions=await lag_rows(self._cluster, description, committed))
        return await self._add_waiting_times(description) if description.hold_ups else description

    async def _add_waiting_times(self, description: GroupDescription) -> GroupDescription:
        """Add how long members have waited, if the broker keeps events."""
        asked = {
            entry.member: entry.timestamp_ms
            for entry in await self.events(description.group) or ()
            if entry.kind == EventName.REVOCATION_ASKED
        }
        now_ms = round(time.time() * 1_000)
        waits = (
            replace(each, since_ms=max(0, now_ms - asked[each.waits_for]))
            if each.waits_for in asked
            else each
            for each in description.hold_ups
        )
        return replace(description, hold_ups=tuple(waits))

    @with_advice
    async def held_back(self, description: GroupDescription) -> tuple[HeldBack, ...]:
        """Partitions of a group that open transactions hold back."""
        from .held_back import held_back  # as ``history``

        return await held_back(self._cluster, description)

    async def _call_each(self, items: Iterable[Item], call: Callable[[Item], Awaitable[T]]) -> list[T]:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def gated(item: Item) -> T:
            async with gate:
                return await call(item)

        return list(await asyncio.gather(*(gated(item) for item in items)))

    @with_advice
    async def offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """Committed offsets of a group; empty for a group that does not exist."""
        return await self._cluster.committed(group, require_stable=False)

    @with_advice
    async def plan_reset(
        self,
        group: str,
        to: reset.ResetTo,
        topics: Mapping[str, Collection[int]] | None = None,
        *,
        share: bool = False,
    ) -> ResetPlan:
        """Plan a reset; change nothing.

        ``topics`` maps topics to partition numbers, empty for all of them; without it the plan covers every
        partition that the group has an offset for. Executing the plan creates a group that does not exist:
        one that commits offsets, or with ``share`` a share group.
        If the group has members, the plan's ``refusal`` says so. Raises KafkaError 3 for a topic or partition
        that does not exist, 69 if ``share`` is asked of a group of another type, and ConfigError for topics
        that are not such a mapping.
        """
        return await reset.plan(self._cluster, group, to, topics, share=share)

    @with_advice
    async def plan_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, share: bool = False
    ) -> ResetPlan:
        """Plan to give each of these partitions an offset of its own; change nothing. ``share`` and what is
        raised are as of ``plan_reset``.
        """
        return await reset.plan_offsets(self._cluster, group, offsets, share=share)

    @with_advice
    async def plan_import(self, group: str, zookeeper: str) -> ResetPlan:
        """Plan to commit the offsets that a group without a coordinator has in ZooKeeper
        (``HOST:PORT[,HOST:PORT...][/CHROOT]``); change nothing. If members are registered there, or the group
        has members here, the plan's ``refusal`` says so. Raises ConfigError for what is no address of a
        ZooKeeper or no name of a group there, and ZooKeeperConnectionError if it does not answer.
        """
        from ...consumer.config import check_registry
        from ...consumer.group.zookeeper import read_registry

        check_registry(zookeeper, group)
        registered = await read_registry(zookeeper, group, self._timeout_ms)
        refused = None
        if registered.members:
            named = ", ".join(sorted(registered.members)[:3])
            refused = f"group {group!r} has members in ZooKeeper ({named}): stop them first"
        return await reset.plan_import(self._cluster, group, registered.offsets, refused)

    @with_advice
    async def reset_offsets(
        self, group: str, to: reset.ResetTo, topics: Mapping[str, Collection[int]] | None = None
    ) -> ResetPlan:
        """Plan and commit. Raises KafkaError 68 if the group has members, 25 if one has joined meanwhile."""
        planned = await reset.plan(self._cluster, group, to, topics)
        return await self.execute(planned)

    @with_advice
    async def execute(self, planned: ResetPlan) -> ResetPlan:
        """Commit a plan of ``plan_reset``, as ``reset_offsets`` does; the plan as executed.

        Metadata of the commits goes, but for the log of a Spark job's batches.
        """
        if planned.refusal is not None:
            raise advise_error(ErrorCode.NON_EMPTY_GROUP, planned.refusal)
        offsets = {
            TopicPartition(change.topic, change.partition): change.new_offset
            for change in planned.changes
            if change.new_offset is not None
        }
        if planned.group_type == SHARE:
            await alter_share_offsets(self._cluster, planned.group, offsets)
            return replace(planned, executed=True)
        there = await self._cluster.committed(planned.group, [*offsets])
        kept = {place: keep_history(commit.metadata) for place, commit in there.items()}
        commits = {place: CommittedOffset(at, metadata=kept.get(place, "")) for place, at in offsets.items()}
        await self._cluster.commit(planned.group, commits)
        return replace(planned, executed=True)

    @with_advice
    async def delete_groups(self, groups: Iterable[str]) -> dict[str, Outcome]:
        """Delete groups with their offsets; the outcome for each (68: has members, 69: does not exist)."""
        wanted = list(dict.fromkeys(groups))
        delete = partial(requests.delete_group, self._cluster)
        return dict(zip(wanted, await self._call_each(wanted, delete), strict=True))

    @with_advice
    async def delete_offsets(
        self, group: str, topics: Mapping[str, Collection[int]]
    ) -> dict[TopicPartition, Outcome]:
        """Delete committed offsets; the outcome for each partition (86: members subscribe to the topic).

        A topic without numbers stands for all its partitions that have an offset. Offsets of a share group
        are deleted by whole topics. Raises KafkaError 69 for a group that does not exist, and 3 for a topic
        without offsets.
        """
        reset.check_topics(topics)
        if (await requests.describe_group(self._cluster, group)).group_type == SHARE:
            return await self._delete_share_offsets(group, topics)
        committed = await self._cluster.committed(group, require_stable=False)
        partitions: list[TopicPartition] = []
        for topic, numbers in topics.items():
            there = [partition for partition in committed if partition.topic == topic]
            wanted = [TopicPartition(topic, number) for number in numbers] or there
            if not wanted and committed:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise KafkaError(code, f"group {group!r} has no offset for topic {topic!r}")
            partitions += wanted
        return await requests.delete_offsets(self._cluster, group, partitions)

    async def _delete_share_offsets(
        self, group: str, topics: Mapping[str, Collection[int]]
    ) -> dict[TopicPartition, Outcome]:
        if any(topics.values()):
            text = f"offsets of the share group {group!r} are deleted by whole topics: name no partitions"
            raise ConfigError(text)
        there = await share_starts(self._cluster, group)
        for topic in topics:
            if not any(partition.topic == topic for partition in there):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise KafkaError(code, f"group {group!r} has no offset for topic {topic!r}")
        outcomes = await delete_share_offsets(self._cluster, group, topics)
        return {place: outcomes[place.topic] for place in sorted(there) if place.topic in outcomes}

    @with_advice
    async def history(
        self,
        group: str,
        limit: int = 20,
        *,
        max_offsets: int = MAX_OFFSETS,
        progress: Progress | None = None,
        every_move: bool = False,
        stretch: TimeStretch | None = None,
        every_event: bool = False,
    ) -> GroupHistory:
        """The group's last generations and, on a kohort broker, all its events with their causes.

        ``limit`` counts generations. A kohort broker tells what it remembers, and what it has recorded: the
        events of generations, with ``every_event`` all. On other brokers up to ``max_offsets`` offsets of
        ``__consumer_offsets`` are read backwards, and ``progress`` is called. A broker's events list only the
        first moves of a generation; with ``every_move`` the others are read from the topic too. Only what
        ended in ``stretch`` is told.
        """
        # they read records of the log: most commands start without the code for it
        from .history import generations, group_records

        kept = await self._ask_events(group, -1)
        told, since_ms, is_whole = None, None, False
        if kept is not None:
            told, since_ms, is_whole = await self._recall(group, kept, limit, stretch, every_event)
        if told is not None and is_whole and not (every_move and generations.is_shortened(told)):
            return told
        try:
            past = await group_records.read_past(self._cluster, group, limit + 1, max_offsets, progress)
            now = None if past.from_start else await requests.describe_group(self._cluster, group)
        except KafkaError as error:
            if told is None:
                raise
            return replace(told, unknown=(*told.unknown, f"older generations cannot be read: {error}"))
        recorded = generations.from_records(group, past, limit, now)
        if stretch is not None:
            recorded = generations.cut_to(recorded, stretch, limit)
        if told is None:
            return recorded
        if every_move:
            told = generations.with_every_move(told, recorded)
        if is_whole:
            return told
        return generations.with_records(told, recorded, limit, since_ms)

    async def _recall(
        self,
        group: str,
        kept: requests.KeptEvents,
        limit: int,
        stretch: TimeStretch | None,
        every_event: bool,
    ) -> tuple[GroupHistory, int | None, bool]:
        """What brokers remember and have recorded of a group, since when they do, if they say, and whether
        records of the log have nothing to add.
        """
        from .history import generations, recorded

        told = generations.from_events(group, kept.entries, limit)
        if stretch is None and generations.is_whole(told, limit):
            return told, kept.since_ms, True
        wanted = stretch or TimeStretch()
        try:
            past = await recorded.ask_recordings(
                self._cluster,
                group,
                wanted,
                limit * _EVENTS_OF_GENERATION if every_event else limit,
                only_lasting=not every_event,
            )
        except (KafkaError, BrokerConnectionError) as error:
            told = replace(told, unknown=(f"what was recorded cannot be read: {error}",))
            return generations.cut_to(told, wanted, limit), kept.since_ms, False
        if not past.is_recording:
            return generations.cut_to(told, wanted, limit), kept.since_ms, False
        entries = recorded.cut_entries(recorded.merge_entries(past.entries, kept.entries), wanted)
        told = recorded.with_what_is_missing(
            generations.from_events(group, entries, limit), past, stretch, round(time.time() * 1_000)
        )
        is_whole = generations.is_whole(told, limit)
        if stretch is not None:
            is_whole = is_whole or past.events_from_ms <= stretch.from_ms
        since_ms = kept.since_ms
        if since_ms is not None:
            since_ms = min(since_ms, *(each.from_ms for each in past.watched), since_ms)
        return told, since_ms, is_whole and (not told.gaps or len(told.generations) >= limit)

    @with_advice
    async def events(self, group: str, after: int = -1) -> list[HistoryEntry] | None:
        """Events with a higher sequence number than ``after``, oldest first; None if the broker keeps none.

        A group that does not exist has none.
        """
        kept = await self._ask_events(group, after)
        return None if kept is None else kept.entries

    @with_advice
    async def share_events(self, group: str) -> list[HistoryEntry]:
        """What happened to records of a share group, as the leaders of its partitions tell it, oldest first;
        nothing from brokers other than kohort's. Each broker counts ``sequence`` for itself.
        """
        return (await ask_leaders(self._cluster, group)).entries

    async def _ask_events(self, group: str, after: int) -> requests.KeptEvents | None:
        try:
            return await requests.ask_history(self._cluster, group, -1, after)
        except UnsupportedVersionError:
            return None
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return requests.KeptEvents([])


def _matches_filter(value: str | None, wanted: Collection[str]) -> bool:
    return not wanted or (value or "").lower() in {name.strip().lower() for name in wanted}
