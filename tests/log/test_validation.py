"""What may enter a log; the answers are those of Apache Kafka 4.3.1 to the same bytes."""

from __future__ import annotations

import struct

import pytest

from kohort.log import LogConfig
from kohort.log._steps import at_once
from kohort.log._validation import check_batch, check_own
from kohort.protocol import ErrorCode, KafkaError, build_batch, parse_batch_header, verify_batch
from kohort.protocol._batch import _write_crc
from tests.log.batches import NOW_MS, batch, marker

GOOD = batch(3)


def edited(at: int, layout: str, value: int, *, crc: bool = True, data: bytes = GOOD) -> bytes:
    out = bytearray(data)
    struct.pack_into(layout, out, at, value)
    if crc:
        _write_crc(out, 0)
    return bytes(out)


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
        (ErrorCode.INVALID_TIMESTAMP, edited(22, ">B", 8)),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, edited(22, ">B", 5)),
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
    ],
)
def test_a_clients_good_batch_is_taken(records: bytes) -> None:
    (header,) = validate(records, LogConfig(), now_ms=NOW_MS, from_client=True)
    assert header == parse_batch_header(records)


@pytest.mark.parametrize("claimed", [10, 1_000_000, 2**31 - 1])
@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_cannot_take_more_offsets_than_its_bytes_may_hold_records(claimed: int, codec: int) -> None:
    lie = edited(23, ">i", claimed - 1, data=edited(57, ">i", claimed, data=edited(22, ">B", codec)))
    if codec and claimed == 10:
        assert validate(lie, LogConfig(), now_ms=NOW_MS, from_client=True)[0].record_count == 10
    else:
        assert refusal(lie, LogConfig()) is ErrorCode.INVALID_RECORD


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
