"""Changes of a share group: the records of one step, in Kafka's order, and the sessions of its members.

Each record changes the live group at once: the next request sees the change, and its response waits for the
write. If the log refuses a record, the live group is rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ...offsets_topic import (
    Record,
    ShareEpoch,
    ShareGroupRecord,
    ShareRecordType,
    ShareRecordValue,
    TargetAssignment,
    TargetEpoch,
)
from ...protocol import CauseKind, ErrorCode, KafkaError
from ..engine.readiness import append_error
from ..groups.events import Cause, MemberGone, OpenRebalance, RebalanceCompleted, RebalanceStarted
from ..groups.groups import GroupShard, forget_group
from .assignor import assign_partitions
from .commands import DeleteShareState, InitializeShareState
from .configs import config_of
from .group import SESSION, TOPICS, ShareGroup, ShareMember, find_share_group
from .shard_state import state_of

_TYPES = ShareRecordType
#: A broker that has just taken over may not know all topics yet: so long after that, in ms, what it does not
#: know is deleted.
_KNOWS_TOPICS_MS: Final = 5_000


@dataclass(slots=True, eq=False)
class ShareChanges:
    """The records of one step on a group, in Kafka's order. ``commit`` hands them out as one write."""

    shard: GroupShard
    group: ShareGroup
    now_ms: int
    records: list[Record] = field(default_factory=list)
    #: Given when the records are in the log.
    commands: list[InitializeShareState | DeleteShareState] = field(default_factory=list)

    def put(self, kind: ShareRecordType, member_id: str, value: ShareRecordValue | None) -> None:
        """Add a record, which takes effect at once."""
        self.group.apply(kind, member_id, value)
        self.records.append(ShareGroupRecord(kind, self.group.group_id, member_id, value))

    def remove(self, member: ShareMember, cause: Cause) -> None:
        """Remove a member and raise the epoch."""
        group = self.group
        self._begin_rebalance(cause)
        for kind in (_TYPES.CURRENT, _TYPES.TARGET, _TYPES.MEMBER):
            self.put(kind, member.member_id, None)
        self.shard.timers.cancel((SESSION, group.group_id, member.member_id))
        self.shard.tell(cause.event(MemberGone, group.group_id, group.epoch))
        self.bump(cause)

    def bump(self, cause: Cause) -> None:
        """Raise the epoch, with the hash of the topics as they are now."""
        group = self.group
        self._begin_rebalance(cause)
        group.topics_seen = group.topics.version()
        self.put(_TYPES.EPOCH, "", ShareEpoch(group.epoch + 1, group.hash_topics()))
        if not group.members:
            # it may stay for ever, and need not keep all topics as they are now
            group.topics_seen = None
            group.subscribed.let_go()
        self.shard.tell(cause.event(RebalanceStarted, group.group_id, group.epoch))

    def refresh_target(self) -> None:
        """Compute the target for the group's epoch, unless it has one or the last one is too recent."""
        group, now_ms = self.group, self.now_ms
        if group.epoch <= group.target_epoch:
            return
        interval_ms = config_of(self.shard.state, group.group_id).assignment_interval_ms
        # a time in the future was written before the last start, by a clock that was ahead
        if group.target_ms and 0 <= now_ms - group.target_ms < interval_ms:
            return
        readers = {member_id: group.subscribed_ids(member) for member_id, member in group.members.items()}
        for member_id, partitions in assign_partitions(group.assignable(), readers, group.targets).items():
            if partitions != group.targets.get(member_id):
                self.put(_TYPES.TARGET, member_id, TargetAssignment(partitions))
        group.kept_seen = group.kept
        self.put(_TYPES.TARGET_EPOCH, "", TargetEpoch(group.epoch, now_ms))

    def commit(self) -> None:
        """Hand the records out, and the commands when these are in the log. Responses also depend on other
        pending writes: see ``Shard.reply_when_written``.
        """
        shard, group = self.shard, self.group
        shard.state.groups[group.group_id] = group
        self._report_completed()
        if self.records:
            write_records(shard, group.group_id, self.records, partial(_give_commands, shard, self.commands))
        else:
            _give_commands(shard, self.commands, ErrorCode.NONE, self.now_ms)

    def _begin_rebalance(self, cause: Cause) -> None:
        """Record the cause of the changes that follow."""
        group = self.group
        if group.rebalance is None:
            before = group.assignments() if group.settled_targets is None else group.settled_targets
            group.rebalance = OpenRebalance([cause], self.now_ms, group.settled_members, before)
        else:
            group.rebalance.add_cause(cause)

    def _report_completed(self) -> None:
        """Report a completed rebalance: members have their targets with their next heartbeats."""
        group, rebalance = self.group, self.group.rebalance
        if rebalance is None or (group.members and group.epoch > group.target_epoch):
            return
        group.rebalance = None
        group.settled_members = len(group.members)
        after = group.settled_targets = group.assignments()
        duration_ms = self.now_ms - rebalance.started_ms
        self.shard.tell(
            rebalance.whole_cause().event(
                RebalanceCompleted,
                group.group_id,
                group.epoch,
                members=len(group.members),
                members_before=rebalance.members_before,
                protocol_type=group.protocol_type or "",
                protocol=self.shard.state.settings.group_share_assignors,
                duration_ms=duration_ms,
                join_ms=duration_ms,
                sync_ms=0,
                before=rebalance.before,
                after=after,
            )
        )


def write_records(
    shard: GroupShard,
    group_id: str,
    records: Iterable[Record],
    then: Callable[[ErrorCode, int], None] | None = None,
) -> None:
    """Hand out records that the live group already reflects. If the log refuses them, the group is rebuilt
    from the log and the writes before them, and the writes handed out after them fail too, since they build
    on them.
    """
    shard.append(group_id, tuple(records), then, undo=partial(_start_over, shard, group_id))


def look_for_deleted_topics(shard: GroupShard, group_id: str, now_ms: int) -> None:
    """Have a group forget deleted topics a while later. After a load these are topics that were deleted while
    nobody led this shard, or whose record was lost with who led it.
    """
    shard.timers.start((TOPICS, group_id), now_ms + _KNOWS_TOPICS_MS)


def start_sessions(shard: GroupShard, group_id: str, now_ms: int) -> None:
    """Give each member of a group that was loaded from the log a whole session."""
    group = find_share_group(shard, group_id)
    if group is not None:
        for member in group.members.values():
            restart_session(shard, group, member, now_ms)


def restart_session(shard: GroupShard, group: ShareGroup, member: ShareMember, now_ms: int) -> None:
    """Restart the session of a member that has shown that it is alive."""
    timeout_ms = config_of(shard.state, group.group_id).session_timeout_ms
    shard.timers.start((SESSION, group.group_id, member.member_id), now_ms + timeout_ms)


def remove_silent(shard: GroupShard, group: ShareGroup, member: ShareMember, now_ms: int) -> None:
    """Remove a member whose session has expired."""
    seconds = config_of(shard.state, group.group_id).session_timeout_ms / 1000
    text = f"session of {member.name} expired after {seconds:.1f} s"
    changes = ShareChanges(shard, group, now_ms)
    changes.remove(member, member.cause(CauseKind.SESSION_EXPIRED, text))
    changes.commit()


def _give_commands(
    shard: GroupShard,
    commands: Iterable[InitializeShareState | DeleteShareState],
    error: ErrorCode,
    now_ms: int,
) -> None:
    """Give commands that are in the log; if the log refused that, answer the requests that wait for them."""
    for command in commands:
        if not error:
            shard.command(command)
        elif (pending := state_of(shard).pending.pop(command, None)) is not None:
            pending.finish(shard, command.failed(KafkaError(append_error(error))), now_ms)


def _start_over(shard: GroupShard, group_id: str, now_ms: int) -> None:
    """Rebuild the live group from the log and the writes under way."""
    forget_group(shard, group_id)
    with shard.state.ahead(group_id, [each for each in shard.records_in_flight() if each.group == group_id]):
        shard.state.find(group_id)
    start_sessions(shard, group_id, now_ms)
    look_for_deleted_topics(shard, group_id, now_ms)
