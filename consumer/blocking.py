"""The blocking group consumer: an AsyncGroupConsumer on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from ..client.errors import ConsumerClosedError
from ..client.threads import DaemonThreads
from ..protocol import TopicPartition
from .consumer import ROWS_PER_BATCH, AsyncGroupConsumer, ConsumerStatus
from .errors import ForkedError
from .events import EventLog
from .record import Record, Run
from .run.closing import CLOSE_TIMEOUT_MS
from .run.handover import PartitionsCallback, in_callback

if TYPE_CHECKING:
    from typing import Unpack

    import pyarrow as pa

    from .typed_settings import ConsumerSettings

P = ParamSpec("P")
T = TypeVar("T")

#: Longest delay until the consumer's thread processes records marked done.
DONE_AFTER_S = 0.005

#: Callbacks that run at a time at most, those that hang and are not waited for any more included.
_MOST_CALLBACKS = 32

#: Time for calls of other threads to end when the consumer has been closed.
_LAST_WORDS_S = 0.1


@overload
def _on_the_loop(
    method: Callable[Concatenate[AsyncGroupConsumer, P], Coroutine[object, object, T]],
) -> Callable[Concatenate[GroupConsumer, P], T]: ...
@overload
def _on_the_loop(
    method: Callable[Concatenate[AsyncGroupConsumer, P], T],
) -> Callable[Concatenate[GroupConsumer, P], T]: ...
def _on_the_loop(method: Callable[..., object]) -> Callable[..., object]:
    """The blocking form of a method: it runs on the consumer's loop, and the caller waits for it."""

    @functools.wraps(method)
    def call(self: GroupConsumer, *arguments: Any, **named: Any) -> Any:
        return self._run(method, self._consumer, *arguments, **named)

    return call


class GroupConsumer:
    """``with GroupConsumer("orders", bootstrap="localhost:9092", group="billing") as consumer:``, then
    ``for record in consumer`` or ``for batch in consumer.batches()``; ``done(record)`` for each.

    As AsyncGroupConsumer, blocking. Heartbeats run in the background whatever the caller does. Callbacks run
    in other threads than the caller's, and may use the consumer. Use one instance from one thread; ``close``
    and ``done`` may be called from any.
    """

    def __init__(
        self,
        *topics: str,
        pattern: str | re.Pattern[str] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        on_partitions_assigned: PartitionsCallback | None = None,
        on_partitions_revoking: PartitionsCallback | None = None,
        on_partitions_revoked: PartitionsCallback | None = None,
        on_partitions_lost: PartitionsCallback | None = None,
        decode: object = None,
        key_decode: object = None,
        **config: Unpack[ConsumerSettings],
    ) -> None:
        self._callback_threads = DaemonThreads(_MOST_CALLBACKS, "kohort callback")
        self._consumer = AsyncGroupConsumer(
            *topics,
            pattern=pattern,
            partitions=partitions,
            on_partitions_assigned=self._off_the_loop(on_partitions_assigned),
            on_partitions_revoking=self._off_the_loop(on_partitions_revoking),
            on_partitions_revoked=self._off_the_loop(on_partitions_revoked),
            on_partitions_lost=self._off_the_loop(on_partitions_lost),
            decode=decode,
            key_decode=key_decode,
            **config,
        )
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None
        self._sessions = self._consumer.parts.tracker.sessions
        #: Whether the loop is scheduled to process records marked done.
        self._scheduled = False
        #: Calls that threads wait for; after the end of the loop none returns.
        self._asked: set[Future[object]] = set()
        #: The task that ends the loop, and whether that has ended.
        self._ending: asyncio.Task[None] | None = None
        self._over = False
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"Group{self._consumer!r}".replace("AsyncGroup", "", 1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._close(0, CLOSE_TIMEOUT_MS, hurry=False)

    def start(self) -> None:
        """As AsyncGroupConsumer.start."""
        if self._thread is not None:
            raise ConsumerClosedError("a consumer starts once: make a new one")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run_loop, name=f"kohort {self._consumer.config.group}", daemon=True
        )
        self._thread.start()
        try:
            self._run(self._consumer.start)
        except BaseException:
            self._stop_loop()
            raise

    def close(self, *, drain_timeout_ms: float = 0, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """As AsyncGroupConsumer.close. Iterations end. Any thread may call it, and a signal's handler."""
        self._close(drain_timeout_ms, timeout_ms, hurry=True)

    def _close(self, drain_timeout_ms: float, timeout_ms: float, *, hurry: bool) -> None:
        thread = self._thread
        if thread is None or self._loop.is_closed() or os.getpid() != self._process:
            return  # in a forked child the consumer belongs to the parent
        caller = threading.get_ident()
        if in_callback() or threading.current_thread() is thread:
            # closing waits for the callback, which therefore cannot wait for closing
            self._submit_work(self._consumer.close_by(caller, drain_timeout_ms, timeout_ms, hurry=hurry))
            return
        try:
            with suppress(ConsumerClosedError):  # another thread was first
                self._run(self._consumer.close_by, caller, drain_timeout_ms, timeout_ms, hurry=hurry)
        finally:
            self._stop_loop()

    def _stop_loop(self) -> None:
        """Stop the loop when nothing is left to do. Threads and signal handlers may call this at once."""
        assert self._thread is not None, "started before it is stopped"
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._end_soon)
        self._thread.join()

    def _end_soon(self) -> None:
        """On the loop: begin to end it, once."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._end_loop())

    async def _end_loop(self) -> None:
        try:
            await self._consumer.close_by(None, 0, 0)
            # pending calls end by themselves now, except for a start that waits for its next attempt
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                _, left = await asyncio.wait(others, timeout=_LAST_WORDS_S)
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)
        finally:
            self._loop.stop()

    def _run_loop(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._over = True
            for asked in list(self._asked):
                asked.cancel()
            self._loop.close()
            self._callback_threads.close()

    # records

    def __iter__(self) -> Iterator[Record]:
        """Records one by one, until the consumer is closed."""
        # no Python code runs between two records. Only with a global interpreter lock is it certain how many
        # records a run has delivered when the loop takes it back
        locked = getattr(sys, "_is_gil_enabled", lambda: True)()
        records = chain.from_iterable(self._next_runs() if locked else self._next_batches(None))
        return self._done_with_next(records, self.done) if self._consumer.config.auto_done else records

    def _done_with_next(self, items: Iterator[T], done: Callable[[T], None]) -> Iterator[T]:
        in_hand, reader = self._consumer.in_hand, object()
        self._run(in_hand.on_asked, reader)
        for item in items:
            in_hand.note_given(reader, functools.partial(done, item))
            yield item
            if in_hand.is_left(reader):  # which is for the loop to deal with
                self._run(in_hand.on_asked, reader)
            else:
                in_hand.on_asked(reader)

    def _next_runs(self) -> Iterator[Run]:
        self._require_running()
        self._consumer.parts.watch.poller = threading.get_ident()
        with suppress(ConsumerClosedError):
            while (run := self._run(self._consumer.next_run)) is not None:
                yield run

    def batches(self, max_records: int | None = None) -> Iterator[list[Record]]:
        """Lists of the available records, up to ``max_records`` (default max_poll_records), until closed."""
        batches = self._next_batches(max_records)
        return self._done_with_next(batches, self.done_all) if self._consumer.config.auto_done else batches

    def _next_batches(self, max_records: int | None) -> Iterator[list[Record]]:
        self._consumer.parts.watch.poller = threading.get_ident()
        with suppress(ConsumerClosedError):
            while batch := self._run(self._consumer.next_records, max_records):
                yield batch

    def arrow_batches(
        self, *, include_headers: bool = False, max_rows: int = ROWS_PER_BATCH
    ) -> Iterator[pa.RecordBatch]:
        """As AsyncGroupConsumer.arrow_batches."""
        batches = self._consumer.arrow_batches(include_headers=include_headers, max_rows=max_rows)
        self._consumer.parts.watch.poller = threading.get_ident()
        while (batch := self._run(anext, batches, None)) is not None:
            yield batch

    def getmany(self, max_records: int | None = None, timeout_ms: float | None = 1_000) -> list[Record]:
        """As AsyncGroupConsumer.getmany."""
        self._consumer.parts.watch.poller = threading.get_ident()
        records: list[Record] = self._run(self._consumer.getmany, max_records, timeout_ms)
        return records

    def decode(self, record: Record) -> Any:
        """As AsyncGroupConsumer.decode; it needs no running consumer."""
        return self._consumer.decoder()(record.value)

    def decode_key(self, record: Record) -> Any:
        """As AsyncGroupConsumer.decode_key."""
        return self._consumer.decoder(key=True)(record.key)

    # done and committed

    def done(self, record: Record) -> None:
        """As AsyncGroupConsumer.done."""
        try:
            # safe in any thread: appending to a list is one step
            self._sessions[record.session_id].marked.append(record.offset)
        except KeyError:
            self._raise_stale(record)
        if not self._scheduled:
            self._mark_soon()

    def done_all(self, records: Iterable[Record]) -> None:
        """As AsyncGroupConsumer.done_all."""
        sessions, stale = self._sessions, None
        for record in records:
            try:
                sessions[record.session_id].marked.append(record.offset)
            except KeyError:
                stale = stale or record
        if not self._scheduled:
            self._mark_soon()
        if stale is not None:
            self._raise_stale(stale)

    def _raise_stale(self, record: Record) -> None:
        self._require_running()
        self._consumer.parts.tracker.session_of(record)

    def _mark_soon(self) -> None:
        """Have the loop process marked records a little later: a wake-up for each record would be costly."""
        self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._loop.call_later, DONE_AFTER_S, self._mark_done)
        except RuntimeError:
            self._require_running()
            raise

    def _mark_done(self) -> None:
        """On the loop: process all records that were marked done meanwhile."""
        # first, so that records marked from here on are scheduled again
        self._scheduled = False
        self._consumer.done_marked()

    done_batch = _on_the_loop(AsyncGroupConsumer.done_batch)
    beginning_offsets = _on_the_loop(AsyncGroupConsumer.beginning_offsets)
    end_offsets = _on_the_loop(AsyncGroupConsumer.end_offsets)
    offsets_for_times = _on_the_loop(AsyncGroupConsumer.offsets_for_times)
    commit = _on_the_loop(AsyncGroupConsumer.commit)
    committed = _on_the_loop(AsyncGroupConsumer.committed)

    # state

    @property
    def events(self) -> EventLog:
        """As AsyncGroupConsumer.events; listeners are called on the consumer's thread."""
        return self._consumer.events

    @property
    def state(self) -> ConsumerStatus:
        """As AsyncGroupConsumer.state."""
        return self._consumer.state

    group_metadata = _on_the_loop(AsyncGroupConsumer.group_metadata)

    def assignment(self) -> frozenset[TopicPartition]:
        """As AsyncGroupConsumer.assignment."""
        return self._consumer.assignment()

    def subscription(self) -> frozenset[str]:
        """As AsyncGroupConsumer.subscription."""
        return self._consumer.subscription()

    def position(self, partition: TopicPartition) -> int | None:
        """As AsyncGroupConsumer.position."""
        return self._consumer.position(partition)

    lag = _on_the_loop(AsyncGroupConsumer.lag)

    # where to read

    subscribe = _on_the_loop(AsyncGroupConsumer.subscribe)
    subscribe_pattern = _on_the_loop(AsyncGroupConsumer.subscribe_pattern)
    assign = _on_the_loop(AsyncGroupConsumer.assign)
    unsubscribe = _on_the_loop(AsyncGroupConsumer.unsubscribe)
    pause = _on_the_loop(AsyncGroupConsumer.pause)
    resume = _on_the_loop(AsyncGroupConsumer.resume)
    paused = _on_the_loop(AsyncGroupConsumer.paused)
    seek = _on_the_loop(AsyncGroupConsumer.seek)
    seek_to_beginning = _on_the_loop(AsyncGroupConsumer.seek_to_beginning)
    seek_to_end = _on_the_loop(AsyncGroupConsumer.seek_to_end)
    seek_to_time = _on_the_loop(AsyncGroupConsumer.seek_to_time)
    rewind = _on_the_loop(AsyncGroupConsumer.rewind)

    def _run(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function of the consumer on its loop, wait, and return its result."""
        work = self._process_and_call(function, *arguments, **named)
        future = self._submit_work(work)
        self._asked.add(future)
        if self._over:
            # the loop may have ended without running it
            future.cancel()
        try:
            return future.result()
        except CancelledError:
            work.close()  # if it never began
            raise ConsumerClosedError("this consumer has been closed") from None
        except BaseException:
            # after an interrupt the call must not take records, which nobody would get
            future.cancel()
            raise
        finally:
            self._asked.discard(future)

    def _submit_work(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Run a coroutine on the consumer's loop. Raises ConsumerClosedError if there is no loop (any
        more).
        """
        try:
            self._require_running()
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except (ConsumerClosedError, RuntimeError):
            work.close()
            self._require_running()
            raise

    async def _process_and_call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Process the records marked done before the call, then call."""
        self._mark_done()
        result = function(*arguments, **named)
        return await result if inspect.isawaitable(result) else result

    def _require_running(self) -> None:
        if self._thread is None or self._loop.is_closed():
            state = "was not started: use it in 'with'" if self._thread is None else "has been closed"
            raise ConsumerClosedError(f"this consumer {state}")
        if os.getpid() != self._process:
            raise ForkedError

    def _off_the_loop(self, callback: PartitionsCallback | None) -> PartitionsCallback | None:
        """Run a callback that may block in a thread, so that heartbeats do not wait for it. The thread does
        not keep the process from ending.
        """
        if callback is None or inspect.iscoroutinefunction(callback):
            return callback

        async def call(partitions: tuple[TopicPartition, ...]) -> None:
            result = await self._callback_threads.call(functools.partial(callback, partitions))
            if inspect.isawaitable(result):
                await result

        return call
