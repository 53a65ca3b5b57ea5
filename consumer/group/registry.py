"""A consumer's membership in a group without a coordinator: the members divide the partitions among
themselves, through a registry that all of them watch. No I/O and no clock.

A paper of 2011 describes it (Kreps, Narkhede, Rao: "Kafka: a Distributed Messaging System for Log
Processing", section 3.2), and Kafka 0.7 and 0.8 had it. Each member registers an id with its topics, and sees
the registrations of the others. Whenever these or the partitions change, each member runs the same algorithm:
sort partitions and members, take its own range, release partitions outside it, claim the new ones; retry
while another member still owns one. Nothing ensures that all members see the same; only that a partition has
one owner at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from uuid import UUID

from ...assignors import TopicInfo
from ...protocol import ErrorCode, TopicPartition
from ...statemachine import MEMBER, MemberState, MemberTrigger
from ..config import ConsumerConfig
from ..events import (
    BrokerUnavailable,
    RebalanceRetried,
    SessionInDoubt,
    SessionResumed,
)
from .effects import Assign, NeedTopics, Request, SessionAtRisk
from .member import MOVES, GroupMember, RebalanceUnderWay

#: Partitions that become free within this time are claimed together: each claim is for all that are missing.
FREED_MS = 20.0

#: Members that come and go within this time are one reason to look at the topics again.
LOOK_MS = 100.0

#: Share of a session: after this time without a response delivery stops, as in ZooKeeper's own clients. Half
#: of that after the last response, a request checks whether the registry still answers.
_SILENT = 2 / 3

#: Partitions that an event names.
_NAMED = 3

#: Threads by topic in a registration: 1 for members here; clients of Kafka 0.8 may have more.
Topics = Mapping[str, int]


class RegistryEffect(Request, eq=False):
    """An action on the registry. Carry them out one after another; after a failure it is uncertain whether
    they were carried out.
    """


class Register(RegistryEffect, eq=False):
    """Register ``member_id`` with these topics, in place of any earlier id of this member."""

    member_id: str
    topics: tuple[str, ...]


class ClaimPartitions(RegistryEffect, eq=False):
    """Become the owner of these partitions; the outcome is the ones that this member owns."""

    partitions: tuple[TopicPartition, ...]


class Release(RegistryEffect, eq=False):
    """Stop owning these partitions, if this member owns them."""

    partitions: tuple[TopicPartition, ...]


class Withdraw(RegistryEffect, eq=False):
    """Remove the registration, and stop owning these partitions."""

    partitions: tuple[TopicPartition, ...]


class CheckRegistry(RegistryEffect, eq=False):
    """Check that the session lives; the outcome is those of the partitions that this member owns."""

    partitions: tuple[TopicPartition, ...]


def share_of(member_id: str, members: Mapping[str, Topics], counts: Mapping[str, int]) -> set[TopicPartition]:
    """Algorithm 1 of the paper, as in Kafka 0.8: for each topic sort partitions and threads; each thread gets
    one range, and the first ones get one more if they do not divide evenly.
    """
    share: set[TopicPartition] = set()
    for topic, own in members[member_id].items():
        if own < 1:
            continue
        threads = sorted(
            (f"{name}-{number}", name)
            for name, topics in members.items()
            for number in range(topics.get(topic, 0))
        )
        each, more = divmod(counts.get(topic, 0), len(threads))
        for at, (_, name) in enumerate(threads):
            if name == member_id:
                first = each * at + min(at, more)
                share.update(TopicPartition(topic, first + n) for n in range(each + (at < more)))
    return share


class RegistryMembership(GroupMember):
    """Call ``subscribe`` to begin, and ``connected`` when there is a session with the registry.

    One effect at a time is pending, so that each follows from the outcome of the last. An effect that fails
    is repeated after a back-off, as long as it is needed.

    The generation counts this member's own rebalances; other members have other counts.
    """

    life = MEMBER

    def __init__(self, config: ConsumerConfig, rng: Random, member_id: str) -> None:
        super().__init__(config, rng)
        self.member_id = self._id = member_id
        #: Subscriptions before this one; -1 before the first.
        self._earlier = -1
        self._rounds = 0
        self._session = self._registered = False
        #: Whether the registry may have entries of this member, and the partitions that it may own there:
        #: never fewer than it owns, whatever happened to requests and sessions.
        self._present = False
        self._held: frozenset[TopicPartition] = frozenset()
        self._members: Mapping[str, Topics] = {}
        self._counts: dict[str, int] | None = None
        #: When to look at the topics again.
        self._look_at: float | None = None
        self._target: frozenset[TopicPartition] = frozenset()
        self._asking: RegistryEffect | None = None
        #: When the pending effect was requested, and the last one that got a response.
        self._asked_at = self._heard_at = 0.0
        #: Earliest times of the next effect, and of the next Claim.
        self._again_at = self._claim_at = 0.0
        #: While there is no connection: when the session is over at the latest.
        self._over_at: float | None = None
        self._in_doubt = False

    # what the driver asks

    def next_deadline(self) -> float | None:
        """See GroupMember."""
        times = [at for at in (self._over_at, self._look_at) if at is not None]
        if (due := self._next_effect()) is not None:
            times.append(due[0])
        if self._may_doubt():
            times.append(self._doubtful_at())
        return min(times, default=None)

    def can_commit(self) -> bool:
        """Whether the session lives and partitions are claimed in this generation."""
        return self._session and self.generation >= 0

    # what the user wants

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """See GroupMember."""
        wanted = tuple(sorted(set(topics)))
        if wanted != self._subscription:
            self._subscription = wanted
            self._earlier += 1
            # members that know the old registration read the new one, because its name differs
            self.member_id = f"{self._id}.{self._earlier}" if self._earlier else self._id
            self._registered = False
            self._go_on(now)

    def resume(self, now: float) -> None:
        """See GroupMember."""
        if self.paused:
            self.paused = False
            self._go_on(now)

    def announce_leave(self, reason: str, now: float) -> bool:  # noqa: ARG002 - nobody would hear it
        """Return False: the end of the session tells the others."""
        return False

    # what happens in the registry

    def on_connected(self, now: float) -> None:
        """Called when there is a session. If it is the old one, delivery resumes once a check has shown that
        this member still owns its partitions.
        """
        self._session = True
        self._over_at = None
        self._heard_at = self._again_at = now
        self._attempts = 0
        self._go_on(now)

    def on_suspended(self, now: float) -> None:
        """Called when the connection broke, or was given up after a long silence: this side cannot know how
        much of the session is left, which ZooKeeper decides. So delivery stops at once.
        """
        self._session = False
        self._on_doubt(True, now)
        self._over_at = now + self._config.session_timeout_ms

    def on_expired(self, now: float) -> None:  # noqa: ARG002 - others may have gone on long before
        """Called when the session is over: this member is not registered, and owns nothing."""
        self._session = False
        self._members = {}
        self._on_lost("the session with ZooKeeper is over")
        if self._in_doubt:
            # the partitions that were in doubt are lost
            self._in_doubt = False
            self._emit_effect(SessionAtRisk(False))

    def members_changed(self, members: Mapping[str, Topics], now: float) -> None:
        """Called with the registered members and their topics."""
        before, self._members = self._members, members
        if members.keys() != before.keys() and self._counts is not None and self._look_at is None:
            # a share of fewer partitions than the others know of leaves some without a reader
            self._look_at = now + LOOK_MS
        if self.member_id not in members:
            if self.member_id in before:
                self._on_lost("this member was removed from ZooKeeper")
            # or the reader did not see it yet: registering once more changes nothing
            self._registered = False
        self._follow_share("the members changed", now)
        self._go_on(now)

    def on_freed(self, partition: TopicPartition, now: float) -> None:
        """Called when a partition has no owner, or another one. If a claim for it was refused, it may be free
        now; others that follow at once are claimed together with it.
        """
        # the outcome of the pending effect says it for partitions that are being claimed or released
        asked = (
            self._asking.partitions if isinstance(self._asking, ClaimPartitions | Release | Withdraw) else ()
        )
        self._on_robbed(frozenset({partition}).difference(asked))
        self._claim_at = min(self._claim_at, now + FREED_MS)
        self._go_on(now)

    def _on_robbed(self, gone: frozenset[TopicPartition]) -> None:
        """Handle partitions that others may own: those that were read, or were being given up, are lost."""
        robbed = self.owned & gone or (self._revocations and self._held & gone)
        self._held -= gone
        if robbed:
            self._on_lost("this member was removed from its partitions in ZooKeeper")

    def on_answer(self, request: Request, response: object, now: float) -> None:
        """An effect was carried out; ``response`` are the partitions of a Claim that this member owns."""
        if request is not self._asking:
            return
        assert isinstance(response, frozenset), "the registry answers with partitions"
        self._asking = None
        self._heard_at = self._asked_at
        match request:
            case Register(member_id) if member_id == self.member_id and not self.paused:
                self._registered = self._session
                self._follow_share("registered again" if self._rounds else "first join", now)
            case ClaimPartitions(partitions):
                self._on_claimed(frozenset(partitions), response, now)
            case Release(partitions):
                self._held -= frozenset(partitions)
            case Withdraw():
                self._present, self._held = False, frozenset()
            case CheckRegistry(partitions):
                self._on_robbed(frozenset(partitions) - response)
                if self._session:
                    self._on_doubt(False, now)
        self._go_on(now)

    def on_failure(self, request: Request, error: Exception, now: float) -> None:
        """An effect may have been carried out or not: the connection broke, or it was refused."""
        self._report_event(BrokerUnavailable(request.subject, error))
        if request is self._asking:
            self._asking = None
            self._heard_at = self._asked_at
            self._again_at = now + self._pause_ms(str(error))

    # what happens otherwise

    def on_topics(
        self,
        topics: Mapping[str, TopicInfo],
        now: float,
        gone: frozenset[str] = frozenset(),
        ids: Mapping[UUID, str] | None = None,  # noqa: ARG002 - topics go by name here
    ) -> None:
        """Share the topics' partitions anew if their numbers have changed."""
        known = {name: info.partition_count for name, info in topics.items()}
        # a topic that is missing in one answer may be in the next
        kept = {name: count for name, count in (self._counts or {}).items() if name not in gone}
        self._counts = {**kept, **known}
        self._follow_share("the partitions changed", now)

    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:
        """Count everything as lost if another member has taken a partition."""
        if generation == self.generation and code is ErrorCode.ILLEGAL_GENERATION:
            self._on_lost("another member has gone on from its partitions")
            self._go_on(now)

    def do_due(self, now: float) -> None:
        """See GroupMember."""
        if self._over_at is not None and now >= self._over_at:
            self._over_at = None
            self._on_lost("ZooKeeper did not answer for the time of a session")
        if self._look_at is not None and now >= self._look_at:
            self._look_at = None
            self._emit_effect(NeedTopics(frozenset()))
        if self._may_doubt() and now >= self._doubtful_at():
            # also when this process stood still: its session may be over
            self._on_doubt(True, now)
        self._go_on(now)

    # what is asked of the registry

    def _go_on(self, now: float) -> None:
        """Continue as far as possible now. A rebalance waits until everything is revoked."""
        if self.state is MemberState.PREPARING and not self._revocations:
            self.generation = self._rounds
            self._rounds += 1
            self._change_state(MemberTrigger.JOINED, f"its share is {len(self._target)} partitions")
        if self.state is MemberState.COMPLETING and self._target == self.owned:
            self._on_settled(now)
        if (due := self._next_effect()) is not None and now >= due[0]:
            self._ask_effect(due[1], now)

    def _next_effect(self) -> tuple[float, RegistryEffect] | None:
        """The next effect, and its time; None if none is needed."""
        if not self._session or self._asking is not None:
            return None
        if self.paused:
            return (self._again_at, self._make_withdrawal()) if self._present else None
        if not self._registered:
            wanted = Register(self.member_id, self._subscription)
            return (self._again_at, wanted) if self._earlier >= 0 else None
        if self._in_doubt:
            return self._again_at, self._make_check()
        extra, missing = self._held - self._target - self.owned, self._target - self.owned
        if extra and not self._revocations:
            return self._again_at, Release(tuple(sorted(extra)))
        if self.state is MemberState.COMPLETING:
            return max(self._again_at, self._claim_at), ClaimPartitions(tuple(sorted(missing)))
        check_at = self._heard_at + self._config.session_timeout_ms * _SILENT / 2
        return max(self._again_at, check_at), self._make_check()

    def _make_check(self) -> CheckRegistry:
        return CheckRegistry(tuple(sorted(self._held)))

    def _make_withdrawal(self) -> Withdraw:
        return Withdraw(tuple(sorted(self._held)))

    def _ask_effect(self, effect: RegistryEffect, now: float) -> None:
        self._asking, self._asked_at = effect, now
        self._present = self._present or not isinstance(effect, Withdraw)
        if isinstance(effect, ClaimPartitions):
            self._held |= frozenset(effect.partitions)
        self._emit_effect(effect)

    def _may_doubt(self) -> bool:
        return self.generation >= 0 and not self._in_doubt

    def _doubtful_at(self) -> float:
        return self._heard_at + self._config.session_timeout_ms * _SILENT

    # a rebalance

    def _follow_share(self, reason: str, now: float) -> None:
        """Begin a rebalance if this member's share is another one."""
        if not self._registered or self.member_id not in self._members or self._counts is None:
            return
        share = frozenset(share_of(self.member_id, self._members, self._counts))
        if share == self._target and self.state is not MemberState.UNJOINED:
            return
        self._target = share
        if self.state is not MemberState.PREPARING:
            self._change_state(MemberTrigger.JOIN, reason)
            self._start_rebalance(reason, now)
        if gone := tuple(sorted(self.owned - share)):
            self.owned &= share
            self._rebalance.given_up.update(gone)
            self._revoke_partitions(gone, lost=False, reason=MOVES)
        self._claim_at = now
        self._go_on(now)

    def _on_claimed(
        self, asked: frozenset[TopicPartition], mine: frozenset[TopicPartition], now: float
    ) -> None:
        self._held = (self._held - asked) | mine
        if self.state is not MemberState.COMPLETING:
            return  # another share, or none: what of it is still wanted is claimed again
        if added := tuple(sorted(mine & self._target - self.owned)):
            kept = tuple(sorted(self.owned))
            self.owned |= frozenset(added)
            self._rebalance.added.update(added)
            self._emit_effect(Assign(self.generation, added, kept))
        if left := sorted(asked & self._target - mine):
            first = ", ".join(f"{topic}-{number}" for topic, number in left[:_NAMED])
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            # the log says what ZooKeeper refuses
            reason = f"another owner still has {first}{more}, or ZooKeeper refuses the claim"
            self._claim_at = now + self._pause_ms(reason)

    def _on_settled(self, now: float) -> None:
        self._attempts = 0
        self._change_state(MemberTrigger.SYNCED, f"it owns its share of {len(self.owned)} partitions")
        if not self._rebalance.added:
            self._emit_effect(Assign(self.generation, (), tuple(sorted(self.owned))))
        self._complete_rebalance("range", self.owned, now)

    def _pause_ms(self, reason: str) -> float:
        delay_ms = self._backoff.delay_ms(self._attempts)
        self._attempts += 1
        self._report_event(RebalanceRetried(reason, delay_ms))
        return delay_ms

    # the end

    def _on_lost(self, reason: str) -> None:
        self._registered = False
        if self.state is not MemberState.UNJOINED:
            self._lose_membership(reason)

    def _send_leave(self, reason: str) -> None:  # noqa: ARG002 - nobody is told why
        """Withdraw now, even if an effect is pending: it is carried out after that."""
        self._registered, self._look_at = False, None
        if self._session and self._present:
            self._asking = self._make_withdrawal()
            self._emit_effect(self._asking)

    def _forget_generation(self, reason: str) -> None:
        self.generation = -1
        self._target, self._rebalance = frozenset(), RebalanceUnderWay()
        if self.state is not MemberState.UNJOINED:
            self._change_state(MemberTrigger.RESET, reason)

    def _on_doubt(self, in_doubt: bool, now: float) -> None:
        if in_doubt != self._in_doubt:
            self._in_doubt = in_doubt
            self._emit_effect(SessionAtRisk(in_doubt))
            self._report_event(SessionInDoubt(now - self._heard_at) if in_doubt else SessionResumed())
