"""Record batches of each partition on their way to brokers, without I/O: what to send next, and its outcome.

Records are appended to the partition's newest batch until that is full. A batch gets its sequence number when
it is first taken and keeps it over all attempts, so that a broker writes it once. A partition may have
several batches in flight. After a failed attempt, or before its leader has acknowledged a batch of this
producer, it has only one in flight, because a broker that does not know a producer accepts any sequence
number in the first batch that arrives.

A batch that fails leaves a gap in the sequence numbers, so the broker refuses the next one as out of order.
If no earlier batch is pending, the refused batch was certainly not written, and neither was any later one:
all of them are renumbered from 0 in the next epoch (KIP-360). In a transaction the refusal is an error
instead, after which the transaction must be aborted.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, NamedTuple

from ..client.requests import partition_name
from ..client.transactions import ProducerId
from ..client.waiting import Backoff
from ..protocol import (
    BATCH_TRANSACTIONAL,
    BatchHeader,
    Codec,
    ErrorCode,
    Headers,
    KafkaError,
    TimedRecord,
    TopicPartition,
    compress,
    encode_records,
    seal_batch,
)
from ..protocol.rows import EncodedRecords
from .errors import DeliveryTimeoutError

#: Most bytes that a record takes besides its key, value and headers, and a header besides its name and value.
RECORD_BYTES, HEADER_BYTES = 21, 10
#: Bytes of a batch's header.
BATCH_BYTES = 61
#: Approximate memory of a record besides its bytes: a tuple and a future.
HELD_BYTES = 300
#: Batches of this size or larger are compressed in a thread.
LARGE_BYTES = 131_072

#: Pause in milliseconds before a retry while the end of the previous transaction is being written.
CONCURRENT_MS = 5.0

_MAX_EPOCH = 2**15 - 1
_SEQUENCES = 2**31

_E = ErrorCode
#: Errors that say that the broker expects other sequence numbers than the producer's.
_NUMBERS = frozenset((_E.OUT_OF_ORDER_SEQUENCE_NUMBER, _E.UNKNOWN_PRODUCER_ID, _E.INVALID_PRODUCER_EPOCH))
_TOO_LARGE = frozenset((_E.MESSAGE_TOO_LARGE, _E.RECORD_LIST_TOO_LARGE))

_new: Final = tuple.__new__


class ProducerRecord(NamedTuple):
    """A record to be written. Its fields are the arguments of ``Producer.send``."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Headers = ()


class RecordMetadata(NamedTuple):
    """Position and timestamp of a written record. ``offset`` is -1 if the broker did not send it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The record's partition."""
        return TopicPartition(self.topic, self.partition)

    def exception(self) -> BaseException | None:
        """None, as the future of a record that was written answers it."""


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Records of one partition. ``futures`` has one for each record, or only one, for the first record.

    ``records`` is empty if they came ``encoded``. ``size`` is an upper bound of the batch's bytes before
    compression. ``ended`` is done when the futures are.
    """

    queue: Queue
    created_ms: float
    ended: Any
    records: list[TimedRecord] = field(default_factory=list)
    futures: list[Any] = field(default_factory=list)
    encoded: EncodedRecords | None = None
    size: int = BATCH_BYTES
    full: bool = False
    sequence: int = -1
    #: Number of failed attempts, and the error of the last one.
    tries: int = 0
    last_error: Exception | None = None
    #: The codec to compress with; once the records are packed, that of the payload.
    codec: Codec = Codec.NONE
    payload: bytes | bytearray | None = None
    packing: bool = False

    @property
    def held(self) -> int:
        """Bytes that count towards ``buffer_memory``."""
        return self.size + HELD_BYTES * len(self.records)

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.records) if self.encoded is None else self.encoded.record_count

    @property
    def first_ms(self) -> int:
        """Timestamp of the first record."""
        return self.records[0][3] if self.encoded is None else self.encoded.first_ms

    @property
    def newest_ms(self) -> int:
        return max(record[3] for record in self.records) if self.encoded is None else self.encoded.newest_ms

    def pack(self) -> None:
        """Encode and compress the records; may run in a thread."""
        encoded = self.encoded
        plain = encode_records(self.records, self.first_ms) if encoded is None else encoded.data
        payload = plain if self.codec is Codec.NONE else compress(self.codec, bytes(plain))
        if len(payload) < len(plain):
            self.payload = payload
        else:
            self.payload, self.codec = plain, Codec.NONE

    def seal(self, *, transactional: bool) -> bytearray:
        """Return the batch as bytes for a request."""
        assert self.payload is not None, "packed before it is sent"
        producer = self.queue.producer or ProducerId(-1, -1)
        count = self.count
        attributes = self.codec | (BATCH_TRANSACTIONAL if transactional else 0)
        # seal_batch sets length and checksum; offset and leader epoch are the broker's to set
        head = BatchHeader(
            0,
            0,
            -1,
            2,
            0,
            attributes,
            count - 1,
            self.first_ms,
            self.newest_ms,
            *producer,
            self.sequence,
            count,
        )
        return seal_batch(head, self.payload)

    def succeed(self, offset: int, append_ms: int) -> None:
        """Resolve the futures. ``offset``: that of the first record, or -1.

        ``append_ms``: timestamp of all records, or -1 if they keep their own (milliseconds since 1970).
        """
        topic, number = self.queue.partition
        records = self.records
        for delta, future in enumerate(self.futures):
            if not future.done():
                at = offset + delta if offset >= 0 else -1
                time_ms = append_ms
                if append_ms < 0:
                    time_ms = records[delta][3] if records else self.first_ms
                future.set_result(_new(RecordMetadata, (topic, number, at, time_ms)))
        self.finish()

    def fail(self, error: Exception, *, silent: bool) -> None:
        """Fail the futures. If nobody retrieves the errors, asyncio logs one, or none if ``silent``."""
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                if silent:
                    future.exception()
                silent = True
        self.finish()

    def finish(self) -> None:
        """Wake the callers that wait for the batch. Safe to call again."""
        if not self.ended.done():
            self.ended.set_result(None)


@dataclass(slots=True, eq=False)
class Queue:
    """The batches of one partition: ``waiting`` to be sent, the newest last, and ``under_way``."""

    partition: TopicPartition
    waiting: deque[ProducerBatch] = field(default_factory=deque)
    under_way: list[ProducerBatch] = field(default_factory=list)
    producer: ProducerId | None = None
    next_sequence: int = 0
    #: Whether the leader has acknowledged a batch of this producer id and epoch.
    known: bool = False
    #: Whether waiting batches get new sequence numbers as soon as nothing is in flight.
    renumber: bool = False
    not_before_ms: float = 0.0

    @property
    def first(self) -> ProducerBatch | None:
        """The oldest batch with a sequence number."""
        numbered = [*self.under_way, *(batch for batch in self.waiting if batch.sequence >= 0)]
        return min(numbered, key=self.age, default=None)

    def age(self, batch: ProducerBatch) -> int:
        """Sort key of numbered batches, the oldest first. Sequence numbers wrap around."""
        return (batch.sequence - self.next_sequence) % _SEQUENCES

    def put_back(self, batches: Iterable[ProducerBatch]) -> None:
        """Put numbered batches back into ``waiting``, in the order of their sequence numbers."""
        numbered = list(batches)
        while self.waiting and self.waiting[0].sequence >= 0:
            insort(numbered, self.waiting.popleft(), key=self.age)
        self.waiting.extendleft(reversed(numbered))


@dataclass(slots=True, eq=False)
class Accumulator:
    """The batches of all partitions of one producer. Times are in milliseconds of the monotonic clock
    ``now_ms``.

    ``future`` creates the futures that callers wait for. ``producer`` is None until the broker has assigned a
    producer id, and again after the epochs of a partition have run out; no idempotent batch is sent without
    one. ``failed`` is called with the error of each batch that fails.
    """

    future: Callable[[], Any]
    _: KW_ONLY
    now_ms: Callable[[], float]
    batch_size: int
    linger_ms: float
    max_request_size: int
    max_in_flight: int
    delivery_timeout_ms: float
    idempotent: bool
    transactional: bool = False
    codec: Codec = Codec.NONE
    backoff: Backoff = field(default_factory=Backoff)
    failed: Callable[[Exception], None] = lambda _: None
    #: Returns whether batches of a partition may be sent; a transaction may have to add it first.
    admits: Callable[[TopicPartition], bool] = lambda _: True
    producer: ProducerId | None = None
    #: Whether brokers accept only 0 as the first sequence number of an epoch. Then several batches may be in
    #: flight from the start.
    from_zero: bool = False
    #: Bytes of records whose outcome is pending.
    used: int = 0
    #: Bytes of records added since the last ``take``.
    fresh: int = 0
    #: Number of callers that wait for batches to be sent, or for memory. Until it is 0, batches do not
    #: linger.
    hurry: int = 0
    #: When to call ``take`` again if nothing else happens.
    next_ms: float = math.inf
    #: Topics without a leader, and batches to pack in a thread, found by the last ``take``.
    leaderless: set[str] = field(default_factory=set)
    to_pack: list[ProducerBatch] = field(default_factory=list)
    _queues: dict[TopicPartition, Queue] = field(default_factory=dict)
    #: Queues with waiting batches, in the order in which they are sent.
    _unsent: dict[Queue, None] = field(default_factory=dict)

    def queue(self, partition: TopicPartition) -> Queue:
        """The queue of a partition, made at its first record."""
        found = self._queues.get(partition)
        if found is None:
            found = self._queues[partition] = Queue(partition)
        return found

    def unfinished_batches(self) -> list[ProducerBatch]:
        """Return the batches that callers wait for."""
        return [
            batch
            for queue in self._queues.values()
            for batch in (*queue.under_way, *queue.waiting)
            if not batch.ended.done()
        ]

    @property
    def at_rest(self) -> bool:
        """Return whether no batch is in flight."""
        return not any(queue.under_way for queue in self._queues.values())

    # records in

    def add(self, queue: Queue, record: TimedRecord, size: int) -> tuple[Any, bool, bool]:
        """Append a record of at most ``size`` bytes.

        Returns its future, whether it starts a new batch, and whether ``batch_size`` bytes or more were added
        since the last ``take``.
        """
        waiting = queue.waiting
        batch = waiting[-1] if waiting else None
        began = batch is None or batch.full or batch.size + size > self.batch_size
        if began:
            if batch is not None:
                batch.full = True
            batch = self._begin_batch(queue)
        assert batch is not None, "there is one by now"
        future = self.future()
        batch.records.append(record)
        batch.futures.append(future)
        batch.size += size
        self.used += size + HELD_BYTES
        self.fresh += size
        if batch.size >= self.batch_size:
            batch.full = True
        return future, began, self.fresh >= self.batch_size

    def add_all(self, queue: Queue, records: list[TimedRecord], size: int, codec: Codec | None = None) -> Any:
        """Append records as one full batch, compressed with ``codec`` if given; return the future of the
        first record.
        """
        batch = self._begin_full(queue, size)
        batch.records = records
        batch.codec = batch.codec if codec is None else codec
        self.used += HELD_BYTES * len(records)
        return batch.futures[0]

    def add_encoded(self, queue: Queue, records: EncodedRecords) -> Any:
        """Append records as one full batch; return the future of the first one."""
        batch = self._begin_full(queue, len(records.data))
        batch.encoded = records
        return batch.futures[0]

    def _begin_full(self, queue: Queue, size: int) -> ProducerBatch:
        """Begin a batch of ``size`` bytes, to which nothing will be added, with one future."""
        if queue.waiting:
            queue.waiting[-1].full = True
        batch = self._begin_batch(queue)
        batch.size, batch.full = BATCH_BYTES + size, True
        batch.futures.append(self.future())
        self.used += size
        return batch

    def _begin_batch(self, queue: Queue) -> ProducerBatch:
        batch = ProducerBatch(queue, self.now_ms(), self.future(), codec=self.codec)
        self.used += batch.size
        queue.waiting.append(batch)
        self._unsent[queue] = None
        return batch

    # batches out

    def take(
        self,
        now_ms: float,
        leader: Callable[[TopicPartition], int | None],
        room: Callable[[int], int],
    ) -> list[tuple[int, list[ProducerBatch]]]:
        """Return the requests to send now: node id, and batches of different partitions.

        ``leader`` returns the leader of a partition, ``room`` the number of requests that a node can take
        now.
        """
        self.next_ms, self.leaderless, self.to_pack = math.inf, set(), []
        self.fresh = 0
        by_node: dict[int, list[Queue]] = {}
        due: set[int] = set()
        for queue in list(self._unsent):
            self._expire_batches(queue, now_ms)
            if not self._may_send(queue, now_ms):
                continue
            node = leader(queue.partition)
            if node is None:
                self.leaderless.add(queue.partition.topic)
                continue
            by_node.setdefault(node, []).append(queue)
            batch = queue.waiting[0]
            lingers_ms = batch.created_ms + self.linger_ms - now_ms
            if lingers_ms <= 0 or self.hurry or batch.full or batch.tries or len(queue.waiting) > 1:
                due.add(node)
            else:
                self._wake_at(now_ms + lingers_ms)
        requests: list[tuple[int, list[ProducerBatch]]] = []
        for node in due:
            queues = by_node[node]
            for _ in range(room(node)):
                batches, queues = self._fill_request(queues, now_ms)
                if not batches:
                    break
                requests.append((node, batches))
        return requests

    def _expire_batches(self, queue: Queue, now_ms: float) -> None:
        while queue.waiting:
            batch = queue.waiting[0]
            if self.deadline_ms(batch) > now_ms:
                self._wake_at(self.deadline_ms(batch))
                return
            if batch.packing:
                return
            queue.waiting.popleft()
            self._give_up(batch, self._too_late(batch))

    def deadline_ms(self, batch: ProducerBatch) -> float:
        """Return the time at which delivery of the batch has timed out."""
        return batch.created_ms + self.delivery_timeout_ms

    def overdue(self, batch: ProducerBatch, now_ms: float) -> bool:
        """Return whether delivery of an in-flight batch has timed out; if so, fail its records.

        The batch stays in flight, because later sequence numbers depend on its response.
        """
        if self.deadline_ms(batch) > now_ms:
            return False
        if not batch.ended.done():
            error = self._too_late(batch)
            batch.fail(error, silent=self.transactional)
            self.failed(error)
        return True

    def _too_late(self, batch: ProducerBatch) -> Exception:
        text = (
            f"{batch.count} records for {partition_name(batch.queue.partition)} were not acknowledged "
            f"within delivery_timeout_ms ({self.delivery_timeout_ms:.0f})"
        )
        last = batch.last_error
        if isinstance(last, KafkaError) and last.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return KafkaError(last.code, f"{text}: the topic or partition is gone")
        if last is not None:
            text = f"{text}; the last of {batch.tries} tries: {last}" if batch.tries else f"{text}: {last}"
        return DeliveryTimeoutError(text)

    def held_up(self, error: Exception, concerned: Callable[[TopicPartition], bool]) -> set[str]:
        """Remember ``error`` as the reason why the concerned partitions' batches wait; return their topics.

        The error is reported if delivery times out. If it is not retriable, the batches fail at once.
        """
        topics = set()
        for queue in self._unsent:
            if queue.waiting and concerned(queue.partition):
                topics.add(queue.partition.topic)
                for batch in queue.waiting:
                    batch.last_error = error
                while queue.waiting and isinstance(error, KafkaError) and not error.retriable:
                    self._give_up(queue.waiting.popleft(), error)
        return topics

    def _may_send(self, queue: Queue, now_ms: float) -> bool:
        if not queue.waiting:
            del self._unsent[queue]
            return False
        batch, under_way = queue.waiting[0], queue.under_way
        if under_way:
            alone = not queue.known or batch.tries or under_way[0].tries or not self.idempotent
            if alone or len(under_way) >= self.max_in_flight:
                return False
        if queue.renumber:
            if under_way:
                return False
            self._renumber_batches(queue)
        if self.idempotent and queue.producer is None and self.producer is None:
            return False
        if queue.not_before_ms > now_ms:
            self._wake_at(queue.not_before_ms)
            return False
        if not self.admits(queue.partition):
            return False
        if batch.payload is None and batch.codec is not Codec.NONE and batch.size >= LARGE_BYTES:
            batch.full = True
            if not batch.packing:
                batch.packing = True
                self.to_pack.append(batch)
            return False
        return True

    def _renumber_batches(self, queue: Queue) -> None:
        old = queue.producer
        assert old is not None, "its batches had numbers"
        if old.epoch < _MAX_EPOCH:
            queue.producer = ProducerId(old.id, old.epoch + 1)
        else:
            queue.producer = None
            if self.producer is not None and self.producer.id == old.id:
                self.producer = None
        queue.next_sequence, queue.known, queue.renumber = 0, False, False
        for batch in queue.waiting:
            batch.sequence = -1

    def _fill_request(
        self, queues: Sequence[Queue], now_ms: float
    ) -> tuple[list[ProducerBatch], list[Queue]]:
        """Take the batches of one request; also return the queues that are left for another request."""
        batches: list[ProducerBatch] = []
        further: list[Queue] = []
        size = 0
        for queue in queues:
            batch = queue.waiting[0]
            if batches and size + batch.size > self.max_request_size:
                further.append(queue)
                continue
            size += batch.size
            batch.full = True
            queue.waiting.popleft()
            self._number_batch(queue, batch)
            queue.under_way.append(batch)
            batches.append(batch)
            # move the queue to the end, so that partitions take turns
            del self._unsent[queue]
            if queue.waiting:
                self._unsent[queue] = None
                if (queue.waiting[0].full or self.hurry) and self._may_send(queue, now_ms):
                    further.append(queue)
        return batches, further

    def _number_batch(self, queue: Queue, batch: ProducerBatch) -> None:
        if batch.payload is None:
            batch.pack()
        if not self.idempotent or batch.sequence >= 0:
            return
        if queue.producer is None:
            queue.producer, queue.next_sequence, queue.known = self.producer, 0, self.from_zero
        batch.sequence = queue.next_sequence
        queue.next_sequence = (queue.next_sequence + batch.count) % _SEQUENCES

    def _wake_at(self, at_ms: float) -> None:
        self.next_ms = min(self.next_ms, at_ms)

    # outcomes

    def on_packed(self, batch: ProducerBatch) -> None:
        """Called when a batch of ``to_pack`` was packed."""
        batch.packing = False

    def on_success(self, batch: ProducerBatch, offset: int, append_ms: int = -1) -> None:
        """Resolve a batch that the broker has written; ``offset`` is that of its first record, or -1."""
        batch.queue.under_way.remove(batch)
        batch.queue.known = True
        self.used -= batch.held
        batch.succeed(offset, append_ms)

    def on_refused(self, batch: ProducerBatch, error: KafkaError, now_ms: float) -> bool:
        """Handle a broker's refusal of the batch; return whether to refresh the cluster's metadata."""
        if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self.on_success(batch, -1)  # an earlier attempt was written
            return False
        queue = batch.queue
        if error.code in _NUMBERS and self.idempotent:
            if queue.first is not batch:
                self._send_again(batch)
                return False
            if not self.transactional:
                queue.renumber = True
                self._send_again(batch)
                return False
        elif error.code in _TOO_LARGE and len(batch.futures) > 1:
            self._split_batch(batch)
            return False
        elif error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            self._again_after(batch, now_ms + CONCURRENT_MS)
            return False
        elif error.retriable:
            self.on_lost(batch, error, now_ms)
            return True
        queue.under_way.remove(batch)
        end = (batch.sequence + batch.count) % _SEQUENCES
        if batch.sequence >= 0 and not batch.tries and end == queue.next_sequence:
            queue.next_sequence = batch.sequence  # it was not written, and no later batch has a number
        self._give_up(batch, error)
        return False

    def given_up(self, batch: ProducerBatch, error: Exception) -> None:
        """Fail a batch that cannot be sent."""
        batch.queue.under_way.remove(batch)
        self._give_up(batch, error)

    def on_lost(self, batch: ProducerBatch, error: Exception, now_ms: float) -> None:
        """Queue a batch again that has a retriable error or an unknown outcome."""
        batch.last_error = error
        self._again_after(batch, now_ms + self.backoff.delay_ms(batch.tries))

    def _again_after(self, batch: ProducerBatch, at_ms: float) -> None:
        batch.queue.not_before_ms = at_ms
        self._send_again(batch)

    def _send_again(self, batch: ProducerBatch) -> None:
        queue = batch.queue
        queue.under_way.remove(batch)
        batch.tries += 1
        queue.put_back([batch])
        self._unsent[queue] = None

    def _split_batch(self, batch: ProducerBatch) -> None:
        """Split a batch that is too large for its topic into two, with the same sequence numbers."""
        queue = batch.queue
        queue.under_way.remove(batch)
        self.used -= batch.held
        half = len(batch.records) // 2
        halves = []
        for cut, sequence in ((slice(half), batch.sequence), (slice(half, None), batch.sequence + half)):
            part = ProducerBatch(
                queue, batch.created_ms, self.future(), batch.records[cut], batch.futures[cut]
            )
            part.codec = batch.codec
            part.size = BATCH_BYTES + sum(record_size(*record[:3]) for record in part.records)
            part.full = True
            part.sequence = sequence % _SEQUENCES if batch.sequence >= 0 else -1
            self.used += part.held
            halves.append(part)
        if batch.sequence >= 0:
            queue.put_back(halves)
        else:
            queue.waiting.extendleft(reversed(halves))
        self._unsent[queue] = None
        batch.finish()

    def _give_up(self, batch: ProducerBatch, error: Exception) -> None:
        self.used -= batch.held
        batch.fail(error, silent=self.transactional)
        self.failed(error)

    def drop_waiting(self, error: Exception) -> None:
        """Drop every batch that is not in flight, without calling ``failed``."""
        for queue in self._queues.values():
            while queue.waiting:
                self._drop_batch(queue.waiting.popleft(), error)
        self._unsent.clear()

    def drop_all(self, error: Exception) -> None:
        """Drop every batch; call it when no more responses will arrive."""
        self.drop_waiting(error)
        for queue in self._queues.values():
            while queue.under_way:
                self._drop_batch(queue.under_way.pop(), error)

    def _drop_batch(self, batch: ProducerBatch, error: Exception) -> None:
        self.used -= batch.held
        batch.fail(error, silent=True)

    def restart(self, producer: ProducerId, from_zero: bool) -> None:
        """Start the next epoch of a transactional producer, with sequence number 0 in every partition.

        No batch may be unfinished.
        """
        self.producer, self.from_zero = producer, from_zero
        for queue in self._queues.values():
            queue.producer, queue.next_sequence, queue.known, queue.renumber = None, 0, False, False


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return an upper bound of a record's bytes in a batch."""
    size = RECORD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += HEADER_BYTES + 4 * len(name) + (len(content) if content is not None else 0)
    return size
