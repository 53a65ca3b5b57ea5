"""Drives a membership on asyncio: sends its requests, keeps its deadlines, carries out its effects."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from ...assignors import TopicInfo
from ...client.cluster import Cluster
from ...client.errors import BrokerConnectionError, ConsumerClosedError
from ...client.metadata import ClusterMetadata
from ...client.waiting import Backoff, Signal, now_ms
from ...protocol import ErrorCode, KafkaError, KohortError
from ..config import ConsumerConfig
from ..events import (
    BrokerUnavailable,
    Event,
    PatternMatched,
    PatternRefused,
    PollIntervalExceeded,
    TopicMissing,
)
from ..group.consumer_group import ConsumerMembership
from ..group.effects import (
    Assign,
    Effect,
    Fail,
    ForgetCoordinator,
    NeedTopics,
    ReportEvent,
    Request,
    ResolvePattern,
    Revoke,
    Send,
    SessionAtRisk,
    SpeakClassic,
)
from ..group.manual import ManualAssignment
from ..group.member import GroupMember
from ..group.partition_weights import tell_weights
from ..reading.delivery import Delivery
from ..reading.first_seen import FirstSeen
from ..topic_selection import Selection
from .handover import Handover
from .watchdogs import PollWatch

#: Interval of metadata requests while a topic is missing; otherwise ``metadata_max_age_ms``.
MISSING_TOPIC_MS = 1_000
#: A reader counts as idle when so many looks in a row find it so.
_IDLE_LOOKS = 3
_NOT_FOR_US = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


@dataclass(slots=True, eq=False, repr=False)
class Driver:
    """``settled`` fires after every step; ``polled`` is called when a waiting poll has something to raise.

    The code that builds both sets ``handover`` before ``run``.
    """

    config: ConsumerConfig
    cluster: Cluster
    membership: GroupMember
    delivery: Delivery
    watch: PollWatch
    _: KW_ONLY
    backoff: Backoff
    settled: Signal
    report: Callable[[Event], None]
    failed: Callable[[Exception], None]
    polled: Callable[[], None] = lambda: None
    #: Called to replace the membership by one of the classic protocol.
    turn_classic: Callable[[], None] = lambda: None
    #: Carries out the effects of a member of a group without a coordinator.
    ask_registry: Callable[[Request], Awaitable[object]] | None = None
    handover: Handover = field(init=False)
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    #: The error of a topic that this client may not read; polls raise it while it lasts.
    topic_error: KafkaError | None = None
    _changed: Signal = field(default_factory=Signal)
    #: Tasks, and responses that are waited for without one.
    _tasks: set[asyncio.Future[Any]] = field(default_factory=set)
    _selection: Selection = field(default_factory=Selection)
    _wanted: frozenset[str] = frozenset()
    _led_group: frozenset[str] = frozenset()
    _needed: frozenset[UUID] = frozenset()
    #: Whether this client finds the topics that match the pattern.
    _matches: bool = False
    _missing: frozenset[str] = frozenset()
    _unknown: frozenset[str] = frozenset()
    _look_again: Signal = field(default_factory=Signal)
    _look_now: bool = False
    _prepared: bool = False
    _hurried: bool = False
    _over: bool = False

    # from the consumer

    def select(self, selection: Selection) -> None:
        """Subscribe to these topics or to those that match; or read these partitions."""
        self._selection = selection
        membership, self._matches = self.membership, False
        if isinstance(membership, ManualAssignment):
            self._wanted = frozenset(partition.topic for partition in selection.partitions)
            membership.assign(selection.partitions)
        elif selection.pattern is None:
            self._wanted = selection.topics
            membership.subscribe(self._wanted, now_ms())
        elif (
            isinstance(membership, ConsumerMembership)
            and membership.takes_patterns
            and (regex := selection.regex) is not None
        ):
            self._wanted = frozenset()
            membership.subscribe_pattern(regex, now_ms())
        else:
            self._matches = True
        self.carry_out()
        self._ask_topics()

    def revocation_done(self) -> None:
        """Called when handover has carried out a Revoke."""
        self.membership.revocation_done(now_ms())
        self.carry_out()

    def polled_again(self) -> None:
        """The user polls again after ``max_poll_interval_ms``."""
        self.membership.resume(now_ms())
        self.carry_out()

    async def announce_leave(self, reason: str, timeout_ms: float, idle_ms: float = math.inf) -> None:
        """Announce to the group that this member is about to leave, and wait until the others are ready.

        Waits at most ``timeout_ms``, and neither when nobody polls for ``idle_ms`` nor after ``leave_now``.
        """
        deadline = now_ms() + timeout_ms
        if timeout_ms <= 0 or not self.membership.announce_leave(reason, now_ms()):
            return
        self.carry_out()
        looks = 0
        while not (self.membership.may_leave or self._hurried) and (now := now_ms()) < deadline:
            # more than once: the reader may just not have been scheduled
            looks = looks + 1 if self.watch.idle(now, idle_ms) else 0
            if looks == _IDLE_LOOKS:
                return
            await self.settled.wait(min(deadline - now, idle_ms / _IDLE_LOOKS))

    def leave_now(self) -> None:
        """End the wait of ``announce_leave``."""
        self._hurried = True
        self.settled.fire()

    async def leave(self, reason: str, timeout_ms: float) -> None:
        """Leave the group; gives up after ``timeout_ms``."""
        self.membership.leave(reason)
        effects = self.membership.take_effects()
        for effect in effects:
            if isinstance(effect, Request):
                try:
                    async with asyncio.timeout(timeout_ms / 1000):
                        await self._request_answer(effect)
                except (TimeoutError, KohortError) as error:
                    self.report(BrokerUnavailable("leaving the group", error))
            elif isinstance(effect, ReportEvent):
                self.report(effect.event)

    # the loop

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                deadlines = [self.membership.next_deadline()]
                if self.membership.generation >= 0:
                    deadlines.append(self.watch.deadline())
                deadline = min((d for d in deadlines if d is not None), default=None)
                await self._changed.wait(None if deadline is None else deadline - now_ms())
                now = now_ms()
                if self.watch.is_expired(now):
                    self._poll_interval_over(now)
                self.membership.do_due(now)
                self.carry_out()
        finally:
            self._over = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _poll_interval_over(self, now: float) -> None:
        if self.membership.generation < 0:
            return
        age = self.watch.age(now)
        owned = tuple(sorted(self.membership.owned))
        self.report(PollIntervalExceeded(age, owned, self.watch.busy_with()))
        self.membership.pause(f"no poll for {age:.0f} ms, max_poll_interval_ms is over")

    def carry_out(self) -> None:
        """Carry out the membership's effects, in their order."""
        while effects := self.membership.take_effects():
            for effect in effects:
                self._carry_out(effect)
        self._changed.fire()
        self.settled.fire()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send():
                if effect.at_once:
                    self._send_request(effect)
                else:
                    asyncio.get_running_loop().call_soon(self._send_request, effect)
            case Request():
                self._start(self._ask_in_task(effect), "kohort registry")
            case ForgetCoordinator():
                self.cluster.forget_coordinator(self.config.group)
            case NeedTopics(names, ids):
                self._led_group, self._needed = names, ids
                self._ask_topics()
            case ResolvePattern(reason):
                self.report(PatternRefused(self._selection.regex or "", reason))
                self._matches = True
                self._ask_topics()
            case SpeakClassic():
                self.turn_classic()
                self.select(self._selection)
            case Assign():
                self.handover.assign(effect)
            case Revoke():
                self.handover.revoke(effect)
            case SessionAtRisk(at_risk):
                self.delivery.halt(at_risk)
            case ReportEvent(event):
                self.report(event)
            case Fail(error):
                self.failed(error)

    def _start(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_ended)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            # nothing that is expected: without its outcome the membership would wait for ever
            self.failed(error)

    def _send_request(self, send: Send) -> None:
        """Send a request: without a task, which it needs only if there is no connection yet."""
        if self._over:
            return
        group, answer = self.config.group, None
        # one that cannot be sent has its error in the task
        with suppress(KohortError):
            answer = self.cluster.ask_coordinator(
                group, send.body, channel=send.channel, timeout_ms=send.timeout_ms
            )
        if answer is None:
            self._start(self._ask_in_task(send), f"kohort {send.api_key.name}")
        else:
            self._tasks.add(answer)
            answer.add_done_callback(partial(self._on_request, send))

    def _on_request(self, send: Send, answer: asyncio.Future[object]) -> None:
        self._tasks.discard(answer)
        if answer.cancelled():
            return
        error = answer.exception()
        if isinstance(error, BrokerConnectionError):
            self.cluster.forget_coordinator(self.config.group)
        try:
            self._on_response(send, error, None if error else answer.result())
        except Exception as unexpected:
            self.failed(unexpected)

    async def _ask_in_task(self, request: Request) -> None:
        try:
            response = await self._request_answer(request)
        except ConsumerClosedError:
            return
        except KohortError as error:
            self._on_response(request, error)
        else:
            self._on_response(request, None, response)

    def _on_response(self, request: Request, error: BaseException | None, response: object = None) -> None:
        """Tell the membership of a response, or of an expected error; raises others."""
        if error is None:
            self.membership.on_answer(request, response, now_ms())
        elif isinstance(error, KohortError):
            self.membership.on_failure(request, error, now_ms())
        else:
            raise error
        self.carry_out()

    async def _request_answer(self, request: Request) -> object:
        if isinstance(request, Send):
            return await self.cluster.request_coordinator(
                self.config.group, request.body, channel=request.channel, timeout_ms=request.timeout_ms
            )
        assert self.ask_registry is not None, "it comes with a member that asks it"
        return await self.ask_registry(request)

    # topics

    async def watch_topics(self) -> None:
        """Keep topic metadata fresh and report it to the membership; until cancelled."""
        failures = 0
        while True:
            self._look_now = False
            try:
                wanted = None if self._matches else self._wanted | self._led_group
                known = await self.cluster.metadata(wanted, create=self.config.allow_auto_create_topics)
                ids = {topic.topic_id: name for name, topic in known.topics.items() if topic.topic_id}
                if unnamed := (self._needed - ids.keys()) | self.membership.topic_ids:
                    known = await self.cluster.metadata_by_id(unnamed)
                    ids = {topic.topic_id: name for name, topic in known.topics.items() if topic.topic_id}
            except ConsumerClosedError:
                return
            except KohortError as error:
                self.report(BrokerUnavailable("asking for topics", error))
                await self._look_again.wait(self.backoff.delay_ms(failures))
                failures += 1
                continue
            failures = 0
            if self._look_now:
                # asked for while this response was on its way: it may lack what is needed now
                continue
            if self._matches:
                self._match_pattern(known)
            self.first_seen.look_at(self._selection.topics, known)
            self._tell_missing(known)
            if not self._prepared and self._wanted & known.topics.keys():
                # during the rebalance, so that what is assigned then can be fetched at once
                self._prepared = True
                self._start(self.cluster.prepare_fetches(self._wanted), "kohort connections")
            await tell_weights(
                self.membership.measuring, self.cluster, self.config.group, self._led_group, self.report
            )
            gone, doubted = self._missing_topics(known)
            # a member that needs more asks again, with its next heartbeat
            self._needed = frozenset()
            self.membership.on_topics(self._topic_infos(known), now_ms(), gone, ids)
            self.carry_out()
            if not self._look_now:
                soon = self._missing or doubted
                await self._look_again.wait(MISSING_TOPIC_MS if soon else self.config.metadata_max_age_ms)

    def _match_pattern(self, known: ClusterMetadata) -> None:
        """Subscribe to the topics that match the pattern now."""
        topics = self._selection.matching((topic.name, topic.internal) for topic in known.topics.values())
        if topics != self._wanted:
            self.report(PatternMatched(tuple(sorted(topics))))
            self._wanted = topics
        self.membership.subscribe(topics, now_ms())

    def _ask_topics(self) -> None:
        self._look_now = True
        self._look_again.fire()

    def _tell_missing(self, known: ClusterMetadata) -> None:
        missing = frozenset(name for name in self._wanted if name not in known.topics)
        refused = None
        for name in sorted(missing):
            error = KafkaError(
                known.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {name!r}"
            )
            if error.code in _NOT_FOR_US:
                refused = refused or error
            if name not in self._missing:
                self.report(TopicMissing(name, error))
        self._missing = missing
        if refused is not None or self.topic_error is not None:
            self.topic_error = refused
            self.polled()

    def _missing_topics(self, known: ClusterMetadata) -> tuple[frozenset[str], bool]:
        """Topics missing in two responses (a broker may lag), and whether others are missing in one."""
        unknown = frozenset(
            name
            for name in self._wanted | self._led_group
            if known.errors.get(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        gone, self._unknown = unknown & self._unknown, unknown
        return gone, gone != unknown

    def _topic_infos(self, known: ClusterMetadata) -> dict[str, TopicInfo]:
        infos = {}
        for name, topic in known.topics.items():
            racks = []
            for partition in topic.partitions.values() if self.config.client_rack else ():
                nodes = (known.nodes.get(node) for node in partition.replicas)
                racks.append(frozenset(node.rack for node in nodes if node is not None and node.rack))
            infos[name] = TopicInfo(len(topic.partitions), tuple(racks) if any(racks) else ())
        return infos
