"""A consumer's membership in a group without a coordinator: its members share the partitions out among
themselves, by a registry that all of them watch. No I/O and no clock.

The paper of 2011 describes it (Kreps, Narkhede, Rao: "Kafka: a Distributed Messaging System for Log
Processing", section 3.2), Kafka 0.7 and 0.8 had it. Each member registers under an id with its topics, and
sees the registrations of the others. Whenever these change, or the partitions do, each runs the same
algorithm: sort partitions and members, take one's range, give back what is not in it, become the owner of
what is new; while somebody else still is its owner, try again. Nobody makes sure that all see the same: only
that a partition has one owner at a time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ..assignors import TopicInfo
from ..protocol import ErrorCode, TopicPartition
from ..statemachine import MEMBER, MemberState, MemberTrigger
from .config import ConsumerConfig
from .effects import Assign, Effect, Send, SessionAtRisk
from .events import RebalanceCompleted, RebalanceRetried, RebalanceStarted
from .member import MOVES, GroupMember

#: Partitions that become free within this time are claimed together: each claim asks for all that is missing.
FREED_MS = 20.0

#: Threads by topic that a member registers with: one of ours; clients of Kafka 0.8 may have several.
Topics = Mapping[str, int]


class RegistryEffect(Effect, eq=False):
    """To be carried out on the registry, one after the other; ``done`` or ``undone`` tells the outcome."""


class Register(RegistryEffect, eq=False):
    """Register ``member_id`` with these topics, in place of an earlier id of this member."""

    member_id: str
    topics: tuple[str, ...]


class Claim(RegistryEffect, eq=False):
    """Become the owner of these partitions; the outcome is those that this member owns."""

    partitions: tuple[TopicPartition, ...]


class Release(RegistryEffect, eq=False):
    """Be no longer the owner of these partitions."""

    partitions: tuple[TopicPartition, ...]


class Withdraw(RegistryEffect, eq=False):
    """Be no longer registered, nor the owner of anything."""


def share_of(member_id: str, members: Mapping[str, Topics], counts: Mapping[str, int]) -> set[TopicPartition]:
    """Algorithm 1 of the paper, as Kafka 0.8 has it: by topic, partitions and threads are sorted, each thread
    takes one range, and the first ones take one more if they do not divide evenly.
    """
    share: set[TopicPartition] = set()
    for topic in members[member_id]:
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

    The generation counts this member's rebalances: others count theirs.
    """

    life = MEMBER

    def __init__(self, config: ConsumerConfig, rng: random.Random, member_id: str) -> None:
        super().__init__(config, rng)
        self.member_id = self._id = member_id
        self._ids = 0
        self._rounds = 0
        self._session = self._registered = False
        self._members: Mapping[str, Topics] = {}
        self._counts: dict[str, int] | None = None
        self._target: frozenset[TopicPartition] = frozenset()
        #: Partitions whose owner this member is, or may be.
        self._held: frozenset[TopicPartition] = frozenset()
        #: What was asked of the registry: one thing at a time, so that each follows the outcome of the last.
        self._asking: Claim | Release | None = None
        self._claim_at = self._release_at = 0.0
        self._began = 0.0
        self._added: list[TopicPartition] = []
        self._revoked: tuple[TopicPartition, ...] = ()
        # since the connection broke: when the session is over at the latest
        self._over_at: float | None = None
        self._in_doubt = False

    # what the driver asks

    def next_deadline(self) -> float | None:
        times = [self._over_at]
        times += [self._claim_at] if self._may_claim() else []
        times += [self._release_at] if self._may_release() else []
        return min((at for at in times if at is not None), default=None)

    def can_commit(self) -> bool:
        return self._session and self.generation >= 0

    # what the user wants

    def subscribe(self, topics: Iterable[str], now: float) -> None:  # noqa: ARG002 - the registry tells when
        wanted = tuple(sorted(set(topics)))
        if wanted != self._subscription:
            self._subscription = wanted
            if self._registered:
                # whoever knows the old registration reads the new one, as it has another name
                self._ids += 1
                self.member_id = f"{self._id}.{self._ids}"
            self._register()

    def resume(self, now: float) -> None:  # noqa: ARG002 - as above
        if self.paused:
            self.paused = False
            self._register()

    def announce_leave(self, reason: str, now: float) -> bool:  # noqa: ARG002 - nobody would hear it
        return False

    # what happens in the registry

    def connected(self, now: float) -> None:
        """There is a session, the same one as before or another."""
        self._session = True
        self._over_at = None
        self._doubted(False)
        if self._registered:
            self._asking = None
            self._proceed(now)
        else:
            self._register()

    def suspended(self, now: float) -> None:
        """The connection broke, or nothing came for so long that it was given up: nobody knows here how much
        of the session is left, which is ZooKeeper's to bound. So delivery stops at once.
        """
        self._session = False
        self._doubted(True)
        self._over_at = now + self._config.session_timeout_ms

    def expired(self, now: float) -> None:  # noqa: ARG002 - others may have gone on long before
        """The session is over: this member is not registered, and owns nothing."""
        self._session = False
        self._members = {}
        self._over_at = None
        self._lost("the session with ZooKeeper is over")
        self._doubted(False)

    def members_changed(self, members: Mapping[str, Topics], now: float) -> None:
        """Who is registered, with which topics."""
        before, self._members = self._members, members
        if self._registered and self.member_id in before and self.member_id not in members:
            self._lost("this member was removed from ZooKeeper")
            self._register()
        self._follow("the members changed", now)

    def freed(self, now: float) -> None:
        """A partition that was refused may have no owner any more; others that follow at once are claimed
        together with it.
        """
        self._claim_at = min(self._claim_at, now + FREED_MS)

    def done(self, effect: RegistryEffect, outcome: frozenset[TopicPartition], now: float) -> None:
        """An effect was carried out; ``outcome`` are the partitions of a Claim that this member owns."""
        if isinstance(effect, Register) and effect.member_id == self.member_id and not self.paused:
            self._registered = True
            self._follow("first join" if not self._rounds else "registered again", now)
        elif self._asking is not None and effect is self._asking:
            asked, self._asking = self._asking, None
            if isinstance(asked, Claim):
                self._claimed(asked, outcome, now)
            else:
                self._held -= frozenset(asked.partitions)
            self._proceed(now)

    def undone(self, effect: RegistryEffect, error: Exception, now: float) -> None:
        """An effect may have been carried out or not: the connection broke. What is needed is tried again
        in the next one.
        """
        if effect is self._asking:
            self._asking = None
            self._claim_at = self._release_at = now + self._pause_ms(str(error))

    # what happens otherwise

    def answered(self, request: Send, response: Any, now: float) -> None:  # noqa: ARG002 - never called
        raise AssertionError("this member sends no requests to brokers")

    def failed(self, request: Send, error: Exception, now: float) -> None:  # noqa: ARG002 - never called
        raise AssertionError("this member sends no requests to brokers")

    def revocation_done(self, now: float) -> None:
        self._revocations -= 1
        self._proceed(now)

    def topics(
        self,
        topics: Mapping[str, TopicInfo],
        now: float,
        gone: frozenset[str] = frozenset(),
        ids: Mapping[UUID, str] | None = None,  # noqa: ARG002 - topics go by name here
    ) -> None:
        known = {name: info.partition_count for name, info in topics.items()}
        # a topic that is missing in one answer may be in the next
        kept = {name: count for name, count in (self._counts or {}).items() if name not in gone}
        self._counts = {**kept, **known}
        self._follow("the partitions changed", now)

    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:  # noqa: ARG002
        if generation == self.generation and code is ErrorCode.ILLEGAL_GENERATION:
            self._lost("another member has gone on from its partitions")
            self._register()

    def advance(self, now: float) -> None:
        if self._over_at is not None and now >= self._over_at:
            self._over_at = None
            self._lost("ZooKeeper did not answer for the time of a session")
        self._proceed(now)

    # a rebalance

    def _register(self) -> None:
        wanted = self._subscription or self._ids
        if wanted and self._session and not self.paused and self.state is not MemberState.FAILED:
            self._emit(Register(self.member_id, self._subscription))

    def _follow(self, reason: str, now: float) -> None:
        """Begin a rebalance if this member's share is another one."""
        if not self._registered or self.member_id not in self._members or self._counts is None:
            return
        share = frozenset(share_of(self.member_id, self._members, self._counts))
        if share == self._target and self.state is not MemberState.UNJOINED:
            return
        self._target = share
        if self.state is not MemberState.PREPARING:
            if self.state is not MemberState.COMPLETING:
                self._began, self._added, self._revoked = now, [], ()
            self._fire(MemberTrigger.JOIN, reason)
            self._report(RebalanceStarted(self.generation, reason))
        if gone := tuple(sorted(self.owned - share)):
            self.owned &= share
            self._revoked += gone
            self._revoke(gone, lost=False, reason=MOVES)
        self._claim_at = now
        self._proceed(now)

    def _proceed(self, now: float) -> None:
        """Once everything is revoked: give back, and take what is new."""
        if not self._is_ready():
            return
        if self.state is MemberState.PREPARING:
            self.generation = self._rounds
            self._rounds += 1
            self._fire(MemberTrigger.JOINED, f"its share is {len(self._target)} partitions")
        if self._may_release() and now >= self._release_at:
            self._ask(Release(tuple(sorted(self._held - self._target - self.owned))))
        if self._may_claim() and now >= self._claim_at:
            missing = self._target - self.owned
            self._held |= missing
            self._ask(Claim(tuple(sorted(missing))))
        if self.state is MemberState.COMPLETING and self._target == self.owned:
            self._settled(now)

    def _ask(self, effect: Claim | Release) -> None:
        self._asking = effect
        self._emit(effect)

    def _is_ready(self) -> bool:
        return self._session and self._registered and not self._revocations

    def _may_release(self) -> bool:
        return self._is_ready() and self._asking is None and not self._held <= self._target | self.owned

    def _may_claim(self) -> bool:
        ready = self._is_ready() and self._asking is None
        return ready and self.state is MemberState.COMPLETING and self._target != self.owned

    def _claimed(self, claim: Claim, mine: frozenset[TopicPartition], now: float) -> None:
        asked = frozenset(claim.partitions)
        self._held = (self._held - asked) | mine | self.owned
        if not self._revocations and (added := tuple(sorted(mine & self._target - self.owned))):
            kept = tuple(sorted(self.owned))
            self.owned |= frozenset(added)
            self._added += added
            self._emit(Assign(self.generation, added, kept))
        if asked & self._target - mine:
            self._claim_at = now + self._pause_ms("partitions have another owner still")

    def _settled(self, now: float) -> None:
        self._attempts = 0
        self._fire(MemberTrigger.SYNCED, f"it owns its share of {len(self.owned)} partitions")
        if not self._added:
            self._emit(Assign(self.generation, (), tuple(sorted(self.owned))))
        self._report(
            RebalanceCompleted(
                generation=self.generation,
                member_id=self.member_id,
                leader=False,
                protocol="range",
                assignment=tuple(sorted(self.owned)),
                assigned=tuple(sorted(self._added)),
                revoked=self._revoked,
                duration_ms=now - self._began,
            )
        )

    def _pause_ms(self, reason: str) -> float:
        delay_ms = self._backoff.delay_ms(self._attempts)
        self._attempts += 1
        self._report(RebalanceRetried(reason, delay_ms))
        return delay_ms

    # the end

    def _lost(self, reason: str) -> None:
        self._registered = False
        self._held = frozenset()
        if self.state not in (MemberState.UNJOINED, MemberState.FAILED):
            self._lose(reason)

    def _depart(self, reason: str) -> None:  # noqa: ARG002 - nobody is told why
        self._registered = False
        self._held = frozenset()
        if self._session:
            self._emit(Withdraw())

    def _forget_generation(self, reason: str) -> None:
        self.generation = -1
        self._target, self._asking = frozenset(), None
        if self.state not in (MemberState.UNJOINED, MemberState.FAILED):
            self._fire(MemberTrigger.RESET, reason)

    def _doubted(self, in_doubt: bool) -> None:
        if in_doubt != self._in_doubt:
            self._in_doubt = in_doubt
            self._emit(SessionAtRisk(in_doubt))
