"""The blocking producer: a Producer whose event loop runs in a separate thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from ..client.offsets import CommittedOffset
from ..client.threads import LoopThread
from ..client.transactions import GroupMetadata
from ..client.waiting import now_ms
from ..protocol import Headers, KafkaError, KohortError, TopicPartition
from .accumulator import ProducerRecord, RecordMetadata
from .encoding import Encoders
from .errors import ProducerClosedError, ProducerError, SerializationError
from .producer import Producer

T = TypeVar("T")

#: With this many records that the event loop has not taken yet, ``send`` waits for it.
_MOST_GIVEN = 2_000
_NO_WAITING = "a callback of a future may send and cannot wait: wait in a thread of yours"


class BlockingProducer:
    """A Producer for programs without an event loop: its methods block.

    Use it as ``with BlockingProducer(bootstrap_servers="localhost:9092") as producer:``. The arguments are
    those of Producer. Any thread may call it; all threads share its one transaction. ``encode`` and
    ``key_encode`` are called in the thread that calls ``send``.
    """

    def __init__(self, *, encode: object = None, key_encode: object = None, **settings: object) -> None:
        self._producer = Producer(**settings)
        self._encoders = Encoders.of(encode, key_encode)
        self._thread: LoopThread | None = None
        self._given: list[tuple[ProducerRecord, Future[RecordMetadata]]] = []
        #: Whether ``_take_in`` is scheduled or running.
        self._taking = False
        self._order = asyncio.Lock()
        #: Records that wait for their topic's metadata, by topic, and until when. They do not hold up other
        #: topics' records.
        self._aside: dict[str, deque[tuple[ProducerRecord, Future[RecordMetadata], float]]] = {}
        self._aside_tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"Blocking{self._producer!r}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """As Producer.start."""
        if self._thread is not None:
            raise ProducerClosedError("a producer starts once: make a new one")
        self._thread = LoopThread("kohort producer")
        try:
            self._run(self._producer.start)
        except BaseException:
            self._stop()
            raise

    def close(self, timeout_ms: float | None = None) -> None:
        """As Producer.close."""
        if self._thread is not None and not self._thread.is_alive:
            self._closed = True  # it is the parent process's, or has ended
            return
        if self._thread is not None and self._thread.is_current:
            raise ProducerError(_NO_WAITING)
        with self._lock:
            if self._thread is None or self._closed:
                return
            self._closed = True
        try:
            # runs after the records that were handed over before
            self._thread.submit(self._close(timeout_ms)).result()
        finally:
            self._stop()

    async def _close(self, timeout_ms: float | None) -> None:
        left_ms = self._producer.config.delivery_timeout_ms if timeout_ms is None else timeout_ms
        until_ms = now_ms() + left_ms
        taking = asyncio.ensure_future(self._take_in_all())
        await asyncio.wait([taking], timeout=left_ms / 1000)
        await self._producer.close(max(0.0, until_ms - now_ms()))
        await taking  # what it had not accepted, the producer refuses now

    def _stop(self) -> None:
        assert self._thread is not None, "started before it is stopped"
        self._closed = True
        self._thread.stop()

    # records

    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Future[RecordMetadata]:
        """Hand a record over to the event loop; return a future of its RecordMetadata.

        The arguments are those of Producer.send, and the future raises all its errors. Waits while
        ``buffer_memory`` is full. Raises ProducerClosedError.
        """
        future: Future[RecordMetadata] = Future()
        future.set_running_or_notify_cancel()  # so that it cannot be cancelled
        if self._encoders is not None:
            try:
                value, key = self._encoders.pair(topic, value, key)
            except (OSError, SerializationError) as error:
                self._require_running().loop.call_soon_threadsafe(self._refuse_record, future, error)
                return future
        record = ProducerRecord(topic, value, key, partition, timestamp_ms, headers)
        with self._lock:
            thread = self._require_running()
            self._given.append((record, future))
            full = len(self._given) >= _MOST_GIVEN
            begins = not self._taking
            self._taking = True
            if begins:
                thread.submit(self._take_in())
        # callbacks of futures run on the event loop's thread, which must not wait for itself
        if full and not thread.is_current:
            thread.submit(self._wait_for_room()).result()
        return future

    def send_and_wait(self, *record: Any, **named: Any) -> RecordMetadata:
        """As ``send``, and wait until the record is written."""
        return self.send(*record, **named).result()

    def flush(self) -> None:
        """As Producer.flush."""
        self._run(self._producer.flush)

    def partitions_for(self, topic: str) -> int:
        """As Producer.partitions_for."""
        return self._run(self._producer.partitions_for, topic)

    async def _take_in(self) -> None:
        """Send the records that were handed over, in order. Runs on the event loop."""
        most_ms = self._producer.config.max_block_ms
        async with self._order:
            while True:
                with self._lock:
                    given, self._given = self._given, []
                    if not given:
                        self._taking = False
                        return
                for record, future in given:
                    topic = record.topic
                    if type(topic) is str and topic in self._aside:
                        self._aside[topic].append((record, future, now_ms() + most_ms))
                    elif self._producer.may_have_to_ask(topic, record.partition):
                        self._aside[topic] = deque([(record, future, now_ms() + most_ms)])
                        task = asyncio.create_task(self._send_aside(topic))
                        self._aside_tasks.add(task)
                        task.add_done_callback(self._aside_tasks.discard)
                    else:
                        await self._accept_record(record, future)

    async def _send_aside(self, topic: str) -> None:
        waiting, producer = self._aside[topic], self._producer
        while waiting:
            record, future, until_ms = waiting.popleft()
            try:
                if producer.may_have_to_ask(topic, record.partition):
                    least_ms = now_ms() + producer.config.retry_backoff_ms
                    await producer.look_up(topic, record.partition, max(until_ms, least_ms))
            except Exception as error:
                self._refuse_record(future, error)
                if isinstance(error, KafkaError):
                    self._refuse_late(topic, error.code)
            else:
                await self._accept_record(record, future)
        del self._aside[topic]

    def _refuse_late(self, topic: str, code: int) -> None:
        """Refuse what has waited as long for what was just looked up in vain: not one after the other."""
        waiting, producer, now = self._aside[topic], self._producer, now_ms()
        while waiting and waiting[0][2] <= now and producer.may_have_to_ask(topic, waiting[0][0].partition):
            record, future, _ = waiting.popleft()
            self._refuse_record(future, producer.unknown_error(topic, record.partition, code))

    def _refuse_record(self, future: Future[RecordMetadata], error: Exception) -> None:
        # a transaction has all that was given to it, or nothing
        self._producer.fail_transaction(error)
        future.set_exception(error)

    async def _accept_record(self, record: ProducerRecord, future: Future[RecordMetadata]) -> None:
        try:
            sending = await self._producer.send(*record)
        except Exception as error:
            self._refuse_record(future, error)
        else:
            sending.add_done_callback(_make_copier(future))

    async def _take_in_all(self) -> None:
        """As ``_take_in``, including records of unknown topics."""
        await self._take_in()
        while self._aside_tasks:
            await asyncio.wait(self._aside_tasks)

    async def _wait_for_room(self) -> None:
        """As ``_take_in``; waits while too many records wait for their topics."""
        await self._take_in()
        if sum(map(len, self._aside.values())) >= _MOST_GIVEN:
            await self._take_in_all()

    # transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """As Producer.transaction."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            if self._producer.in_transaction:
                with suppress(KohortError):
                    self.abort_transaction()
            raise

    def begin_transaction(self) -> None:
        """As Producer.begin_transaction."""

        async def begin() -> None:
            self._producer.begin_transaction()

        self._run(begin)

    def commit_transaction(self) -> None:
        """As Producer.commit_transaction."""
        self._run(self._producer.commit_transaction)

    def abort_transaction(self) -> None:
        """As Producer.abort_transaction."""
        self._run(self._producer.abort_transaction)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset], group: GroupMetadata | str
    ) -> None:
        """As Producer.send_offsets."""
        self._run(self._producer.send_offsets, offsets, group)

    # inside

    def _run(self, function: Callable[..., Coroutine[object, object, T]], *arguments: object) -> T:
        """Call a function on the event loop after all records handed over before; return its result."""
        thread = self._require_running()
        if thread.is_current:
            raise ProducerError(_NO_WAITING)

        async def call() -> T:
            await self._take_in_all()
            return await function(*arguments)

        return thread.submit(call()).result()

    def _require_running(self) -> LoopThread:
        if self._thread is None or self._closed:
            state = "was not started: use it in 'with'" if self._thread is None else "has been closed"
            raise ProducerClosedError(f"this producer {state}")
        if not self._thread.is_alive:
            raise ProducerClosedError("this producer belongs to the parent process: make one in each process")
        return self._thread


def _make_copier(future: Future[RecordMetadata]) -> Callable[[asyncio.Future[RecordMetadata]], None]:
    def copy(sent: asyncio.Future[RecordMetadata]) -> None:
        if (error := sent.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(sent.result())

    return copy
