"""The common part of all memberships: the driver's interface, and the handling of owned partitions. No I/O.

Requests go out as :class:`~.effects.Request`; responses and the time come in. All times are milliseconds of
one monotonic clock. After each call, take the effects; call ``do_due`` when ``next_deadline`` has come.

Nothing is owned without a generation. When the group has gone on without this member, everything it owned is
revoked as lost, in whatever state that news arrives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from ...assignors import MeasuringAssignor, TopicInfo
from ...client.offsets import CommittedOffset
from ...client.waiting import Backoff
from ...protocol import ErrorCode, KafkaError, TopicPartition
from ...statemachine import LifeCycle, MemberState, MemberTrigger
from ..config import ConsumerConfig
from ..errors import FatalGroupError
from ..events import BrokerUnavailable, Event, RebalanceCompleted, RebalanceStarted, StateChanged
from .effects import Effect, Fail, ForgetCoordinator, ReportEvent, Request, Revoke
from .errors import NO_COORDINATOR_FOR_US, fatal_text
from .heartbeat import Heartbeats

#: Reason of revocations for a partition's new owner.
MOVES = "moves to another member"


@dataclass(slots=True)
class RebalanceUnderWay:
    """A rebalance: since when it is under way, and what has come and gone here."""

    began: float | None = None
    added: set[TopicPartition] = field(default_factory=set)
    given_up: set[TopicPartition] = field(default_factory=set)


class GroupMember(ABC):
    """A member of a group as the driver, the committer and the user see it."""

    #: The legal moves of ``state``.
    life: LifeCycle[MemberState, MemberTrigger]

    def __init__(self, config: ConsumerConfig, rng: Random) -> None:
        self.state = MemberState.UNJOINED
        #: Generation, or member epoch; -1 without one.
        self.generation = -1
        self.member_id = ""
        #: The id under which it was last in the group, "" before: what it still has of then is refused by it.
        self.last_member_id = ""
        self.is_leader = False
        self.owned: frozenset[TopicPartition] = frozenset()
        #: Partitions that are still being revoked here, and no longer owned for the coordinator: nothing more
        #: can be committed for them.
        self.given_up: frozenset[TopicPartition] = frozenset()
        #: Whether this member stays away until ``resume``.
        self.paused = False
        self._config = config
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, rng=rng)
        self._heartbeats = Heartbeats(
            config.heartbeat_interval_ms, config.session_timeout_ms, self._backoff, self._emit_effect
        )
        self._effects: list[Effect] = []
        self._subscription: tuple[str, ...] = ()
        # by topic, as last reported
        self._partition_counts: dict[str, int] = {}
        self._revocations = 0
        self._attempts = 0
        self._rebalance = RebalanceUnderWay()
        self._first_refused: float | None = None
        #: Why this member is about to leave, once it announces that; when it may leave, and whether it may.
        self._leaving: str | None = None
        self._leave_at: float | None = None
        self._may_leave = False

    def __repr__(self) -> str:
        who = self.member_id or "no member id yet"
        kind = type(self).__name__
        return f"{kind}({self._config.group}, {self.state.value}, {who}, generation {self.generation})"

    # what the driver asks

    def take_effects(self) -> list[Effect]:
        """The effects to carry out now, in order; each is returned once."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def measuring(self) -> MeasuringAssignor | None:
        """The assignor that is about to assign here and asks for measured weights, if it does."""
        return None

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that this member subscribes to."""
        return frozenset(self._subscription)

    @property
    def topic_ids(self) -> frozenset[UUID]:
        """Ids of assigned topics that the broker found by a regular expression: nobody names them here."""
        return frozenset()

    @property
    def identity(self) -> tuple[str | None, int]:
        """Member id and epoch that OffsetFetch carries; None and -1 for none."""
        return None, -1

    @property
    def may_leave(self) -> bool:
        """Return whether ``leave`` need not wait any longer."""
        return self._leaving is None or self._may_leave or self.generation < 0

    @abstractmethod
    def next_deadline(self) -> float | None:
        """The latest time to call ``do_due``; None while only a response can change anything."""

    @abstractmethod
    def can_commit(self) -> bool:
        """Return whether a commit may succeed now."""

    # what the user wants

    @abstractmethod
    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Subscribe to these topics, instead of earlier ones."""

    @abstractmethod
    def resume(self, now: float) -> None:
        """Come back after ``pause``."""

    def pause(self, reason: str) -> None:
        """Leave, and stay away until ``resume``. Owned partitions are lost.

        A static member stays in the group until its session ends (KIP-345).
        """
        self.paused = True
        self._send_leave(reason)
        self._lose_membership(reason)

    @abstractmethod
    def announce_leave(self, reason: str, now: float) -> bool:
        """Announce that this member is about to leave; it keeps what it owns until ``may_leave``.

        Returns False if that would be of no use.
        """

    def leave(self, reason: str) -> None:
        """Leave for good; a static member stays in the group until its session ends.

        Call it when nothing is owned.
        """
        self.paused = True
        self._send_leave(reason)
        self.owned = frozenset()
        self._forget_generation(reason)

    # what happens

    @abstractmethod
    def on_answer(self, request: Request, response: object, now: float) -> None:
        """A request was answered. Ignored if the request is no longer the pending one."""

    @abstractmethod
    def on_failure(self, request: Request, error: Exception, now: float) -> None:
        """A request was not answered: the coordinator cannot be reached, or the connection broke."""

    def revocation_done(self, now: float) -> None:
        """A Revoke has been carried out."""
        self._revocations -= 1
        assert self._revocations >= 0, "more revocations done than asked for"
        self._go_on(now)

    def gives_up(  # noqa: B027 - only where the coordinator can make use of it
        self,
        partitions: Collection[TopicPartition],
        offsets: Mapping[TopicPartition, CommittedOffset],
        now: float,
    ) -> None:
        """The commit is being sent with which these partitions are given up; ``offsets`` has what it says."""

    @abstractmethod
    def on_topics(
        self,
        topics: Mapping[str, TopicInfo],
        now: float,
        gone: frozenset[str] = frozenset(),
        ids: Mapping[UUID, str] | None = None,
    ) -> None:
        """Topic metadata, after NeedTopics or at any time.

        ``gone`` are topics that certainly do not exist (any more), ``ids`` has the names of topics by id.
        """

    @abstractmethod
    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:
        """An OffsetCommit with ``generation`` was refused with a group error."""

    @abstractmethod
    def do_due(self, now: float) -> None:
        """Do what is due: begin to join, send a heartbeat, notice that the session is at risk."""

    # what both do

    @abstractmethod
    def _go_on(self, now: float) -> None:
        """Do what could not be done before a revocation had been carried out."""

    @abstractmethod
    def _send_leave(self, reason: str) -> None:
        """Tell the coordinator that this member leaves, if it is one."""

    @abstractmethod
    def _forget_generation(self, reason: str) -> None:
        """Forget the generation: this client is no member any more, and owned partitions have been
        handled.
        """

    def _lose_membership(self, reason: str) -> None:
        """The group goes on without this member: what it owns or is about to revoke is lost."""
        lost, self.owned = tuple(sorted(self.owned)), frozenset()
        self._forget_generation(reason)
        self._revoke_partitions(lost, lost=True, reason=reason)

    def _on_unreachable(self, request: Request, error: Exception) -> bool:
        """Look for the coordinator, which did not answer; returns False if that would be of no use."""
        if isinstance(error, KafkaError) and error.code in NO_COORDINATOR_FOR_US:
            self._fail_member(error.code)
            return False
        self._emit_effect(ForgetCoordinator())
        self._report_event(BrokerUnavailable(request.subject, error))
        return True

    def _may_wait_for_owner(self, now: float, session_ms: float = 0) -> bool:
        """Return whether to wait for a static member's old instance: at start-up, for one session timeout, or
        for this session if it is longer.
        """
        if self._first_refused is None:
            self._first_refused = now
        return now < self._first_refused + max(session_ms, self._config.session_timeout_ms)

    def _fail_member(self, code: ErrorCode, message: str | None = None) -> None:
        text = fatal_text(code, self._config.group, self._config.group_instance_id)
        self._refuse_for_good(f"{text}: {message}" if message else text, code)

    def _refuse_for_good(self, text: str, code: ErrorCode | None = None) -> None:
        self._lose_membership(text)
        self._change_state(MemberTrigger.FAIL, text)
        error = FatalGroupError(text)
        error.__cause__ = None if code is None else KafkaError(code)
        self._emit_effect(Fail(error))

    def _revoke_partitions(self, partitions: tuple[TopicPartition, ...], *, lost: bool, reason: str) -> None:
        self._revocations += 1
        self._emit_effect(Revoke(partitions, lost, reason))

    def _change_state(self, trigger: MemberTrigger, reason: str) -> None:
        self.life.fire(self, trigger)
        self._report_event(StateChanged(self.state, reason))

    def _start_rebalance(self, reason: str, now: float) -> None:
        """Report a rebalance, unless it is under way."""
        if self._rebalance.began is None:
            self._rebalance.began = now
            self._report_event(RebalanceStarted(self.generation, reason))

    def _complete_rebalance(self, protocol: str, assignment: Iterable[TopicPartition], now: float) -> None:
        """Report what the rebalance has changed; ``protocol`` says who has assigned."""
        done, self._rebalance = self._rebalance, RebalanceUnderWay()
        self._report_event(
            RebalanceCompleted(
                generation=self.generation,
                member_id=self.member_id,
                leader=self.is_leader,
                protocol=protocol,
                assignment=tuple(sorted(assignment)),
                assigned=tuple(sorted(done.added)),
                revoked=tuple(sorted(done.given_up)),
                duration_ms=0.0 if done.began is None else now - done.began,
            )
        )

    def _report_event(self, event: Event) -> None:
        self._emit_effect(ReportEvent(event))

    def _emit_effect(self, effect: Effect) -> None:
        self._effects.append(effect)
