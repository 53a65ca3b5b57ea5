"""The blocking share consumer: a ShareConsumer on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ...client.errors import ConsumerClosedError
from ...client.threads import LoopThread
from ...client.waiting import clock_of
from ...protocol import AcknowledgeType, KohortError, TopicPartition
from ..errors import ForkedError
from ..events import EventLog
from .consumer import CLOSE_TIMEOUT_MS, CONSUMERS, ShareConsumer, ShareConsumerStatus
from .locks import already_said, say_once
from .records import ShareRecord, own_records

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
        self._said: list[ShareRecord] = []
        self._scheduled = False
        #: Held to say something: two threads say nothing of one record, and nothing of a list that the
        #: loop has taken. A signal's handler may interrupt the thread that holds it.
        self._saying = threading.RLock()
        #: What the loop has handed over, and nobody has got so far.
        self._ahead: deque[ShareRecord] = deque()
        self._process = os.getpid()
        CONSUMERS.add(self)

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
            self._consumer.release(r for r in self._take_ahead(len(self._ahead)))
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
        """Records one by one, until the consumer is closed. Another iteration goes on where one was left."""
        self._require_started()
        ahead = self._ahead
        with _ended_by_close():
            while ahead or self._fill_ahead(None, None):
                clock = clock_of(self._require_thread().loop)
                while ahead:
                    try:
                        record = ahead.popleft()
                    except IndexError:  # a close has taken it meanwhile
                        break
                    if (lock := record.lock) is not None and lock.deadline_ms > clock() * 1000:
                        yield record
                    else:
                        self._refuse_late(record)

    def batches(self, max_records: int | None = None) -> Iterator[list[ShareRecord]]:
        """As ShareConsumer.batches."""
        self._require_started()
        with _ended_by_close():
            while batch := self._next_records(max_records, None):
                yield batch

    def getmany(self, max_records: int | None = None, timeout_ms: float | None = 1_000) -> list[ShareRecord]:
        """As ShareConsumer.getmany."""
        return self._next_records(max_records, timeout_ms)

    def _next_records(self, max_records: int | None, timeout_ms: float | None) -> list[ShareRecord]:
        most = self._consumer.config.max_locked_records if max_records is None else max_records
        found: list[ShareRecord] = []
        while not found and (self._ahead or self._fill_ahead(max_records, timeout_ms)):
            found = self._take_ahead(most)
        return found

    def _fill_ahead(self, max_records: int | None, timeout_ms: float | None) -> bool:
        """Have the loop hand records over, which are not lost if this thread is interrupted meanwhile."""

        async def fill() -> bool:
            self._take_said()  # so that the next fetch carries it, and has room
            self._ahead.extend(records := await self._consumer.next_records(max_records, timeout_ms))
            if records:
                # what is said of them soon needs no wake-up, which would take the other thread its turn
                self._take_said_soon()
            return bool(records)

        return self._run(fill)

    def _take_ahead(self, most: int) -> list[ShareRecord]:
        """Take up to so many records whose locks have not ended meanwhile."""
        found: list[ShareRecord] = []
        now = self._require_thread().loop.time() * 1000
        while len(found) < most:
            try:
                record = self._ahead.popleft()
            except IndexError:
                break
            if (lock := record.lock) is not None and lock.deadline_ms > now:
                found.append(record)
            else:
                self._refuse_late(record)
        return found

    def _refuse_late(self, record: ShareRecord) -> None:
        """Give back a record that has waited until its lock ended."""
        if record.lock is not None:
            record.release()

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
        chosen = own_records(records, self)
        self._require_started()
        with suppress(ConsumerClosedError):  # the locks have ended with it
            self._call(self._consumer.renew, chosen)

    def _say(self, records: ShareRecord | Iterable[ShareRecord], verdict: AcknowledgeType) -> None:
        chosen = own_records(records, self)
        thread = self._require_started()
        with self._saying:
            try:
                for record in chosen:
                    say_once(record, verdict)
                    self._said.append(record)
            finally:
                self._have_said_taken(thread)

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType) -> None:
        """Queue what a record says of itself. The loop takes it a little later, and others with it."""
        with self._saying:
            if not self._scheduled:
                thread = self._require_started()
                say_once(record, verdict)
                self._said.append(record)
                self._have_said_taken(thread)
            elif record.verdict is None:
                record.verdict = verdict
                self._said.append(record)
            else:
                raise already_said(record)

    def _have_said_taken(self, thread: LoopThread) -> None:
        if self._said and not self._scheduled:
            self._scheduled = True
            with suppress(RuntimeError):  # the loop has ended, and with it the locks
                thread.loop.call_soon_threadsafe(self._take_said_soon)

    def _take_said_soon(self) -> None:
        """On the loop: wait a little for what is said."""
        self._scheduled = True
        asyncio.get_running_loop().call_later(_TAKEN_AFTER_S, self._take_said)

    def _take_said(self) -> None:
        """On the loop: queue what was said."""
        with self._saying:
            # what is said from here on is scheduled again
            said, self._said, self._scheduled = self._said, [], False
        self._consumer.queue_verdicts(said)

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
    def logged(self) -> bool:
        """As ShareConsumer.logged."""
        return self._consumer.logged

    @logged.setter
    def logged(self, value: bool) -> None:
        self._consumer.logged = value

    @property
    def state(self) -> ShareConsumerStatus:
        """As ShareConsumer.state."""
        thread = self._thread
        if thread is not None and thread.is_alive and not thread.is_current:
            with suppress(ConsumerClosedError):  # nothing changes it any more
                # to look sorts in what was said, which only the loop may do
                return self._run(self._look)
        return self._state()

    def assignment(self) -> frozenset[TopicPartition]:
        """As ShareConsumer.assignment."""
        return self._consumer.assignment()

    def subscription(self) -> frozenset[str]:
        """As ShareConsumer.subscription."""
        return self._consumer.subscription()

    # inside

    def _leave_to_parent(self) -> None:
        """In a forked child: the threads are not there that held the lock, or were to take what was said, and
        an iteration that goes on hands out no record of the parent's.
        """
        self._saying, self._scheduled = threading.RLock(), False
        self._ahead.clear()

    def _state(self) -> ShareConsumerStatus:
        now, ahead = self._consumer.state, len(self._ahead)
        return replace(now, locked=now.locked - ahead, buffered=now.buffered + ahead)

    async def _look(self) -> ShareConsumerStatus:
        return self._state()

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
        except (CancelledError, RuntimeError) as error:
            # nothing but the end of the loop cancels what threads ask for
            if isinstance(error, RuntimeError) and not thread.is_over:
                raise
            raise ConsumerClosedError("this consumer has been closed") from None

    def _require_started(self) -> LoopThread:
        if self._thread is None:
            raise ConsumerClosedError("this consumer was not started: use it in 'with'")
        if os.getpid() != self._process:
            raise ForkedError
        return self._thread

    def _require_thread(self) -> LoopThread:
        thread = self._require_started()
        if not thread.is_alive:
            raise ConsumerClosedError("this consumer has been closed")
        return thread


@contextmanager
def _ended_by_close() -> Iterator[None]:
    """A close ends an iteration. In a forked child, where it would end as quietly, ForkedError is raised."""
    try:
        yield
    except ForkedError:
        raise
    except ConsumerClosedError:
        pass
