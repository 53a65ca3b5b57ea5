"""A consumer's membership in its group: join, sync, heartbeat, leave. No I/O, no clock, no randomness.

Requests go out as :class:`~.effects.Send`; answers and time come in. All times are milliseconds of one
steadily rising clock. After each call take the effects; call ``advance`` when ``next_deadline`` has come.

A round of the group, as this object drives it: *prepare* (give up what the rebalance protocol wants given up
before joining, see :class:`~.effects.Release`), JoinGroup, at the leader the assignment, SyncGroup, *adopt*
(start what is new, give up what moved away; then, under COOPERATIVE, once more: KIP-429).

Nothing is owned without a generation. When the group has gone on without this member, everything it owned is
released as lost, in whatever state that news arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..assignors import MeasuringAssignor, RebalanceProtocol, TopicInfo
from ..protocol import ApiKey, ErrorCode, KafkaError, MalformedMessageError, TopicPartition, decode_assignment
from ..statemachine import MemberState, MemberTrigger
from . import group_messages
from .effects import Adopt, ForgetCoordinator, NeedTopics, Send
from .events import AssignmentRefused, BrokerUnavailable, RebalanceCompleted, RebalanceStarted
from .leader import ANOTHER_ROUND, LISTENING, Led
from .membership_core import FRESH_TOPICS_MS, GIVE_UP_AFTER_MS, NEXT_ROUND_MS, MembershipCore
from .refusals import NO_COORDINATOR_FOR_US, Reaction, reaction

#: Why partitions are given up that the group's leader has for another member.
MOVES = "moves to another member"


class Membership(MembershipCore):
    """Call ``subscribe`` to begin. ``assignors`` in the order of preference, each with a name of its own."""

    def __repr__(self) -> str:
        who = self.member_id or "no member id yet"
        return f"Membership({self._settings.group}, {self.state.value}, {who}, generation {self.generation})"

    # what the driver asks

    @property
    def rebalance_protocol(self) -> RebalanceProtocol:
        """How this member hands partitions over: the highest protocol all its assignors have."""
        return self._strategies.protocol

    @property
    def measuring(self) -> MeasuringAssignor | None:
        """The assignor that is about to assign here and may want weights first."""
        waiting = self.state is MemberState.COMPLETING and self._led is not None and self._request is None
        return self._strategies.measuring(self.protocol) if waiting else None

    @property
    def subscription(self) -> frozenset[str]:
        """The topics this member asks for."""
        return frozenset(self._subscription)

    def next_deadline(self) -> float | None:
        """When to call ``advance`` at the latest; None while only answers can move anything."""
        times = [self._rejoin_at] if self._may_begin_round() else []
        if self.state.heartbeats and (beat := self._heart.deadline()) is not None:
            times.append(beat)
        times += [at for at in (self._leave_at, self._round_overdue_at) if at is not None]
        return min(times, default=None)

    def can_commit(self) -> bool:
        """Whether a commit stands a chance now: with a generation, and not between join and sync."""
        return self.generation >= 0 and self.state in (MemberState.STABLE, MemberState.PREPARING)

    # what the user wants

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Take part in the group for these topics, from now on."""
        wanted = tuple(sorted(set(topics)))
        if wanted != self._subscription:
            self._subscription = wanted
            self._ask_rejoin("the subscription changed" if self.generation >= 0 else "first join", now, 0.0)

    def rejoin(self, reason: str, now: float) -> None:
        """Ask the group for a new round."""
        self._ask_rejoin(reason, now, 0.0)

    def resume(self, now: float) -> None:
        """Come back after ``pause``."""
        if self._paused:
            self._paused = False
            self._ask_rejoin("polled again", now, 0.0)

    # what happens

    def answered(self, request: Send, response: Any, now: float) -> None:
        """The answer to a Send. One that has been overtaken by events is ignored."""
        if request is self._heart.under_way:
            self._heart.under_way = None
            self._heartbeat_answered(response.error_code, now)
        elif request is self._request:
            self._request = None
            if request.api_key is ApiKey.JOIN_GROUP:
                self._join_answered(response, now)
            else:
                self._sync_answered(response, now)

    def failed(self, request: Send, error: Exception, now: float) -> None:
        """A Send had no answer: the coordinator cannot be reached, or the connection broke."""
        if request is not self._heart.under_way and request is not self._request:
            return
        if isinstance(error, KafkaError) and error.code in NO_COORDINATOR_FOR_US:
            self._fail(error.code)
            return
        self._emit(ForgetCoordinator())
        doing = request.api_key.name
        self._report(BrokerUnavailable(doing, error))
        if request is self._request:
            self._request = None
            self._retry(f"{doing} had no answer: {error}", now)
        else:
            self._heart.under_way = None
            self._heart.retry(now)

    def released(self, now: float) -> None:
        """A Release has been carried out."""
        self._releases -= 1
        assert self._releases >= 0, "released more often than asked"
        self.advance(now)

    def topics(self, topics: Mapping[str, TopicInfo], now: float, gone: frozenset[str] = frozenset()) -> None:
        """The answer to NeedTopics, or news at any time; as leader this member may ask for a new round.

        ``gone`` are topics that certainly do not exist (any more).
        """
        if self._led is None:
            return
        known = {name: topics[name] for name in self._led.topics if name in topics}
        self._topics, self._topics_at = known, now
        if self.state is MemberState.COMPLETING and self._request is None:
            self._assign(self._led, known)
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

    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:
        """OffsetCommit with ``generation`` was answered with a group error."""
        if generation != self.generation or self._request is not None:
            return
        match reaction(ApiKey.OFFSET_COMMIT, code):
            case Reaction.NEW_GENERATION | Reaction.NEW_MEMBER as how:
                self._lost_generation(how, f"a commit was refused: {code.name}", now)
            case Reaction.REJOIN if self.state is MemberState.STABLE:
                self._ask_rejoin("a commit was told of a rebalance", now, self._spread())
            case Reaction.FATAL if code is ErrorCode.FENCED_INSTANCE_ID:
                self._fail(code)

    def advance(self, now: float) -> None:
        """Do what is due: begin a round, send a heartbeat, notice that the session may be over."""
        if self._leave_at is not None and now >= self._leave_at:
            self._may_leave, self._leave_at = True, None
        if self._round_overdue_at is not None and now >= self._round_overdue_at:
            self._round_overdue_at = None
            if self.state is MemberState.STABLE:
                self._ask_rejoin("partitions wait for their new owners", now, self._spread())
        if self._may_begin_round() and now >= self._rejoin_at:
            self._begin_round(now)
        if self.state.heartbeats:
            if self._heart.due(now):
                beat = group_messages.heartbeat(self._settings, self.generation, self.member_id)
                self._heart.sent(beat, self.generation, now)
            self._heart.check_session(now)

    # joining

    def _may_begin_round(self) -> bool:
        return (
            self._rejoin_reason is not None
            and self._request is None
            and self._releases == 0
            and not self._paused
            and self.state is not MemberState.FAILED
            and not (self.state is MemberState.COMPLETING and self._led is not None)
            and (self._leaving is None or not (self._may_leave or self._leave_at or self.generation < 0))
        )

    def _ask_rejoin(self, reason: str, now: float, delay_ms: float) -> None:
        if self._paused or self.state is MemberState.FAILED:
            return
        if self._rejoin_reason is None:
            self._rejoin_reason = reason
            self._rejoin_at = now + delay_ms
        self.advance(now)

    def _begin_round(self, now: float) -> None:
        reason = self._rejoin_reason or ""
        if self._round_began is None:
            self._round_began = now
            self._report(RebalanceStarted(self.generation, reason))
        if not self._prepared:
            self._prepared = True
            if gone := self._given_up_before_joining():
                self.owned -= frozenset(gone)
                why, self._moving = MOVES if self._moving else reason, frozenset()
                self._release(gone, lost=False, reason=why)
                return
        self._send_join(reason)

    def _given_up_before_joining(self) -> tuple[TopicPartition, ...]:
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            return tuple(sorted(self.owned))
        return tuple(sorted(p for p in self.owned if p in self._moving or p.topic not in self._subscription))

    def _send_join(self, reason: str) -> None:
        self._rejoin_reason, self._join_reason = None, reason
        if self.state is not MemberState.PREPARING:
            self._fire(MemberTrigger.JOIN, reason)
        self._said_so = self._leaving is not None
        protocols = self._strategies.offer(
            self._subscription,
            self.owned,
            self._owned_generation,
            self._settings.rack,
            leaving=self._said_so,
        )
        self._request = group_messages.join_group(self._settings, self.member_id, protocols, reason)
        self._emit(self._request)

    def _join_answered(self, response: Any, now: float) -> None:
        if response.error_code:
            self._join_refused(KafkaError(response.error_code).code, response.member_id, now)
            return
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.protocol = response.protocol_name or ""
        self.is_leader = response.leader == response.member_id
        self._first_refused = self._round_overdue_at = None
        self._led = self._led_topics = None
        self._heart.joined(now)
        self._fire(MemberTrigger.JOINED, f"joined generation {self.generation}")
        if self.protocol not in self._strategies:
            self._refuse_for_good(
                f"the group agreed on the protocol {self.protocol!r}, which this member does not have"
            )
        elif self.is_leader:
            self._led = Led.of(response.members)
            if response.skip_assignment:
                # the coordinator keeps what it has; we still watch the topics for the group (KIP-814)
                self._send_sync({})
            elif self._knows_topics(self._led, now):
                self._assign(self._led, self._topics)
            # at once in either case: who learns of them later takes what has changed meanwhile for old
            self._emit(NeedTopics(self._led.topics))
        else:
            self._send_sync({})

    def _knows_topics(self, led: Led, now: float) -> bool:
        """Whether the round before this one has just told them, and the assignor wants nothing else."""
        return (
            self._announced
            and now < self._topics_at + FRESH_TOPICS_MS
            and led.topics <= self._topics.keys()
            and self._strategies.measuring(self.protocol) is None
        )

    def _assign(self, led: Led, topics: dict[str, TopicInfo]) -> None:
        self._led_topics = {name: topics[name] for name in led.topics if name in topics}
        self._send_sync(self._strategies.assign(self.protocol, led, self._led_topics))

    def _join_refused(self, code: ErrorCode, member_id: str, now: float) -> None:
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
            self._send_join(self._join_reason)
            return
        if code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL and self._strategies.take_back():
            self._send_join(self._join_reason)
            return
        if code is ErrorCode.FENCED_INSTANCE_ID and not self.member_id and self._may_wait_for_seat(now):
            self._retry("another member holds the instance id", now)
            return
        self._refused(ApiKey.JOIN_GROUP, code, now)

    def _may_wait_for_seat(self, now: float) -> bool:
        """At start-up only, and for one session: the holder may be gone without having said so."""
        if self._first_refused is None:
            self._first_refused = now
        return now < self._first_refused + self._settings.session_timeout_ms

    # syncing

    def _send_sync(self, assignments: Mapping[str, bytes]) -> None:
        self._request = group_messages.sync_group(
            self._settings, self.generation, self.member_id, self.protocol, assignments
        )
        self._emit(self._request)

    def _sync_answered(self, response: Any, now: float) -> None:
        if response.error_code:
            self._refused(ApiKey.SYNC_GROUP, KafkaError(response.error_code).code, now)
            return
        self._heart.heard(now)
        self._fire(MemberTrigger.SYNCED, f"synced generation {self.generation}")
        self._attempts = 0
        self._prepared = False
        try:
            # some leaders send zero bytes to a member they have nothing for
            share = decode_assignment(bytes(response.assignment or b""))
        except MalformedMessageError as error:
            self._reject(f"the assignment cannot be read: {error}", now)
            return
        given = self.owned if self._said_so else frozenset(share.partitions)
        if outside := sorted(p for p in given if p.topic not in self._subscription):
            self._reject(f"assigned {outside[0]}, which is not subscribed to", now)
            return
        self._adopt(given, now)
        announced = share.user_data == ANOTHER_ROUND
        self._heard_by_leader = announced or share.user_data == LISTENING
        self._ask_next_round(announced, now)

    def _reject(self, reason: str, now: float) -> None:
        self._report(AssignmentRefused(reason))
        self._retry(reason, now)

    def _adopt(self, given: frozenset[TopicPartition], now: float) -> None:
        added, kept = given - self.owned, self.owned & given
        self._moving = self.owned - given
        self.owned |= given
        self._owned_generation = self.generation
        self._strategies.adopted(self.protocol, given, self.generation)
        began = now if self._round_began is None else self._round_began
        self._round_began = None
        self._report(
            RebalanceCompleted(
                generation=self.generation,
                member_id=self.member_id,
                leader=self.is_leader,
                protocol=self.protocol,
                assignment=tuple(sorted(given)),
                assigned=tuple(sorted(added)),
                revoked=tuple(sorted(self._moving)),
                duration_ms=now - began,
            )
        )
        self._emit(Adopt(self.generation, tuple(sorted(added)), tuple(sorted(kept))))

    def _ask_next_round(self, announced: bool, now: float) -> None:
        """What moves is given up before the next round, which gives it to its new owner (KIP-429).

        When the leader has announced that round, everybody begins it: who gives nothing up at once, who does
        last. If even then partitions wait, for a member whose answers come late or one that is gone, rounds
        on end would help neither: the others ask often whether one has begun, and begin it themselves only
        after a session timeout.
        """
        first = announced and not self._announced
        self._announced = announced
        last = GIVE_UP_AFTER_MS if first else 0.0
        if self._said_so:
            self._leave_at = now + last
        elif self._moving:
            self._ask_rejoin("gave up what moves to another member", now, last)
        elif first:
            self._ask_rejoin("partitions wait for their new owners", now, NEXT_ROUND_MS)
        elif announced:
            self._heart.expect(now)
            self._round_overdue_at = now + self._settings.session_timeout_ms
        elif self._strategies.worth_another_round(self.protocol):
            self._ask_rejoin(f"assignor {self.protocol} failed", now, 0.0)

    # heartbeats

    def _heartbeat_answered(self, number: int, now: float) -> None:
        if self._heart.generation != self.generation or not self.state.heartbeats:
            return
        code = KafkaError(number).code if number else ErrorCode.NONE
        how = reaction(ApiKey.HEARTBEAT, code) if number else Reaction.OK
        if how in (Reaction.OK, Reaction.REJOIN):
            self._heart.heard(now)
        match how:
            case Reaction.REJOIN if self.state is MemberState.STABLE:
                self._ask_rejoin("the group is rebalancing", now, self._spread())
            case Reaction.NEW_GENERATION | Reaction.NEW_MEMBER:
                self._lost_generation(how, f"a heartbeat was refused: {code.name}", now)
            case Reaction.FATAL:
                self._fail(code)
            case Reaction.RETRY | Reaction.FIND_COORDINATOR:
                if how is Reaction.FIND_COORDINATOR:
                    self._emit(ForgetCoordinator())
                self._heart.retry(now)
