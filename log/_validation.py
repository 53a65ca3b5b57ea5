"""What a batch must be to enter the log, and the wire errors for one that is not.

The errors are those that Apache Kafka 4.3 answers to the same bytes, but for a codec that is not assigned,
which it calls UNKNOWN_SERVER_ERROR, and for a producer that sets LogAppendTime, which it puts right or
refuses depending on the topic.
"""

from __future__ import annotations

from ..protocol import (
    BATCH_OVERHEAD,
    BatchHeader,
    Codec,
    CorruptBatchError,
    ErrorCode,
    KafkaError,
    decompressed_limit,
    iter_batches,
    parse_batch_header,
    verify_batch,
)
from ._config import LogConfig
from ._records import decode_records

_MAGIC_AT = 16
_OLD_MAGICS = (0, 1)

#: Bytes of a record without key, value and headers: seven fields of a byte each.
_SMALLEST_RECORD = 7


def validate(
    records: bytes | bytearray | memoryview, config: LogConfig, *, now_ms: int, from_client: bool
) -> list[BatchHeader]:
    """The headers of the batches to append, all of them checked: whole, checksum, size, and what a client may
    say.

    Raises KafkaError with the wire code.
    """
    headers = _client_batch(records) if from_client else _batches(records)
    for header in headers:
        _check_size(header, config)
        if from_client:
            _check_client_header(header)
            _check_timestamps(header, config, now_ms)
    if sum(header.size for header in headers) > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{len(records)} bytes do not fit a segment of {config.segment_bytes}: send less at a time",
        )
    if from_client and config.compacts:
        _check_keys(bytes(records), headers[0])
    return headers


def _client_batch(records: bytes | bytearray | memoryview) -> list[BatchHeader]:
    """A client sends exactly one batch."""
    if len(records) > _MAGIC_AT and records[_MAGIC_AT] in _OLD_MAGICS:
        raise _invalid("message sets of magic 0 and 1 are not taken: send record batches, magic 2")
    try:
        header = parse_batch_header(records)
        if header.size > len(records):
            raise _invalid(f"a batch of {header.size} bytes in {len(records)}: send one whole batch")
        verify_batch(records, header)
    except CorruptBatchError as error:
        if len(records) <= _MAGIC_AT:
            raise _invalid(f"{len(records)} bytes are no record batch: send one") from error
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if header.size < len(records):
        raise _invalid(f"{len(records) - header.size} bytes follow the batch: send one batch a partition")
    return [header]


def _batches(records: bytes | bytearray | memoryview) -> list[BatchHeader]:
    headers = []
    try:
        for position, header in iter_batches(records):
            verify_batch(records, header, position)
            headers.append(header)
    except CorruptBatchError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not headers:
        raise _invalid("there is no record batch to append")
    return headers


def _check_size(header: BatchHeader, config: LogConfig) -> None:
    if header.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {header.size} bytes, max.message.bytes is {config.max_message_bytes}: "
            "send smaller batches or raise it",
        )
    if header.last_offset_delta < 0:
        raise _invalid(f"last offset delta {header.last_offset_delta} is negative")


def _check_client_header(header: BatchHeader) -> None:
    if header.control:
        raise _invalid("control batches are written by brokers alone")
    if header.record_count < 1 or header.record_count != header.last_offset_delta + 1:
        raise _invalid(f"{header.record_count} records cannot end at offset delta {header.last_offset_delta}")
    if header.record_count > _most_records(header):
        raise _invalid(f"{header.record_count} records do not fit a batch of {header.size} bytes")
    if header.base_offset:
        raise _invalid(f"base offset {header.base_offset}: a producer's batch starts at 0")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"producer id {header.producer_id} without a sequence number")
    if header.codec > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is not assigned")


def _most_records(header: BatchHeader) -> int:
    """What the header claims decides the offsets that the batch takes; its bytes bound what can be true."""
    payload = header.size - BATCH_OVERHEAD
    if header.codec != Codec.NONE:
        payload = decompressed_limit(payload)
    return payload // _SMALLEST_RECORD


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    if header.log_append_time:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "LogAppendTime is set by brokers alone")
    newest = header.max_timestamp_ms
    if config.stamps or newest < 0:
        return
    if newest - now_ms > config.message_timestamp_after_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {newest} is {newest - now_ms} ms ahead of the broker: set the clock right or raise "
            f"message.timestamp.after.max.ms, now {config.message_timestamp_after_max_ms}",
        )
    if now_ms - newest > config.message_timestamp_before_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {newest} is {now_ms - newest} ms old: raise message.timestamp.before.max.ms, "
            f"now {config.message_timestamp_before_max_ms}",
        )


def _check_keys(records: bytes, header: BatchHeader) -> None:
    """A compacted topic keeps the newest record of each key: one without a key could never be kept."""
    try:
        keyless = any(key is None for _, _, key, _ in decode_records(records, header))
    except CorruptBatchError as error:
        raise _invalid(str(error)) from error
    if keyless:
        raise _invalid("a compacted topic takes no record without a key")


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, reason)
