"""Lanes of a group: the owner of each partition over time, from the group's history and present state.

A generation lists the partitions that moved, with the old and the new owner. Between two moves of a partition
its owner stayed the same, unless a generation between them does not list all its moves: from that one on the
owner is unknown until the next move, or until now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

from ...protocol import CauseKind, EventName, TopicPartition
from .. import notation
from ..groups.results import (
    SHARE,
    Generation,
    GroupDescription,
    GroupHistory,
    HistoryEntry,
    TimeStretch,
)
from ..tables import clean, short

#: Indexes of a span's owner that stand for no owner.
NOBODY, UNKNOWN = -1, -2

#: Why a member that holds a rebalance up is removed.
_LATE: Final = (CauseKind.LATE_JOIN, CauseKind.LATE_REVOCATION, CauseKind.LATE_SYNC)

#: Most partitions that are drawn: more would be unreadable, and too much for a browser.
MOST_LANES: Final = 5_000

#: Most points of lag that are kept. When there are more, every second one of the older half goes.
MOST_SAMPLES: Final = 600

#: Looks that have to be missing, and the time, for a gap between two samples.
_MANY_LOOKS: Final = 3
_LONG_MS: Final = 15_000

#: An id that the coordinator or a consumer generated (KIP-848): it means nothing to people.
_MADE_UP: Final = re.compile(
    r"[A-Za-z0-9_-]{22}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)

#: Owners at one time, by partition; partitions without an owner are left out.
Owners = Mapping[TopicPartition, str]


class Span(NamedTuple):
    """Time from which a partition has this owner, an index into ``owners``; it lasts until the next span."""

    start_ms: int
    owner: int


class Lane(NamedTuple):
    """A partition's spans, oldest first, and its lag now."""

    topic: str
    partition: int
    spans: tuple[Span, ...]
    lag: int | None


class Owner(NamedTuple):
    """An instance id or member id, what people call it, and where it runs."""

    id: str
    name: str
    host: str


class Person(NamedTuple):
    """A member's client id and host."""

    client_id: str
    client_host: str


class Sample(NamedTuple):
    """The total lag at a time."""

    timestamp_ms: int
    lag: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """The picture of a group. ``since_ms`` is the time before which nothing is known, ``hidden`` the number
    of partitions that it leaves out, ``names`` what people call owners. In ``gaps`` nobody looked.
    """

    now: GroupDescription
    now_ms: int
    since_ms: int
    owners: tuple[Owner, ...]
    lanes: tuple[Lane, ...]
    generations: tuple[Generation, ...]
    entries: tuple[HistoryEntry, ...]
    unknown: tuple[str, ...]
    samples: tuple[Sample, ...] = ()
    hidden: int = 0
    gaps: tuple[TimeStretch, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, owner: str | None) -> str:
        """The name shown for an owner; "nobody" for None."""
        if owner is None:
            return "nobody"
        return self.names.get(owner) or short(owner)

    def later(self, now: GroupDescription, now_ms: int, samples: Sequence[Sample]) -> Lanes:
        """The same lanes at a later time: nothing has moved."""
        lags = {(row.topic, row.partition): row.lag for row in now.partitions}
        lanes = tuple(lane._replace(lag=lags.get((lane.topic, lane.partition))) for lane in self.lanes)
        return replace(self, now=now, now_ms=now_ms, lanes=lanes, samples=tuple(samples))

    def document(self) -> dict[str, object]:
        """The picture as the page's script reads it."""
        return {
            "group": self.now.group,
            "now": self.now_ms,
            "since": self.since_ms,
            "owners": [[clean(row.name), clean(row.id), clean(row.host)] for row in self.owners],
            "lanes": [[clean(row.topic), row.partition, row.lag, row.spans] for row in self.lanes],
            "generations": [
                [row.generation, row.timestamp_ms, row.duration_ms, headline(row)] for row in self.generations
            ],
            "lag": self.samples,
            "gaps": [*self.gaps, *gaps_of_samples(self.samples)],
            "total": self.now.total_lag,
        }


def owners_now(found: GroupDescription) -> Owners | None:
    """Present owners; None if they are not known: a classic group has none before its first generation, and
    partitions of a share group have many.
    """
    if found.group_type == SHARE:
        return None
    if found.exists and (found.epoch is None and found.state not in ("Stable", "Empty")):
        return None
    if any(member.assignment is None for member in found.members):
        return None
    return {partition: member.owner for member in found.members for partition in member.assignment or ()}


def lanes_of(
    now: GroupDescription,
    history: GroupHistory,
    now_ms: int,
    *,
    since_ms: int | None = None,
    samples: Sequence[Sample] = (),
    people: Mapping[str, Person] | None = None,
) -> Lanes:
    """The picture of a group. ``since_ms`` is the time since which all generations are known, if the history
    does not say it. ``people`` are owners that were seen before.
    """
    generations = sorted(history.generations, key=lambda row: row.timestamp_ms)
    owned = owners_now(now)
    began = [row.timestamp_ms - (row.duration_ms or 0) for row in generations[:1]]
    first_ms = min([*began, now_ms if since_ms is None else since_ms])
    changes, barriers = _changes_of(row for row in generations if not row.shared)
    gaps = [gap for gap in history.gaps if gap.until_ms > first_ms]
    barriers += [at_ms for gap in gaps for at_ms in gap if at_ms > first_ms]
    lags = {TopicPartition(row.topic, row.partition): row.lag for row in now.partitions}
    places = sorted({*changes, *lags, *(owned or ())})
    numbers: dict[str, int] = {}

    def number(owner: str | None) -> int:
        return NOBODY if owner is None else numbers.setdefault(owner, len(numbers))

    lanes = []
    for place in places[:MOST_LANES]:
        last = UNKNOWN if owned is None else number(owned.get(place))
        moves = [(at, number(old), number(new)) for at, old, new in changes.get(place, ())]
        spans = _spans_of(first_ms, moves, barriers, last, now_ms)
        lanes.append(Lane(place.topic, place.partition, tuple(spans), lags.get(place)))
    owners = _name_owners(numbers, {**(people or {}), **people_of(now, history)})
    return Lanes(
        now,
        now_ms,
        first_ms,
        owners,
        tuple(lanes),
        tuple(generations),
        history.entries,
        history.unknown,
        tuple(samples) or _samples_of(history),
        len(places) - len(lanes),
        tuple(gaps),
        {row.id: row.name for row in owners},
    )


_Change = tuple[int, str | None, str | None]


def _changes_of(generations: Iterable[Generation]) -> tuple[dict[TopicPartition, list[_Change]], list[int]]:
    """Moves of each partition, and the times at which partitions may have moved without being listed."""
    changes: dict[TopicPartition, list[_Change]] = {}
    barriers = []
    for row in generations:
        for move in row.moves or ():
            place = TopicPartition(move.topic, move.partition)
            changes.setdefault(place, []).append((row.timestamp_ms, move.from_owner, move.to_owner))
        if not row.every_move:
            barriers.append(row.timestamp_ms)
    return changes, barriers


def _spans_of(
    first_ms: int, moves: list[tuple[int, int, int]], barriers: list[int], last: int, now_ms: int
) -> list[Span]:
    moved = {at for at, _, _ in moves}
    steps = [*moves, *((at, UNKNOWN, UNKNOWN) for at in barriers if at not in moved)]
    steps.sort(key=lambda step: step[0])
    starts = [first_ms, *(at for at, _, _ in steps)]
    # the owner after a step: the new owner that it lists, else the old owner of the next step
    told = [UNKNOWN, *(new for _, _, new in steps)]
    found = [*(old for _, old, _ in steps), last]
    spans: list[Span] = []
    for start, left, right in zip(starts, told, found, strict=True):
        owner = right if left == UNKNOWN else left
        if spans and spans[-1].start_ms >= start:
            spans.pop()  # it moved again at once
        if not spans or spans[-1].owner != owner:
            spans.append(Span(start, owner))
    if last not in (UNKNOWN, spans[-1].owner):
        spans.append(Span(now_ms, last))  # it moves just now
    return spans


def people_of(now: GroupDescription, history: GroupHistory) -> dict[str, Person]:
    """Client ids and hosts of present and past members, as far as they are known."""
    told = {row.member: Person(row.client_id, row.client_host) for row in history.entries if row.client_id}
    for row in history.generations:
        if row.member and row.client_id:
            told[row.member] = Person(row.client_id, row.client_host or "")
    return told | {member.owner: Person(member.client_id, member.client_host) for member in now.members}


def _name_owners(ids: Collection[str], people: Mapping[str, Person]) -> tuple[Owner, ...]:
    """Names for people: an instance id; a client id where it tells owners apart, with some of a made-up id
    where it does not.
    """
    nobody = Person("", "")
    counts = Counter(people[owner].client_id for owner in ids if owner in people)
    rows = []
    for owner in ids:
        client, host = people.get(owner, nobody)
        name = short(owner)
        made_up = owner.removeprefix(f"{client}-")
        if client and _MADE_UP.fullmatch(made_up):
            name = client if counts[client] == 1 else f"{client} {made_up[:6]}"
        rows.append(Owner(owner, name, host))
    return tuple(rows)


def _samples_of(history: GroupHistory) -> tuple[Sample, ...]:
    return tuple(Sample(each.timestamp_ms, each.records) for each in history.lag if each.records is not None)


def gaps_of_samples(samples: Sequence[Sample]) -> list[TimeStretch]:
    """Stretches in which nobody looked at the lag: much longer than the time between other looks."""
    found = []
    spacings = [after[0] - before[0] for before, after in pairwise(samples)]
    for index, spacing in enumerate(spacings):
        near = max([*spacings[max(0, index - 1) : index], *spacings[index + 1 : index + 2]], default=0)
        if near and spacing > max(_MANY_LOOKS * near, _LONG_MS):
            found.append(TimeStretch(samples[index].timestamp_ms, samples[index + 1].timestamp_ms))
    return found


def keep_sample(samples: list[Sample], sample: Sample) -> None:
    """Add a point of lag; old ones are thinned out."""
    samples.append(sample)
    if len(samples) > MOST_SAMPLES:
        del samples[1 : MOST_SAMPLES // 2 : 2]


def headline(row: Generation) -> str:
    """A generation in one line: its cause, its duration, how much moved."""
    took = "" if row.duration_ms is None else f"took {notation.span(row.duration_ms)}"
    many = "" if row.partitions_moved is None else f"{row.partitions_moved} moved"
    given_up = 0 if row.shared else sum(move.to_owner is None for move in row.moves or ())
    waits = f"{given_up} without an owner" if given_up else ""
    return clean("; ".join(filter(None, (cause(row), took, many, waits))))


def cause(row: Generation) -> str:
    """The cause in words; where it is not known, who came and who went."""
    if row.cause is not None:
        return short(row.cause)
    seen = [f"{len(names)} {words}" for words, names in (("joined", row.joined), ("left", row.left)) if names]
    return f"cause unknown ({', '.join(seen)})" if seen else "cause unknown"


class RebalancePhase(NamedTuple):
    """A part of a rebalance."""

    name: str
    duration_ms: int


def phases(row: Generation, group_type: str | None) -> list[RebalancePhase]:
    """Parts of a rebalance; none if the broker does not report them."""
    if row.duration_ms is None or row.join_ms is None:
        return []
    first, second = ("members join", "the assignment is handed out")
    if group_type == "consumer":
        first, second = ("the target is computed", "partitions are given up and taken over")
    return [RebalancePhase(first, row.join_ms), RebalancePhase(second, max(0, row.duration_ms - row.join_ms))]


def held_up_by(lanes: Lanes, row: Generation) -> list[str]:
    """Members that held a rebalance up, in words, as far as they are known."""
    found = []
    if row.slowest is not None and row.slowest_ms:
        name = lanes.name(row.slowest)
        found.append(f"{name} gave up its partitions after {notation.span(row.slowest_ms)}")
    began_ms = row.timestamp_ms - (row.duration_ms or 0)
    for entry in lanes.entries:
        gone = entry.details.get("cause_kind") in _LATE and entry.kind == EventName.MEMBER_GONE
        if gone and began_ms <= entry.timestamp_ms <= row.timestamp_ms:
            found.append(short(entry.cause))
    return list(dict.fromkeys(found))
