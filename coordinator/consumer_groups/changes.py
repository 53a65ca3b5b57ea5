"""Changes of a consumer group: the records of one step, in Kafka's order, and the timers of its members.

Each record changes the live group at once: the next request sees the change, and its response waits for the
write. If the log refuses a record, the live group is rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ...offsets_topic import (
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupEpoch,
    GroupRecordType,
    GroupRecordValue,
    MemberMetadata,
    Record,
)
from ...protocol import CauseKind, ErrorCode
from ...protocol.messages.sync_group import SyncGroupResponse
from ...statemachine import ConsumerGroupState
from ..classic_groups.group import ClassicGroup
from ..classic_groups.members import answer_join_error, answer_sync
from ..classic_groups.rebalance import resume
from ..groups.events import Cause, MemberGone, RebalanceCompleted, RebalanceStarted, RevocationAsked
from ..groups.groups import CONSUMER, GroupShard, forget_group
from .configs import config_of
from .group import (
    REVOCATION,
    SESSION,
    ConsumerGroup,
    ConsumerGroupMember,
    Rebalance,
    find_consumer_group,
    stop_member_timers,
)
from .holding import answer_held, answer_soon
from .shard_state import state_of

_TYPES = GroupRecordType
_EPOCHS: Final = (_TYPES.EPOCH, _TYPES.TARGET_EPOCH)


@dataclass(slots=True, eq=False)
class Changes:
    """The records of one step on a group, in Kafka's order. ``commit`` hands them out as one write."""

    shard: GroupShard
    group: ConsumerGroup
    now_ms: int
    records: list[Record] = field(default_factory=list)
    #: Whether the group has another epoch or target.
    has_moved: bool = False
    #: Assignments that this step has replaced.
    given_up: list[CurrentAssignment] = field(default_factory=list)

    def put_record(self, kind: GroupRecordType, name: str, value: GroupRecordValue | None) -> None:
        """Add a record, which takes effect at once."""
        if kind is _TYPES.CURRENT and name in self.group.members:
            self.given_up.append(self.group.members[name].current)
        self.group.apply(kind, name, value)
        self.has_moved = self.has_moved or kind in _EPOCHS
        self.records.append(ConsumerGroupRecord(kind, self.group.group_id, name, value))

    def set_member(self, member_id: str, metadata: MemberMetadata) -> None:
        """Set a member's metadata."""
        self.put_record(_TYPES.MEMBER, member_id, metadata)

    def set_current(self, member: ConsumerGroupMember, current: CurrentAssignment) -> None:
        """Set a member's current assignment."""
        self.put_record(_TYPES.CURRENT, member.member_id, current)

    def start_revocation(self, member: ConsumerGroupMember) -> None:
        """Start the time within which a member has to revoke partitions."""
        start_revocation(self.shard, self.group, member, self.now_ms)
        rebalance = self.group.rebalance
        if rebalance is not None:
            rebalance.revoking.setdefault(member.member_id, self.now_ms)
        count = sum(map(len, member.current.revoking.values()))
        cause = member.cause(CauseKind.OTHER, f"{member.name} is to give up {count} partitions")
        told = cause.event(RevocationAsked, self.group.group_id, self.group.target_epoch, partitions=count)
        self.shard.tell(told)

    def end_revocation(self, member: ConsumerGroupMember) -> None:
        """End the revocation of a member that has nothing left to revoke."""
        self.shard.timers.cancel((REVOCATION, self.group.group_id, member.member_id))
        rebalance = self.group.rebalance
        since_ms = None if rebalance is None else rebalance.revoking.pop(member.member_id, None)
        if rebalance is not None and since_ms is not None:
            owner = member.metadata.instance_id or member.member_id
            rebalance.slowest = max(
                rebalance.slowest, (owner, self.now_ms - since_ms), key=lambda each: each[1]
            )

    def drop_member(self, member: ConsumerGroupMember) -> None:
        """Remove the records of a member, and its timers."""
        self.end_revocation(member)
        for kind in (_TYPES.CURRENT, _TYPES.TARGET, _TYPES.MEMBER):
            self.put_record(kind, member.member_id, None)
        stop_member_timers(self.shard.timers, self.group.group_id, member.member_id)
        answer_soon(self.shard, self.group.group_id, member.member_id, self.now_ms)

    def drop_unused_regex(self, regex: str) -> None:
        """Remove the resolution of a regular expression that no member uses any more."""
        if regex and regex not in self.group.patterns and regex in self.group.regexes:
            self.put_record(_TYPES.REGEX, regex, None)

    def remove(self, members: Iterable[ConsumerGroupMember], cause: Cause) -> None:
        """Remove members and raise the epoch."""
        group = self.group
        for member in members:
            self.begin_cause(cause)
            self.drop_member(member)
            self.drop_unused_regex(member.metadata.regex)
            gone = member.cause(cause.kind, cause.text)
            self.shard.tell(gone.event(MemberGone, group.group_id, group.epoch))
        self.bump_epoch(cause)

    def bump_epoch(self, cause: Cause) -> None:
        """Raise the epoch, with the hash of the topics as they are now."""
        group = self.group
        self.begin_cause(cause)
        group.topics_seen = group.topics.version()
        self.set_epoch(max(group.epoch, 1) + 1, group.subscribed_topics()[1])
        self.shard.tell(cause.event(RebalanceStarted, group.group_id, group.epoch))

    def set_epoch(self, epoch: int, hash_: int) -> None:
        """Set the group's epoch."""
        self.put_record(_TYPES.EPOCH, "", GroupEpoch(epoch, hash_))

    def begin_cause(self, cause: Cause) -> None:
        """Record the cause of the changes that follow."""
        group = self.group
        if group.rebalance is None:
            before = group.assignments() if group.settled_owners is None else group.settled_owners
            group.rebalance = Rebalance([cause], self.now_ms, group.settled_members, before)
        else:
            group.rebalance.add_cause(cause)

    def commit(self) -> None:
        """Hand the records out. Responses also depend on other pending writes: see
        ``Shard.reply_when_written``.
        """
        shard, group = self.shard, self.group
        shard.state.groups[group.group_id] = group
        self._report_completed()
        if self.records:
            write_records(shard, group.group_id, self.records)
            answer_held(shard, group, self.now_ms, everyone=self.has_moved, given_up=self.given_up)

    def _report_completed(self) -> None:
        """Report a completed rebalance."""
        group, rebalance = self.group, self.group.rebalance
        if rebalance is None:
            return
        if rebalance.assigned_ms is None and group.target_epoch == group.epoch:
            rebalance.assigned_ms = self.now_ms
        if group.unsettled or group.state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.STABLE):
            return
        group.rebalance = None
        assigned_ms = self.now_ms if rebalance.assigned_ms is None else rebalance.assigned_ms
        after = group.settled_owners = group.assignments()
        group.settled_members = len(group.members)
        self.shard.tell(
            rebalance.whole_cause().event(
                RebalanceCompleted,
                group.group_id,
                group.epoch,
                members=len(group.members),
                members_before=rebalance.members_before,
                protocol_type=group.protocol_type or "",
                protocol=group.assignor(next(iter(state_of(self.shard).assignors))),
                duration_ms=self.now_ms - rebalance.started_ms,
                join_ms=assigned_ms - rebalance.started_ms,
                sync_ms=self.now_ms - assigned_ms,
                slowest=rebalance.slowest[0],
                slowest_ms=rebalance.slowest[1],
                before=rebalance.before,
                after=after,
            )
        )


def write_records(shard: GroupShard, group_id: str, records: Iterable[Record]) -> None:
    """Hand out records that the live group already reflects. If the log refuses them, the group is rebuilt
    from the log and the writes before them, which may be under way for long (to the replicas), and the
    writes handed out after them fail too, since they build on them.
    """
    shard.append(group_id, tuple(records), undo=partial(_start_over, shard, group_id))


def _start_over(shard: GroupShard, group_id: str, now_ms: int) -> None:
    """Rebuild the live group from the log and the writes under way; requests parked in a classic one are
    answered NOT_COORDINATOR.
    """
    group = shard.state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        answer_parked(shard, group, ErrorCode.NOT_COORDINATOR)
    forget_group(shard, group_id)
    under_way = [each for each in shard.records_in_flight() if each.group == group_id]
    with shard.state.ahead(group_id, under_way):
        found = shard.state.find(group_id)
    if isinstance(found, ClassicGroup):
        if not found.members:
            # members that vanish with the refused write used the offsets until now
            found.state_timestamp_ms = now_ms
            found.protocol_type = found.protocol_type or CONSUMER
        resume(shard, found, now_ms)
    start_sessions(shard, group_id, now_ms)
    if isinstance(found, ConsumerGroup):
        answer_held(shard, found, now_ms, everyone=True)


def answer_parked(shard: GroupShard, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer every parked JoinGroup and SyncGroup of a classic group with an error."""
    for member in group.members.values():
        answer_join_error(shard, group, member, error, member.member_id)
        answer_sync(shard, member, SyncGroupResponse(error_code=error))


def start_sessions(shard: GroupShard, group_id: str, now_ms: int) -> None:
    """Give each member of a group that was loaded from the log a whole session."""
    group = find_consumer_group(shard, group_id)
    if group is None:
        return
    for member in group.members.values():
        restart_session(shard, group, member, now_ms)
        if member.current.revoking:
            start_revocation(shard, group, member, now_ms)


def start_revocation(
    shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int
) -> None:
    """Start the time within which a member has to revoke partitions."""
    key = (REVOCATION, group.group_id, member.member_id)
    shard.timers.start(key, now_ms + member.metadata.rebalance_timeout_ms)


def session_timeout_ms(shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember) -> int:
    """Return how long a member may be silent."""
    classic = member.metadata.classic
    if classic is not None:
        return classic.session_timeout_ms
    return config_of(shard.state, group.group_id).session_timeout_ms


def restart_session(
    shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int
) -> None:
    """Restart the session of a member that has shown that it is alive."""
    timeout_ms = session_timeout_ms(shard, group, member)
    shard.timers.start((SESSION, group.group_id, member.member_id), now_ms + timeout_ms)
