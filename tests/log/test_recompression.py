"""Batches in the codec that compression.type asks for, rewritten as by Apache Kafka 4.3.1
(tests/clients/test_alike_batches.py compares both).
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from kohort.log import (
    CheckedBatch,
    CompressionType,
    LogConfig,
    Steps,
    ThreadWork,
    at_once,
    check_batch,
    decode_records,
)
from kohort.protocol import (
    BATCH_OVERHEAD,
    Codec,
    ErrorCode,
    KafkaError,
    build_batch,
    compress,
    decompress,
    parse_batch_header,
    verify_batch,
    write_varint,
)
from kohort.protocol._batch import _write_crc, with_payload
from tests.log.batches import NOW_MS, all_records, batch, committed, marker, open_log
from tests.log.cleaning import compact, keyed, packed

TYPES: tuple[CompressionType, ...] = get_args(CompressionType)
CODEC_OF = {"uncompressed": Codec.NONE, **{codec.name.lower(): codec for codec in Codec if codec}}


def checked(data: bytes, config: LogConfig) -> CheckedBatch:
    return at_once(check_batch(data, config, now_ms=NOW_MS))


def refusal(data: bytes, config: LogConfig) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        checked(data, config)
    return caught.value.code


def edited(at: int, layout: str, value: int, data: bytes) -> bytes:
    out = bytearray(data)
    struct.pack_into(layout, out, at, value)
    _write_crc(out, 0)
    return bytes(out)


def record(time_ms: int, delta: int) -> bytes:
    body = bytearray(1)
    write_varint(body, time_ms)
    write_varint(body, delta)
    body += b"\x02k\x02v\x00"
    return bytes([2 * len(body)]) + body


def of_records(*records: bytes) -> bytes:
    """An uncompressed batch of these records, its base time NOW_MS."""
    data = build_batch([(None, None)] * len(records), timestamp_ms=NOW_MS)
    return bytes(with_payload(data, Codec.NONE, b"".join(records)))


@pytest.mark.parametrize("wanted", TYPES)
@pytest.mark.parametrize("sent", Codec)
def test_a_batch_in_another_codec_is_rewritten_and_one_in_the_same_is_kept(
    sent: Codec, wanted: CompressionType
) -> None:
    plain = batch(40, producer_id=7, sequence=3, transactional=True)
    data = packed(plain, sent) if sent else plain
    stored = checked(data, LogConfig(compression_type=wanted))
    codec = CODEC_OF.get(wanted, sent)
    if codec == sent:
        assert stored.data == data
    header, before = stored.header, parse_batch_header(data)
    verify_batch(stored.data, header)
    assert header == before._replace(
        length=header.length, crc=header.crc, attributes=before.attributes & ~0x07 | codec
    )
    assert decompress(codec, bytes(stored.data[BATCH_OVERHEAD:])) == plain[BATCH_OVERHEAD:]
    assert stored.max_timestamp_ms == NOW_MS


@pytest.mark.parametrize(
    ("wanted", "levels"),
    [
        ("gzip", {"compression_gzip_level": (-1, 1)}),
        ("lz4", {"compression_lz4_level": (17, 12, 3, 9)}),
        ("zstd", {"compression_zstd_level": (22, 1, -1_000)}),
    ],
)
def test_the_level_is_that_of_the_codec(wanted: CompressionType, levels: dict[str, tuple[int, ...]]) -> None:
    rows = [(b"k%d" % n, b"%d of %d" % (n * 7_919 % 1_000, n * n)) for n in range(2_000)]
    data = bytes(build_batch(rows, timestamp_ms=NOW_MS))
    ((name, values),) = levels.items()
    config = LogConfig(compression_type=wanted)
    stored = [checked(data, replace(config, **{name: value})) for value in values]  # type: ignore[arg-type]
    sizes = [one.header.size for one in stored]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    for one in stored:
        assert decode_records(one.data, one.header) == decode_records(data, parse_batch_header(data))


@pytest.mark.parametrize("sent", [Codec.NONE, Codec.LZ4])
def test_records_out_of_order_are_numbered_anew(sent: Codec) -> None:
    plain = of_records(record(5, 8), record(0, 2), record(-3, 2))
    data = packed(plain, sent) if sent else plain
    stored = checked(data, LogConfig(compression_type="gzip"))
    rows = [(0, NOW_MS + 5, b"k", b"v"), (1, NOW_MS, b"k", b"v"), (2, NOW_MS - 3, b"k", b"v")]
    assert decode_records(stored.data, stored.header) == rows
    assert (stored.header.base_timestamp_ms, stored.max_timestamp_ms) == (NOW_MS + 5, NOW_MS + 5)


def test_the_base_timestamp_is_that_of_the_first_record() -> None:
    stored = checked(of_records(record(-70, 0), record(9, 1)), LogConfig(compression_type="zstd"))
    assert stored.header.base_timestamp_ms == NOW_MS - 70
    assert [row[1] for row in decode_records(stored.data, stored.header)] == [NOW_MS - 70, NOW_MS + 9]


def test_of_the_attributes_only_the_transaction_is_kept() -> None:
    data = edited(21, ">h", 0x4058, batch(2, producer_id=7, sequence=0, transactional=True))
    stored = checked(edited(35, ">q", NOW_MS + 5, data), LogConfig(compression_type="snappy"))
    assert stored.header.attributes == 0x10 | Codec.SNAPPY
    # a batch with LogAppendTime has one time
    assert [row[1] for row in decode_records(stored.data, stored.header)] == [NOW_MS + 5] * 2


@pytest.mark.parametrize(
    "data",
    [
        of_records(record(-NOW_MS - 2, 0)),
        of_records(record(0, 0), record(-NOW_MS - 2, 1)),
        batch(producer_id=-2, producer_epoch=-1, sequence=0),
        batch(producer_id=-2, producer_epoch=0, sequence=-1),
        batch(producer_id=-1, transactional=True),
    ],
)
def test_what_cannot_be_built_anew_is_refused_and_stored_only_as_it_came(data: bytes) -> None:
    data = edited(8, ">i", len(data) - 12, data)
    assert refusal(data, LogConfig(compression_type="gzip")) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert checked(data, LogConfig(compression_type="uncompressed")).data == data


def test_a_batch_must_fit_as_it_came_and_as_it_is_stored() -> None:
    plain = bytes(build_batch([(b"k", bytes(5_000))], timestamp_ms=NOW_MS))
    small = packed(plain, Codec.GZIP)
    for data, wanted in ((plain, "gzip"), (small, "uncompressed")):
        config = LogConfig(compression_type=wanted, max_message_bytes=1_000)  # type: ignore[arg-type]
        assert refusal(data, config) is ErrorCode.MESSAGE_TOO_LARGE
    config = LogConfig(compression_type="gzip", segment_bytes=1_000)
    assert checked(plain, config).header.size < 1_000
    config = LogConfig(compression_type="uncompressed", segment_bytes=1_000)
    assert refusal(small, config) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_keys_and_values_of_a_rewritten_batch_are_read() -> None:
    short = bytes([12]) + record(0, 0)[1:]  # a length that its fields exceed
    data = packed(of_records(short), Codec.GZIP)
    assert checked(data, LogConfig()).data == data
    assert refusal(data, LogConfig(compression_type="lz4")) is ErrorCode.INVALID_RECORD


def test_large_records_are_compressed_apart_and_numbered_in_steps() -> None:
    small = list(check_batch(batch(10), LogConfig(compression_type="zstd"), now_ms=NOW_MS))
    assert small == []
    count = 5_000
    data = of_records(*(record(0, 3) for _ in range(count)))
    turns: list[ThreadWork | None] = []

    def noted() -> Steps[CheckedBatch]:
        steps = check_batch(data, LogConfig(compression_type="zstd"), now_ms=NOW_MS)
        found = None
        while True:
            try:
                turns.append(steps.send(found))
            except StopIteration as done:
                result: CheckedBatch = done.value
                return result
            found = yield turns[-1]

    assert at_once(noted()).header.record_count == count
    assert sum(turn is not None for turn in turns) == 1
    assert len(turns) > count // 256


# -- in a log ------------------------------------------------------------------------------------------------


def test_offsets_sequence_numbers_and_duplicates_are_those_of_what_was_sent(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(compression_type="gzip"))
    sent = [batch(3, producer_id=7, sequence=0), batch(2, producer_id=7, sequence=3)]
    assert [log.append(one, now_ms=NOW_MS).base_offset for one in sent] == [0, 3]
    again = log.append(sent[1], now_ms=NOW_MS)
    assert (again.duplicate, again.base_offset, log.log_end_offset) == (True, 3, 5)
    with pytest.raises(KafkaError) as caught:
        log.append(batch(1, producer_id=7, sequence=9), now_ms=NOW_MS)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.close()


def test_markers_stay_as_they_are_and_end_the_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(compression_type="zstd"))
    log.append(batch(2, producer_id=7, sequence=0, transactional=True), now_ms=NOW_MS)
    end = marker(7, committed=False)
    log.append(end, now_ms=NOW_MS, from_client=False)
    committed(log)
    data = all_records(log)
    first = parse_batch_header(data)
    assert (first.codec, first.transactional) == (Codec.ZSTD, True)
    assert data[first.size + 16 :] == end[16:]
    assert log.last_stable_offset == 3
    log.close()


def test_a_log_that_stamps_stamps_what_it_has_rewritten(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(compression_type="lz4", message_timestamp_type="LogAppendTime"))
    log.append(batch(2, timestamp_ms=NOW_MS - 50), now_ms=NOW_MS + 9)
    data = all_records(log)
    header = parse_batch_header(data)
    verify_batch(data, header)
    assert (header.codec, header.log_append_time, header.max_timestamp_ms) == (Codec.LZ4, True, NOW_MS + 9)
    assert header.base_timestamp_ms == NOW_MS - 50
    log.close()


def test_what_was_rewritten_is_compacted_and_copied(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy="compact", segment_bytes=200, compression_type="snappy")
    log = open_log(tmp_path, config)
    for number in range(5):
        log.append(keyed(("a", f"{number}"), (f"b{number}", "x")), now_ms=NOW_MS)
    copy = open_log(tmp_path, config, name="orders-1")
    copy.append_copied(all_records(log), now_ms=NOW_MS)
    committed(copy)
    assert all_records(copy) == all_records(log)
    compact(log)
    data, keys = all_records(log), []
    while data:
        header = parse_batch_header(data)
        assert header.codec == Codec.SNAPPY
        keys += [row[2] for row in decode_records(data, header)]
        data = data[header.size :]
    assert keys.count(b"a") < 5
    assert {b"b0", b"b1", b"b2", b"b3", b"b4"} <= set(keys)
    log.close()
    copy.close()


def test_a_level_of_no_codec_changes_nothing() -> None:
    assert LogConfig(compression_type="snappy").level_of(Codec.SNAPPY) is None
    assert compress(Codec.SNAPPY, b"abc", None) == compress(Codec.SNAPPY, b"abc")
