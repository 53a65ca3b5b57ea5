"""A process with the share consumer as it ships: its habits, its connections and its life."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, Protocol

from ....client.cluster import Cluster
from ....consumer import ConsumerError
from ....consumer.share.consumer import ShareConsumer
from ....consumer.share.events import LockLost, ShareAssignmentChanged
from ....protocol import ApiKey, KohortError
from ....share_partitions import CLOSING_EPOCH, TopicPlace
from ..brokers._links import Links
from ..brokers._plan import Values
from ..brokers._world import AnyWorld
from ..engine._loop import AnyFuture
from ..engine._network import Link, SimulatedCall
from ._application_ledger import ApplicationLedger
from ._share_ledger import READS
from ._share_member import MemberWork, SharingProcess

#: Versions of Apache Kafka 4.1, which cannot renew locks and gives whole batches.
_OLD: Final = dict.fromkeys(READS, 1)
_OLD_SHARE: Final = 0.15
_PAUSE_S: Final = 0.1
#: Most requests of a kind that a member may send, but for those about records, and in how many ms.
_MOST_REQUESTS: Final = 60
_WITHIN_MS: Final = 1_000
#: How long a close may take beyond its time, in ms.
_CLOSE_SLACK_MS: Final = 50
#: Of members that are given whole batches.
_NO_LIMIT: Final = 1 << 30


class ApplicationWork(MemberWork, Protocol):
    """What an application tells its workload."""

    @property
    def applications(self) -> ApplicationLedger: ...
    def on_closed(self, member: ConsumingProcess, /) -> None:
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


class ConsumingProcess(SharingProcess):
    """After an error of its consumer it makes another one."""

    def __init__(self, world: AnyWorld, work: ApplicationWork, name: str) -> None:
        self._application = work
        self.consumer: ShareConsumer | None = None
        self._ledger = work.applications
        #: Its consumer is about to close, or has closed.
        self._closes = self._is_closed = False
        self._is_calm: bool = world.plan.calm
        self._number = -1 - len(world.clients)
        # by API, and fetches by broker, too: when it sent the last requests
        self._sent: dict[tuple[int, object], deque[int]] = {}
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

    @abstractmethod
    async def _live(self) -> None:
        """Read with one consumer until the process is to end, or the consumer ends with an error."""

    def _begin(self, consumer: ShareConsumer) -> None:
        """Go on with another consumer."""
        self.consumer, self.member_id = consumer, consumer.state.member_id
        self._closes = self._is_closed = False
        consumer.events.listen(self._on_event)

    def _begin_to_close(self) -> None:
        self._closes = True
        self._ledger.on_closing(self.name)

    def _look_at_close(self, began_ms: int, most_ms: int) -> None:
        """Its consumer has closed: that may not have taken longer than so many ms."""
        took = self.world.heap.now - began_ms
        if took > most_ms + _CLOSE_SLACK_MS and self.stalled_until_ms < began_ms:
            self.world.found("S13", f"{self} closes its consumer in {took} ms, of {most_ms}")
        self._is_closed = True
        self._ledger.on_closed(self.name)
        if self._is_calm and took < most_ms:
            self._application.on_closed(self)

    def _look_for_tasks(self) -> None:
        """All that has to do with its consumer has ended."""
        self._ledger.on_gone(self.name)
        if left := [t for t in self.loop.tasks if t is not asyncio.current_task() and not t.cancelling()]:
            self.world.found("L5", f"{self} has closed its consumer, and of it still runs: {left}")

    def _on_event(self, event: object) -> None:
        if self.world.trace is not None:
            self.world.say(f"{self}: {event}")
        if isinstance(event, LockLost):
            self._ledger.on_event(event)
        elif isinstance(event, ShareAssignmentChanged) and self.consumer is not None:
            self.assigned = frozenset(
                TopicPlace(each.topic_id, each.partition) for each in self.consumer._member.assignment
            )

    def sending(self, call: SimulatedCall, _answer: AnyFuture) -> None:
        if call.api_key in READS:
            if call.body.share_session_epoch == CLOSING_EPOCH:
                self._ledger.on_session_closing(self.name)
            return
        # a consumer of retry topics always has one fetch under way at each broker
        broker = call.connection.node if call.api_key == ApiKey.FETCH else None
        times = self._sent.setdefault((call.api_key, broker), deque(maxlen=_MOST_REQUESTS))
        now = self.world.heap.now
        if len(times) == _MOST_REQUESTS and now - times[0] < _WITHIN_MS:
            name = ApiKey(call.api_key).name
            self.world.found("S17", f"{self} sends more than {_MOST_REQUESTS} {name} in {_WITHIN_MS} ms")
        times.append(now)
