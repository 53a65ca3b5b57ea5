"""Past epochs of a consumer group (KIP-848), from its records.

A group is stored in many small records. A member's record, or its tombstone, comes before the epoch that it
raises; after the epoch come the targets that changed, the epoch of the target, and each member's steps
towards its target. An epoch is over when every member has reached its target, or when the next one begins.

Older records may be gone. So a member's first record does not say that the member is new; its first
assignment does, which has no previous epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import UUID

from ....offsets_topic import (
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupEpoch,
    GroupRecordType,
    MemberMetadata,
    Partitions,
    TargetAssignment,
    TargetEpoch,
)
from ....protocol import TopicPartition
from ....statemachine import AssignmentState, ConsumerGroupState
from ..results import Generation
from .moves import Owned, moves_between, shared_moves_between

DEAD: Final = "Dead"

_STABLE: Final = AssignmentState.STABLE.value
#: The greatest first epoch of a group.
_FIRST_EPOCH: Final = 2
#: Epoch of a static member that is away: nobody waits for it.
_AWAY: Final = -2
#: Changes of one generation that are named; the others are counted.
_CAUSES_SHOWN: Final = 5


@dataclass(slots=True, eq=False)
class EpochMember:
    """A member. ``owner`` is its instance id, else its id; ``target`` and ``metadata`` are None if unknown,
    and so is ``is_new`` before its first assignment.
    """

    owner: str
    target: frozenset[TopicPartition] | None = None
    metadata: MemberMetadata | None = None
    current: CurrentAssignment | None = None
    is_new: bool | None = None
    revoking_since_ms: int | None = None

    @property
    def name(self) -> str:
        """How the member is called in causes: a static one by its instance id."""
        is_static = self.metadata is not None and self.metadata.instance_id is not None
        return f"{'static ' * is_static}member {self.owner}"

    def is_settled(self, target_epoch: int) -> bool:
        """Return whether the member has reached the target of this epoch, or is away."""
        current = self.current
        if current is None:
            return False
        return current.epoch == _AWAY or (current.state == _STABLE and current.epoch == target_epoch)


@dataclass(slots=True, eq=False)
class _Epoch:
    """An epoch that is not over. ``was`` has the members that changed as they were before, None for one that
    was not seen; ``retargeted`` those with another target. ``is_first``: nothing before it is known.
    """

    number: int
    started_ms: int
    is_first: bool = False
    assigned_ms: int | None = None
    was: dict[str, EpochMember | None] = field(default_factory=dict)
    retargeted: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    changes: list[str] = field(default_factory=list)
    slowest: tuple[str, int] | None = None


class _EpochRow(NamedTuple):
    """An epoch that is over, and how many members it added; None if that is unknown."""

    generation: Generation
    added: int | None


@dataclass(slots=True, eq=False)
class _Difference:
    """What an epoch changed: members by owner before and after, and what they owned."""

    before: Owned = field(default_factory=dict)
    after: Owned = field(default_factory=dict)
    joined: dict[str, EpochMember] = field(default_factory=dict)
    left: dict[str, EpochMember] = field(default_factory=dict)
    added: int = 0


class EpochLog:
    """Takes the records of a consumer group in order, and gives its epochs.

    ``topics`` has the names of topic ids: partitions of other topics are left out, and ``has_left_out`` is
    True. ``owners`` has names of members by id, whose records may be gone; ``members`` those of the classic
    group that became this group, None if nothing is known of the time before the first record. ``shared``: it
    is a share group, whose partitions have many owners.
    """

    def __init__(
        self,
        topics: Mapping[UUID, str],
        owners: Mapping[str, str] | None = None,
        members: Mapping[str, EpochMember] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._shared = shared
        self.has_left_out = False
        self._topics = topics
        self._owners = owners or {}
        self._members = dict(members or {})
        self._is_known = members is not None
        # records of members, which belong to the epoch that they raise
        self._pending: list[ConsumerGroupRecord] = []
        self._open: _Epoch | None = None
        self._topics_hash: int | None = None
        self._target_epoch = -1
        self._rows: list[_EpochRow] = []
        self._last: Owned = {}

    def add(self, timestamp_ms: int, record: ConsumerGroupRecord) -> None:
        """Take a record."""
        value = record.value
        if record.type is GroupRecordType.MEMBER:
            self._pending.append(record)
        elif isinstance(value, GroupEpoch):
            self._begin_epoch(timestamp_ms, value)
        elif record.type is GroupRecordType.EPOCH:
            self._remove_group(timestamp_ms)
        elif isinstance(value, TargetAssignment):
            self._apply_pending()
            self._set_target(record.name, value.partitions)
        elif isinstance(value, TargetEpoch):
            self._apply_pending()
            self._target_epoch = value.epoch
            if self._open is not None and self._open.assigned_ms is None:
                self._open.assigned_ms = timestamp_ms
            self._settle_epoch(timestamp_ms)
        elif isinstance(value, CurrentAssignment):
            self._apply_pending()
            self._step_member(timestamp_ms, record.name, value)
            self._settle_epoch(timestamp_ms)

    def generations(self, members_now: int | None = None) -> list[Generation]:
        """The epochs that are over, oldest first. ``members_now`` is the number of members after the last
        record; None if all of them have records.
        """
        self._apply_pending()
        members = len(self._members) if members_now is None else members_now
        if self._open is not None:
            if members:
                members -= _difference_of(self._open, self._members, self._is_known).added
            else:
                self._close(self._open.started_ms)
        counted = []
        for row, added in reversed(self._rows):
            before = None if added is None else max(0, members - added)
            if not members and row.state != DEAD:
                # nobody was to reach a target
                started_ms = row.timestamp_ms - (row.duration_ms or 0)
                row = replace(row, state=ConsumerGroupState.EMPTY.value, timestamp_ms=started_ms)
                row = replace(row, duration_ms=0, join_ms=0)
            counted.append(replace(row, members=members, members_before=before))
            members = members if before is None else before
        return counted[::-1]

    def owned_partitions(self) -> Owned:
        """What members have after the last record; of a group that is gone, what they had."""
        self._apply_pending()
        return _owned_partitions_of(self._members) if self._members else self._last

    # records

    def _begin_epoch(self, timestamp_ms: int, value: GroupEpoch) -> None:
        if self._open is not None:
            self._close(timestamp_ms, ConsumerGroupState.RECONCILING.value)
        is_known = self._is_known or value.epoch <= _FIRST_EPOCH
        self._open = _Epoch(value.epoch, timestamp_ms, is_first=not is_known and not self._rows)
        self._is_known = is_known
        self._apply_pending()
        if self._topics_hash not in (None, value.metadata_hash) and not self._open.was:
            self._open.changes.append("the topics that members subscribe to changed")
        self._topics_hash = value.metadata_hash

    def _remove_group(self, timestamp_ms: int) -> None:
        """The group is deleted, or becomes a classic one."""
        if self._open is not None:
            self._close(timestamp_ms)
        number = self._rows[-1].generation.generation if self._rows else -1
        self._last = _owned_partitions_of(self._members)
        self._open = _Epoch(number, timestamp_ms)
        self._apply_pending()
        for member_id in list(self._members):
            self._lose_member(member_id)
        self._close(timestamp_ms, DEAD)
        self._is_known, self._topics_hash = True, None

    def _apply_pending(self) -> None:
        pending, self._pending = self._pending, []
        for record in pending:
            if isinstance(record.value, MemberMetadata):
                self._describe_member(record.name, record.value)
            else:
                self._lose_member(record.name)

    def _describe_member(self, member_id: str, metadata: MemberMetadata) -> None:
        self._note_before(member_id)
        member = self._member_of(member_id)
        before, member.metadata = member.metadata, metadata
        member.owner = metadata.instance_id or member_id
        if self._open is None or before is None:
            return
        if (before.topics, before.regex) != (metadata.topics, metadata.regex):
            self._open.changes.append(f"{member.name} changed its subscription")
        elif before.assignor != metadata.assignor:
            self._open.changes.append(f"{member.name} changed its assignor")

    def _lose_member(self, member_id: str) -> None:
        self._note_before(member_id)
        if self._members.pop(member_id, None) is None and self._open is not None:
            self._open.unseen.add(member_id)

    def _set_target(self, member_id: str, partitions: Partitions) -> None:
        self._note_before(member_id)
        if self._open is not None:
            self._open.retargeted.add(member_id)
        named = {
            self._topics[topic_id]: numbers
            for topic_id, numbers in partitions.items()
            if topic_id in self._topics
        }
        self.has_left_out = self.has_left_out or len(named) < len(partitions)
        self._member_of(member_id).target = frozenset(
            TopicPartition(topic, number) for topic, numbers in named.items() for number in numbers
        )

    def _step_member(self, timestamp_ms: int, member_id: str, current: CurrentAssignment) -> None:
        member = self._member_of(member_id)
        if member.is_new is None:
            member.is_new = current.previous_epoch <= 0
        member.current = current
        if current.revoking:
            if member.revoking_since_ms is None:
                member.revoking_since_ms = timestamp_ms
        elif member.revoking_since_ms is not None:
            took_ms, member.revoking_since_ms = timestamp_ms - member.revoking_since_ms, None
            epoch = self._open
            if epoch is not None and (epoch.slowest is None or epoch.slowest[1] < took_ms):
                epoch.slowest = member.owner, took_ms

    def _member_of(self, member_id: str) -> EpochMember:
        if member_id not in self._members:
            self._members[member_id] = EpochMember(self._owners.get(member_id, member_id))
        return self._members[member_id]

    def _note_before(self, member_id: str) -> None:
        """Keep what a member was before the open epoch changed it."""
        if self._open is not None and member_id not in self._open.was:
            known = self._members.get(member_id)
            self._open.was[member_id] = None if known is None else replace(known)

    # epochs

    def _settle_epoch(self, timestamp_ms: int) -> None:
        if self._open is None or self._target_epoch != self._open.number:
            return
        if all(member.is_settled(self._target_epoch) for member in self._members.values()):
            self._close(timestamp_ms)

    def _close(self, ended_ms: int, state: str = ConsumerGroupState.STABLE.value) -> None:
        epoch, self._open = self._open, None
        assert epoch is not None, "an epoch is open"
        row = Generation(
            epoch.number,
            ended_ms,
            state,
            duration_ms=ended_ms - epoch.started_ms,
            join_ms=None if epoch.assigned_ms is None else epoch.assigned_ms - epoch.started_ms,
            slowest=epoch.slowest[0] if epoch.slowest else None,
            slowest_ms=epoch.slowest[1] if epoch.slowest else None,
            shared=self._shared,
        )
        if epoch.is_first:
            self._rows.append(_EpochRow(row, None))
            return
        change = _difference_of(epoch, self._members, self._is_known)
        find = shared_moves_between if self._shared else moves_between
        moves = find(change.before, change.after)
        causes = [*_comings_and_goings(change), *epoch.changes]
        about = [*change.joined.items(), *change.left.items()]
        who, metadata = (about[0][0], about[0][1].metadata) if about else (None, None)
        row = replace(
            row,
            cause=_sentence_of(causes),
            member=who,
            client_id=metadata.client_id if metadata else None,
            client_host=metadata.client_host if metadata else None,
            joined=_names_of(change.joined, change.left),
            left=_names_of(change.left, change.joined),
            moves=moves,
            partitions_moved=None if moves is None else sum(move.to_owner is not None for move in moves),
        )
        self._rows.append(_EpochRow(row, change.added))


def _difference_of(epoch: _Epoch, members: Mapping[str, EpochMember], is_known: bool) -> _Difference:
    found = _Difference()
    for member_id, was in epoch.was.items():
        now = members.get(member_id)
        if was is None and now is None:
            if member_id in epoch.unseen:
                # what it had is unknown, so what became of that is, too
                found.left[member_id] = EpochMember(member_id)
                found.before[member_id] = None
            continue
        if was is None and now is not None and not (is_known or now.is_new is not False):
            was = replace(now, target=None)
        if now is not None and was is not None and member_id not in epoch.retargeted:
            continue
        if was is not None:
            found.before[was.owner] = was.target
        if now is not None:
            found.after[now.owner] = now.target or frozenset()
        if was is None and now is not None:
            found.joined[member_id] = now
        if now is None and was is not None:
            found.left[member_id] = was
    found.added = len(found.joined) - len(found.left)
    return found


def _comings_and_goings(change: _Difference) -> Iterator[str]:
    yield from (f"{member.name} joined" for member in change.joined.values())
    yield from (f"{member.name} is gone" for member in change.left.values())


def _sentence_of(causes: list[str]) -> str | None:
    shown = list(dict.fromkeys(causes))
    if len(shown) > _CAUSES_SHOWN:
        shown[_CAUSES_SHOWN:] = [f"{len(shown) - _CAUSES_SHOWN} more changes"]
    return "; ".join(shown) or None


def _names_of(members: Mapping[str, EpochMember], others: Mapping[str, EpochMember]) -> tuple[str, ...]:
    """Owners of members, without those that are another member's, too: a static member has a new id."""
    return tuple(sorted({each.owner for each in members.values()} - {each.owner for each in others.values()}))


def _owned_partitions_of(members: Mapping[str, EpochMember]) -> Owned:
    return {member.owner: member.target for member in members.values()}
