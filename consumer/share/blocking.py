"""The blocking share consumer: a ShareConsumer on an event loop in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ...client.errors import ConsumerClosedError
from ...client.threads import LoopThread
from ...protocol import AcknowledgeType, KohortError, TopicPartition
from ..events import EventLog
from .consumer import CLOSE_TIMEOUT_MS, ShareConsumer, ShareConsumerStatus
from .locks import say_once
from .records import ShareRecord

if TYPE_CHECKING:
    from typing import Unpack

    from ..typed_settings import ShareConsumerSettings

T = TypeVar("T")

#: Longest delay until the loop takes what was said: a wake-up for each record would be costly.
_TAKEN_AFTER_S = 0.002


class BlockingShareConsumer:
    """``with BlockingShareConsumer("orders", bootstrap="localhost:9092", group="billing") as consumer:``,
    then ``for record in consumer:`` and ``with record: ...``.

    As ShareConsumer, blocking. Heartbeats and renewals run in the background whatever the caller does. Any
    thread may say something of records, and call ``close``; one thread reads.
    """

    def __init__(
        self,
        *topics: str,
        decode: object = None,
        key_decode: object = None,
        **config: Unpack[ShareConsumerSettings],
    ) -> None:
        self._consumer = ShareConsumer(*topics, decode=decode, key_decode=key_decode, **config)
        self._consumer.take_verdicts(self)
        self._thread: LoopThread | None = None
        #: Of what something was said that the loop has not taken, and whether it is about to.
        self._said: deque[ShareRecord] = deque()
        self._scheduled = False

    def __repr__(self) -> str:
        return f"Blocking{self._consumer!r}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # life

    def start(self) -> None:
        """As ShareConsumer.start."""
        if self._thread is not None:
            raise ConsumerClosedError("a consumer starts once: make a new one")
        self._thread = LoopThread(f"kohort {self._consumer.config.group}")
        try:
            self._run(self._consumer.start)
        except BaseException:
            self._thread.stop()
            raise

    def close(self, *, drain_timeout_ms: float = 0.0, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """As ShareConsumer.close. Iterations end. Any thread may call it."""
        thread = self._thread
        if thread is None or not thread.is_alive:
            return  # not started, closed, or in a forked child, where it belongs to the parent

        async def close() -> None:
            self._take_said()
            await self._consumer.close(drain_timeout_ms=drain_timeout_ms, timeout_ms=timeout_ms)

        closing = close()
        if thread.is_current:  # a listener of events, for which the loop must not wait
            thread.submit(closing)
            return
        try:
            with suppress(CancelledError, RuntimeError):  # another thread was first
                thread.run(closing)
        finally:
            thread.stop()

    def subscribe(self, *topics: str) -> None:
        """As ShareConsumer.subscribe."""
        self._call(self._consumer.subscribe, *topics)

    # records

    def __iter__(self) -> Iterator[ShareRecord]:
        """Records one by one, until the consumer is closed."""
        for batch in self.batches():
            for record in batch:
                if not record.lost:
                    yield record

    def batches(self, max_records: int | None = None) -> Iterator[list[ShareRecord]]:
        """As ShareConsumer.batches."""
        with suppress(ConsumerClosedError):
            while batch := self._run(self._consumer.next_records, max_records, None):
                yield batch

    def getmany(self, max_records: int | None = None, timeout_ms: float | None = 1_000) -> list[ShareRecord]:
        """As ShareConsumer.getmany."""
        return self._run(self._consumer.getmany, max_records, timeout_ms)

    def decode(self, record: ShareRecord) -> Any:
        """As ShareConsumer.decode; it needs no running consumer."""
        return self._consumer.decoder()(record.value)

    def decode_key(self, record: ShareRecord) -> Any:
        """As ShareConsumer.decode_key."""
        return self._consumer.decoder(key=True)(record.key)

    # what is said of them

    def accept(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """As ShareConsumer.accept."""
        self._say(records, AcknowledgeType.ACCEPT)

    def release(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """As ShareConsumer.release."""
        self._say(records, AcknowledgeType.RELEASE)

    def reject(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """As ShareConsumer.reject."""
        self._say(records, AcknowledgeType.REJECT)

    def renew(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """As ShareConsumer.renew."""
        self._call(self._consumer.renew, records)

    def _say(self, records: ShareRecord | Iterable[ShareRecord], verdict: AcknowledgeType) -> None:
        for record in [records] if isinstance(records, ShareRecord) else records:
            self.acknowledge(record, verdict)

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType) -> None:
        """Queue what a record says of itself. The loop takes it a little later, and others with it."""
        thread = self._require_thread()
        say_once(record, verdict)
        self._said.append(record)
        if not self._scheduled:
            self._scheduled = True
            with suppress(RuntimeError):  # the loop has ended, and with it the locks
                thread.loop.call_soon_threadsafe(thread.loop.call_later, _TAKEN_AFTER_S, self._take_said)

    def _take_said(self) -> None:
        """On the loop: queue what was said."""
        # first, so that what is said from here on is scheduled again
        self._scheduled = False
        said = self._said
        self._consumer.queue_verdicts(said.popleft() for _ in range(len(said)))

    def flush(self, timeout_ms: float | None = None) -> dict[ShareRecord, KohortError | None]:
        """As ShareConsumer.flush."""

        async def flush() -> dict[ShareRecord, KohortError | None]:
            self._take_said()
            return await self._consumer.flush(timeout_ms)

        return self._run(flush)

    # state

    @property
    def events(self) -> EventLog:
        """As ShareConsumer.events; listeners are called on the consumer's thread."""
        return self._consumer.events

    @property
    def state(self) -> ShareConsumerStatus:
        """As ShareConsumer.state."""
        return self._consumer.state

    def assignment(self) -> frozenset[TopicPartition]:
        """As ShareConsumer.assignment."""
        return self._consumer.assignment()

    def subscription(self) -> frozenset[str]:
        """As ShareConsumer.subscription."""
        return self._consumer.subscription()

    # inside

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function of the consumer on its loop, and wait for it."""

        async def call() -> None:
            function(*arguments)

        thread = self._require_thread()
        if thread.is_current:
            function(*arguments)
        else:
            self._wait(thread, call())

    def _run(self, function: Callable[..., Coroutine[object, None, T]], *arguments: object) -> T:
        """Await a function of the consumer on its loop; return its result."""
        return self._wait(self._require_thread(), function(*arguments))

    def _wait(self, thread: LoopThread, work: Coroutine[object, None, T]) -> T:
        try:
            return thread.run(work)
        except (CancelledError, RuntimeError):
            if thread.is_alive:
                raise
            raise ConsumerClosedError("this consumer has been closed") from None

    def _require_thread(self) -> LoopThread:
        if self._thread is None or not self._thread.is_alive:
            state = "was not started: use it in 'with'" if self._thread is None else "has been closed"
            raise ConsumerClosedError(f"this consumer {state}")
        return self._thread
