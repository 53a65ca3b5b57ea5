"""Produce (0), v3-13: appends record batches. v13 names topics by id (KIP-516).

acks=0 has no response: an error closes the connection, as in Apache Kafka, so that the client refreshes its
metadata.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial

from ...cluster import INTERNAL
from ...log import RecordsError
from ...protocol import (
    BATCH_CODEC,
    BATCH_LENGTH_END,
    BATCH_OVERHEAD,
    BATCH_TRANSACTIONAL,
    ApiKey,
    BatchHeader,
    CorruptBatchError,
    ErrorCode,
    KafkaError,
    ProtocolError,
    TopicPartition,
    parse_batch_header,
)
from ...protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ...protocol.named_tuples import NamedTuple
from ..authorizer import Operation, ResourceType, right
from ..coordinators.transactions import Writer
from ..event_loop.time_slices import in_slices
from ..node import Node
from ..partitions.partition import Partition
from ._api import Guard, Request, ServedApi, refusal_error
from ._errors import Level, in_elements, same_fields
from ._guards import each_topic, topic_name
from ._lookup import find_partition
from ._transactions import written_name

_ACKS = (-1, 0, 1)
#: Version from which topics go by id (KIP-516).
_TOPIC_IDS_FROM = 13
_MAGIC = 2
_MAGIC_AT = 16
_LENGTH_AT, _ATTRIBUTES_END = 8, 23
#: Bytes of a message of magic 0 after its length: a message of any magic has at least as many.
_LEAST_LENGTH = 14
#: The codec, and the version from which it may be used (KIP-110).
_ZSTD = 4
_ZSTD_FROM = 7

#: Errors of an append with which Apache Kafka returns no log start offset.
_WITHOUT_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


_ALL_REPLICAS = -1

#: Version from which TRANSACTION_ABORTABLE is known, and from which the first batch adds its partition to the
#: transaction (KIP-890).
_ABORTABLE_FROM, _ADDS_FROM = 11, 12

#: Errors of the verification that become one that clients of all versions retry. From _ADDS_FROM on they know
#: CONCURRENT_TRANSACTIONS, since the markers of their last transaction may still be written.
_NOT_VERIFIED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


@dataclass(slots=True)
class _Outcome:
    """The response for a partition, due when ``flush``, if any, is over."""

    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error: KafkaError | None = None
    flush: Awaitable[object] | None = None


async def handle(node: Node, request: Request[ProduceRequest]) -> ProduceResponse | None:
    """Append a batch to each partition, and answer as ``acks`` says; topics by id from v13."""
    body = request.body
    name = body.transactional_id
    writing = None if name is None else await _in_transaction(node, request, name)
    appended: list[tuple[TopicProduceData, list[tuple[int, _Outcome]]]] = [
        (topic, []) for topic in body.topic_data
    ]
    each = ((topic, outcomes, data) for topic, outcomes in appended for data in topic.partition_data)
    async for topic, outcomes, data in in_slices(each):
        outcomes.append((data.index, await _append_batch(node, request, topic, data, writing)))
    # everything is appended before waiting for the first flush: flushes run side by side
    responses = [(topic, [await _to_outcome(*one) for one in partitions]) for topic, partitions in appended]
    if body.acks == 0:
        failed = [outcome.error for _, partitions in responses for _, outcome in partitions if outcome.error]
        if failed:
            raise ProtocolError(f"a Produce with acks=0 failed: {failed[0]}")
        return None
    return _make_response(responses)


async def _to_outcome(index: int, outcome: _Outcome) -> tuple[int, _Outcome]:
    if outcome.flush is not None:
        try:
            await outcome.flush
        except KafkaError as error:
            return index, _Outcome(error=error)
    return index, outcome


def _make_response(responses: list[tuple[TopicProduceData, list[tuple[int, _Outcome]]]]) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=index,
                        error_code=outcome.error.code if outcome.error else ErrorCode.NONE,
                        error_message=None if outcome.error is None else outcome.error.message,
                        base_offset=outcome.base_offset,
                        log_append_time_ms=outcome.log_append_time_ms,
                        log_start_offset=outcome.log_start_offset,
                        record_errors=_record_errors(outcome.error),
                    )
                    for index, outcome in partitions
                ],
            )
            for topic, partitions in responses
        ]
    )


def _record_errors(error: KafkaError | None) -> list[BatchIndexAndErrorMessage]:
    """The records for which a batch is refused (KIP-467, from v8 on)."""
    if not isinstance(error, RecordsError):
        return []
    return [
        BatchIndexAndErrorMessage(batch_index=record.batch_index, batch_index_error_message=record.message)
        for record in error.records
    ]


class _Writing(NamedTuple):
    """The transaction that a request writes in, with the coordinator's result for each partition."""

    writer: Writer
    errors: Mapping[TopicPartition, ErrorCode]
    knows_abortable: bool

    def refusal(self, node: Node, partition: Partition) -> KafkaError | None:
        """The error if a partition may not be written to now."""
        place = TopicPartition(partition.topic.name, partition.index)
        error = self.errors.get(place) or self.writer.verify(node, place)
        if not error:
            return None
        if error in _NOT_VERIFIED:
            text = f"the transaction cannot be verified now: {error.name}"
            known = self.writer.adds and error is ErrorCode.CONCURRENT_TRANSACTIONS
            return KafkaError(error if known else ErrorCode.NOT_ENOUGH_REPLICAS, text)
        name = written_name(error, knows_abortable=self.knows_abortable)
        return KafkaError(name, "the partition is not in the producer's open transaction")


async def _in_transaction(
    node: Node, request: Request[ProduceRequest], transactional_id: str
) -> _Writing | None:
    """Verify the partitions of transactional batches, and add those that may be added; None if there are
    none. Raises KafkaError INVALID_PRODUCER_ID_MAPPING for batches of several producers.
    """
    adds = request.version >= _ADDS_FROM
    headers: dict[TopicPartition, BatchHeader] = {}
    producers: set[tuple[int, int]] = set()
    for topic in request.body.topic_data:
        for data in topic.partition_data:
            header = _of_transaction(data.records)
            if header is None:
                continue
            producers.add((header.producer_id, header.producer_epoch))
            name: str = topic.name or node.topics.name_of(topic.topic_id) or ""
            if name not in INTERNAL and node.logs.led(name, data.index) is not None:
                headers[TopicPartition(name, data.index)] = header
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "transactional batches of more than one producer"
        )
    if not producers:
        return None
    ((producer_id, epoch),) = producers
    writer = Writer(transactional_id, producer_id, epoch, adds)
    for place, header in headers.items():
        partition = node.logs.partition(*place)
        if writer.known_permission(partition) is None:
            partition.unverified.begin(header, from_zero=adds)
    return _Writing(writer, await writer.admit(node, headers), request.version >= _ABORTABLE_FROM)


def _of_transaction(records: bytes | memoryview | None) -> BatchHeader | None:
    """The header of a batch that is part of a producer's transaction; None for any other."""
    header = _header_of(records)
    return header if header is not None and header.transactional and header.producer_id >= 0 else None


def _header_of(records: bytes | memoryview | None) -> BatchHeader | None:
    """The header of a batch; None for a malformed one, which is told later."""
    try:
        return parse_batch_header(records or b"")
    except CorruptBatchError:
        return None  # it is reported later


def _refuse_batch(
    request: Request[ProduceRequest],
    topic: TopicProduceData,
    data: PartitionProduceData,
    error: KafkaError,
    start: int = -1,
) -> _Outcome:
    """The outcome of a batch that is not stored."""
    header = _header_of(data.records)
    if header is not None:
        request.refused.note_refusal((topic.name, topic.topic_id, data.index), header, error)
    return _Outcome(log_start_offset=start, error=error)


async def _append_batch(
    node: Node,
    request: Request[ProduceRequest],
    topic: TopicProduceData,
    data: PartitionProduceData,
    writing: _Writing | None,
) -> _Outcome:
    if request.refused and (header := _header_of(data.records)) is not None:
        before = request.refused.refusal_before((topic.name, topic.topic_id, data.index), header)
        if before is not None:
            return _refuse_batch(request, topic, data, before)
    by_id = request.version >= _TOPIC_IDS_FROM
    find = partial(find_partition, node, topic.name, topic.topic_id, data.index, by_id=by_id)
    try:
        partition = find()
        if partition.topic.internal:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic.name} is written by the broker alone"
            )
        partition.topic.traffic.produce_requests += 1
        records = _check_batch(request, data.records)
        if request.body.acks not in _ACKS:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.body.acks}: use -1, 0 or 1")
        if writing is not None and _of_transaction(records) is None:
            writing = None
        if writing is not None and (refused := writing.refusal(node, partition)) is not None:
            raise refused
    except KafkaError as error:
        return _refuse_batch(request, topic, data, error)
    try:
        config = None
        # the topic may be deleted, created again or altered meanwhile: its last config counts
        while partition.topic.config is not config:
            config = partition.topic.config
            checked = await node.long_work.run(partition.check(records, now_ms=node.now_ms()))
            partition = find()
        # the transaction may have ended since
        if writing is not None and (refused := writing.refusal(node, partition)) is not None:
            return _refuse_batch(request, topic, data, refused)
        if (producer_id := checked.header.producer_id) >= 0:
            partition.unverified.check(checked.header, partition.producer(producer_id))
        if partition.leadership is not None and request.body.acks == _ALL_REPLICAS:
            partition.leadership.replication.check_acks_all()
        info = partition.append(records, now_ms=node.now_ms(), checked=checked)
        if writing is not None and not info.duplicate:
            partition.unverified.end(checked.header.producer_id)
    except KafkaError as error:
        start = -1 if error.code in _WITHOUT_START else partition.log_start_offset
        return _refuse_batch(request, topic, data, error, start)
    if request.refused:
        request.refused.on_stored((topic.name, topic.topic_id, data.index))
    traffic = partition.topic.traffic
    if not info.duplicate:
        traffic.messages_in += info.last_offset - info.base_offset + 1
    traffic.bytes_in += len(records)
    all_replicas = request.body.acks == _ALL_REPLICAS
    flush: Awaitable[object] | None
    if all_replicas:
        flush = partition.wait_stored(info.last_offset + 1, request.body.timeout_ms)
    else:
        flush = partition.flush_before_answer(info.last_offset + 1, all_replicas=False)
    return _Outcome(info.base_offset, info.log_append_time_ms, info.log_start_offset, flush=flush)


def _check_batch(request: Request[ProduceRequest], records: bytes | memoryview | None) -> bytes:
    """Return the one batch of a request: magic 2, without what only a coordinator may write. The log checks
    more.

    An incomplete batch after it is cut off, as in Apache Kafka.
    """
    # a request is decoded from bytes
    assert not isinstance(records, memoryview)
    if records is None or len(records) < BATCH_OVERHEAD or records[_MAGIC_AT] < _MAGIC:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, "each partition must bring a whole record batch of magic 2"
        )
    length = int.from_bytes(records[_LENGTH_AT:BATCH_LENGTH_END], "big", signed=True)
    if _LEAST_LENGTH <= length <= len(records) - BATCH_LENGTH_END and request.version < _ZSTD_FROM:
        _check_codec(records[_ATTRIBUTES_END - 1] & BATCH_CODEC)
    try:
        header = parse_batch_header(records)
    except CorruptBatchError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if header.size > len(records):
        raise KafkaError(ErrorCode.INVALID_RECORD, "each partition must bring a whole batch")
    if header.size < len(records):
        _check_behind(records, header.size)
        records = records[: header.size]
    if header.transactional and request.body.transactional_id is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch without a transactional id",
        )
    return records


def _check_codec(codec: int) -> None:
    """Raise KafkaError for a codec that old requests may not use, before any other check."""
    if codec > _ZSTD:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"codec {codec} is not assigned")
    if codec == _ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7")


def _check_behind(records: bytes, at: int) -> None:
    """Raise KafkaError for anything after a batch, except an incomplete batch."""
    left = len(records) - at
    if left < BATCH_LENGTH_END:
        return
    length = int.from_bytes(records[at + _LENGTH_AT : at + BATCH_LENGTH_END], "big", signed=True)
    if length < _LEAST_LENGTH or (left > _MAGIC_AT and records[at + _MAGIC_AT] > _MAGIC):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "what follows the record batch is none")
    if left > _MAGIC_AT and length <= left - BATCH_LENGTH_END:
        raise KafkaError(ErrorCode.INVALID_RECORD, "each partition may bring one record batch only")


_TRANSACTION_RIGHT = right(
    Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "the transactional id, if a batch is transactional"
)
_TOPIC_RIGHT = right(Operation.WRITE, ResourceType.TOPIC, "each topic")


async def _guard(node: Node, request: Request[ProduceRequest]) -> object:
    body = request.body
    if any(_is_transactional(data.records) for item in body.topic_data for data in item.partition_data) and (
        body.transactional_id is None or not request.allows(_TRANSACTION_RIGHT, body.transactional_id)
    ):
        raise refusal_error(_TRANSACTION_RIGHT)
    if body.acks == 0:
        for item in body.topic_data:
            name = topic_name(node, item)
            if name is not None and not request.allows(_TOPIC_RIGHT, name):
                raise ProtocolError(f"a Produce with acks=0 to {name}, which is not allowed")
    return await each_topic(node, request, _TOPIC_RIGHT)


def _is_transactional(records: bytes | memoryview | None) -> bool:
    at = _ATTRIBUTES_END - 1
    return records is not None and len(records) > at and bool(records[at] & BATCH_TRANSACTIONAL)


API = ServedApi(
    key=ApiKey.PRODUCE,
    versions=(3, 13),
    # as Apache Kafka lists them, since librdkafka looks for v0 (KIP-896)
    told_from=0,
    handler=handle,
    guard=Guard((_TRANSACTION_RIGHT, _TOPIC_RIGHT), _guard),
    errors=in_elements(
        Level("topic_data", "responses", same_fields("name", "topic_id")),
        Level("partition_data", "partition_responses", same_fields("index"), {"base_offset": -1}),
    ),
    is_answered=lambda body: body.acks != 0,
    carried_out=True,
    produces=True,
)
