"""Judges a history in the manner of Jepsen's Kafka workload. Pure: history in, anomalies out.

The producers are idempotent, so a value may be in the log once; the final read is of everything there is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.torture.history import Commit, GroupHistory, History, Place, value_of

#: What is looked for, and what it means.
ANOMALIES = {
    "lost write": "an acknowledged record is not in the log though what was written later is",
    "unseen": "an acknowledged record at the end of the log is not there",
    "duplicate": "a value of an idempotent producer is in the log twice",
    "phantom": "a record that nobody sent",
    "inconsistent offset": "two values for one offset, told or read",
    "skipped poll": "a reader was not given a record that lies between two that it was given",
    "non-monotonic poll": "a reader was given an offset again, or out of order",
    "non-monotonic send": "a producer was told a lower offset for a later record of a partition",
    "lost commit": "a group's offset lies below one that was acknowledged before",
    "phantom commit": "a group's offset that nobody committed",
    "commit above work": "a group's last offset lies above a record that no member was given",
}


class Anomaly(NamedTuple):
    """``kind`` is one of ANOMALIES; ``places`` are those in the log that it is about, where there are any."""

    kind: str
    text: str
    places: tuple[Place, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong with it."""
    return [
        *_writes(history),
        *_offsets(history),
        *_polls(history),
        *(found for name, group in history.groups.items() for found in _commits(name, group)),
    ]


def _writes(history: History) -> Iterator[Anomaly]:
    ends: dict[int, int] = defaultdict(int)
    places: dict[bytes, list[Place]] = defaultdict(list)
    for place, value in sorted(history.final.items()):
        ends[place[0]] = place[1] + 1
        places[value].append(place)
    for producer, sent in history.sent.items():
        last: dict[int, int] = {}
        for number, partition, offset in sent:
            value = value_of(producer, number)
            if value not in places:
                kind = "lost write" if offset < ends[partition] else "unseen"
                yield Anomaly(kind, f"{value!r}, acknowledged at {partition}/{offset}")
        for number, partition, offset in sorted(sent):
            if offset <= last.get(partition, -1):
                yield Anomaly("non-monotonic send", f"{producer}:{number} at {partition}/{offset}")
            last[partition] = offset
    for value, found in places.items():
        if len(found) > 1:
            yield Anomaly("duplicate", f"{value!r} at {found}", tuple(found))
        producer, _, count = value.decode(errors="replace").rpartition(":")
        if not count.isdigit() or int(count) >= history.tried.get(producer, 0):
            yield Anomaly("phantom", f"{value!r} at {found}")


def _offsets(history: History) -> Iterator[Anomaly]:
    told = dict(history.final)
    for producer, sent in history.sent.items():
        for number, partition, offset in sent:
            value = value_of(producer, number)
            if told.setdefault((partition, offset), value) != value:
                other = told[partition, offset]
                yield Anomaly("inconsistent offset", f"{partition}/{offset}: {other!r}, {producer} {value!r}")
    for session in history.sessions:
        for partition, got in session.got.items():
            for offset, value in got:
                if told.setdefault((partition, offset), value) != value:
                    other = told[partition, offset]
                    text = f"{partition}/{offset}: {other!r}, {session.reader} {value!r}"
                    yield Anomaly("inconsistent offset", text)


def _polls(history: History) -> Iterator[Anomaly]:
    there: dict[int, list[int]] = defaultdict(list)
    for partition, offset in sorted(history.final):
        there[partition].append(offset)
    for session in history.sessions:
        for partition, got in session.got.items():
            known = there[partition]
            for (before, _), (offset, _) in pairwise(got):
                where = f"{session.reader} got {partition}/{offset} after {before}"
                if offset <= before:
                    yield Anomaly("non-monotonic poll", where)
                elif bisect_left(known, offset) > bisect_right(known, before):
                    yield Anomaly("skipped poll", where)


def _commits(name: str, group: GroupHistory) -> Iterator[Anomaly]:
    acknowledged, tried = _highest(group.acknowledged), _highest(group.tried)
    for seen in group.seen:
        if seen.offset < acknowledged(seen):
            text = f"{name} {seen.partition}: {seen.offset}, acknowledged was {acknowledged(seen)}"
            yield Anomaly("lost commit", text)
        if seen.offset > tried(Commit(_AT_THE_END, seen.partition, 0)):
            yield Anomaly("phantom commit", f"{name} {seen.partition}: {seen.offset}")
    if group.follows_records:
        for partition in sorted({commit.partition for commit in group.acknowledged}):
            end = acknowledged(Commit(_AT_THE_END, partition, 0))
            missing = set(range(end)) - group.handled[partition]
            if missing:
                text = f"{name} {partition}: {end} is committed, {len(missing)} records were given to nobody"
                yield Anomaly("commit above work", f"{text}, the first is {min(missing)}")


_AT_THE_END = 1 << 62


class _highest:  # noqa: N801 - a function with tables
    """The highest offset of a partition among commits before a tick; -1 for none."""

    def __init__(self, commits: list[Commit]) -> None:
        self._ticks: dict[int, list[int]] = defaultdict(list)
        self._offsets: dict[int, list[int]] = defaultdict(list)
        for tick, partition, offset in sorted(commits):
            so_far = self._offsets[partition]
            self._ticks[partition].append(tick)
            so_far.append(max(offset, so_far[-1] if so_far else -1))

    def __call__(self, at: Commit) -> int:
        found = bisect_left(self._ticks[at.partition], at.tick)
        return self._offsets[at.partition][found - 1] if found else -1
