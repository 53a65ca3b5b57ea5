"""An application of a share group: a process with the share consumer as it ships, which takes records one by
one, in batches or several at once, takes its time, fails, hangs, and ends in good order or not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, Protocol

from ....client.cluster import Cluster
from ....consumer import ConsumerError
from ....consumer.share.consumer import ShareConsumer
from ....consumer.share.events import LockLost, ShareAssignmentChanged
from ....consumer.share.records import ShareRecord
from ....protocol import AcknowledgeType, ApiKey, KohortError
from ....share_partitions import TopicPlace
from ..brokers._links import Links
from ..brokers._plan import Values
from ..brokers._world import AnyWorld
from ..engine._loop import AnyFuture
from ..engine._network import Link, SimulatedCall
from ._application_ledger import AppDelivery, ApplicationLedger
from ._share_ledger import READS
from ._share_member import MemberWork, SharingProcess

#: Their versions in Apache Kafka 4.1, which cannot renew locks and gives whole batches.
_OLD: Final = dict.fromkeys(READS, 1)
_OLD_SHARE: Final = 0.15
_PAUSE_S: Final = 0.1
#: How likely each verdict is while there are faults.
_VERDICTS: Final = {AcknowledgeType.ACCEPT: 0.75, AcknowledgeType.RELEASE: 0.15, AcknowledgeType.REJECT: 0.1}
#: How likely it is that a record takes a while, and that its handler hangs until the faults are over.
_SLOW: Final = 0.08
_HANGS: Final = 0.01
_SLOW_S: Final = (0.05, 0.4, 0.9, 1.5, 3.0)
#: How long a close may take beyond its time, and how long it takes where nothing is wrong, in ms.
_CLOSE_SLACK_MS: Final = 50
_CALM_CLOSE_MS: Final = 1_000
#: Most requests of a kind that a member may send, but for those about records, and in how many ms.
_MOST_REQUESTS: Final = 60
_WITHIN_MS: Final = 1_000
_ALL_ANSWERS_MS: Final = 1_000_000
#: Of members that are given whole batches.
_NO_LIMIT: Final = 1 << 30


class ApplicationWork(MemberWork, Protocol):
    """What an application tells its workload."""

    @property
    def applications(self) -> ApplicationLedger: ...
    def on_closed(self, member: ConsumerMember, /) -> None:
        """Called when a member has closed its consumer while all was well."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How an application goes about it. ``settings`` are its consumer's; it ``reads`` records, batches, or
    records in parallel; it ``flushes`` always, after some batches or never; it waits for ``drain_ms`` when it
    closes. ``is_old``: it speaks old versions.
    """

    settings: Values
    reads: str
    flushes: str
    drain_ms: int
    is_old: bool

    def holds_ms(self, lock_ms: int) -> int:
        """How long it keeps a lock of so many ms if nothing goes wrong."""
        renews = self.settings["renew_locks"] and not self.is_old
        return max(lock_ms, self.settings["max_processing_ms"]) if renews else lock_ms

    @property
    def most_locked(self) -> int:
        """How many records it may have."""
        most: int = self.settings["max_locked_records"]
        return _NO_LIMIT if self.is_old else most


def draw_habits(rng: Random) -> Habits:
    """The habits of another process."""
    settings = {
        "max_locked_records": rng.choice((1, 3, 20, 500)),
        "renew_locks": rng.random() < 0.8,
        "max_processing_ms": rng.choice((1_200, 2_500, 60_000)),
        "fetch_max_wait_ms": rng.choice((50, 200, 500)),
        "request_timeout_ms": 1_000,
        "default_api_timeout_ms": 5_000,
        "metadata_max_age_ms": rng.choice((1_000, 300_000)),
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 200,
    }
    return Habits(
        settings,
        reads=rng.choice(("records", "batches", "parallel")),
        flushes=rng.choice(("always", "always", "batches", "never")),
        drain_ms=rng.choice((0, 0, 500)),
        is_old=rng.random() < _OLD_SHARE,
    )


class MemberLink(NamedTuple):
    """The path from a member to a broker. Its number is none of a broker."""

    links: Links
    member: int
    broker: int

    def there(self, at_ms: int) -> int:
        return self.links.arrival(self.member, self.broker, at_ms)

    def back(self, at_ms: int) -> int:
        return self.links.arrival(self.broker, self.member, at_ms)

    def late_ms(self, api_key: int) -> None:
        """No request arrives that was given up: with its connection ends what it would be about."""

    def is_up(self) -> bool:
        return True


class Failed(Exception):  # noqa: N818
    """Raised by handlers that are to fail."""


class ConsumerMember(SharingProcess):
    """One process of the application. After an error of its consumer it makes another one."""

    def __init__(self, world: AnyWorld, work: ApplicationWork, name: str) -> None:
        self._application = work
        self.consumer: ShareConsumer | None = None
        self._ledger = work.applications
        self._leaving = asyncio.Event()
        self._speaking = asyncio.Event()
        self._closes = self._is_closed = False
        self._is_calm: bool = world.plan.calm
        self._number = -1 - len(world.clients)
        # by API: when it sent the last requests
        self._sent: dict[int, deque[int]] = {}
        super().__init__(world, work, name)
        self._habits = habits = draw_habits(self.rng)
        if habits.is_old:
            self.versions = self.versions | _OLD
        self._holds_ms = habits.holds_ms(world.plan.settings["group_share_record_lock_duration_ms"])

    # --- its connections ----------------------------------------------------------------------------------

    def link_to(self, broker: int) -> Link:
        return MemberLink(self.world.links, self._number, broker)

    def slow(self, broker: int, by_ms: int, until_ms: int) -> None:
        """Delay all that is sent to a broker until then, and all that comes from it."""
        for way in ((self._number, broker), (broker, self._number)):
            self.world.links.slow(*way, by_ms, until_ms)

    def cut(self, broker: int, until_ms: int) -> None:
        """Let nothing pass between this process and a broker until then."""
        for way in ((self._number, broker), (broker, self._number)):
            self.world.links.cut(*way, until_ms)

    # --- life ---------------------------------------------------------------------------------------------

    def leave(self) -> None:
        super().leave()
        self._leaving.set()

    def kill(self) -> None:
        # what it does while it is taken apart is not done
        self._ledger.on_gone(self.name)
        super().kill()

    async def run(self) -> None:
        self.world.say(f"{self}: {self._habits}")
        while not self._leaves:
            try:
                await self._configure()
                await self._live()
            except (KohortError, ConsumerError) as error:
                self.world.say(f"{self} begins anew: {error!r}")
                if self._is_calm:
                    self.world.found("Q15", f"{self} ends with {error!r}")
                await asyncio.sleep(_PAUSE_S)
        self.consumer = None

    async def _configure(self) -> None:
        async with Cluster(self.world.bootstrap, self.name, request_timeout_ms=1_000) as cluster:
            await cluster.retrying(lambda: self._work.configure(cluster))

    async def _live(self) -> None:
        """Read with one consumer until the process is to end, or the consumer ends with an error."""
        consumer = self.consumer = ShareConsumer(
            *self._work.topics,
            bootstrap=self.world.bootstrap,
            group=self._work.group,
            **self._habits.settings,
        )
        self.member_id = consumer.state.member_id
        self._closes = self._is_closed = False
        consumer.events.listen(self._on_event)
        await consumer.start()
        reading, flushing, leaving = tasks = [
            asyncio.ensure_future(each)
            for each in (self._read(consumer), self._flush(consumer), self._leaving.wait())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._close(consumer)
            leaving.cancel()
            if not self._habits.drain_ms:
                # others wait for their handlers, though nothing that they say counts any more
                reading.cancel()
            ended = await asyncio.gather(reading, flushing, return_exceptions=True)
            self._ledger.on_gone(self.name)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        if left := [t for t in self.loop.tasks if t is not asyncio.current_task() and not t.cancelling()]:
            self.world.found("L5", f"{self} has closed its consumer, and of it still runs: {left}")

    async def _close(self, consumer: ShareConsumer) -> None:
        began, drain_ms = self.world.heap.now, self._habits.drain_ms
        timeout_ms = self.rng.choice((300, 5_000))
        self._closes = True
        await consumer.close(drain_timeout_ms=drain_ms, timeout_ms=timeout_ms)
        took = self.world.heap.now - began
        most = drain_ms + (_CALM_CLOSE_MS if self._is_calm else timeout_ms + _CLOSE_SLACK_MS)
        if took > most and self.stalled_until_ms < began:
            self.world.found("S13", f"{self} closes its consumer in {took} ms, of {most}")
        self._is_closed = True
        self._speaking.set()
        if self._is_calm:
            self._application.on_closed(self)

    def _on_event(self, event: object) -> None:
        if self.world.trace is not None:
            self.world.say(f"{self}: {event}")
        if isinstance(event, LockLost):
            self._ledger.on_event(event, closes=self._closes)
        elif isinstance(event, ShareAssignmentChanged) and self.consumer is not None:
            self.assigned = frozenset(
                TopicPlace(each.topic_id, each.partition) for each in self.consumer._member.assignment
            )

    def sending(self, call: SimulatedCall, _answer: AnyFuture) -> None:
        if call.api_key in READS:
            return
        times = self._sent.setdefault(call.api_key, deque(maxlen=_MOST_REQUESTS))
        now = self.world.heap.now
        if len(times) == _MOST_REQUESTS and now - times[0] < _WITHIN_MS:
            name = ApiKey(call.api_key).name
            self.world.found("S17", f"{self} sends more than {_MOST_REQUESTS} {name} in {_WITHIN_MS} ms")
        times.append(now)

    # --- records ------------------------------------------------------------------------------------------

    async def _read(self, consumer: ShareConsumer) -> None:
        if self._habits.reads == "batches":
            await self._read_batches(consumer)
        elif self._habits.reads == "parallel":
            async with asyncio.TaskGroup() as tasks:
                async for record in consumer:
                    tasks.create_task(self._handle(self._got(consumer, record)))
        else:
            async for record in consumer:
                await self._handle(self._got(consumer, record))
                await self._flush_some(consumer)

    async def _read_batches(self, consumer: ShareConsumer) -> None:
        say: dict[AcknowledgeType, Callable[[list[ShareRecord]], None]] = {
            AcknowledgeType.ACCEPT: consumer.accept,
            AcknowledgeType.RELEASE: consumer.release,
            AcknowledgeType.REJECT: consumer.reject,
        }
        async for batch in consumer.batches(self.rng.choice((None, 1, 10))):
            entries = [self._got(consumer, record) for record in batch]
            await self._take_time(consumer, entries)
            for entry in entries:
                self._say(entry, self._draw_verdict())
            # also of those that were lost meanwhile: it changes nothing
            for verdict, say_it in say.items():
                say_it([entry.record for entry in entries if entry.said is verdict])
            await self._flush_some(consumer)

    def _got(self, consumer: ShareConsumer, record: ShareRecord) -> AppDelivery:
        place, now = TopicPlace(record.place.topic_id, record.partition), consumer.state
        if now.locked + now.buffered > self._habits.most_locked:
            self.world.found("S16", f"{self} has {now}, at most {self._habits.most_locked}")
        self._work.on_records(place, record.topic, {record.offset: record.value or b""})
        told = self._habits.flushes == "always"
        return self._ledger.on_delivered(self.name, now.member_id, record, holds_ms=self._holds_ms, told=told)

    async def _handle(self, entry: AppDelivery) -> None:
        """Work on one record: it is accepted at the end, or released after an error."""
        verdict = self._draw_verdict()
        try:
            async with entry.record:
                try:
                    await self._take_time(None, [entry])
                except asyncio.CancelledError:
                    verdict = AcknowledgeType.RELEASE
                    raise
                finally:
                    self._say(entry, verdict)
                if verdict is AcknowledgeType.REJECT:
                    entry.record.reject()
                elif verdict is AcknowledgeType.RELEASE:
                    raise Failed
        except Failed:
            pass

    def _say(self, entry: AppDelivery, verdict: AcknowledgeType) -> None:
        """Note what is about to be said."""
        entry.said = verdict
        self._speaking.set()

    async def _take_time(self, consumer: ShareConsumer | None, entries: Sequence[AppDelivery]) -> None:
        if self.world.healed:
            return
        draw = self.rng.random()
        if draw < _SLOW:
            await asyncio.sleep(self.rng.choice(_SLOW_S))
            if consumer is not None and self.rng.random() < 0.5:
                consumer.renew([entry.record for entry in entries])
                await asyncio.sleep(self.rng.choice(_SLOW_S))
        elif draw < _SLOW + _HANGS:
            while not self.world.healed:  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE_S)

    def _draw_verdict(self) -> AcknowledgeType:
        if self.world.healed:
            return AcknowledgeType.ACCEPT
        (verdict,) = self.rng.choices(list(_VERDICTS), list(_VERDICTS.values()))
        return verdict

    async def _flush(self, consumer: ShareConsumer) -> None:
        """Ask for the answers to all that is said, from the moment at which it is."""
        async with asyncio.TaskGroup() as tasks:
            while not self._is_closed:
                await self._speaking.wait()
                self._speaking.clear()
                if self._habits.flushes == "always":
                    tasks.create_task(self._flush_once(consumer, _ALL_ANSWERS_MS))

    async def _flush_some(self, consumer: ShareConsumer) -> None:
        if self._habits.flushes == "batches" and self.rng.random() < 0.5:
            await self._flush_once(consumer, self.rng.choice((20, 3_000)))

    async def _flush_once(self, consumer: ShareConsumer, timeout_ms: float) -> None:
        self._ledger.on_answers(await consumer.flush(timeout_ms))
