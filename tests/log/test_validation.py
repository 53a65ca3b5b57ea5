"""What may enter a log; the answers are those of Apache Kafka 4.3.1 to the same bytes.

Covers: log/_config.py, log/_steps.py.
"""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress

import pytest

from kohort.log import LogConfig, ThreadWork
from kohort.log._records import PROMPT_PACKED_BYTES
from kohort.log._steps import at_once
from kohort.log._validation import (
    MAX_RECORD_ERRORS,
    STEP_RECORDS,
    CheckedBatch,
    RecordError,
    RecordsError,
    check_batch,
    check_own,
)
from kohort.protocol import (
    BatchHeader,
    Codec,
    ErrorCode,
    KafkaError,
    build_batch,
    compress,
    parse_batch_header,
    stamp_batch,
    verify_batch,
)
from kohort.protocol._batch import _pack_varint, _write_crc
from tests.log.batches import NOW_MS, batch, marker

GOOD = batch(3)


def validate(records: bytes, config: LogConfig, *, now_ms: int, from_client: bool) -> list[BatchHeader]:
    """The headers of what may be appended."""
    if from_client:
        return [at_once(check_batch(records, config, now_ms=now_ms)).header]
    return check_own(records, config)


def edited(at: int, layout: str, value: int | bytes, *, crc: bool = True, data: bytes = GOOD) -> bytes:
    out = bytearray(data)
    struct.pack_into(layout, out, at, value)
    if crc:
        _write_crc(out, 0)
    return bytes(out)


def later_record() -> bytes:
    """A batch whose header says now, one of whose records is two hours later."""
    records = bytes([18, 0]) + _pack_varint(7_200_000) + bytes([0, 1, 1, 0])
    data = build_batch([(None, None, ())], timestamp_ms=NOW_MS)[:61] + records
    return edited(8, ">i", len(data) - 12, data=bytes(data))


def emptied() -> bytes:
    return edited(57, ">i", 0, data=edited(23, ">i", 0, data=edited(8, ">i", 49, crc=False, data=GOOD[:61])))


@pytest.mark.parametrize(
    ("code", "records"),
    [
        (ErrorCode.INVALID_RECORD, b""),
        (ErrorCode.INVALID_RECORD, GOOD[:10]),
        (ErrorCode.INVALID_RECORD, GOOD[:-3]),
        (ErrorCode.INVALID_RECORD, GOOD + GOOD),
        (ErrorCode.INVALID_RECORD, GOOD + b"\0"),
        (ErrorCode.CORRUPT_MESSAGE, edited(65, ">B", 7, crc=False)),
        (ErrorCode.INVALID_RECORD, edited(16, ">b", 0)),
        (ErrorCode.INVALID_RECORD, edited(16, ">b", 1)),
        (ErrorCode.CORRUPT_MESSAGE, edited(16, ">b", 3)),
        (ErrorCode.CORRUPT_MESSAGE, edited(8, ">i", 60, crc=False)),
        (ErrorCode.CORRUPT_MESSAGE, edited(8, ">i", 20, crc=False)),
        (ErrorCode.CORRUPT_MESSAGE, edited(8, ">i", -1, crc=False)),
        (ErrorCode.INVALID_RECORD, edited(8, ">i", 6000, crc=False)),
        (ErrorCode.INVALID_RECORD, edited(57, ">i", 2)),
        (ErrorCode.INVALID_RECORD, edited(23, ">i", 5)),
        (ErrorCode.INVALID_RECORD, edited(23, ">i", 1)),
        (ErrorCode.INVALID_RECORD, edited(23, ">i", -1)),
        (ErrorCode.INVALID_RECORD, emptied()),
        (ErrorCode.INVALID_RECORD, edited(0, ">q", 77, crc=False)),
        (ErrorCode.INVALID_RECORD, edited(0, ">q", -5, crc=False)),
        (ErrorCode.INVALID_RECORD, marker(1, committed=True)),
        (ErrorCode.INVALID_RECORD, batch(producer_id=5, sequence=-1)),
        (ErrorCode.INVALID_TIMESTAMP, batch(timestamp_ms=NOW_MS + 3_600_001)),
        (ErrorCode.INVALID_TIMESTAMP, edited(22, ">B", 8, data=batch(timestamp_ms=-1))),
        (ErrorCode.INVALID_TIMESTAMP, later_record()),
        (ErrorCode.UNKNOWN_SERVER_ERROR, edited(22, ">B", 5)),
        (ErrorCode.UNKNOWN_SERVER_ERROR, edited(22, ">B", 1)),
        (ErrorCode.UNKNOWN_SERVER_ERROR, edited(61, ">5s", b"\xff" * 5)),
        (ErrorCode.INVALID_RECORD, edited(61, ">B", 0x7E)),
        (ErrorCode.INVALID_RECORD, edited(57, ">i", 4, data=edited(23, ">i", 3))),
    ],
)
def test_a_clients_bad_batch_is_refused_with_kafkas_number(code: ErrorCode, records: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        validate(records, LogConfig(), now_ms=NOW_MS, from_client=True)
    assert caught.value.code is code


@pytest.mark.parametrize(
    "records",
    [
        GOOD,
        batch(timestamp_ms=-1),
        batch(timestamp_ms=NOW_MS - 10 * 365 * 86_400_000),
        batch(timestamp_ms=NOW_MS + 3_600_000),
        batch(producer_id=5, sequence=2**31 - 1),
        edited(22, ">B", 0x80),
        edited(22, ">B", 8),
    ],
)
def test_a_clients_good_batch_is_taken(records: bytes) -> None:
    (header,) = validate(records, LogConfig(), now_ms=NOW_MS, from_client=True)
    assert header == parse_batch_header(records)


@pytest.mark.parametrize("claimed", [10, 1_000_000, 2**31 - 1])
@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_cannot_take_more_offsets_than_its_bytes_may_hold_records(claimed: int, codec: int) -> None:
    lie = edited(23, ">i", claimed - 1, data=edited(57, ">i", claimed, data=edited(22, ">B", codec)))
    assert refusal(lie, LogConfig()) is (
        ErrorCode.UNKNOWN_SERVER_ERROR if codec else ErrorCode.INVALID_RECORD
    )


def test_the_smallest_records_fill_a_batch() -> None:
    records = bytes(build_batch([(None, None, ())] * 50, timestamp_ms=NOW_MS))
    assert len(records) == 61 + 50 * 7
    assert validate(records, LogConfig(), now_ms=NOW_MS, from_client=True)[0].record_count == 50


def refusal(records: bytes, config: LogConfig, *, from_client: bool = True) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        validate(records, config, now_ms=NOW_MS, from_client=from_client)
    return caught.value.code


def test_batches_are_limited_by_max_message_bytes() -> None:
    validate(GOOD, LogConfig(max_message_bytes=len(GOOD)), now_ms=NOW_MS, from_client=True)
    assert refusal(GOOD, LogConfig(max_message_bytes=len(GOOD) - 1)) is ErrorCode.MESSAGE_TOO_LARGE


def test_an_append_is_limited_by_the_segment() -> None:
    config = LogConfig(segment_bytes=2 * len(GOOD) - 1)
    validate(GOOD, config, now_ms=NOW_MS, from_client=True)
    assert refusal(GOOD + GOOD, config, from_client=False) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_old_timestamps_may_be_forbidden_and_are_nothing_to_a_log_that_stamps() -> None:
    strict = LogConfig(message_timestamp_before_max_ms=1000)
    assert refusal(batch(timestamp_ms=NOW_MS - 1001), strict) is ErrorCode.INVALID_TIMESTAMP
    stamping = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_type="LogAppendTime")
    for timestamp_ms in (0, NOW_MS + 10**9):
        validate(batch(timestamp_ms=timestamp_ms), stamping, now_ms=NOW_MS, from_client=True)


def test_compacted_topics_take_no_record_without_a_key() -> None:
    keyless = bytes(build_batch([(b"k", b"v", ()), (None, b"v", ())], timestamp_ms=NOW_MS))
    validate(keyless, LogConfig(), now_ms=NOW_MS, from_client=True)
    for policy in ("compact", "compact,delete"):
        config = LogConfig(cleanup_policy=policy)
        assert refusal(keyless, config) is ErrorCode.INVALID_RECORD
        validate(GOOD, config, now_ms=NOW_MS, from_client=True)
    torn = edited(61, ">B", 0x7E)
    assert refusal(torn, LogConfig(cleanup_policy="compact")) is ErrorCode.INVALID_RECORD


def test_a_coordinator_may_send_several_batches_and_markers() -> None:
    records = batch(2) + marker(1, committed=False) + batch(1)
    headers = validate(records, LogConfig(), now_ms=NOW_MS, from_client=False)
    assert [header.record_count for header in headers] == [2, 1, 1]
    assert refusal(b"", LogConfig(), from_client=False) is ErrorCode.INVALID_RECORD
    assert refusal(records[:-1], LogConfig(), from_client=False) is ErrorCode.CORRUPT_MESSAGE
    assert (
        refusal(edited(65, ">B", 7, crc=False), LogConfig(), from_client=False) is ErrorCode.CORRUPT_MESSAGE
    )


def test_the_edits_of_this_file_keep_checksums_right() -> None:
    data = edited(57, ">i", 2)
    verify_batch(data, parse_batch_header(data))


def stored(records: bytes, config: LogConfig) -> CheckedBatch:
    return at_once(check_batch(records, config, now_ms=NOW_MS))


def test_the_newest_time_is_that_of_the_records_whatever_the_header_says() -> None:
    lie = edited(35, ">q", NOW_MS + 10**12)
    assert stored(lie, LogConfig()).max_timestamp_ms == NOW_MS
    data = bytearray(lie)
    stamp_batch(data, 0, base_offset=4, leader_epoch=1, newest_ms=NOW_MS)
    assert parse_batch_header(data).max_timestamp_ms == NOW_MS
    verify_batch(data, parse_batch_header(data))


def test_a_client_that_sets_log_append_time_is_put_right_where_the_log_does_not_stamp() -> None:
    data = bytearray(edited(22, ">B", 8))
    stamp_batch(data, 0, base_offset=0, leader_epoch=0, newest_ms=NOW_MS)
    assert not parse_batch_header(data).log_append_time
    stamping = LogConfig(message_timestamp_type="LogAppendTime")
    assert refusal(edited(22, ">B", 8), stamping) is ErrorCode.INVALID_TIMESTAMP


def test_the_records_that_are_refused_are_named() -> None:
    keyless = bytes(build_batch([(None if n % 2 else b"k", b"v", ()) for n in range(5)], timestamp_ms=NOW_MS))
    with pytest.raises(RecordsError) as caught:
        stored(keyless, LogConfig(cleanup_policy="compact"))
    why = "a compacted topic takes no record without a key"
    assert caught.value.records == [RecordError(1, why), RecordError(3, why)]
    assert caught.value.code is ErrorCode.INVALID_RECORD
    many = bytes(build_batch([(None, b"v", ())] * 5_000, timestamp_ms=NOW_MS))
    with pytest.raises(RecordsError) as caught:
        stored(many, LogConfig(cleanup_policy="compact"))
    assert len(caught.value.records) == MAX_RECORD_ERRORS == 100


def test_records_that_are_too_old_are_named_beside_those_without_a_key() -> None:
    # the second one's time is that of the batch less 5,000 ms
    rows = bytes([14, 0, 0, 0, 2, 107, 1, 0]) + bytes([16, 0, 0x8F, 0x4E, 2, 2, 107, 1, 0])
    data = bytes(build_batch([(b"k", None, ())] * 2, timestamp_ms=NOW_MS))[:61] + rows
    config = LogConfig(message_timestamp_before_max_ms=1_000, cleanup_policy="compact")
    with pytest.raises(RecordsError) as caught:
        stored(edited(8, ">i", len(data) - 12, data=data), config)
    why = f"timestamp {NOW_MS - 5_000} is 5000 ms old: raise message.timestamp.before.max.ms, now 1000"
    assert (caught.value.code, caught.value.records) == (ErrorCode.INVALID_TIMESTAMP, [RecordError(1, why)])


@pytest.mark.parametrize("count", [2 * STEP_RECORDS - 1, 2 * STEP_RECORDS])
def test_records_are_looked_for_what_is_wrong_in_steps_too(count: int) -> None:
    data = bytes(build_batch([(None, b"v", ())] + [(b"k", b"v", ())] * (count - 1), timestamp_ms=NOW_MS))

    def turns(config: LogConfig) -> int:
        taken, steps = 0, check_batch(data, config, now_ms=NOW_MS)
        with suppress(RecordsError):
            for _ in steps:
                taken += 1
        return taken

    assert turns(LogConfig(cleanup_policy="compact")) - turns(LogConfig()) == count // STEP_RECORDS


def packed(records: bytes, count: int, codec: Codec = Codec.ZSTD) -> bytes:
    data = build_batch([(b"k", None, ())] * count, timestamp_ms=NOW_MS)[:61] + compress(codec, records)
    return edited(22, ">B", codec, data=edited(8, ">i", len(data) - 12, data=bytes(data)))


def test_a_batch_of_many_records_is_read_in_steps_and_unpacked_once_apart() -> None:
    count = 200_000
    # of changing size, so that none is like its neighbour
    records = bytearray()
    for number in range(count):
        body = (
            b"\x00\x00" + _pack_varint(number) + b"\x02k" + (b"\x02v" if number % 3 else b"\x04vv") + b"\x00"
        )
        records += _pack_varint(len(body)) + body
    config = LogConfig()
    steps = check_batch(packed(bytes(records), count), config, now_ms=NOW_MS)
    work = next(steps)
    assert work is not None, "more than a MiB is left to a thread"
    assert steps.send(work.call()) is None
    turns = list(steps)
    assert turns == [None] * len(turns)
    assert len(turns) > count / 5_000


def test_compressed_records_that_do_not_count_from_0_are_refused_where_that_is_seen() -> None:
    data = packed(bytes([14, 0, 0, 0, 1, 1, 0]) * 100_000, 100_000)
    turns: list[object] = []
    with pytest.raises(KafkaError) as caught:
        turns.extend(check_batch(data, LogConfig(), now_ms=NOW_MS))
    assert (caught.value.code, turns) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


@pytest.mark.parametrize(("empty", "code"), [(99, None), (100, ErrorCode.UNKNOWN_SERVER_ERROR)])
def test_a_gzip_batch_of_very_many_members_is_refused(empty: int, code: ErrorCode | None) -> None:
    good = packed(bytes([16, 0, 0, 0, 2]) + b"k" + bytes([1, 0]), 1, Codec.GZIP)
    data = good[:61] + gzip.compress(b"") * empty + good[61:]
    data = edited(8, ">i", len(data) - 12, data=data)
    if code is None:
        assert stored(data, LogConfig()).header.record_count == 1
    else:
        assert refusal(data, LogConfig()) is code


def test_much_compressed_input_is_left_to_a_thread_however_little_comes_out() -> None:
    members = gzip.compress(b"") * (PROMPT_PACKED_BYTES // 20 + 1)
    data = GOOD[:61] + members
    data = edited(22, ">B", Codec.GZIP, data=edited(8, ">i", len(data) - 12, data=data))
    assert isinstance(next(check_batch(data, LogConfig(), now_ms=NOW_MS)), ThreadWork)


def test_a_batch_that_grows_beyond_the_limits_is_too_large_for_its_producer_to_split_it() -> None:
    assert refusal(packed(bytes(70 << 20), 1), LogConfig()) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_mebibyte_of_zeros_is_taken_however_small_it_is_packed() -> None:
    body = b"\x00\x00\x00\x01" + _pack_varint(1_000_000) + bytes(1_000_000) + b"\x00"
    assert stored(packed(_pack_varint(len(body)) + body, 1), LogConfig()).max_timestamp_ms == NOW_MS


def test_records_of_a_packed_batch_count_from_0() -> None:
    good = b"".join(bytes([14, 0, 0, 2 * number, 1, 1, 0]) for number in range(40))
    assert stored(packed(good, 40), LogConfig()).header.record_count == 40
    for at in (1, 20, 39):
        wrong = good[: 7 * at] + bytes([14, 0, 0, 2 * at + 2]) + good[7 * at + 4 :]
        assert refusal(packed(wrong, 40), LogConfig()) is ErrorCode.UNKNOWN_SERVER_ERROR
