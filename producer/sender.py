"""Sends the accumulator's batches: requests to leaders, for metadata and for a producer id, on asyncio."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ..client.cluster import Cluster
from ..client.errors import AuthenticationError, BrokerConnectionError
from ..client.pool import Channel
from ..client.transactions import init_producer_id
from ..client.waiting import Signal, now_ms
from ..protocol import ErrorCode, KafkaError, KohortError
from ..protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from .accumulator import Accumulator, ProducerBatch
from .errors import TransactionAbortedError
from .transactions import ProducerTransactions

if TYPE_CHECKING:
    from .config import ProducerConfig

#: The last version that names topics by name (KIP-516), and the last one before KIP-890, from which on a
#: broker adds partitions to a transaction itself.
_BY_NAME, _ADDED_BEFORE = 12, 11


class Sender:
    """Sends the batches of an accumulator to brokers, until ``close``. For use on one event loop."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        transactions: ProducerTransactions | None,
        *,
        learned: Callable[[str], None],
    ) -> None:
        #: Fired when batches have ended, so that callers that wait for memory look again.
        self.ended = Signal()
        #: An error for which no request of this producer can succeed; every later call raises it.
        self.error: KohortError | None = None
        self._cluster = cluster
        self._config = config
        self._accumulator = accumulator
        self._transactions = transactions
        #: Called with each topic for which metadata was requested.
        self._learned = learned
        self._loop = asyncio.get_running_loop()
        #: Number of in-flight requests by node, and the batches that they carry.
        self._busy: Counter[int] = Counter()
        self._requests: dict[asyncio.Future[ProduceResponse] | asyncio.Future[None], list[ProducerBatch]] = {}
        #: When delivery of the first in-flight batch times out.
        self._overdue_ms = math.inf
        self._connecting: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = math.inf
        self._refreshing = self._asking_for_id = self._closed = False
        self._stale: set[str] = set()

    def wake(self) -> None:
        """Look for batches to send in the next step of the event loop."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._send_until)

    def wake_at(self, at_ms: float) -> None:
        """Look for batches to send at this time, or earlier."""
        if at_ms < self._timer_ms:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_ms = at_ms
            self._timer = self._loop.call_at(at_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        due_ms, self._timer, self._timer_ms = self._timer_ms, None, math.inf
        # rounding may make the timer fire early: batches that were due then are due now
        self._send_until(due_ms)

    def _send_until(self, due_ms: float = 0.0) -> None:
        self._scheduled = False
        if self._closed:
            return
        waiting = self._accumulator
        used = waiting.used
        if self._transactions is not None and not self._transactions.writes:
            # this includes batches that were in flight when the transaction failed, and are queued again
            waiting.drop_waiting(TransactionAbortedError("its transaction was aborted before it was written"))
        now = max(now_ms(), due_ms)
        for node, batches in waiting.take(now, self._cluster.leader, self._free_requests):
            self._send_request(node, batches)
        if self._overdue_ms <= now:
            self._end_overdue(now)
        if waiting.used < used:
            self.ended.fire()  # some batches were dropped or have timed out
        for batch in waiting.to_pack:
            self._start(self._pack_batch(batch))
        self._refresh_topics(waiting.leaderless)
        if waiting.idempotent and waiting.producer is None and self._transactions is None:
            self._ask_for_id()
        if (next_ms := min(waiting.next_ms, self._overdue_ms)) < math.inf:
            self.wake_at(next_ms)

    def _end_overdue(self, now: float) -> None:
        waiting = self._accumulator
        under_way = [batch for batches in self._requests.values() for batch in batches]
        in_time = [batch for batch in under_way if not waiting.overdue(batch, now)]
        self._overdue_ms = min(map(waiting.deadline_ms, in_time), default=math.inf)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # requests

    def _free_requests(self, node: int) -> int:
        """Return how many requests a node takes now; 0 while there is no connection, which is then opened."""
        if self._cluster.open_connection(node, Channel.DATA) is None:
            if node not in self._connecting:
                self._connecting.add(node)
                self._start(self._connect_to(node))
            return 0
        return self._config.max_in_flight_requests - self._busy[node]

    async def _connect_to(self, node: int) -> None:
        try:
            await self._cluster.connect_to(node, Channel.DATA)
        except BrokerConnectionError as error:
            leader = self._cluster.leader
            self._refresh_topics(
                self._accumulator.held_up(error, lambda partition: leader(partition) == node)
            )
        except KohortError as error:
            self._on_refusal(error)
        finally:
            self._connecting.discard(node)
            self.wake()

    def _send_request(self, node: int, batches: list[ProducerBatch]) -> None:
        """Send a request over the connection that ``_free_requests`` found."""
        self._busy[node] += 1
        transactions = self._transactions
        version = _BY_NAME if transactions is None or transactions.implicit else _ADDED_BEFORE
        body, timeout_ms = self._make_body(batches), self._config.request_timeout_ms
        sent: asyncio.Future[ProduceResponse] | asyncio.Future[None]
        try:
            connection = self._cluster.open_connection(node, Channel.DATA)
            if connection is None:
                raise BrokerConnectionError(f"node {node}", "its connection has just ended")
            if self._config.acks:
                sent = connection.ask(body, timeout_ms=timeout_ms, max_version=version)
            else:
                told = connection.tell(body, timeout_ms=timeout_ms, max_version=version)
                sent = self._loop.create_task(told)
        except KohortError as error:
            sent = self._loop.create_future()
            sent.set_exception(error)
        self._requests[sent] = batches
        self._overdue_ms = min(self._overdue_ms, *map(self._accumulator.deadline_ms, batches))
        sent.add_done_callback(partial(self._on_answer, node))

    def _make_body(self, batches: list[ProducerBatch]) -> ProduceRequest:
        transactions = self._transactions
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            topic, number = batch.queue.partition
            data = batch.seal(transactional=transactions is not None)
            topics.setdefault(topic, []).append(PartitionProduceData(number, memoryview(data)))
        return ProduceRequest(
            transactional_id=None if transactions is None else self._config.transactional_id,
            acks=self._config.acks,
            timeout_ms=self._config.request_timeout_ms,
            topic_data=[TopicProduceData(name, None, rows) for name, rows in topics.items()],
        )

    def _on_answer(self, node: int, sent: asyncio.Future[ProduceResponse] | asyncio.Future[None]) -> None:
        batches = self._requests.pop(sent)
        error = None if sent.cancelled() else sent.exception()
        if self._closed or sent.cancelled():
            return  # the caller of close() drops the batches
        self._busy[node] -= 1
        accumulator = self._accumulator
        if error is None:
            self._on_answered(node, batches, sent.result())
        elif isinstance(error, BrokerConnectionError):
            for batch in batches:
                accumulator.on_lost(batch, error, now_ms())
            self._refresh_topics(batch.queue.partition.topic for batch in batches)
        else:
            assert isinstance(error, Exception), "it was not cancelled"
            for batch in batches:
                accumulator.given_up(batch, error)
        self.wake()
        self.ended.fire()

    def _on_answered(self, node: int, batches: list[ProducerBatch], response: ProduceResponse | None) -> None:
        if response is None:  # without acks
            for batch in batches:
                self._accumulator.on_success(batch, -1)
            return
        if response.throttle_time_ms:
            # a quota was exceeded (KIP-219): send nothing to the node during the throttle time
            self._busy[node] += self._config.max_in_flight_requests
            self._loop.call_later(response.throttle_time_ms / 1000, self._unmute_node, node)
        rows = {
            (topic.name, row.index): row for topic in response.responses for row in topic.partition_responses
        }
        stale: set[str] = set()
        for batch in batches:
            row = rows.get(batch.queue.partition)
            if row is None:
                missing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the partition is not in the response")
                self._accumulator.on_lost(batch, missing, now_ms())
            elif not row.error_code:
                self._accumulator.on_success(batch, row.base_offset, row.log_append_time_ms)
            elif self._accumulator.on_refused(batch, _refusal_of(batch, row), now_ms()):
                stale.add(batch.queue.partition.topic)
        self._refresh_topics(stale)

    def _unmute_node(self, node: int) -> None:
        self._busy[node] -= self._config.max_in_flight_requests
        self.wake()

    async def _pack_batch(self, batch: ProducerBatch) -> None:
        await asyncio.to_thread(batch.pack)
        self._accumulator.on_packed(batch)
        self.wake()

    # metadata and producer id

    def _refresh_topics(self, topics: Iterable[str]) -> None:
        self._stale.update(topics)
        if self._stale and not self._refreshing:
            self._refreshing = True
            self._start(self._refresh_metadata())

    async def _refresh_metadata(self) -> None:
        try:
            while self._stale:
                topics, self._stale = self._stale, set()
                with suppress(BrokerConnectionError, KafkaError):
                    found = await self._cluster.metadata(topics)
                    for topic in topics:
                        self._learned(topic)
                        if code := found.errors.get(topic):
                            self._has_no_leaders(topic, code)
                await asyncio.sleep(self._config.retry_backoff_ms / 1000)
                self.wake()
        finally:
            self._refreshing = False

    def _has_no_leaders(self, topic: str, code: int) -> None:
        error = KafkaError(code, f"topic {topic!r}")
        self._accumulator.held_up(error, lambda partition: partition.topic == topic)
        self.ended.fire()

    def _ask_for_id(self) -> None:
        if not self._asking_for_id and self.error is None:
            self._asking_for_id = True
            self._start(self._asked_for_id())

    async def _asked_for_id(self) -> None:
        try:
            self._accumulator.producer = await self._cluster.retrying(lambda: init_producer_id(self._cluster))
        except (KafkaError, AuthenticationError) as error:
            if isinstance(error, AuthenticationError) or not error.retriable:
                self._on_refusal(error)
        except BrokerConnectionError:
            pass  # batches that wait for the id fail after delivery_timeout_ms
        finally:
            self._asking_for_id = False
            self.wake()

    def _on_refusal(self, error: KohortError) -> None:
        self.error = error
        self._accumulator.drop_waiting(error)
        self.ended.fire()

    # the end

    async def flush(self) -> None:
        """Wait until the outcome of every record accepted so far is known."""
        self._accumulator.hurry += 1
        began_ms = now_ms()
        try:
            # a batch that was split has ended, but its parts may not have
            while batches := [
                each for each in self._accumulator.unfinished_batches() if each.created_ms <= began_ms
            ]:
                self.wake()
                await asyncio.wait([batch.ended for batch in batches])
        finally:
            self._accumulator.hurry -= 1

    async def at_rest(self) -> None:
        """Wait until no batch is in flight, including those that have timed out."""
        while not self._accumulator.at_rest:
            await self.ended.wait()

    async def close(self) -> None:
        """End all tasks. The caller must drop the batches that are not acknowledged."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in (*self._tasks, *self._requests):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _refusal_of(batch: ProducerBatch, row: PartitionProduceResponse) -> KafkaError:
    """Return the error of a batch, with the first faulty record if the broker names any (KIP-467)."""
    topic, number = batch.queue.partition
    said = row.error_message or ""
    if row.record_errors:
        first = row.record_errors[0]
        said = f"record {first.batch_index} of {batch.count}: {first.batch_index_error_message or said}"
    if row.error_code == ErrorCode.MESSAGE_TOO_LARGE:
        what = "record" if len(batch.records) == 1 else "batch of these records"
        said = said or f"the {what} is larger than the topic's max.message.bytes"
    refused = "1 record was" if batch.count == 1 else f"{batch.count} records were"
    return KafkaError(row.error_code, f"{refused} refused for {topic}-{number}{': ' * bool(said)}{said}")
