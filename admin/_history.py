"""Past generations: from the coordinator's own events, and from records where there are no events.

Every finished generation leaves one record in ``__consumer_offsets`` with its members and their assignments,
until compaction takes all but the last. The log is read as a plain topic from its end, in windows that grow,
until enough generations have been seen; a group's records are found by their keys, so that others are not
decoded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ..client import EARLIEST, LATEST, Cluster
from ..consumer.decode import ChunkReader
from ..offsets_topic import (
    CorruptRecordError,
    GroupDeleted,
    GroupStored,
    decode,
    group_key,
    partition_for,
)
from ..protocol import (
    EventName,
    KafkaError,
    MalformedMessageError,
    TopicPartition,
    decode_assignment,
)
from ._requests import CONSUMER
from .results import Generation, GroupHistory, HistoryEntry, PartitionMove, Progress

#: Owners and what they hold; the value is None where it cannot be read.
Owned = dict[str, frozenset[TopicPartition] | None]

FROM_COORDINATOR, FROM_RECORDS = "coordinator", "offsets topic"

#: A generation's record is written at most this long before its event. Numbers of generations repeat when a
#: group is deleted and created again.
_WRITTEN_MS: Final = 60_000

#: What records never contain, whichever broker wrote them.
UNKNOWABLE: Final = (
    "this broker keeps no history of groups: why a generation began, and how long it took, cannot be known",
)


def whole(told: GroupHistory, limit: int) -> bool:
    """Return whether no generation is missing: as many as were asked for, or all since the group's first."""
    generations = told.generations
    return len(generations) >= limit or (bool(generations) and generations[0].generation <= 1)


def with_records(told: GroupHistory, recorded: GroupHistory, limit: int) -> GroupHistory:
    """Fill in the generations before the broker's start, of which there are no events: without causes."""
    first = told.generations[0] if told.generations else None
    older = [row for row in recorded.generations if first is None or _before(row, first)]
    if not older:
        return told
    generations = (*older, *told.generations)[-limit:]
    filled = sum(row.cause is None for row in generations)
    words = f"{filled} of these generations ended before the broker began to keep this group's history"
    return replace(told, generations=generations, unknown=(f"{words}: their causes are unknown",))


def shortened(told: GroupHistory) -> bool:
    """Return whether events name some of the moves of a generation only."""
    return any(not row.every_move for row in told.generations)


def with_every_move(told: GroupHistory, recorded: GroupHistory) -> GroupHistory:
    """Add the moves that events leave out, from the records of generations."""
    records = {row.generation: row for row in recorded.generations if row.moves is not None}

    def filled(row: Generation) -> Generation:
        record = records.get(row.generation)
        if row.every_move or record is None or not 0 <= row.timestamp_ms - record.timestamp_ms <= _WRITTEN_MS:
            return row
        return replace(row, moves=record.moves)

    return replace(told, generations=tuple(map(filled, told.generations)))


def _before(row: Generation, told: Generation) -> bool:
    """Return whether a record is of an earlier generation; its own is written just before the event."""
    began_ms = told.timestamp_ms - (told.duration_ms or 0)
    return row.timestamp_ms <= began_ms and row.generation != told.generation


def from_events(group: str, entries: Iterable[HistoryEntry], limit: int) -> GroupHistory:
    """History from a coordinator's events, cut to the last ``limit`` generations."""
    kept = tuple(entries)
    generations = tuple(_told(entry) for entry in kept if entry.kind == EventName.REBALANCE_COMPLETED)
    return GroupHistory(group, FROM_COORDINATOR, kept, generations[-limit:])


def _told(entry: HistoryEntry) -> Generation:
    details = entry.details
    members = _number(details, "members") or 0
    return Generation(
        generation=entry.generation,
        timestamp_ms=entry.timestamp_ms,
        state="Stable" if members else "Empty",
        cause=entry.cause,
        member=entry.member or None,
        client_id=entry.client_id or None,
        client_host=entry.client_host or None,
        duration_ms=_number(details, "duration_ms"),
        join_ms=_number(details, "join_ms"),
        protocol=details.get("protocol") or None,
        leader=details.get("leader") or None,
        members=members,
        members_before=_number(details, "members_before"),
        joined=_names(details, "joined"),
        left=_names(details, "left"),
        moves=_moves(details),
        partitions_moved=_number(details, "partitions_moved"),
        slowest=details.get("slowest") or None,
        slowest_ms=_number(details, "slowest_ms") if details.get("slowest") else None,
    )


def _names(details: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = details.get(name)
    return tuple(value) if isinstance(value, list) else None


def _moves(details: Mapping[str, Any]) -> tuple[PartitionMove, ...] | None:
    """The moves that an event lists: the first ones only, in a group too large for one response."""
    if details.get("partitions_moved") is None or "moves" not in details:
        return None
    return tuple(PartitionMove(*move) for move in details["moves"])


def _number(details: Mapping[str, Any], name: str) -> int | None:
    value = details.get(name)
    return value if isinstance(value, int) else None


def from_records(group: str, past: StoredPast, limit: int) -> GroupHistory:
    """History from records of the offsets topic: members, times and moves, but no causes.

    The record before the last ``limit`` ones is only compared with.
    """
    generations: list[Generation] = []
    before: Owned | None = None
    for row in past.generations:
        after = _owned(row.record)
        # generation 0 is the group's creation, before it had a member
        if after or not isinstance(row.record, GroupStored) or row.record.generation:
            last = generations[-1].generation if generations else -1
            generations.append(_compared(row, before, after, last))
        before = after
    where = f"{past.partition.topic}-{past.partition.partition}"
    unknown = [*UNKNOWABLE, f"generations are read from {where}, which compaction thins out with time"]
    if not past.complete:
        unknown.append(f"reading {where} stopped at its limit: there may be older generations")
    return GroupHistory(group, FROM_RECORDS, (), tuple(generations[-limit:]), tuple(unknown))


def _compared(row: StoredGeneration, before: Owned | None, after: Owned, last: int) -> Generation:
    record = row.record
    state = "Dead"
    if isinstance(record, GroupStored):
        state, last = "Stable" if record.members else "Empty", record.generation
    moves = None if before is None else moved(before, after)
    return Generation(
        generation=last,
        timestamp_ms=row.timestamp_ms,
        state=state,
        protocol=getattr(record, "protocol", None),
        leader=getattr(record, "leader", None),
        members=len(after),
        members_before=None if before is None else len(before),
        joined=None if before is None else tuple(sorted(after.keys() - before.keys())),
        left=None if before is None else tuple(sorted(before.keys() - after.keys())),
        moves=moves,
        partitions_moved=None if moves is None else sum(move.to_owner is not None for move in moves),
    )


def _owned(record: GroupStored | GroupDeleted) -> Owned:
    if isinstance(record, GroupDeleted):
        return {}
    readable = record.protocol_type == CONSUMER
    return {
        member.instance_id or member.member_id: _partitions(member.assignment) if readable else None
        for member in record.members
    }


def _partitions(assignment: bytes) -> frozenset[TopicPartition] | None:
    try:
        return frozenset(decode_assignment(assignment).partitions)
    except MalformedMessageError:
        return None


def moved(before: Owned, after: Owned) -> tuple[PartitionMove, ...] | None:
    """Partitions that moved between two generations; None when an assignment cannot be read."""
    old, new = _owners(before), _owners(after)
    if old is None or new is None:
        return None
    return tuple(
        PartitionMove(*partition, old.get(partition), new.get(partition))
        for partition in sorted({*old, *new})
        if old.get(partition) != new.get(partition)
    )


def _owners(owned: Owned) -> dict[TopicPartition, str] | None:
    if None in owned.values():
        return None
    return {partition: owner for owner, partitions in owned.items() for partition in partitions or ()}


OFFSETS_TOPIC: Final = "__consumer_offsets"

_FIRST_WINDOW, _LARGEST_WINDOW = 2_000, 100_000
_FETCH_BYTES: Final = 4 * 1024 * 1024


class StoredGeneration(NamedTuple):
    """A group's record and the time at which it was written; GroupDeleted: the group was deleted."""

    timestamp_ms: int
    record: GroupStored | GroupDeleted


@dataclass(frozen=True, slots=True)
class StoredPast:
    """Records of a group, oldest first. ``complete`` is False if reading stopped at its limit."""

    partition: TopicPartition
    generations: tuple[StoredGeneration, ...]
    complete: bool


async def read_past(
    cluster: Cluster,
    group: str,
    wanted: int,
    max_offsets: int,
    progress: Progress | None = None,
) -> StoredPast:
    """The last ``wanted`` records of a group; fewer if the log begins, or ``max_offsets`` are read, before.

    Raises KafkaError when the topic may not be read, or does not exist (3).
    """
    known = await cluster.metadata([OFFSETS_TOPIC])
    count = len(known.partitions(OFFSETS_TOPIC))
    if not count:
        raise KafkaError(known.errors.get(OFFSETS_TOPIC, 3), f"topic {OFFSETS_TOPIC!r}")
    partition = TopicPartition(OFFSETS_TOPIC, partition_for(group, count))
    first = (await cluster.list_offsets({partition: EARLIEST}))[partition].offset
    end = (await cluster.list_offsets({partition: LATEST}))[partition].offset
    stop = max(first, end - max_offsets)
    found: list[StoredGeneration] = []
    window, high = _FIRST_WINDOW, end
    while high > stop and len(found) < wanted:
        low = max(stop, high - window)
        found = [row async for row in _rows(cluster, partition, group, low, high)] + found
        high, window = low, min(window * 4, _LARGEST_WINDOW)
        if progress is not None:
            progress(end - high, end - stop)
    return StoredPast(partition, tuple(found[-wanted:]), complete=high <= first or len(found) >= wanted)


async def _rows(
    cluster: Cluster, partition: TopicPartition, group: str, low: int, high: int
) -> AsyncIterator[StoredGeneration]:
    key, offset = group_key(group), low
    while offset < high:
        reader = await _fetched(cluster, partition, offset)
        while records := reader.read():
            for record in records:
                if record.key == key and low <= record.offset < high:
                    row = _decoded(record.key, record.value)
                    if row is not None:
                        yield StoredGeneration(record.timestamp_ms, row)
        if reader.next_offset <= offset:
            return
        offset = reader.next_offset


async def _fetched(cluster: Cluster, partition: TopicPartition, offset: int) -> ChunkReader:
    async def attempt() -> ChunkReader:
        answer = await cluster.fetch(
            {partition: offset}, max_bytes=_FETCH_BYTES, partition_max_bytes=_FETCH_BYTES, max_wait_ms=0
        )
        if partition not in answer:
            raise KafkaError(7, f"no answer about {partition.topic}-{partition.partition}")
        row = answer[partition]
        if row.error_code:
            raise KafkaError(row.error_code, f"reading {partition.topic}-{partition.partition}")
        return ChunkReader(partition, row.records, offset)

    return await cluster.retrying(attempt)


def _decoded(key: bytes, value: bytes | None) -> GroupStored | GroupDeleted | None:
    try:
        record = decode(key, value)
    except CorruptRecordError:
        return None
    return record if isinstance(record, (GroupStored, GroupDeleted)) else None
