"""Validation of a batch before it enters the log, its wire errors, and the fields that the log writes into
it.

The errors are those of Apache Kafka 4.3 for the same bytes (``make test-kafka`` draws batches and compares
them). The limits of decompression are the exception: Apache Kafka has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ..protocol import (
    BATCH_OVERHEAD,
    BatchHeader,
    BrokenOffBatchError,
    Codec,
    CorruptBatchError,
    ErrorCode,
    GrownTooLargeError,
    KafkaError,
    iter_batches,
    parse_batch_header,
    stamp_batch,
    verify_batch,
)
from ..protocol.named_tuples import NamedTuple
from ._config import LogConfig
from ._recompression import recompress_batch
from ._record_checks import RecordsEndError, RecordWalk
from ._records import signed_long, unpack_records
from ._steps import Steps

_MAGIC_AT: Final = 16
_OLD_MAGICS: Final = (0, 1)
_NO_TIMESTAMP: Final = -1
_NO_PRODUCER: Final = -1

#: Bit of an LZ4 frame's flags for independent blocks: Java clients read no others.
_LZ4_FLAGS_AT: Final = 4
_LZ4_INDEPENDENT: Final = 0x20

#: Records checked before other work may run.
STEP_RECORDS: Final = 256

#: Most members of a gzip batch, of which producers write one: some thousands end Java consumers, with a
#: StackOverflowError.
MOST_GZIP_MEMBERS: Final = 100

#: Most records of a batch whose errors a response lists (KIP-467).
MAX_RECORD_ERRORS: Final = 100


class RecordError(NamedTuple):
    """The reason to refuse one record; ``batch_index`` is its place in the batch, from 0."""

    batch_index: int
    message: str


class RecordsError(KafkaError):
    """A batch refused for some of its records. ``records`` lists the first MAX_RECORD_ERRORS of them."""

    def __init__(self, code: ErrorCode, records: Sequence[RecordError]) -> None:
        first = records[0]
        many = f"{len(records)} or more" if len(records) == MAX_RECORD_ERRORS else str(len(records))
        super().__init__(
            code, f"{many} records are refused, the first at {first.batch_index}: {first.message}"
        )
        self.records = records


class CheckedBatch(NamedTuple):
    """A client's batch that may be appended, in the codec in which it is stored; ``max_timestamp_ms`` is the
    newest time of its records.
    """

    data: bytes | bytearray
    header: BatchHeader
    max_timestamp_ms: int


def check_batch(records: bytes | bytearray, config: LogConfig, *, now_ms: int) -> Steps[CheckedBatch]:
    """Check a client's records, which must be one whole batch: checksum, size, header, then each record; and
    compress them anew where the log asks for another codec. Raises KafkaError with the wire code.
    """
    header = _client_batch(records, config)
    rewritten = config.codec_of(header.codec) != header.codec
    plain = yield from _plain_records(header, memoryview(records)[BATCH_OVERHEAD:])
    walked = yield from _check_records(header, plain, config, now_ms, rewritten=rewritten)
    if rewritten:
        _check_rewritable(header, walked)
        records = yield from recompress_batch(header, plain, config, unordered=walked.unordered)
        header = parse_batch_header(records)
        _check_size(header, config)
    _check_fits(header.size, config)
    return CheckedBatch(records, header, max(walked.newest_ms, _NO_TIMESTAMP))


class _Walked(NamedTuple):
    """What is known of the records of a batch. Oldest and newest are by their timestamp deltas; both
    timestamps may have wrapped.
    """

    oldest_ms: int
    newest_ms: int
    unordered: bool


def _check_records(
    header: BatchHeader, plain: bytes, config: LogConfig, now_ms: int, *, rewritten: bool
) -> Steps[_Walked]:
    packed = header.codec != Codec.NONE
    begin = partial(RecordWalk, plain, header.record_count, packed=packed, rewritten=rewritten)
    walk = begin()
    while not walk.advance(STEP_RECORDS):
        if walk.unordered and packed and not rewritten:
            break  # it is refused, whatever follows: nobody else is to wait for that
        yield None
    rules = _RecordRules(header, config, now_ms)
    if (walk.keyless and config.compacts) or rules.may_refuse(walk.oldest, walk.newest):
        yield from rules.refuse(begin())
    if walk.unordered and packed and not rewritten:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "the offset deltas of the records do not count from 0"
        )
    return _Walked(rules.time(walk.oldest), rules.time(walk.newest), walk.unordered)


def _check_rewritable(header: BatchHeader, walked: _Walked) -> None:
    """Raise KafkaError for what Apache Kafka stores as it came, but does not build anew."""
    wrong = ""
    if min(walked.oldest_ms, walked.newest_ms) < _NO_TIMESTAMP:
        wrong = "a negative timestamp"
    elif header.producer_id == _NO_PRODUCER and header.transactional:
        wrong = "a transactional batch without a producer id"
    elif header.producer_id != _NO_PRODUCER and (header.producer_epoch == -1 or header.base_sequence < 0):
        wrong = "a producer id without an epoch and a sequence number"
    if wrong:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{wrong}: such a batch is not compressed anew")


def check_own(records: bytes | bytearray, config: LogConfig) -> list[BatchHeader]:
    """The headers of batches that the broker built itself; checks that they are whole, checksum and size."""
    headers = []
    try:
        for position, header in iter_batches(records):
            verify_batch(records, header, position)
            _check_size(header, config)
            headers.append(header)
    except CorruptBatchError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not headers:
        raise _invalid_record("there is no record batch to append")
    if any(header.last_offset_delta < 0 for header in headers):
        raise _invalid_record("a last offset delta is negative")
    _check_fits(len(records), config)
    return headers


def _client_batch(records: bytes | bytearray, config: LogConfig) -> BatchHeader:
    if len(records) > _MAGIC_AT and records[_MAGIC_AT] in _OLD_MAGICS:
        raise _invalid_record("message sets of magic 0 and 1 are not taken: send record batches, magic 2")
    try:
        header = parse_batch_header(records)
        if header.size > len(records):
            raise _invalid_record(f"a batch of {header.size} bytes in {len(records)}: send one whole batch")
        if header.base_offset:
            raise _invalid_record(f"base offset {header.base_offset}: a producer's batch starts at 0")
        _check_size(header, config)
        verify_batch(records, header)
    except CorruptBatchError as error:
        if len(records) <= _MAGIC_AT:
            raise _invalid_record(f"{len(records)} bytes are no record batch: send one") from error
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if header.size < len(records):
        raise _invalid_record(
            f"{len(records) - header.size} bytes follow the batch: send one batch a partition"
        )
    _check_client_header(header)
    return header


def _check_size(header: BatchHeader, config: LogConfig) -> None:
    if header.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {header.size} bytes, max.message.bytes is {config.max_message_bytes}: "
            "send smaller batches or raise it",
        )


def _check_fits(size: int, config: LogConfig) -> None:
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes do not fit a segment of {config.segment_bytes}: send less at a time",
        )


def _check_client_header(header: BatchHeader) -> None:
    if header.codec > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"codec {header.codec} is not assigned")
    if header.record_count < 1 or header.record_count != header.last_offset_delta + 1:
        raise _invalid_record(
            f"{header.record_count} records cannot end at offset delta {header.last_offset_delta}"
        )
    if header.control:
        raise _invalid_record("control batches are written by brokers alone")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid_record(f"producer id {header.producer_id} without a sequence number")


def _plain_records(header: BatchHeader, payload: memoryview) -> Steps[bytes]:
    if (
        header.codec == Codec.LZ4
        and payload[_LZ4_FLAGS_AT:][:1]
        and not payload[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "blocks of an LZ4 frame that depend on each other")
    try:
        return (yield from unpack_records(header, payload, MOST_GZIP_MEMBERS))
    except GrownTooLargeError as error:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{error}: send smaller batches") from error
    except CorruptBatchError as error:
        if isinstance(error, BrokenOffBatchError):
            # Apache Kafka reads record by record, so errors in the records before the break come first
            walk = RecordWalk(error.before, header.record_count, packed=True)
            with suppress(RecordsEndError):
                while not walk.advance(STEP_RECORDS):
                    yield None
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


class _RecordRules:
    """The rules for a readable record of a batch."""

    def __init__(self, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
        self._header = header
        self._config = config
        self._now_ms = now_ms

    def time(self, delta_ms: int) -> int:
        """A record's timestamp, which may wrap around at 64 bits."""
        if self._header.log_append_time:
            return self._header.max_timestamp_ms
        return signed_long(self._header.base_timestamp_ms + delta_ms)

    def may_refuse(self, oldest_ms: int, newest_ms: int) -> bool:
        """Return whether a record with a time delta from ``oldest_ms`` to ``newest_ms`` may be refused."""
        oldest, newest = self.time(oldest_ms), self.time(newest_ms)
        wrapped = newest - oldest != newest_ms - oldest_ms and not self._header.log_append_time
        # -1, no timestamp, is never refused, and may hide a refused one between the two
        return wrapped or oldest == _NO_TIMESTAMP != newest or any(map(self.refusal, (oldest, newest)))

    def refusal(self, time_ms: int) -> str:
        """Return why a record with this timestamp is refused; "" if it is not."""
        config, now_ms = self._config, self._now_ms
        if not config.stamps and time_ms != _NO_TIMESTAMP:
            if time_ms < now_ms - config.message_timestamp_before_max_ms:
                return (
                    f"timestamp {time_ms} is {now_ms - time_ms} ms old: raise "
                    f"message.timestamp.before.max.ms, now {config.message_timestamp_before_max_ms}"
                )
            if time_ms > now_ms + config.message_timestamp_after_max_ms:
                return (
                    f"timestamp {time_ms} is {time_ms - now_ms} ms ahead of the broker: set the clock right "
                    f"or raise message.timestamp.after.max.ms, now {config.message_timestamp_after_max_ms}"
                )
        elif self._header.log_append_time:
            return "LogAppendTime is set by brokers alone"
        return ""

    def refuse(self, walk: RecordWalk) -> Steps[None]:
        """Raise RecordsError with the first of the records that are refused."""
        found: list[RecordError] = []
        code = ErrorCode.INVALID_RECORD
        for index in range(walk.left):
            time_ms, has_key = walk.next()
            if self._config.compacts and not has_key:
                found.append(RecordError(index, "a compacted topic takes no record without a key"))
            elif wrong := self.refusal(self.time(time_ms)):
                found.append(RecordError(index, wrong))
                code = ErrorCode.INVALID_TIMESTAMP
            if len(found) == MAX_RECORD_ERRORS:
                break
            if index % STEP_RECORDS == STEP_RECORDS - 1:
                yield None
        if found:
            raise RecordsError(code, found)


def _invalid_record(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, reason)


def stamp_batches(
    records: bytes | bytearray,
    headers: Sequence[BatchHeader],
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None,
    newest_ms: int | None = None,
) -> tuple[bytearray, list[BatchHeader]]:
    """A copy of ``records`` with its batches numbered from ``base_offset`` on, and its headers."""
    data = bytearray(records)
    stamped: list[BatchHeader] = []
    position, offset = 0, base_offset
    for header in headers:
        stamp_batch(
            data,
            position,
            base_offset=offset,
            leader_epoch=leader_epoch,
            log_append_time_ms=log_append_time_ms,
            newest_ms=newest_ms,
        )
        stamped.append(parse_batch_header(data, position))
        position += header.size
        offset = stamped[-1].next_offset
    return data, stamped
