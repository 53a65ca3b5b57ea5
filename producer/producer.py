"""The asyncio producer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from ..client.cluster import Cluster
from ..client.errors import BrokerConnectionError
from ..client.metadata import ClusterMetadata
from ..client.offsets import CommittedOffset
from ..client.surroundings import SURROUNDINGS
from ..client.transactions import GroupMetadata, Transaction
from ..client.waiting import Backoff, now_ms
from ..protocol import (
    Codec,
    ErrorCode,
    Headers,
    KafkaError,
    KohortError,
    TimedRecord,
    TopicPartition,
    partition_of_key,
)
from ..protocol.rows import EncodedRecords
from ..settings import MAX_LONG
from .accumulator import (
    HELD_BYTES,
    RECORD_BYTES,
    Accumulator,
    ProducerRecord,
    Queue,
    RecordMetadata,
    record_size,
)
from .encoding import Encoders
from .errors import (
    BufferFullError,
    ProducerClosedError,
    RecordTooLargeError,
    TransactionAbortedError,
    TransactionStateError,
)
from .partitioner import Sticky
from .sender import Sender
from .transactions import ProducerTransactions, TransactionStage

if TYPE_CHECKING:
    from .config import ProducerConfig

_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
#: Longest topic name that Kafka allows, in characters.
_LONGEST_TOPIC = 249


class _Topic:
    """A topic for ``send``: a queue for each partition, and ``led``, the partitions with a leader."""

    __slots__ = ("led", "queues", "sticky", "topic_id")

    def __init__(self, sticky: Sticky) -> None:
        self.sticky = sticky
        self.topic_id: UUID | None = None
        self.queues: list[Queue] = []
        self.led: list[int] = []


class Producer:
    """Writes records to topics: ``async with Producer(bootstrap_servers="localhost:9092") as producer:``.

    ``await producer.send(...)`` returns when the record is accepted, and waits before that while
    ``buffer_memory`` is full. It returns a future of the record's RecordMetadata, which is done when the
    record is written. With the default ``acks="all"`` each record is written once and in order, in spite of
    retries. With a ``transactional_id``, send records within ``async with producer.transaction():``.

    ``encode`` and ``key_encode`` turn values and keys into bytes: each is a type that pydantic writes as
    JSON, a function that returns bytes, or an encoder of a SchemaRegistry. All other arguments are settings,
    listed in docs/producer.md; ConfigError is raised for wrong ones. Use a producer on one event loop.
    Several tasks may send at once, but there is only one transaction at a time.
    """

    def __init__(self, *, encode: object = None, key_encode: object = None, **settings: object) -> None:
        from .config import producer_config

        self._prepare(producer_config(**settings), None, Encoders.of(encode, key_encode))

    @classmethod
    def on_cluster(cls, cluster: Cluster, **settings: object) -> Self:
        """Return a producer that uses the connections of ``cluster``, and does not close them.

        ``settings`` are those of a producer; settings of connections have no effect. Raises ConfigError.
        """
        from .config import producer_config

        self = cls.__new__(cls)
        self._prepare(producer_config(bootstrap="unused", **settings), cluster)
        return self

    def _prepare(
        self, config: ProducerConfig, cluster: Cluster | None, encoders: Encoders | None = None
    ) -> None:
        self.config = config
        self._encoders = encoders
        self._owns = cluster is None
        self._cluster = config.cluster(config.max_block_ms) if cluster is None else cluster
        around = SURROUNDINGS.get()
        self._rng, self._time_ms = around.make_random(), around.time_ms
        self._topics: dict[str, _Topic] = {}
        self._sender: Sender | None = None
        self._accumulator: Accumulator
        self._transactions: ProducerTransactions | None = None
        self._closed = False
        #: Topics of the next Metadata request, the task that will send it, and a lock: one request at a time.
        self._wanted: set[str] = set()
        self._question: asyncio.Task[ClusterMetadata] | None = None
        self._asking = asyncio.Lock()
        #: Number of callers that wait for memory, and a lock that keeps their order.
        self._in_line = 0
        self._line = asyncio.Lock()
        self._ageing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        name = self.config.transactional_id
        state = "closed" if self._closed else "not started" if self._sender is None else "running"
        return f"Producer({self.config.bootstrap}{'' if name is None else f', {name!r}'}, {state})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect. With a transactional id, fence earlier producers with it and abort their open transaction.

        Raises BrokerConnectionError, AuthenticationError and KafkaError, and ProducerClosedError if it was
        started before.
        """
        if self._sender is not None or self._closed:
            raise ProducerClosedError("a producer starts once: make a new one")
        config = self.config
        self._accumulator = waiting = Accumulator(
            partial(asyncio.Future, loop=asyncio.get_running_loop()),
            now_ms=now_ms,
            batch_size=config.batch_size,
            linger_ms=config.linger_ms,
            max_request_size=config.max_request_size,
            max_in_flight=config.max_in_flight_requests,
            delivery_timeout_ms=config.delivery_timeout_ms,
            idempotent=config.idempotent,
            transactional=config.transactional_id is not None,
            codec=config.codec,
            backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, rng=self._rng),
        )
        if config.transactional_id is not None:
            self._transactions = transactions = ProducerTransactions(
                self._cluster,
                config.transactional_id,
                config.transaction_timeout_ms,
                restart=waiting.restart,
                wake=lambda: sender.wake(),
            )
            waiting.failed, waiting.admits = transactions.on_failed, transactions.admits
        sender = Sender(self._cluster, config, waiting, self._transactions, learned=self._take_in)
        try:
            if self._owns:
                await self._cluster.connect()
            if self._transactions is not None:
                await self._transactions.init()
        except BaseException:
            self._closed = True
            if self._owns:
                await self._cluster.close()
            raise
        self._sender = sender
        self._ageing = asyncio.get_running_loop().create_task(self._renew_metadata())

    async def close(self, timeout_ms: float | None = None) -> None:
        """Send accepted records, abort an open transaction, close the connections. Safe to call again.

        Records that are not written after ``timeout_ms`` milliseconds, by default ``delivery_timeout_ms``,
        are dropped: their futures raise ProducerClosedError.
        """
        if self._closed or self._sender is None:
            self._closed = True
            return
        self._closed = True
        timeout_ms = self.config.delivery_timeout_ms if timeout_ms is None else timeout_ms
        try:
            with suppress(TimeoutError, KohortError):
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._finish(self._sender)
        finally:
            if self._ageing is not None:
                self._ageing.cancel()
            await self._sender.close()
            self._accumulator.drop_all(
                ProducerClosedError("the producer was closed before this was acknowledged")
            )
            self._sender.ended.fire()
            if self._owns:
                await self._cluster.close()

    async def _finish(self, sender: Sender) -> None:
        transactions = self._transactions
        if transactions is None:
            await sender.flush()
        elif transactions.stage in (TransactionStage.OPEN, TransactionStage.FAILED):
            await transactions.abort(self._drop)
        elif transactions.stage is TransactionStage.ENDING:
            # the caller was cancelled
            await transactions.end_again(self._drop)

    # records

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> asyncio.Future[RecordMetadata]:
        """Accept a record; return a future of its RecordMetadata.

        Key and value are bytes or None, or what ``key_encode`` and ``encode`` take. Without a partition, a
        hash of the key chooses it as in Java's producers; without a key too, it is the topic's current
        partition (KIP-480). ``timestamp_ms`` is in milliseconds since 1970, by default the current time. The
        future raises DeliveryTimeoutError, and KafkaError if a broker refuses the record.

        Raises SerializationError, or an OSError of the encoder; RecordTooLargeError; after ``max_block_ms``
        KafkaError for a topic or partition that does not exist, and BufferFullError; KafkaError at once for a
        topic that the broker refuses to describe; ProducerClosedError; in a transactional producer
        TransactionStateError outside of a transaction, and TransactionAbortableError after something in it
        has failed.
        """
        if self._encoders is not None:
            value, key = await self._encode(self._encoders, topic, value, key)
        if type(value) is not bytes:
            value = _as_bytes("value", value)
        if type(key) is not bytes:
            key = _as_bytes("key", key)
        if headers:
            headers = _as_headers(headers)
            size = record_size(key, value, headers)
        else:
            size = RECORD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)
        while (queue := self._place(topic, key, partition, size)) is None:
            await self._within_transaction(self.look_up(topic, partition))
        waiting = self._accumulator
        if (
            size > self.config.max_request_size
            or waiting.used + size + HELD_BYTES > self.config.buffer_memory
            or self._in_line
        ):
            await self._within_transaction(self._room(size))
        timestamp_ms = self._time_ms() if timestamp_ms is None else _as_time(timestamp_ms)
        future, began, full = waiting.add(queue, (key, value, headers, timestamp_ms), size)
        if began or full:
            self._running().wake()
            if full:
                await asyncio.sleep(0)  # so that requests are sent while the caller goes on sending records
        return future  # type: ignore[no-any-return]

    async def _encode(
        self, encoders: Encoders, topic: str, value: object, key: object
    ) -> tuple[object, object]:
        if encoders.must_wait(topic):
            return await asyncio.to_thread(encoders.pair, topic, value, key)
        return encoders.pair(topic, value, key)

    async def send_and_wait(self, *record: Any, **named: Any) -> RecordMetadata:
        """As ``send``, and wait until the record is written."""
        return await (await self.send(*record, **named))

    async def send_batch(
        self, topic: str, partition: int, records: Sequence[TimedRecord]
    ) -> asyncio.Future[RecordMetadata]:
        """Accept records as one batch; return a future of the first record's RecordMetadata.

        A record is (key, value, headers, timestamp in ms), with key and value as bytes or None. Raises
        ValueError for no records, and what ``send`` raises.
        """
        checked = [
            (_as_bytes("key", key), _as_bytes("value", value), _as_headers(headers), _as_time(timestamp_ms))
            for key, value, headers, timestamp_ms in records
        ]
        if not checked:
            raise ValueError("a batch of no records: give it one at least")
        size = sum(record_size(*record[:3]) for record in checked)
        while (queue := self._place(topic, None, partition, size)) is None:
            await self._within_transaction(self.look_up(topic, partition))
        await self._within_transaction(self._room(size, len(records)))
        future = self._accumulator.add_all(queue, checked, size)
        self._running().wake()
        return future  # type: ignore[no-any-return]

    async def send_encoded(
        self, topic: str, partition: int, records: EncodedRecords
    ) -> asyncio.Future[RecordMetadata]:
        """Accept encoded records as one batch, which must not be changed afterwards.

        Returns and raises what ``send_batch`` does.
        """
        size = len(records.data)
        while (queue := self._place(topic, None, partition, size)) is None:
            await self._within_transaction(self.look_up(topic, partition))
        await self._within_transaction(self._room(size, 0))
        future = self._accumulator.add_encoded(queue, records)
        self._running().wake()
        return future  # type: ignore[no-any-return]

    async def forward(self, record: ProducerRecord) -> asyncio.Future[RecordMetadata]:
        """Accept a record that was read from a topic, with its partition; return what ``send`` returns.

        It is a batch of its own, compressed with gzip, and neither ``max_request_size`` nor ``buffer_memory``
        bounds it: it may have come compressed, and its reader holds it anyway.
        """
        topic, value, key, partition, timestamp_ms, headers = record
        assert partition is not None, "its reader says which"
        timestamp_ms = self._time_ms() if timestamp_ms is None else timestamp_ms
        size = record_size(key, value, headers)
        while (queue := self._place(topic, key, partition, size)) is None:
            await self._within_transaction(self.look_up(topic, partition))
        timed = (key, value, _as_headers(headers), timestamp_ms)
        future = self._accumulator.add_all(queue, [timed], size, Codec.GZIP)
        self._running().wake()
        return future  # type: ignore[no-any-return]

    async def flush(self) -> None:
        """Wait until every record that was accepted before is written or has failed."""
        await self._running().flush()

    async def partitions_for(self, topic: str) -> int:
        """Return the number of a topic's partitions. Raises KafkaError as ``send`` does."""
        while topic not in self._topics:
            await self.look_up(topic, None)
        return len(self._topics[topic].queues)

    def may_have_to_ask(self, topic: object, partition: object) -> bool:
        """Return whether ``send`` must request metadata, as the topic or partition is not known."""
        if type(topic) is not str or not isinstance(partition, int | None):
            return False
        known = self._topics.get(topic)
        return known is None or (partition is not None and partition >= len(known.queues))

    def _running(self) -> Sender:
        sender = self._sender
        if sender is None or self._closed:
            state = "has been closed" if self._closed else "was not started: use it in 'async with'"
            raise ProducerClosedError(f"this producer {state}")
        if sender.error is not None:
            raise sender.error
        return sender

    def _place(self, topic: str, key: bytes | None, partition: int | None, size: int) -> Queue | None:
        """Return the queue of a record; None while the topic, or the partition, is not known."""
        if self._closed or self._sender is None or self._sender.error is not None:
            self._running()
        if self._transactions is not None:
            self._transactions.require(TransactionStage.OPEN)
        known = self._topics.get(topic)
        if known is None:
            return None
        queues = known.queues
        if partition is not None:
            return queues[partition] if 0 <= partition < len(queues) else None
        if key is None:
            sticky = known.sticky
            before = sticky.current
            number = sticky.partition(size, known.led)
            if number != before and before >= 0 and (left := queues[before].waiting):
                left[-1].full = True  # no more records are added for now, so it need not linger
            return queues[number]
        return queues[partition_of_key(key, len(queues))]

    async def look_up(self, topic: str, partition: int | None, until_ms: float | None = None) -> None:
        """Request metadata until topic and partition exist. Raises KafkaError at ``until_ms``, by default
        after ``max_block_ms``.
        """
        until_ms = now_ms() + self.config.max_block_ms if until_ms is None else until_ms
        _check_topic(topic)
        if partition is not None and partition < 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition={partition} of topic {topic!r}"
            )
        pause_ms, code = self.config.retry_backoff_ms, int(ErrorCode.REQUEST_TIMED_OUT)
        while True:
            self._running()
            try:
                async with asyncio.timeout_at(until_ms / 1000):
                    state = await self._asked_about(topic)
            except TimeoutError:
                raise self.unknown_error(topic, partition, code) from self._cluster.last_failure
            known = self._topics.get(topic)
            if known is not None and (partition is None or partition < len(known.queues)):
                return
            code = state.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code not in _UNKNOWN or now_ms() + pause_ms > until_ms:
                raise self.unknown_error(topic, partition, code)
            await asyncio.sleep(pause_ms / 1000)

    def unknown_error(self, topic: str, partition: int | None, code: int) -> KafkaError:
        """The error for a topic or partition that was looked up in vain; ``code`` is of the last answer."""
        known = self._topics.get(topic)
        if code == ErrorCode.REQUEST_TIMED_OUT:
            text = f"topic {topic!r} was not looked up within max_block_ms ({self.config.max_block_ms})"
        elif known is not None:
            text = f"topic {topic!r} has {len(known.queues)} partitions, not number {partition}"
        elif code in _UNKNOWN:
            text = f"topic {topic!r} does not exist: create it, or check its name"
        else:
            text = f"topic {topic!r}"
        return KafkaError(code, text)

    async def _asked_about(self, topic: str) -> ClusterMetadata:
        """Request metadata of the topic, in one request with other topics that are wanted meanwhile."""
        self._wanted.add(topic)
        if self._question is None:
            self._question = asyncio.get_running_loop().create_task(self._ask())
            # retrieve its error, in case all callers were cancelled
            self._question.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        return await asyncio.shield(self._question)

    async def _ask(self) -> ClusterMetadata:
        async with self._asking:
            await asyncio.sleep(0)  # collect the topics of all tasks that run in this step of the loop
            topics, self._wanted, self._question = self._wanted, set(), None
            # this request makes brokers create topics, if auto.create.topics.enable is set
            state = await self._cluster.metadata(topics, create=True)
            for topic in topics:
                self._take_in(topic)
            return state

    def _take_in(self, topic: str) -> None:
        found = self._cluster.topic(topic)
        if (
            found is None
            and self._cluster.known_metadata.errors.get(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            self._topics.pop(topic, None)  # the next ``send`` requests it again
        if found is None or not found.partitions:
            return
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = _Topic(Sticky(self.config.batch_size, self._rng))
        if found.topic_id != known.topic_id:
            # recreated, perhaps with fewer partitions
            known.topic_id = found.topic_id
            del known.queues[len(found.partitions) :]
            known.sticky.current = -1
        for number in range(len(known.queues), len(found.partitions)):
            known.queues.append(self._accumulator.queue(TopicPartition(topic, number)))
        led = [number for number in found.partitions if found.partitions[number].leader >= 0]
        known.led = led or list(found.partitions)

    async def _renew_metadata(self) -> None:
        while True:
            await asyncio.sleep(self.config.metadata_max_age_ms / 1000)
            with suppress(KafkaError, BrokerConnectionError):
                await self._cluster.metadata(self._topics)
            for topic in list(self._topics):
                self._take_in(topic)  # which forgets those that were deleted

    async def _room(self, size: int, count: int = 1) -> None:
        """Wait until there is memory for ``count`` records of ``size`` bytes altogether.

        Raises RecordTooLargeError, and BufferFullError after ``max_block_ms``.
        """
        limit, waiting, sender = self.config.buffer_memory, self._accumulator, self._running()
        largest = self.config.max_request_size
        needed = size + HELD_BYTES * count
        if size > largest or needed > limit:
            name, bound = ("max_request_size", largest) if size > largest else ("buffer_memory", limit)
            raise RecordTooLargeError(
                f"a record of {size} bytes is more than {name} ({bound}): it was not sent"
            )
        self._in_line += 1
        waiting.hurry += 1
        try:
            # the lock lets callers in one after the other, in the order of their calls
            async with asyncio.timeout(self.config.max_block_ms / 1000), self._line:
                while waiting.used + needed > limit:
                    sender.wake()
                    await sender.ended.wait()
                    self._running()
        except TimeoutError:
            raise BufferFullError(
                f"buffer_memory ({limit} bytes) was full for max_block_ms "
                f"({self.config.max_block_ms}): brokers take records more slowly than they come"
            ) from None
        finally:
            waiting.hurry -= 1
            self._in_line -= 1
        self._running()

    async def _within_transaction(self, wait: Awaitable[None]) -> None:
        """Await ``wait``. Raises TransactionStateError if the transaction of the call ended meanwhile."""
        transactions = self._transactions
        number = None if transactions is None else transactions.number
        await wait
        if transactions is not None:
            if transactions.number != number or transactions.stage in (
                TransactionStage.READY,
                TransactionStage.ENDING,
            ):
                raise TransactionStateError("its transaction was ended before the record was accepted")
            transactions.require(TransactionStage.OPEN)

    # transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Context of a transaction: committed at the end of the block, aborted after an exception.

        Consumers with isolation_level=read_committed see all of its records, or none. Raises
        TransactionAbortableError if a record could not be written: the transaction is then aborted and may be
        repeated. Raises ProducerFencedError if another producer uses the transactional id: create a new
        producer.
        """
        self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException:
            if self.in_transaction:
                with suppress(KohortError):
                    await self.abort_transaction()
            raise

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open, or has failed and has to be aborted."""
        return self._in_transactions().stage in (TransactionStage.OPEN, TransactionStage.FAILED)

    def begin_transaction(self) -> None:
        """Open a transaction. Raises TransactionStateError if one is open."""
        self._running()
        self._in_transactions().begin()

    async def commit_transaction(self) -> None:
        """Write the records sent so far, then commit.

        Raises TransactionAbortableError if something could not be written: then abort. After a retriable
        KafkaError or a BrokerConnectionError it is not known whether the transaction is committed: call this
        again. Raises ProducerFencedError if another producer uses the transactional id.
        """
        sender = self._running()
        await self._in_transactions().commit(sender.flush)

    async def abort_transaction(self) -> None:
        """Drop records that are not sent yet, and abort.

        After a BrokerConnectionError or a retriable KafkaError call this again.
        """
        self._running()
        await self._in_transactions().abort(self._drop)

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        group: GroupMetadata | str,
    ) -> None:
        """Commit a group's offsets with the open transaction.

        ``offsets``: the offset of the next record to read, by partition. ``group``: a consumer's
        ``group_metadata()``, by which the coordinator refuses a member that is fenced (KIP-447), or a group
        id. Raises TransactionAbortableError, and TransactionStateError without an open transaction.
        """
        self._running()
        member = GroupMetadata(group) if isinstance(group, str) else group
        given = {
            TopicPartition(*partition): offset
            if isinstance(offset, CommittedOffset)
            else CommittedOffset(offset)
            for partition, offset in offsets.items()
        }
        self._in_transactions().require(TransactionStage.OPEN)
        if given:
            await self._in_transactions().send_offsets(given, member)

    async def detach_transaction(self) -> Transaction | None:
        """Write the records sent so far, and return the open transaction for someone else to end.

        Returns None if nothing was sent. Afterwards this producer can only be closed.
        """
        await self.flush()
        transactions = self._in_transactions()
        empty = transactions.is_empty
        transaction = transactions.detach()
        return None if empty else transaction

    def fail_transaction(self, error: Exception) -> None:
        """The open transaction, if there is one, can only be aborted: something of it was not accepted."""
        if self._transactions is not None and self._transactions.stage is TransactionStage.OPEN:
            self._transactions.on_failed(error)

    def _in_transactions(self) -> ProducerTransactions:
        if self._transactions is None:
            raise TransactionStateError("this producer has no transactions: give it a transactional_id")
        return self._transactions

    async def _drop(self) -> None:
        """Drop batches that are not in flight, and wait until none is in flight."""
        assert self._sender is not None, "started"
        self._accumulator.drop_waiting(
            TransactionAbortedError("its transaction was aborted before it was sent")
        )
        self._sender.ended.fire()
        await self._sender.flush()
        await self._sender.at_rest()


def _check_topic(given: object) -> None:
    """Raise an error for a name that no topic can have: it would fail the request for other topics too."""
    if not isinstance(given, str):
        raise TypeError(f"topic is {type(given).__name__}: it must be text")
    if len(given.encode()) > _LONGEST_TOPIC:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {given[:20]!r}... is too long")


def _as_headers(given: Headers) -> Headers:
    """Check and copy the headers, so that the caller cannot change them before they are sent."""
    headers = [(name, _as_bytes("a header's value", value)) for name, value in given]
    for name, _ in headers:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is {type(name).__name__}: it must be text")
        name.encode()
    return headers


def _as_time(given: object) -> int:
    if type(given) is not int or not 0 <= given <= MAX_LONG:
        raise ValueError(f"timestamp_ms={given}: it must be whole milliseconds since 1970")
    return given


def _as_bytes(name: str, given: object) -> bytes | None:
    if given is None or type(given) is bytes:
        return given
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"{name} is {type(given).__name__}: records are bytes, or None; encode it first")
