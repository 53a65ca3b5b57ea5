"""What every step of a membership shares: its state, and the ways in which it goes wrong or ends."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..assignors import Assignor, RebalanceProtocol, TopicInfo
from ..protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ..statemachine import MemberState, MemberTrigger, fire_member
from . import group_messages
from ..client.waiting import Backoff
from .effects import Effect, Fail, ForgetCoordinator, Release, Report, Send
from .errors import FatalGroupError
from .events import Event, RebalanceRetried, StateChanged
from .group_messages import MembershipSettings
from .heart import Heart
from .leader import Led
from .refusals import Reaction, fatal_text, reaction
from .strategies import Strategies

#: Members told of a rebalance in the same moment spread their JoinGroups over this time.
REJOIN_SPREAD_MS = 20.0
#: How long after its share a member begins the round that is known to follow, if it has nothing to give up.
#: A SyncGroup that comes later is refused, and its sender learns nothing in the round.
NEXT_ROUND_MS = 10.0
#: Who has something to give up reads on for so long, while the others join.
GIVE_UP_AFTER_MS = 30.0
#: A leader that knows its topics since so short a time assigns at once.
FRESH_TOPICS_MS = 5_000


class MembershipCore:
    """Base of Membership; see there."""

    def __init__(
        self, settings: MembershipSettings, assignors: Sequence[Assignor], rng: random.Random
    ) -> None:
        self.state = MemberState.UNJOINED
        self.generation = -1
        self.member_id = ""
        self.is_leader = False
        self.owned: frozenset[TopicPartition] = frozenset()
        #: Name of the assignor the group agreed on; empty before the first generation.
        self.protocol = ""
        self._settings = settings
        self._strategies = Strategies(assignors, self._report)
        self._rng = rng
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, rng=rng)
        self._heart = Heart(
            settings.heartbeat_interval_ms, settings.session_timeout_ms, self._backoff, self._emit
        )
        self._effects: list[Effect] = []
        self._subscription: tuple[str, ...] = ()
        self._owned_generation = -1
        self._paused = False
        # the round: why, when it may begin, how far it is
        self._rejoin_reason: str | None = None
        self._join_reason = ""
        self._rejoin_at = 0.0
        self._attempts = 0
        self._round_began: float | None = None
        self._prepared = False
        self._releases = 0
        self._request: Send | None = None
        self._first_refused: float | None = None
        #: Whether another round was known to follow the last one.
        self._announced = False
        #: When to ask for that round, if nobody else has.
        self._round_overdue_at: float | None = None
        #: Owned, and to be given up before the next round.
        self._moving: frozenset[TopicPartition] = frozenset()
        #: Why this member is about to leave, once the group is to be told; whether its last JoinGroup did so;
        #: when it may leave, and whether it may, once the others know.
        self._leaving: str | None = None
        self._said_so = False
        self._leave_at: float | None = None
        self._may_leave = False
        #: Whether the leader of this generation understands it.
        self._heard_by_leader = False
        # as leader: the members, and the topics they were given their shares from
        self._led: Led | None = None
        self._led_topics: dict[str, TopicInfo] | None = None
        # the topics as they were last told, and when
        self._topics: dict[str, TopicInfo] = {}
        self._topics_at = 0.0

    def take_effects(self) -> list[Effect]:
        """What is to be done now, in order; each is given once."""
        effects, self._effects = self._effects, []
        return effects

    # going

    @property
    def paused(self) -> bool:
        """Whether this member stays away until ``resume``."""
        return self._paused

    def pause(self, reason: str) -> None:
        """Leave, and stay away until ``resume``. What was owned is lost.

        A static member only forgets its generation: its seat waits for it until the session ends (KIP-345).
        """
        self._paused = True
        self._depart(reason)
        self._lose(reason)
        self._rejoin_reason = None

    def announce_leave(self, reason: str, now: float) -> bool:
        """Tell the group that this member is about to leave; what it owns it keeps until ``may_leave``.

        The leader then gives it nothing, and the others are ready to take over. False where that is of no
        use: under EAGER, for a static member, without others, or with a leader that would not understand.
        """
        others = len(self._led.members) > 1 if self._led is not None else self._heard_by_leader
        if (
            not (self.owned and others and self.generation >= 0)
            or self._paused
            or self._settings.instance_id is not None
            or self._strategies.protocol is RebalanceProtocol.EAGER
        ):
            return False
        self._leaving = reason
        self._rejoin_reason = f"about to leave: {reason}"
        self._rejoin_at = now
        return True

    @property
    def may_leave(self) -> bool:
        """Whether nothing is gained by waiting longer with ``leave``."""
        return self._leaving is None or self._may_leave or self.generation < 0

    def leave(self, reason: str) -> None:
        """Leave for good; a static member keeps its seat. What is owned must have been released before."""
        self._paused = True
        self._depart(reason)
        self._rejoin_reason = None
        self.owned = frozenset()
        self._forget_generation(reason)

    @property
    def another_round_follows(self) -> bool:
        """Whether the group's leader has said so with the last share."""
        return self._announced

    # refusals

    def _refused(self, api_key: ApiKey, code: ErrorCode, now: float) -> None:
        text = f"{api_key.name} was refused: {code.name}"
        match reaction(api_key, code):
            case Reaction.FATAL:
                self._fail(code)
            case Reaction.NEW_GENERATION | Reaction.NEW_MEMBER as how:
                self._lost_generation(how, text, now)
            case Reaction.FIND_COORDINATOR:
                self._emit(ForgetCoordinator())
                self._retry(text, now)
            case Reaction.REJOIN:
                self._retry(text, now, self._spread())
            case _:
                self._retry(text, now)

    def _retry(self, reason: str, now: float, delay_ms: float | None = None) -> None:
        """Another JoinGroup after a pause; what was prepared for this round stays prepared."""
        if delay_ms is None:
            delay_ms = self._backoff.delay_ms(self._attempts)
            self._attempts += 1
        self._led = self._led_topics = None
        self._rejoin_reason = reason
        self._rejoin_at = now + delay_ms
        self._report(RebalanceRetried(reason, delay_ms))

    def _lost_generation(self, how: Reaction, reason: str, now: float) -> None:
        if how is Reaction.NEW_MEMBER:
            self.member_id = ""
        self._lose(reason)
        self._retry(reason, now)

    def _lose(self, reason: str) -> None:
        """The group goes on without this member: whatever it owned or is giving up is lost."""
        lost, self.owned = tuple(sorted(self.owned)), frozenset()
        self._forget_generation(reason)
        self._release(lost, lost=True, reason=reason)

    def _forget_generation(self, reason: str) -> None:
        self.generation = self._owned_generation = -1
        self.is_leader = False
        self._led = self._led_topics = self._round_overdue_at = None
        self._moving = frozenset()
        self._announced = False
        self._request = None
        self._heart.stop()
        self._prepared = False
        if self.state not in (MemberState.UNJOINED, MemberState.FAILED):
            self._fire(MemberTrigger.RESET, reason)

    def _fail(self, code: ErrorCode) -> None:
        self._refuse_for_good(fatal_text(code, self._settings.group, self._settings.instance_id), code)

    def _refuse_for_good(self, text: str, code: ErrorCode | None = None) -> None:
        self._lose(text)
        self._fire(MemberTrigger.FAIL, text)
        error = FatalGroupError(text)
        error.__cause__ = None if code is None else KafkaError(code)
        self._emit(Fail(error))

    # small things

    def _depart(self, reason: str) -> None:
        if self.member_id and self._settings.instance_id is None:
            self._emit(group_messages.leave_group(self._settings, self.member_id, reason))
            self.member_id = ""

    def _release(self, partitions: tuple[TopicPartition, ...], *, lost: bool, reason: str) -> None:
        self._releases += 1
        self._emit(Release(partitions, lost, reason))

    def _fire(self, trigger: MemberTrigger, reason: str) -> None:
        fire_member(self, trigger)
        self._report(StateChanged(self.state, reason))

    def _report(self, event: Event) -> None:
        self._emit(Report(event))

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _spread(self) -> float:
        # partitions wait for a round that was announced
        return 0.0 if self._announced else self._rng.random() * REJOIN_SPREAD_MS
