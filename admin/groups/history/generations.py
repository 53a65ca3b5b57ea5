"""Past generations: from the coordinator's own events, and from records where there are no events.

Every finished generation of a classic group leaves one record in ``__consumer_offsets`` with its members and
their assignments; a consumer group leaves many small ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from typing import Final

from ....offsets_topic import ConsumerGroupRecord, GroupDeleted, GroupStored
from ....protocol import EventName, JsonObject, MalformedMessageError, TopicPartition, decode_assignment
from ..requests import CONSUMER
from ..results import (
    SHARE,
    Generation,
    GroupDescription,
    GroupHistory,
    HistoryEntry,
    PartitionMove,
    TimeStretch,
)
from .epochs import DEAD, EpochLog, EpochMember
from .group_records import StoredPast, StoredRecord
from .moves import Owned, compose_moves, moves_between

FROM_COORDINATOR, FROM_RECORDS, FROM_RECORDING = "coordinator", "offsets topic", "recording"

#: What records do not tell, whichever broker wrote them.
_CLASSIC_LACK: Final = "why a generation began, and how long it took, cannot be known"
_EPOCHS_LACK: Final = "whether a member that is gone left or was removed cannot be known"

#: A generation's record is written at most this long before its event. Numbers of generations repeat when a
#: group is deleted and created again.
_WRITTEN_MS: Final = 60_000


def is_whole(told: GroupHistory, limit: int) -> bool:
    """Return whether no generation is missing: as many as were asked for, or all since the group's first."""
    generations = told.generations
    return len(generations) >= limit or (bool(generations) and generations[0].generation <= 1)


def with_records(
    told: GroupHistory, recorded: GroupHistory, limit: int, kept_since_ms: int | None = None
) -> GroupHistory:
    """Fill in older generations, of which there are no events, and those of gaps, in which nobody kept any.
    Those since ``kept_since_ms``, when the broker began to keep events of the group, have made way for newer
    events; None if it does not say since when.
    """
    first = told.generations[0] if told.generations else None

    by_number = {row.generation: row for row in told.generations}

    def is_in_gap(row: Generation) -> bool:
        # a broker remembers what it could not record
        own = by_number.get(row.generation)
        is_told = own is not None and _is_record_of(row, own)
        return not is_told and any(gap.has(row.timestamp_ms) for gap in told.gaps)

    filled = [row for row in recorded.generations if first is None or is_before(row, first) or is_in_gap(row)]
    if not filled:
        return told
    generations = sorted((*filled, *told.generations), key=lambda row: row.timestamp_ms)[-limit:]
    filled = [row for row in filled if row in generations]
    missed = sum(map(is_in_gap, filled))
    dropped = sum(
        kept_since_ms is not None and row.timestamp_ms >= kept_since_ms and not is_in_gap(row)
        for row in filled
    )
    earlier = "ended before the broker began to keep this group's history"
    if kept_since_ms is None:
        earlier += ", or are no longer in it"
    remarks = tuple(
        f"{count} of these generations {words}: they are told from records, which do not have every cause"
        for count, words in (
            (len(filled) - dropped - missed, earlier),
            (missed, "ended while nobody recorded this group"),
            (dropped, "are no longer in the broker's history, which keeps the newest events of a group only"),
        )
        if count
    )
    return replace(told, generations=tuple(generations), unknown=(*told.unknown, *remarks))


def cut_to(history: GroupHistory, stretch: TimeStretch, limit: int) -> GroupHistory:
    """The last ``limit`` generations of a stretch of time."""
    rows = [row for row in history.generations if stretch.has(row.timestamp_ms)]
    return replace(history, generations=tuple(rows[-limit:]))


def is_shortened(told: GroupHistory) -> bool:
    """Return whether events name some of the moves of a generation only."""
    return any(not row.every_move for row in told.generations)


def with_every_move(told: GroupHistory, recorded: GroupHistory) -> GroupHistory:
    """Add the moves that events leave out, from records. One rebalance may be several epochs."""
    numbers = [row.generation for row in told.generations]
    since = [numbers[0] - 1, *numbers[:-1]] if numbers else []
    rows = [
        row if row.every_move else _with_moves_of(row, _rebalance_steps(row, after, recorded.generations))
        for row, after in zip(told.generations, since, strict=True)
    ]
    return replace(told, generations=tuple(rows))


def _rebalance_steps(row: Generation, after: int, records: Iterable[Generation]) -> list[Generation]:
    """Records of a rebalance, of generations higher than ``after``; [] if one is missing."""
    began_ms = row.timestamp_ms - (row.duration_ms or 0) - _WRITTEN_MS
    steps = [
        record
        for record in records
        if after < record.generation <= row.generation and began_ms <= record.timestamp_ms
    ]
    if not steps or steps[-1].generation != row.generation or steps[0].members_before != row.members_before:
        return []
    late = abs(row.timestamp_ms - steps[-1].timestamp_ms) > _WRITTEN_MS
    return [] if late or any(step.moves is None for step in steps) else steps


def _with_moves_of(row: Generation, steps: Iterable[Generation]) -> Generation:
    moves = compose_moves(step.moves or () for step in steps)
    # the listed moves are among them, if these are the records of this rebalance
    return replace(row, moves=moves) if moves and {*moves}.issuperset(row.moves or ()) else row


def is_before(row: Generation, told: Generation) -> bool:
    """Return whether a record is of an earlier generation; its own is written just before the event."""
    began_ms = told.timestamp_ms - (told.duration_ms or 0)
    return row.timestamp_ms <= began_ms and row.generation != told.generation


def _is_record_of(row: Generation, told: Generation) -> bool:
    """Return whether a record is of this generation, not of an earlier group's with the same number."""
    return -_WRITTEN_MS <= told.timestamp_ms - row.timestamp_ms <= (told.duration_ms or 0) + _WRITTEN_MS


def from_events(
    group: str, entries: Iterable[HistoryEntry], limit: int, source: str = FROM_COORDINATOR
) -> GroupHistory:
    """History from a coordinator's events, cut to the last ``limit`` generations."""
    kept = tuple(entries)
    generations = tuple(
        _generation_from(entry) for entry in kept if entry.kind == EventName.REBALANCE_COMPLETED
    )
    return GroupHistory(group, source, kept, generations[-limit:])


def _generation_from(entry: HistoryEntry) -> Generation:
    details = entry.details
    members = _number_in(details, "members") or 0
    return Generation(
        generation=entry.generation,
        timestamp_ms=entry.timestamp_ms,
        state=details.get("state") or ("Stable" if members else "Empty"),
        cause=entry.cause or None,
        member=entry.member or None,
        client_id=entry.client_id or None,
        client_host=entry.client_host or None,
        duration_ms=_number_in(details, "duration_ms"),
        join_ms=_number_in(details, "join_ms"),
        protocol=details.get("protocol") or None,
        leader=details.get("leader") or None,
        members=members,
        members_before=_number_in(details, "members_before"),
        joined=_names_in(details, "joined"),
        left=_names_in(details, "left"),
        moves=_moves_in(details),
        partitions_moved=_number_in(details, "partitions_moved"),
        slowest=details.get("slowest") or None,
        slowest_ms=_number_in(details, "slowest_ms") if details.get("slowest") else None,
        shared=details.get("protocol_type") == SHARE,
    )


def _names_in(details: JsonObject, name: str) -> tuple[str, ...] | None:
    value = details.get(name)
    return tuple(value) if isinstance(value, list) else None


def _moves_in(details: JsonObject) -> tuple[PartitionMove, ...] | None:
    """The moves that an event lists: the first ones only, in a group too large for one response."""
    if details.get("partitions_moved") is None or "moves" not in details:
        return None
    return tuple(PartitionMove(*move) for move in details["moves"])


def _number_in(details: JsonObject, name: str) -> int | None:
    value = details.get(name)
    return value if isinstance(value, int) else None


def from_records(
    group: str, past: StoredPast, limit: int, now: GroupDescription | None = None
) -> GroupHistory:
    """History from records of the offsets topic: members, times and moves, but not every cause.

    A classic group's record before the last ``limit`` ones is only compared with. ``now`` is a consumer group
    after its last record, for what older records than those would say.
    """
    read = _Records(past, now)
    generations = read.generations()[-limit:]
    where = f"{past.partition.topic}-{past.partition.partition}"
    unknown = [f"this broker keeps no history of groups: {lack}" for lack in read.lacks]
    if generations:
        unknown.append(
            f"{' and '.join(read.found)} are read from {where}, which compaction thins out with time"
        )
    else:
        unknown.append(f"this broker keeps no history of groups, and {where} has no rebalance of this one")
    if read.has_left_out:
        unknown.append("partitions of topics that do not exist any more are left out")
    if not past.complete:
        unknown.append(f"reading {where} stopped at its limit: there may be older generations")
    return GroupHistory(group, FROM_RECORDS, (), tuple(generations), tuple(unknown))


class _Records:
    """Reads the records of a group, which may change its type.

    ``lacks`` says what they do not tell, ``found`` what was found. Between two records of different types,
    ``_before`` is what owners had, and ``_members`` are members by id; None if unknown.
    """

    def __init__(self, past: StoredPast, now: GroupDescription | None) -> None:
        self.lacks: list[str] = []
        self.found: list[str] = []
        self.has_left_out = False
        self._past = past
        self._now = now
        self._before: Owned | None = None
        self._members: dict[str, EpochMember] | None = None

    def generations(self) -> list[Generation]:
        """Every generation and epoch, oldest first. To be called once."""
        rows: list[Generation] = []
        kinds = groupby(self._past.records, lambda row: isinstance(row.record, ConsumerGroupRecord))
        runs = [(has_epochs, list(run)) for has_epochs, run in kinds]
        for (has_epochs, run), after in zip_longest(runs, runs[1:]):
            # a group that changes its type is deleted as one of the first, in the same write
            changes_type = after is not None and after[1][0].timestamp_ms <= run[-1].timestamp_ms
            if has_epochs:
                made = self._epochs_of(run, after is None, changes_type)
                self._note_generation(made, "epochs", _EPOCHS_LACK)
            else:
                made = self._classic_generations(
                    run[:-1] if changes_type else run, rows[-1].generation if rows else -1
                )
                self._note_generation(made, "generations", _CLASSIC_LACK)
            rows += made
        return rows

    def _note_generation(self, made: Sequence[Generation], found: str, lack: str) -> None:
        if made and found not in self.found:
            self.found.append(found)
            self.lacks.append(lack)

    def _epochs_of(self, run: Sequence[StoredRecord], is_last: bool, changes_type: bool) -> list[Generation]:
        now = self._now if is_last and not self._past.from_start else None
        owners = {member.member_id: member.owner for member in now.members} if now is not None else {}
        shared = any(row.shared for row in run)
        log = EpochLog(self._past.topics, owners, self._members, shared=shared)
        for row in run:
            if isinstance(row.record, ConsumerGroupRecord):
                log.add(row.timestamp_ms, row.record)
        made = log.generations(len(owners) if now is not None else None)
        self.has_left_out = self.has_left_out or log.has_left_out
        self._before, self._members = log.owned_partitions(), {}
        if made and made[-1].state == DEAD:
            if changes_type:
                made.pop()
            else:
                self._before = {}
        return made

    def _classic_generations(self, run: Iterable[StoredRecord], last: int) -> list[Generation]:
        made: list[Generation] = []
        for row in run:
            record = row.record
            assert not isinstance(record, ConsumerGroupRecord), "the other type"
            after = _owned_in(record)
            # generation 0 is the group's creation, before it had a member
            if after or not isinstance(record, GroupStored) or record.generation:
                made.append(_compare_records(row.timestamp_ms, record, self._before, after, last))
                last = made[-1].generation
            self._before = after
            self._members = {}
            if isinstance(record, GroupStored):
                self._members = {
                    each.member_id: EpochMember(owner, after[owner], is_new=False)
                    for each in record.members
                    for owner in (each.instance_id or each.member_id,)
                }
        return made


def _compare_records(
    timestamp_ms: int, record: GroupStored | GroupDeleted, before: Owned | None, after: Owned, last: int
) -> Generation:
    state = DEAD
    if isinstance(record, GroupStored):
        state, last = "Stable" if record.members else "Empty", record.generation
    moves = None if before is None else moves_between(before, after)
    return Generation(
        generation=last,
        timestamp_ms=timestamp_ms,
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


def _owned_in(record: GroupStored | GroupDeleted) -> Owned:
    if isinstance(record, GroupDeleted):
        return {}
    readable = record.protocol_type == CONSUMER
    return {
        member.instance_id or member.member_id: _partitions_of(member.assignment) if readable else None
        for member in record.members
    }


def _partitions_of(assignment: bytes) -> frozenset[TopicPartition] | None:
    try:
        return frozenset(decode_assignment(assignment).partitions)
    except MalformedMessageError:
        return None
