"""A consumer's membership in a classic group: join, sync, heartbeat, leave. No I/O and no clock.

A rebalance, as this object drives it: revoke what the rebalance protocol demands before joining (see
:class:`~.effects.Revoke`), JoinGroup, the assignment if this member is the leader, SyncGroup, then assign
what is new and revoke what moves to other members, for which COOPERATIVE has a second rebalance (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from uuid import UUID

from ...assignors import Assignor, MeasuringAssignor, RebalanceProtocol, TopicInfo
from ...protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    MalformedMessageError,
    TopicPartition,
    decode_assignment,
)
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from ...protocol.messages.heartbeat import HeartbeatResponse
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ...statemachine import MEMBER, MemberState, MemberTrigger
from ..config import ConsumerConfig
from ..events import AssignmentRefused, RebalanceRetried
from . import messages as group_messages
from .assignment import ANOTHER_ROUND, LISTENING, LedGroup, MemberAssignors, size_in
from .effects import Assign, ForgetCoordinator, NeedTopics, Request, Send
from .errors import Reaction, mismatch_text, reaction_to
from .heartbeat import interval_ms
from .member import MOVES, GroupMember

#: Members that learn of a rebalance at the same moment spread their JoinGroups over this time.
REJOIN_SPREAD_MS = 20.0
#: Delay, after its assignment, with which a member without partitions to revoke joins the announced
#: rebalance. A SyncGroup that comes after that is refused, and its sender learns nothing in this rebalance.
NEXT_ROUND_MS = 10.0
#: A member that has something to revoke reads on for this long, while the others join.
GIVE_UP_AFTER_MS = 30.0
#: A leader whose topic metadata is not older than this assigns at once.
FRESH_TOPICS_MS = 5_000


class Membership(GroupMember):
    """Call ``subscribe`` to begin. ``assignors`` come in the order of preference, with different names."""

    life = MEMBER

    def __init__(self, config: ConsumerConfig, assignors: Sequence[Assignor], rng: Random) -> None:
        super().__init__(config, rng)
        #: Name of the assignor the group agreed on; empty before the first generation.
        self.protocol = ""
        self._assignors = MemberAssignors(assignors, self._report_event)
        self._owned_generation = -1
        # the rebalance: why and when to join, and how far it is
        self._rejoin_reason: str | None = None
        self._join_reason = ""
        self._rejoin_at = 0.0
        self._prepared = False
        self._request: Send | None = None
        #: Whether the leader announced another rebalance with the last assignment.
        self.another_round_follows = False
        #: When to ask for that rebalance, if no other member has.
        self._round_overdue_at: float | None = None
        #: Owned, and to be revoked before the next rebalance.
        self._moving: frozenset[TopicPartition] = frozenset()
        #: Whether the last JoinGroup announced that this member leaves.
        self._said_so = False
        #: Whether the leader of this generation understands such announcements.
        self._heard_by_leader = False
        #: The group's size by its leader; None if the leader does not say it.
        self._told_size: int | None = None
        # as leader: the members, and the topics of their assignment
        self._led_group: LedGroup | None = None
        self._led_topics: dict[str, TopicInfo] | None = None
        # of a leader that keeps an assignment of another: whether it is to learn who has what, the question,
        # and the answer
        self._asks_owners = False
        self._describe: Send | None = None
        self._taken_over: frozenset[TopicPartition] | None = None
        # the topics as last reported, and when
        self._topics: dict[str, TopicInfo] = {}
        self._topics_at = 0.0

    # what the driver asks

    @property
    def rebalance_protocol(self) -> RebalanceProtocol:
        """The highest rebalance protocol that all assignors of this member support."""
        return self._assignors.protocol

    @property
    def measuring(self) -> MeasuringAssignor | None:
        """The assignor that is about to assign here and asks for measured weights, if it does."""
        waiting = (
            self.state is MemberState.COMPLETING and self._led_group is not None and self._request is None
        )
        return self._assignors.measuring(self.protocol) if waiting else None

    def next_deadline(self) -> float | None:
        """The latest time to call ``do_due``; None while only a response can change anything."""
        times = [self._rejoin_at] if self._may_begin_round() else []
        if self.state.heartbeats and (beat := self._heartbeats.deadline()) is not None:
            times.append(beat)
        times += [at for at in (self._leave_at, self._round_overdue_at) if at is not None]
        return min(times, default=None)

    def can_commit(self) -> bool:
        """Return whether a commit may succeed now: with a generation, and not between join and sync."""
        return self.generation >= 0 and self.state in (MemberState.STABLE, MemberState.PREPARING)

    # what the user wants

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Subscribe to these topics, instead of earlier ones."""
        wanted = tuple(sorted(set(topics)))
        if wanted != self._subscription:
            self._subscription = wanted
            self._ask_rejoin("the subscription changed" if self.generation >= 0 else "first join", now, 0.0)

    def rejoin(self, reason: str, now: float) -> None:
        """Ask the group for a rebalance."""
        self._ask_rejoin(reason, now, 0.0)

    def resume(self, now: float) -> None:
        """Come back after ``pause``."""
        if self.paused:
            self.paused = False
            self._ask_rejoin("polled again", now, 0.0)

    # leaving

    def pause(self, reason: str) -> None:
        """See GroupMember."""
        super().pause(reason)
        self._rejoin_reason = None

    def announce_leave(self, reason: str, now: float) -> bool:
        """Announce that this member is about to leave; it keeps what it owns until ``may_leave``.

        The leader then assigns it nothing, and the others get ready to take over. Returns False if that would
        be of no use: under EAGER, for a static member, without others, or with a leader that would not
        understand.
        """
        others = len(self._led_group.members) > 1 if self._led_group is not None else self._heard_by_leader
        if (
            not (self.owned and others and self.generation >= 0)
            or self.paused
            or self._config.group_instance_id is not None
            or self._assignors.protocol is RebalanceProtocol.EAGER
        ):
            return False
        self._leaving = reason
        self._rejoin_reason = f"about to leave: {reason}"
        self._rejoin_at = now
        return True

    def leave(self, reason: str) -> None:
        """See GroupMember."""
        super().leave(reason)
        self._rejoin_reason = None

    # what happens

    def on_answer(self, request: Request, response: object, now: float) -> None:
        """Handle a response to JoinGroup, SyncGroup, Heartbeat or LeaveGroup."""
        match response:
            case DescribeGroupsResponse() if request is self._describe:
                self._describe = None
                self._on_owners(response.groups[0], now)
            case HeartbeatResponse() if request is self._heartbeats.under_way:
                self._heartbeats.under_way = None
                self._heartbeat_answered(response.error_code, now)
            case JoinGroupResponse() if request is self._request:
                self._request = None
                self._join_answered(response, now)
            case SyncGroupResponse() if request is self._request:
                self._request = None
                self._sync_answered(response, now)
            case DescribeGroupsResponse() if request is self._request:
                self._request = None
                self._refused_by(response.groups[0])

    def on_failure(self, request: Request, error: Exception, now: float) -> None:
        """Handle a request without a response: look for the coordinator, or join again."""
        if request is self._describe:
            self._describe = None  # asked again with the next heartbeat
            return
        if request is not self._heartbeats.under_way and request is not self._request:
            return
        if not self._on_unreachable(request, error):
            return
        if request is self._request and request.api_key is ApiKey.DESCRIBE_GROUPS:
            self._request = None
            self._fail_member(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif request is self._request:
            self._request = None
            self._retry_join(f"{request.api_key.name} had no answer: {error}", now)
        else:
            self._heartbeats.under_way = None
            self._heartbeats.retry_later(now)

    def _go_on(self, now: float) -> None:
        self.do_due(now)

    def on_topics(
        self,
        topics: Mapping[str, TopicInfo],
        now: float,
        gone: frozenset[str] = frozenset(),
        ids: Mapping[UUID, str] | None = None,  # noqa: ARG002 - leaders know topics by name
    ) -> None:
        """As leader this member may ask for a rebalance."""
        self._partition_counts = {name: info.partition_count for name, info in topics.items()}
        if self.state is MemberState.STABLE:
            self._set_pace(now)
        if self._led_group is None:
            return
        known = {name: topics[name] for name in self._led_group.topics if name in topics}
        self._topics, self._topics_at = known, now
        if self.state is MemberState.COMPLETING and self._request is None:
            self._assign_as_leader(self._led_group, known)
        elif self.state.heartbeats:
            before = self._led_topics
            left = {name: info for name, info in (before or {}).items() if name not in gone}
            self._led_topics = {**left, **known}
            changed = sorted(n for n in known if before is not None and known[n] != before.get(n))
            deleted = sorted(gone & (before or {}).keys())
            if changed:
                self._ask_rejoin(f"topic {changed[0]} has changed", now, 0.0)
            elif deleted:
                self._ask_rejoin(f"topic {deleted[0]} was deleted", now, 0.0)
            else:
                self._look_for_unread(now)

    def _on_owners(self, row: DescribedGroup, now: float) -> None:
        """Learn the owners in an assignment that this leader has to keep."""
        self._asks_owners = bool(row.error_code) and KafkaError(row.error_code).retriable
        if row.error_code or row.group_state != "Stable":
            return
        try:
            shares = [decode_assignment(bytes(member.member_assignment)) for member in row.members]
        except MalformedMessageError:
            return
        self._taken_over = frozenset(partition for share in shares for partition in share.partitions)
        self._look_for_unread(now)

    def _look_for_unread(self, now: float) -> None:
        """Ask for a rebalance if a partition has no owner: it may be newer than the assignment to keep."""
        if self._taken_over is None or self._led_topics is None or not self.state.heartbeats:
            return
        taken, self._taken_over = self._taken_over, None
        for topic, info in sorted(self._led_topics.items()):
            unread = set(range(info.partition_count)) - {p.partition for p in taken if p.topic == topic}
            if unread:
                self._ask_rejoin(f"nobody has partition {min(unread)} of topic {topic}", now, 0.0)
                return

    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:
        """An OffsetCommit with ``generation`` was refused with a group error."""
        if generation != self.generation or self._request is not None:
            return
        match reaction_to(ApiKey.OFFSET_COMMIT, code):
            case Reaction.NEW_GENERATION | Reaction.NEW_MEMBER as how:
                self._lost_generation(how, f"a commit was refused: {code.name}", now)
            case Reaction.REJOIN if self.state is MemberState.STABLE:
                self._ask_rejoin("a commit was told of a rebalance", now, self._draw_spread())
            case Reaction.FATAL if code is ErrorCode.FENCED_INSTANCE_ID:
                self._fail_member(code)

    def do_due(self, now: float) -> None:
        """Do what is due: begin to join, send a heartbeat, notice that the session is at risk."""
        if self._leave_at is not None and now >= self._leave_at:
            self._may_leave, self._leave_at = True, None
        if self._round_overdue_at is not None and now >= self._round_overdue_at:
            self._round_overdue_at = None
            if self.state is MemberState.STABLE:
                self._ask_rejoin("partitions wait for their new owners", now, self._draw_spread())
        if self._may_begin_round() and now >= self._rejoin_at:
            self._begin_round(now)
        if self.state.heartbeats:
            if self._heartbeats.due(now):
                beat = group_messages.make_heartbeat(self._config, self.generation, self.member_id)
                self._heartbeats.on_sent(beat, self.generation, now)
            self._heartbeats.check_session(now)

    # joining

    def _may_begin_round(self) -> bool:
        return (
            self._rejoin_reason is not None
            and self._request is None
            and self._revocations == 0
            and not self.paused
            and self.state is not MemberState.FAILED
            and not (self.state is MemberState.COMPLETING and self._led_group is not None)
            and (self._leaving is None or not (self._may_leave or self._leave_at or self.generation < 0))
        )

    def _ask_rejoin(self, reason: str, now: float, delay_ms: float) -> None:
        if self.paused or self.state is MemberState.FAILED:
            return
        if self._rejoin_reason is None:
            self._rejoin_reason = reason
            self._rejoin_at = now + delay_ms
        self.do_due(now)

    def _begin_round(self, now: float) -> None:
        reason = self._rejoin_reason or ""
        self._start_rebalance(reason, now)
        if not self._prepared:
            self._prepared = True
            if gone := self._given_up_before_joining():
                self.owned -= frozenset(gone)
                why, self._moving = MOVES if self._moving else reason, frozenset()
                self._revoke_partitions(gone, lost=False, reason=why)
                return
        self._send_join(reason)

    def _given_up_before_joining(self) -> tuple[TopicPartition, ...]:
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            return tuple(sorted(self.owned))
        return tuple(sorted(p for p in self.owned if p in self._moving or p.topic not in self._subscription))

    def _send_join(self, reason: str) -> None:
        self._rejoin_reason, self._join_reason = None, reason
        if self.state is not MemberState.PREPARING:
            self._change_state(MemberTrigger.JOIN, reason)
        self._said_so = self._leaving is not None
        protocols = self._assignors.offer(
            self._subscription,
            self.owned,
            self._owned_generation,
            self._config.client_rack or None,
            leaving=self._said_so,
        )
        self._request = group_messages.join_group(self._config, self.member_id, protocols, reason)
        self._emit_effect(self._request)

    def _join_answered(self, response: JoinGroupResponse, now: float) -> None:
        if response.error_code:
            self._join_refused(KafkaError(response.error_code).code, response.member_id, now)
            return
        self.member_id = self.last_member_id = response.member_id
        is_static = self._config.group_instance_id is not None
        if is_static and self.owned and -1 < self.generation < response.generation_id - 1:
            # another member may have read on in any partition: going on would undo its commits
            self._lost_generation(Reaction.NEW_GENERATION, "the group had a generation without us", now)
            return
        self.generation = response.generation_id
        self.protocol = response.protocol_name or ""
        self.is_leader = response.leader == response.member_id
        self._first_refused = self._round_overdue_at = None
        self._led_group = self._led_topics = self._describe = self._taken_over = None
        self._asks_owners = False
        self._heartbeats.on_joined(now)
        self._change_state(MemberTrigger.JOINED, f"joined generation {self.generation}")
        if self.protocol not in self._assignors:
            self._refuse_for_good(
                f"the group agreed on the protocol {self.protocol!r}, which this member does not have"
            )
        elif self.is_leader:
            self._led_group = LedGroup.of(response.members)
            if response.skip_assignment:
                # the coordinator keeps what it has; we still watch the topics for the group (KIP-814)
                self._send_sync({})
            elif self._knows_topics(self._led_group, now):
                self._assign_as_leader(self._led_group, self._topics)
            # at once in either case: metadata that comes later would hide changes made meanwhile
            self._emit_effect(NeedTopics(self._led_group.topics))
            if response.skip_assignment:
                self._asks_owners = True
                self._ask_owners()
        else:
            self._send_sync({})

    def _ask_owners(self) -> None:
        self._describe = group_messages.describe_group(self._config)
        self._emit_effect(self._describe)

    def _knows_topics(self, led: LedGroup, now: float) -> bool:
        """Return whether the topics are known from the last rebalance, and the assignor needs no weights."""
        return (
            self.another_round_follows
            and now < self._topics_at + FRESH_TOPICS_MS
            and led.topics <= self._topics.keys()
            and self._assignors.measuring(self.protocol) is None
        )

    def _assign_as_leader(self, led: LedGroup, topics: dict[str, TopicInfo]) -> None:
        self._led_topics = {name: topics[name] for name in led.topics if name in topics}
        self._send_sync(self._assignors.assign(self.protocol, led, self._led_topics))

    def _join_refused(self, code: ErrorCode, member_id: str, now: float) -> None:
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
            self._send_join(self._join_reason)
            return
        if code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL and self._assignors.take_back():
            self._send_join(self._join_reason)
            return
        if code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            # the error is final: first ask what would have fitted
            self._request = group_messages.describe_group(self._config)
            self._emit_effect(self._request)
            return
        if code is ErrorCode.FENCED_INSTANCE_ID and not self.member_id and self._may_wait_for_owner(now):
            self._retry_join("another member holds the instance id", now)
            return
        self._on_refusal(ApiKey.JOIN_GROUP, code, now)

    def _refused_by(self, row: DescribedGroup) -> None:
        """Fail with what the group has instead of this member's assignors."""
        offers = ", ".join(repr(name) for name in self._assignors.names)
        found = "" if row.error_code else mismatch_text(row, offers)
        self._fail_member(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, found or None)

    # syncing

    def _send_sync(self, assignments: Mapping[str, bytes]) -> None:
        self._request = group_messages.sync_group(
            self._config, self.generation, self.member_id, self.protocol, assignments
        )
        self._emit_effect(self._request)

    def _sync_answered(self, response: SyncGroupResponse, now: float) -> None:
        if response.error_code:
            self._on_refusal(ApiKey.SYNC_GROUP, KafkaError(response.error_code).code, now)
            return
        self._heartbeats.on_heard(now)
        self._change_state(MemberTrigger.SYNCED, f"synced generation {self.generation}")
        self._attempts = 0
        self._prepared = False
        try:
            # some leaders send zero bytes to a member without partitions
            share = decode_assignment(bytes(response.assignment or b""))
        except MalformedMessageError as error:
            self._reject_assignment(f"the assignment cannot be read: {error}", now)
            return
        given = self.owned if self._said_so else frozenset(share.partitions)
        if outside := sorted(p for p in given if p.topic not in self._subscription):
            self._reject_assignment(f"assigned {outside[0]}, which is not subscribed to", now)
            return
        self._adopt_assignment(given, now)
        note = share.note
        announced = note.startswith(ANOTHER_ROUND)
        self._heard_by_leader = announced or note.startswith(LISTENING)
        self._told_size = size_in(note)
        self._set_pace(now)
        self._ask_next_round(announced, now)

    def _reject_assignment(self, reason: str, now: float) -> None:
        self._report_event(AssignmentRefused(reason))
        self._retry_join(reason, now)

    def _adopt_assignment(self, given: frozenset[TopicPartition], now: float) -> None:
        added, kept = given - self.owned, self.owned & given
        self._moving = self.owned - given
        self.owned |= given
        self._owned_generation = self.generation
        self._assignors.on_assigned(self.protocol, given, self.generation)
        self._rebalance.added.update(added)
        self._rebalance.given_up.update(self._moving)
        self._complete_rebalance(self.protocol, given, now)
        self._emit_effect(Assign(self.generation, tuple(sorted(added)), tuple(sorted(kept))))

    def _ask_next_round(self, announced: bool, now: float) -> None:
        """Join the rebalance that assigns moved partitions to their new owners, once revoked (KIP-429).

        When the leader has announced it, all members join: those that revoke nothing at once, the others
        last. If partitions still wait after that, for a member that answers late or is gone, more rebalances
        in a row would not help: the members send heartbeats more often, to learn when one begins, and ask for
        one themselves only after a session timeout.
        """
        first = announced and not self.another_round_follows
        self.another_round_follows = announced
        last = GIVE_UP_AFTER_MS if first else 0.0
        if self._said_so:
            self._leave_at = now + last
        elif self._moving:
            self._ask_rejoin("gave up what moves to another member", now, last)
        elif first:
            self._ask_rejoin("partitions wait for their new owners", now, NEXT_ROUND_MS)
        elif announced:
            self._heartbeats.expect_rebalance(now)
            self._round_overdue_at = now + self._config.session_timeout_ms
        elif self._assignors.worth_another_round(self.protocol):
            self._ask_rejoin(f"assignor {self.protocol} failed", now, 0.0)

    # heartbeats

    def _set_pace(self, now: float) -> None:
        """Send heartbeats as often as the group's size allows. Where its leader does not say it, the size
        follows from this member's part of the partitions.
        """
        if self._config.heartbeat_is_set:
            return
        size = len(self._led_group.members) if self._led_group is not None else self._told_size
        if size is None:
            total = sum(self._partition_counts.get(topic, 0) for topic in self._subscription)
            size = round(total / max(1, len(self.owned))) or None
        interval = interval_ms(size, self._config.heartbeat_interval_ms)
        if interval != self._heartbeats.interval_ms:
            self._heartbeats.change_interval(interval, now)

    def _heartbeat_answered(self, number: int, now: float) -> None:
        if self._heartbeats.generation != self.generation or not self.state.heartbeats:
            return
        code = KafkaError(number).code if number else ErrorCode.NONE
        how = reaction_to(ApiKey.HEARTBEAT, code) if number else Reaction.OK
        if how in (Reaction.OK, Reaction.REJOIN):
            self._heartbeats.on_heard(now)
        if how is Reaction.OK and self._asks_owners and self._describe is None:
            self._ask_owners()
        match how:
            case Reaction.REJOIN if self.state is MemberState.STABLE:
                self._ask_rejoin("the group is rebalancing", now, self._draw_spread())
            case Reaction.NEW_GENERATION | Reaction.NEW_MEMBER:
                self._lost_generation(how, f"a heartbeat was refused: {code.name}", now)
            case Reaction.FATAL:
                self._fail_member(code)
            case Reaction.RETRY if self._heartbeats.is_final(code):
                self._fail_member(code)
            case Reaction.RETRY | Reaction.FIND_COORDINATOR:
                if how is Reaction.FIND_COORDINATOR:
                    self._emit_effect(ForgetCoordinator())
                self._heartbeats.retry_later(now)

    # refusals

    def _on_refusal(self, api_key: ApiKey, code: ErrorCode, now: float) -> None:
        text = f"{api_key.name} was refused: {code.name}"
        match reaction_to(api_key, code):
            case Reaction.FATAL:
                self._fail_member(code)
            case Reaction.NEW_GENERATION | Reaction.NEW_MEMBER as how:
                self._lost_generation(how, text, now)
            case Reaction.FIND_COORDINATOR:
                self._emit_effect(ForgetCoordinator())
                self._retry_join(text, now)
            case Reaction.REJOIN:
                self._retry_join(text, now, self._draw_spread())
            case _:
                self._retry_join(text, now)

    def _retry_join(self, reason: str, now: float, delay_ms: float | None = None) -> None:
        """Join again after a back-off; what was revoked for this rebalance need not be revoked again."""
        if delay_ms is None:
            delay_ms = self._backoff.delay_ms(self._attempts)
            self._attempts += 1
        self._led_group = self._led_topics = None
        self._rejoin_reason = reason
        self._rejoin_at = now + delay_ms
        self._report_event(RebalanceRetried(reason, delay_ms))

    def _lost_generation(self, how: Reaction, reason: str, now: float) -> None:
        if how is Reaction.NEW_MEMBER:
            self.member_id = ""
        self._lose_membership(reason)
        self._retry_join(reason, now)

    def _forget_generation(self, reason: str) -> None:
        self.generation = self._owned_generation = -1
        self.is_leader = False
        self._led_group = self._led_topics = self._round_overdue_at = None
        self._moving = frozenset()
        self.another_round_follows = False
        self._request = None
        self._heartbeats.stop()
        self._prepared = False
        if self.state not in (MemberState.UNJOINED, MemberState.FAILED):
            self._change_state(MemberTrigger.RESET, reason)

    # small things

    def _send_leave(self, reason: str) -> None:
        if self.member_id and self._config.group_instance_id is None:
            self._emit_effect(group_messages.leave_group(self._config, self.member_id, reason))
            self.member_id = ""

    def _draw_spread(self) -> float:
        # partitions wait for the announced rebalance
        return 0.0 if self.another_round_follows else self._rng.random() * REJOIN_SPREAD_MS
