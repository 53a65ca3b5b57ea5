"""Drives a membership on asyncio: sends its requests, keeps its deadlines, carries out its effects."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

from ..assignors import TopicInfo
from ..client.cluster import Cluster
from ..client.errors import ConsumerClosedError
from ..client.metadata import ClusterMetadata
from ..client.waiting import Backoff, Signal
from ..protocol import ErrorCode, KafkaError, KohortError
from .delivery import Delivery
from .effects import Assign, Effect, Fail, ForgetCoordinator, NeedTopics, Report, Revoke, Send, SessionAtRisk
from .events import BrokerUnavailable, Event, PatternMatched, PollIntervalExceeded, TopicMissing
from .handover import Handover
from .membership import Membership
from .selection import ManualAssignment, Selection
from .watchdogs import PollWatch
from .weights import tell_weights

#: Interval of metadata requests while a topic is missing; otherwise ``metadata_max_age_ms``.
MISSING_TOPIC_MS = 1_000
_IDLE_LOOKS = 3
_NOT_FOR_US = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


class Driver:
    """``settled`` fires after every step; ``polled`` is called when a waiting poll has something to raise.

    ``handover`` is set by whoever builds both, before ``run``.
    """

    handover: Handover

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        membership: Membership,
        delivery: Delivery,
        watch: PollWatch,
        *,
        metadata_max_age_ms: float,
        with_racks: bool,
        create_topics: bool,
        backoff: Backoff,
        settled: Signal,
        report: Callable[[Event], None],
        failed: Callable[[Exception], None],
        polled: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._membership = membership
        self._delivery = delivery
        self._watch = watch
        self._metadata_max_age_ms = metadata_max_age_ms
        self._with_racks = with_racks
        self._create_topics = create_topics
        self._backoff = backoff
        self._settled = settled
        self._report = report
        self._failed = failed
        self._polled = polled
        self._changed = Signal()
        self._tasks: set[asyncio.Task[None]] = set()
        self._selection = Selection()
        self._wanted: frozenset[str] = frozenset()
        self._led_group: frozenset[str] = frozenset()
        self._missing: frozenset[str] = frozenset()
        self._unknown: frozenset[str] = frozenset()
        #: The error of a topic that this client may not read; polls raise it while it lasts.
        self.topic_error: KafkaError | None = None
        self._look_again = Signal()
        self._look_now = False
        self._prepared = False
        self._hurried = False

    def now(self) -> float:
        """The membership's clock: the event loop's, in milliseconds."""
        return asyncio.get_running_loop().time() * 1000

    # from the consumer

    def select(self, selection: Selection) -> None:
        """Subscribe to these topics or to those that match; or read these partitions."""
        self._selection = selection
        membership = self._membership
        if isinstance(membership, ManualAssignment):
            self._wanted = frozenset(partition.topic for partition in selection.partitions)
            membership.assign(selection.partitions)
        elif selection.pattern is None:
            self._wanted = selection.topics
            membership.subscribe(self._wanted, self.now())
        self.carry_out()
        self._ask_topics()

    def revocation_done(self) -> None:
        """Called when handover has carried out a Revoke."""
        self._membership.revocation_done(self.now())
        self.carry_out()

    def polled_again(self) -> None:
        """The user polls again after ``max_poll_interval_ms``."""
        self._membership.resume(self.now())
        self.carry_out()

    async def announce_leave(self, reason: str, timeout_ms: float, idle_ms: float = math.inf) -> None:
        """Announce to the group that this member is about to leave, and wait until the others are ready.

        Waits at most ``timeout_ms``, and neither when nobody polls for ``idle_ms`` nor after ``leave_now``.
        """
        deadline = self.now() + timeout_ms
        if timeout_ms <= 0 or not self._membership.announce_leave(reason, self.now()):
            return
        self.carry_out()
        looks = 0
        while not (self._membership.may_leave or self._hurried) and (now := self.now()) < deadline:
            # more than once: the reader may just not have been scheduled
            looks = looks + 1 if self._watch.idle(now, idle_ms) else 0
            if looks == _IDLE_LOOKS:
                return
            await self._settled.wait(min(deadline - now, idle_ms / _IDLE_LOOKS))

    def leave_now(self) -> None:
        """End the wait of ``announce_leave``."""
        self._hurried = True
        self._settled.fire()

    async def leave(self, reason: str, timeout_ms: float) -> None:
        """Leave the group; gives up after ``timeout_ms``."""
        self._membership.leave(reason)
        effects = self._membership.take_effects()
        for effect in effects:
            if isinstance(effect, Send):
                try:
                    async with asyncio.timeout(timeout_ms / 1000):
                        await self._request(effect)
                except (TimeoutError, KohortError) as error:
                    self._report(BrokerUnavailable("leaving the group", error))
            elif isinstance(effect, Report):
                self._report(effect.event)

    # the loop

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self._sleep()
                now = self.now()
                if self._watch.expired(now):
                    self._poll_interval_over(now)
                self._membership.advance(now)
                self.carry_out()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _sleep(self) -> None:
        deadlines = [self._membership.next_deadline()]
        if self._membership.generation >= 0:
            deadlines.append(self._watch.deadline())
        deadline = min((d for d in deadlines if d is not None), default=None)
        if deadline is None:
            await self._changed.wait()
            return
        await self._changed.wait(deadline - self.now())

    def _poll_interval_over(self, now: float) -> None:
        if self._membership.generation < 0:
            return
        partitions = tuple(sorted(self._membership.owned))
        age = self._watch.age(now)
        busy_with = self._watch.busy_with()
        self._report(PollIntervalExceeded(age, partitions, busy_with))
        self._membership.pause(f"no poll for {age:.0f} ms, max_poll_interval_ms is over")

    def carry_out(self) -> None:
        """Carry out the membership's effects, in their order."""
        while effects := self._membership.take_effects():
            for effect in effects:
                self._carry_out(effect)
        self._changed.fire()
        self._settled.fire()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._spawn(effect)
            case ForgetCoordinator():
                self._cluster.forget_coordinator(self._group)
            case NeedTopics(names):
                self._led_group = names
                self._ask_topics()
            case Assign():
                self.handover.assign(effect)
            case Revoke():
                self.handover.revoke(effect)
            case SessionAtRisk(at_risk):
                self._delivery.halt(at_risk)
            case Report(event):
                self._report(event)
            case Fail(error):
                self._failed(error)

    def _spawn(self, send: Send) -> None:
        self._start(self._send(send), f"kohort {send.api_key.name}")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, send: Send) -> None:
        try:
            response = await self._request(send)
        except ConsumerClosedError:
            return
        except KohortError as error:
            self._membership.failed(send, error, self.now())
        else:
            self._membership.answered(send, response, self.now())
        self.carry_out()

    async def _request(self, send: Send) -> object:
        return await self._cluster.request_coordinator(
            self._group, send.body, channel=send.channel, timeout_ms=send.timeout_ms
        )

    # topics

    async def watch_topics(self) -> None:
        """Keep topic metadata fresh and report it to the membership; until cancelled."""
        failures = 0
        while True:
            self._look_now = False
            try:
                wanted = None if self._selection.pattern is not None else self._wanted | self._led_group
                known = await self._cluster.metadata(wanted, create=self._create_topics)
            except ConsumerClosedError:
                return
            except KohortError as error:
                self._report(BrokerUnavailable("asking for topics", error))
                await self._look_again.wait(self._backoff.delay_ms(failures))
                failures += 1
                continue
            failures = 0
            if self._look_now:
                # asked for while this response was on its way: it may lack what is needed now
                continue
            if self._selection.pattern is not None:
                self._match(known)
            self._tell_missing(known)
            if not self._prepared and self._wanted & known.topics.keys():
                # during the rebalance, so that what is assigned then can be fetched at once
                self._prepared = True
                self._start(self._cluster.prepare_fetches(self._wanted), "kohort connections")
            await tell_weights(
                self._membership.measuring, self._cluster, self._group, self._led_group, self._report
            )
            gone, doubted = self._gone(known)
            self._membership.topics(self._infos(known), self.now(), gone)
            self.carry_out()
            if not self._look_now:
                soon = self._missing or doubted
                await self._look_again.wait(MISSING_TOPIC_MS if soon else self._metadata_max_age_ms)

    def _match(self, known: ClusterMetadata) -> None:
        """Subscribe to the topics that match the pattern now."""
        topics = self._selection.matching((topic.name, topic.internal) for topic in known.topics.values())
        if topics != self._wanted:
            self._report(PatternMatched(tuple(sorted(topics))))
            self._wanted = topics
        self._membership.subscribe(topics, self.now())

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
                self._report(TopicMissing(name, error))
        self._missing = missing
        if refused is not None or self.topic_error is not None:
            self.topic_error = refused
            self._polled()

    def _gone(self, known: ClusterMetadata) -> tuple[frozenset[str], bool]:
        """Topics missing in two responses (a broker may lag), and whether others are missing in one."""
        unknown = frozenset(
            name
            for name in self._wanted | self._led_group
            if known.errors.get(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        gone, self._unknown = unknown & self._unknown, unknown
        return gone, gone != unknown

    def _infos(self, known: ClusterMetadata) -> dict[str, TopicInfo]:
        infos = {}
        for name, topic in known.topics.items():
            racks = []
            for partition in topic.partitions.values() if self._with_racks else ():
                nodes = (known.nodes.get(node) for node in partition.replicas)
                racks.append(frozenset(node.rack for node in nodes if node is not None and node.rack))
            infos[name] = TopicInfo(len(topic.partitions), tuple(racks) if any(racks) else ())
        return infos
