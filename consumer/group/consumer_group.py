"""A consumer's membership in a group that the coordinator assigns (KIP-848). No I/O and no clock.

There are heartbeats only. The first one, with epoch 0, joins; answers bring the member's epoch and, when it
changed, its assignment. This member moves towards it: it revokes what it must give up, tells the coordinator
what it still owns, and takes what is new. A request names what has changed since the last one that was
answered, and everything after one that was not.

No answer says whether partitions are waiting for their owner to give them up. So members send heartbeats as
often as the group's size allows, and more often for a while after each new epoch. kohort's coordinator holds
those that tell nothing until the next one is due, and answers as soon as there is news.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from random import Random
from typing import NamedTuple
from uuid import UUID

from ...assignors import TopicInfo
from ...client.offsets import CommittedOffset
from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition, UnsupportedVersionError
from ...protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse, DescribedGroup
from ...protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ...statemachine import CONSUMER_MEMBER, MemberState, MemberTrigger
from ..config import ConsumerConfig
from ..events import RebalanceRetried, RebalanceStarted
from . import messages as group_messages
from .effects import Assign, ForgetCoordinator, NeedTopics, Request, ResolvePattern, Send, SpeakClassic
from .errors import NO_COORDINATOR_FOR_US, Reaction, reaction_to
from .heartbeat import FIRST_PAUSE_MS, MEMBER_MS, interval_ms
from .member import MOVES, GroupMember, RebalanceUnderWay

#: A member that has announced its leave reads on for a heartbeat interval of the broker and this long, unless
#: it sees before that the others are ready: it looks that often, or less often in large groups.
SLACK_MS = 50.0
#: After a new epoch heartbeats come this many times as often as the size of the group allows for long. When
#: all have heard of it, each pause is this much longer than the one before.
MOST_AT_ONCE = 20.0
GROWTH = 1.1
LOOK_MS = 50.0

_API = ApiKey.CONSUMER_GROUP_HEARTBEAT
#: Refusals of a join that may be temporary: a static member's instance id is in use until its session ends; a
#: classic group cannot be upgraded while its leader's assignments carry data.
_WAITED_FOR = frozenset({ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND})
#: The broker's sessions are its own, and no response names their timeout: Kafka's default of the longest one
#: (group.consumer.max.session.timeout.ms), and time for the broker to notice its end.
_LONGEST_SESSION_MS = 65_000.0

#: Errors that say that the coordinator does not know this member, or knows another with its instance id.
_NOT_A_MEMBER = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNRELEASED_INSTANCE_ID,
    }
)

#: Partitions by topic id.
_Partitions = frozenset[tuple[UUID, int]]


class _Told(NamedTuple):
    """The state of this member as a request reports it. ``regex`` is empty for none.

    ``owned`` is None if the next request has to include it in any case.
    """

    topics: tuple[str, ...]
    regex: str
    owned: _Partitions | None


class ConsumerMembership(GroupMember):
    """Call ``subscribe`` or ``subscribe_pattern`` to begin.

    ``takes_patterns``: whether the coordinator resolves regular expressions (ConsumerGroupHeartbeat v1).
    """

    life = CONSUMER_MEMBER

    def __init__(self, config: ConsumerConfig, rng: Random, *, takes_patterns: bool = True) -> None:
        super().__init__(config, rng)
        self.member_id = str(UUID(int=rng.getrandbits(128), version=4))
        self.takes_patterns = takes_patterns
        self._regex = ""
        self._join_at: float | None = None
        self._why = ""
        #: Whether the coordinator may take this for a member: also after it was fenced, until it has left.
        self._may_be_known = False
        self._turns_classic = False
        #: What the coordinator knows of this member, None if that is not certain; what the pending request
        #: tells it.
        self._known: _Told | None = None
        self._telling: _Told | None = None
        #: A heartbeat that told nothing and may be held, after another one was sent behind it; and whether
        #: the answer of such a one was lost, and its news with it.
        self._overtaken: Send | None = None
        self._missed = False
        #: Whether the subscription is withdrawn, because this member is about to leave.
        self._withdrawn = False
        self._describe: Send | None = None
        self._look_at: float | None = None
        #: The assignment, and the names of its topics as far as they are known.
        self._target: _Partitions = frozenset()
        self._names: dict[UUID, str] = {}
        #: What is committed for assigned partitions that were not taken yet, as far as the coordinator told.
        self._starts: dict[tuple[UUID, int], CommittedOffset | None] = {}
        #: Owned partitions, and those that are being revoked, with their topics' ids.
        self._held: dict[TopicPartition, UUID] = {}
        #: Whether the coordinator is a kohort, as far as its answers show; and what it may take as given up
        #: once these commits, which are under way, are stored.
        self._tells_offsets = False
        self._giving: dict[tuple[UUID, int], CommittedOffset | None] = {}
        #: Whether a request told what is owned and was not answered: what was not taken by then may be of
        #: another member meanwhile.
        self._unsure = False
        #: Whether the reconciliation is the first one.
        self._first = True

    # what the driver asks

    @property
    def subscription(self) -> frozenset[str]:
        """See GroupMember; with a pattern, the topics that brokers have found."""
        return frozenset(self._names.values() if self._regex else self._subscription)

    @property
    def topic_ids(self) -> frozenset[UUID]:
        """Ids of the topics that brokers have found for a pattern."""
        return frozenset(self._names) if self._regex else frozenset()

    @property
    def identity(self) -> tuple[str | None, int]:
        """See GroupMember."""
        return (self.member_id, self.generation) if self.generation >= 0 else (None, -1)

    def next_deadline(self) -> float | None:
        """See GroupMember."""
        times = [self._leave_at, self._look_at, self._join_at if self._may_join() else None]
        if self.generation >= 0:
            times.append(self._heartbeats.deadline())
        return min((at for at in times if at is not None), default=None)

    def can_commit(self) -> bool:
        """Whether it is a member: a fenced one must not commit."""
        return self.generation >= 0

    # what the user wants

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """See GroupMember."""
        self._change_subscription(tuple(sorted(set(topics))), "", now)

    def subscribe_pattern(self, regex: str, now: float) -> None:
        """Subscribe to the topics that the coordinator finds to match, instead of earlier ones."""
        self._change_subscription((), regex, now)

    def _change_subscription(self, topics: tuple[str, ...], regex: str, now: float) -> None:
        if (topics, regex) == (self._subscription, self._regex):
            return
        self._subscription, self._regex = topics, regex
        if self.generation >= 0:
            self._why = "the subscription changed"
            self._send_news(now)
        elif self._join_at is None:
            self._begin_join("first join", now)
        self.do_due(now)

    def resume(self, now: float) -> None:
        """See GroupMember."""
        if self.paused:
            self.paused = False
            self._begin_join("polled again", now)
            self.do_due(now)

    def announce_leave(self, reason: str, now: float) -> bool:  # noqa: ARG002 - told with the next heartbeat
        """Subscribe to nothing, so that the coordinator gives the partitions to others, who wait for them
        while this member reads on. Of no use for a static member, nor in a group without others.
        """
        if not self.owned or self.paused or self._config.group_instance_id is not None:
            return False
        self._leaving = reason
        self._describe_group()
        return True

    def _describe_group(self) -> None:
        """Describe the group: its members, and their progress."""
        self._describe = group_messages.describe_consumer_group(self._config)
        self._emit_effect(self._describe)

    # what happens

    def on_answer(self, request: Request, response: object, now: float) -> None:
        """Handle a response to ConsumerGroupHeartbeat or ConsumerGroupDescribe."""
        match response:
            case ConsumerGroupDescribeResponse() if request is self._describe:
                self._on_description(response.groups[0], now)
            case ConsumerGroupHeartbeatResponse() if request is self._heartbeats.under_way:
                self._heartbeats.under_way = None
                if response.error_code:
                    self._on_refusal(KafkaError(response.error_code).code, response.error_message, now)
                else:
                    self._on_heartbeat(request.body, response, now)
                self.do_due(now)
            case ConsumerGroupHeartbeatResponse() if request is self._overtaken:
                self._overtaken = None
                # the one behind it may have been answered before, over another connection
                if not response.error_code and response.member_epoch >= self.generation:
                    self._on_response(response, now)
                # an error also counts as the next response
                self.do_due(now)

    def on_failure(self, request: Request, error: Exception, now: float) -> None:
        """Handle a request without a response: the next heartbeat has all fields."""
        if request is self._describe:
            self._on_description(None, now)
        elif request is self._overtaken:
            self._overtaken, self._missed = None, True
            self._starts.clear()
        elif request is self._heartbeats.under_way:
            if isinstance(error, UnsupportedVersionError):
                self._not_offered(str(error))
            elif self._on_unreachable(request, error):
                self._heartbeats.under_way = None
                self._retry_later(f"{request.api_key.name} had no answer: {error}", now)

    def _go_on(self, now: float) -> None:
        if self._turns_classic and not self._revocations:
            if self._leaving is None:
                self._emit_effect(SpeakClassic())
            return
        if not self._revocations and self.generation >= 0:
            self._giving, self.given_up = {}, frozenset()
            if self._held.keys() - self.owned:
                self._held = {p: topic for p, topic in self._held.items() if p in self.owned}
                self._tell_owned(now)
            self._reconcile_assignment(now)
        self.do_due(now)

    def gives_up(
        self,
        partitions: Collection[TopicPartition],
        offsets: Mapping[TopicPartition, CommittedOffset],
        now: float,
    ) -> None:
        """Say so behind the commit, if the coordinator can tell whether that is stored: the next owner need
        not wait for its answer. If it does not count, it is said again when the revocation is done.
        """
        if self.generation < 0 or not self._tells_offsets:
            return
        gone = self._partitions_by_id() - self._target
        ids = {(self._held[p], p.partition): offsets.get(p) for p in partitions if p in self._held}
        self._giving |= {at: said for at, said in ids.items() if at in gone}
        if gone and gone <= self._giving.keys():
            self._send_news(now)
            self.do_due(now)

    def on_topics(
        self,
        topics: Mapping[str, TopicInfo],
        now: float,
        gone: frozenset[str] = frozenset(),  # noqa: ARG002 - the coordinator sees to them
        ids: Mapping[UUID, str] | None = None,
    ) -> None:
        """Learn the names of assigned topics."""
        self._partition_counts = {name: info.partition_count for name, info in topics.items()}
        unknown, wanted = self._unknown_topics(), self._subscription
        self._names |= {t: name for t, name in (ids or {}).items() if t in unknown or name in wanted}
        if self._unknown_topics() != unknown:
            self._reconcile_assignment(now)

    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:
        """Leave or join again if a commit's error says that this is no member any more."""
        how = reaction_to(_API, code)
        if generation != self.generation:
            return
        if code in _NOT_A_MEMBER:
            self._may_be_known = False
        if how in (Reaction.NEW_GENERATION, Reaction.NEW_MEMBER):
            self._on_fenced(f"a commit was refused: {code.name}", now)
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail_member(code)
        elif code is ErrorCode.STALE_MEMBER_EPOCH:
            self._heartbeats.at_once(now)
        self.do_due(now)

    def do_due(self, now: float) -> None:
        """See GroupMember."""
        if self._leave_at is not None and now >= self._leave_at:
            self._may_leave, self._leave_at, self._look_at = True, None, None
        if self._look_at is not None and now >= self._look_at:
            self._look_at = None
            self._describe_group()
        if self._may_join() and self._join_at is not None and now >= self._join_at:
            if self.state is MemberState.UNJOINED:
                self._change_state(MemberTrigger.JOIN, self._why)
            self._begin_rebalance(self._why, now)
            self._send_heartbeat(group_messages.JOIN, now)
        elif self.generation >= 0:
            if self._heartbeats.due(now):
                self._send_heartbeat(self.generation, now)
            self._heartbeats.check_session(now)

    # heartbeats

    def _may_join(self) -> bool:
        return (
            self.generation < 0
            and self._heartbeats.under_way is None
            and not (self._revocations or self.paused or self._leaving or self._turns_classic)
            and bool(self._subscription or self._regex)
            and self.state is not MemberState.FAILED
        )

    def _begin_join(self, reason: str, now: float, delay_ms: float = 0.0) -> None:
        self._why, self._join_at = reason, now + delay_ms

    def _send_heartbeat(self, epoch: int, now: float) -> None:
        wanted = ((), "") if self._withdrawn else (self._subscription, self._regex)
        told, known = _Told(*wanted, self._partitions_by_id()), self._known
        # the names of topics are asked for with every heartbeat as long as they are not known
        may_wait = told == known and not self._unknown_topics() and not self._giving
        told_owned = None if known is not None and told.owned == known.owned else told.owned
        send = group_messages.consumer_heartbeat(
            self._config,
            self.member_id,
            epoch,
            whole=known is None,
            topics=None if known is not None and told.topics == known.topics else told.topics,
            regex=None if known is not None and told.regex == known.regex else told.regex,
            owned=told_owned,
            hold_ms=round(self._heartbeats.interval_ms) if may_wait else 0,
            gives_up=self._giving,
        )
        self._telling = told
        self._may_be_known = True
        self._unsure |= told_owned is not None
        self._heartbeats.on_sent(send, epoch, now)

    def _on_heartbeat(self, body: object, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        beats, joined, had_news = self._heartbeats, self.generation < 0, self._telling != self._known
        self._known, self._unsure = None if self._missed else self._telling, False
        assert isinstance(body, ConsumerGroupHeartbeatRequest), "its answer is one to heartbeats"
        gave_up = bool(body.gives_up) and response.member_epoch != body.member_epoch
        if gave_up:
            self._gave_up(
                {
                    (row.topic_id, p.partition_index)
                    for row in body.gives_up
                    if row.topic_id
                    for p in row.partitions
                }
            )
        self._attempts, self._first_refused, self._missed = 0, None, False
        if joined:
            beats.on_joined(now)
            self._change_state(MemberTrigger.JOINED, f"joined at epoch {response.member_epoch}")
        else:
            # the session restarted when the request arrived
            beats.on_heard(beats.sent_at)
        if had_news:
            # one that has none may be held, and is answered when there is some
            beats.at_once(now)
        self._on_response(response, now)
        if gave_up and response.assignment is None:
            # who gets it comes first, in the coordinator too
            self._expect_assignment(now)

    def _gave_up(self, gone: AbstractSet[tuple[UUID, int]]) -> None:
        """The coordinator has the commits of these partitions, and gives them to others."""
        self._giving = {}
        given = {p for p, topic in self._held.items() if (topic, p.partition) in gone}
        self.given_up |= given
        self._held = {p: topic for p, topic in self._held.items() if p not in given}
        self._knows_owned()

    def _knows_owned(self) -> None:
        """The coordinator knows what is owned now without being told."""
        if self._known is not None and self._known.owned is not None:
            self._known = self._known._replace(owned=self._partitions_by_id())

    def _on_response(self, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Process a response without an error."""
        beats = self._heartbeats
        beats.interval_ms = self._interval_ms(response.heartbeat_interval_ms)
        if response.member_epoch != self.generation:
            self.generation = response.member_epoch
            self._expect_assignment(now)
            if self._leaving is None:
                beats.at_once(now)
        told_so = self._withdrawn and self._known is not None and not any(self._known[:2])
        if told_so and self._leave_at is None:
            # what is left of the rebalance timeout is for undone records
            most_ms = self._config.rebalance_ms * 0.95 - self._config.drain_ms
            self._leave_at = now + max(0.0, min(response.heartbeat_interval_ms + SLACK_MS, most_ms))
            self._look_at = now + LOOK_MS
        if response.assignment is not None:
            # the rest of what it waits for may be free by now: a heartbeat that is held hears of it at once
            beats.at_once(now)
            rows = response.assignment.topic_partitions
            target = frozenset((row.topic_id, n) for row in rows if row.topic_id for n in row.partitions)
            gone, self._target = self._target - target, target
            told = {
                (topic, number): CommittedOffset(offset, epoch, metadata or "") if offset >= 0 else None
                for topic, partitions in response.offsets
                if topic is not None
                for number, offset, epoch, metadata in partitions
            }
            taken = self._partitions_by_id()
            self._tells_offsets = self._tells_offsets or bool(told)
            self._starts |= told
            self._starts = {p: self._starts[p] for p in target & self._starts.keys() - taken}
            topics, wanted = {topic for topic, _ in target}, self._subscription
            self._names = {t: name for t, name in self._names.items() if t in topics or name in wanted}
            if gone and not gone & self._partitions_by_id():
                self._tell_owned(now)
        if response.assignment is not None or self.state is MemberState.RECONCILING:
            self._reconcile_assignment(now)

    def _interval_ms(self, longest_ms: float) -> float:
        """The time between heartbeats; the broker's is the longest.

        A member of many has a small part of the partitions: the group's size follows from it.
        """
        if self._config.heartbeat_is_set:
            return min(longest_ms, self._config.heartbeat_interval_ms)
        return interval_ms(
            round(self._share_of_load()) if self._held and self._share_of_load() else None, longest_ms
        )

    def _expect_assignment(self, now: float) -> None:
        """Send heartbeats often: others are about to give partitions up, and no answer says so.

        Until each of them has heard of the new epoch, the pauses are equal; then they grow. A member that has
        nothing takes the group for the largest.
        """
        members = self._share_of_load()
        pause_ms = max(FIRST_PAUSE_MS, members * MEMBER_MS / MOST_AT_ONCE)
        steady_ms = interval_ms(round(members), _LONGEST_SESSION_MS)
        self._heartbeats.expect_rebalance(now, pause_ms, GROWTH, steady_ms)

    def _share_of_load(self) -> float:
        """Members that read the same topics, by the number of their partitions; 0 if that is not known."""
        topics = {*self._subscription, *self._names.values()}
        total = sum(self._partition_counts.get(topic, 0) for topic in topics)
        return total / max(1, len(self._held))

    # the assignment

    def _tell_owned(self, now: float) -> None:
        """Report owned partitions at once: the coordinator waits for that, even if nothing else is new."""
        if self._known is not None:
            self._known = self._known._replace(owned=None)
        self._send_news(now)

    def _send_news(self, now: float) -> None:
        """Send a heartbeat with news at once, or when the pending one is answered; if that may be held, not
        even then: the coordinator answers both.
        """
        beats, pending = self._heartbeats, self._heartbeats.under_way
        if self.generation >= 0 and pending is not None and pending.body.hold_ms:
            self._missed |= self._overtaken is not None
            self._overtaken, beats.under_way = pending, None
            if self._known is not None:
                # the pending one may bring another epoch: then this one's is taken only from who says it
                self._known = self._known._replace(owned=None)
        beats.at_once(now)

    def _partitions_by_id(self) -> _Partitions:
        """The partitions owned or being revoked, by topic id."""
        return frozenset((topic, p.partition) for p, topic in self._held.items())

    def _unknown_topics(self) -> frozenset[UUID]:
        """Assigned topics whose names are not known."""
        return frozenset(topic for topic, _ in self._target if topic not in self._names)

    def _reconcile_assignment(self, now: float) -> None:
        """Revoke what is no longer assigned; when that is done, take what is new.

        Nothing while partitions are being revoked, and nothing on the way out.
        """
        if self._revocations or self._leaving is not None:
            return
        kept = {p for p, topic in self._held.items() if (topic, p.partition) in self._target}
        gone = tuple(sorted(self._held.keys() - kept))
        new = {
            TopicPartition(self._names[topic], number): topic
            for topic, number in self._target
            if topic in self._names
        }
        added, unknown = tuple(sorted(new.keys() - self._held.keys())), self._unknown_topics()
        if self.state is MemberState.STABLE and (gone or added or unknown):
            self._begin_rebalance(self._why or "the coordinator assigns other partitions", now)
            self._change_state(MemberTrigger.ASSIGNED, f"assigned at epoch {self.generation}")
        if gone:
            self.owned = frozenset(kept)
            self._rebalance.given_up.update(gone)
            wanted = self._regex or any(p.topic in self._subscription for p in gone)
            self._revoke_partitions(gone, lost=False, reason=MOVES if wanted else "the subscription changed")
            # the next one that matters says what was given up
            self._heartbeats.put_off(now)
            return
        if unknown:
            self._emit_effect(NeedTopics(frozenset(), unknown))
        if self._unsure:
            return
        if added or (self._first and not unknown):
            self._first = False
            self._held |= new
            self.owned |= new.keys()
            self._rebalance.added.update(added)
            self._knows_owned()
            self.given_up -= new.keys()
            at = {p: (new[p], p.partition) for p in added}
            starts = {p: self._starts.pop(at[p]) for p in added if at[p] in self._starts}
            self._emit_effect(Assign(self.generation, added, tuple(sorted(kept)), starts))
        if not unknown and self.state is MemberState.RECONCILING:
            self._on_reconciled(now)

    def _begin_rebalance(self, why: str, now: float) -> None:
        self._why = ""
        self._start_rebalance(why, now)

    def _on_reconciled(self, now: float) -> None:
        self._change_state(
            MemberTrigger.RECONCILED, f"has all that it is assigned at epoch {self.generation}"
        )
        self._complete_rebalance(self._config.server_assignor or "the coordinator", self.owned, now)

    # leaving, and refusals

    def _on_description(self, row: DescribedGroup | None, now: float) -> None:
        """Withdraw the subscription, unless there is nobody else to take the partitions; then check whether
        the others know of their new partitions. ``row``: the group; None if it could not be described.
        """
        self._describe = None
        others = [] if row is None else [m for m in row.members if m.member_id != self.member_id]
        if not self._withdrawn:
            if row is not None and not row.error_code and not others:
                self._may_leave = True
            elif self.generation >= 0:
                self._withdrawn = True
                self._report_event(RebalanceStarted(self.generation, f"about to leave: {self._leaving}"))
                self._send_news(now)
        elif (
            row is not None
            and others
            and row.assignment_epoch == row.group_epoch == min(m.member_epoch for m in others)
        ):
            self._may_leave, self._leave_at = True, None
        elif self._leave_at is not None:
            self._look_at = now + max(LOOK_MS, MEMBER_MS * len(others))
        self.do_due(now)

    def _send_leave(self, reason: str) -> None:  # noqa: ARG002 - heartbeats carry none
        if self._may_be_known:
            self._may_be_known = False
            self._emit_effect(group_messages.leave_consumer_group(self._config, self.member_id))

    def _on_refusal(self, code: ErrorCode, message: str | None, now: float) -> None:
        text = f"{_API.name} was refused: {code.name}" + (f": {message}" if message else "")
        how, joined = reaction_to(_API, code), self.generation >= 0
        if code in _NOT_A_MEMBER:
            self._may_be_known = False
        if code is ErrorCode.UNSUPPORTED_VERSION:
            self._not_offered(message)
            return
        session_ms = _LONGEST_SESSION_MS if code is ErrorCode.UNRELEASED_INSTANCE_ID else 0.0
        too_late = not joined and code in _WAITED_FOR and not self._may_wait_for_owner(now, session_ms)
        may_pass = joined and code in NO_COORDINATOR_FOR_US and not self._heartbeats.is_final(code)
        if joined and how in (Reaction.NEW_GENERATION, Reaction.NEW_MEMBER):
            self._on_fenced(text, now)
        elif too_late or (how is Reaction.FATAL and not may_pass):
            self._fail_member(code, message)
        else:
            if how is Reaction.FIND_COORDINATOR:
                self._emit_effect(ForgetCoordinator())
            elif code is ErrorCode.INVALID_REGULAR_EXPRESSION:
                self._regex = ""
                self._emit_effect(ResolvePattern(message or code.name))
            self._retry_later(text, now)

    def _not_offered(self, message: str | None) -> None:
        """The brokers do not support this protocol (any more)."""
        if not self._config.may_turn_classic:
            self._fail_member(ErrorCode.UNSUPPORTED_VERSION, message)
            return
        text = "the brokers do not offer the consumer protocol any more"
        if self._may_be_known and self._config.group_instance_id is None:
            # the classic request removes members of either protocol: nobody waits for the end of its session
            self._emit_effect(group_messages.leave_group(self._config, self.member_id, text))
        self._may_be_known, self._turns_classic = False, True
        self._lose_membership(text)

    def _retry_later(self, text: str, now: float) -> None:
        """Send the next request after a back-off, with all fields."""
        self._known = None
        self._starts.clear()
        if self.generation >= 0:
            self._heartbeats.retry_later(now)
            return
        delay_ms = self._backoff.delay_ms(self._attempts)
        self._attempts += 1
        self._begin_join(text, now, delay_ms)
        self._report_event(RebalanceRetried(text, delay_ms))

    def _on_fenced(self, text: str, now: float) -> None:
        self._lose_membership(text)
        self._begin_join(text, now)

    def _forget_generation(self, reason: str) -> None:
        self.generation = -1
        self._known = self._describe = self._look_at = self._overtaken = None
        self._missed = False
        self._target, self._held, self._names, self._starts = frozenset(), {}, {}, {}
        self._giving, self.given_up = {}, frozenset()
        self._first, self._rebalance = True, RebalanceUnderWay()
        self._heartbeats.stop()
        if self.state not in (MemberState.UNJOINED, MemberState.FAILED):
            self._change_state(MemberTrigger.RESET, reason)
