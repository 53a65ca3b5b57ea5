"""Decoding into Arrow is held against kafka-python's own reader, on batches that its writer makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cramjam
import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kohort.consumer.reading import arrow
from kohort.protocol import BATCH_OVERHEAD, CorruptBatchError, build_batch, parse_batch_header, stamp_batch


def framed_snappy(data: bytes) -> bytes:
    """As Java clients frame it: blocks of so many bytes behind a header of 16."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 100])) for at in range(0, len(data), 100)]
    body = b"".join(len(block).to_bytes(4, "big") + block for block in blocks)
    return b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2 + body


#: Number in a batch's attributes, and what a producer does to its records.
CODECS: dict[str, tuple[int, Callable[[bytes], Any]]] = {
    "none": (0, bytes),
    "gzip": (1, cramjam.gzip.compress),
    "snappy": (2, framed_snappy),
    "snappy without frames": (2, cramjam.snappy.compress_raw),
    "lz4": (3, cramjam.lz4.compress),
    "zstd": (4, cramjam.zstd.compress),
}

Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

ABORT, COMMIT = 0, 1


def written(records: list[Record], *, base_offset: int = 0, codec: str = "none") -> bytes:
    """A batch as a producer sends it, with the base offset that a broker would give it."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**30,
    )
    for delta, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(delta, timestamp, key, value, headers) is not None
    batch = bytearray(builder.build())
    number, compress = CODECS[codec]
    batch[22] |= number
    return sealed(batch[:BATCH_OVERHEAD] + compress(bytes(batch[BATCH_OVERHEAD:])), base_offset)


def sealed(batch: bytearray, base_offset: int = 0) -> bytes:
    """With the length, offset and checksum that its bytes call for."""
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    stamp_batch(batch, 0, base_offset=base_offset, leader_epoch=0)
    return bytes(batch)


def marker(kind: int, *, base_offset: int, producer_id: int) -> bytes:
    key = b"\x00\x00" + kind.to_bytes(2, "big")
    return bytes(
        build_batch(
            [(key, b"\x00\x00\x00\x00\x00\x00", ())],
            timestamp_ms=0,
            base_offset=base_offset,
            producer_id=producer_id,
            transactional=True,
            control=True,
        )
    )


def sent(value: bytes, *, base_offset: int, producer_id: int = -1, count: int = 1) -> bytes:
    return bytes(
        build_batch(
            [(None, value, ())] * count,
            timestamp_ms=0,
            base_offset=base_offset,
            producer_id=producer_id,
            transactional=producer_id >= 0,
        )
    )


def decoded(data: bytes, **options: Any) -> pa.Table:
    schema = arrow.SCHEMA_WITH_HEADERS if options.get("include_headers") else arrow.SCHEMA
    batches = arrow.decode(data, topic=options.pop("topic", "orders"), partition=3, **options)
    return pa.Table.from_batches(batches, schema=schema)


def as_kafka_python_reads(data: bytes) -> list[dict[str, Any]]:
    rows = []
    position = 0
    while position < len(data):
        size = parse_batch_header(data, position).size
        batch = DefaultRecordBatch(data[position : position + size])
        rows += [
            {
                "key": record.key,
                "value": record.value,
                "topic": "orders",
                "partition": 3,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "timestampType": record.timestamp_type,
                "headers": [{"key": name, "value": content} for name, content in record.headers],
            }
            for record in batch
        ]
        position += size
    return rows


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    times = table["timestamp"].cast(pa.int64()).to_pylist()
    rows: list[dict[str, Any]] = table.drop_columns("timestamp").to_pylist()
    return [row | {"timestamp": time // 1000} for row, time in zip(rows, times, strict=True)]


headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3)
# lengths on both sides of 64 and 8192, where a varint takes one byte more
binaries = st.binary(max_size=70) | st.integers(8_150, 8_250).map(bytes)
records = st.tuples(st.integers(0, 2**41), st.none() | binaries, st.none() | binaries, headers)


@settings(max_examples=60)
@given(
    batches=st.lists(
        st.tuples(
            st.lists(records, min_size=1, max_size=12), st.sampled_from(list(CODECS)), st.integers(0, 9)
        ),
        max_size=4,
    ),
    rows_per_batch=st.integers(1, 30),
)
def test_gives_what_kafka_python_reads(
    batches: list[tuple[list[Record], str, int]], rows_per_batch: int
) -> None:
    data, plain, offset = b"", b"", 2**33
    for content, codec, gap in batches:
        data += written(content, base_offset=offset + gap, codec=codec)
        plain += written(content, base_offset=offset + gap)
        offset += gap + len(content)
    table = decoded(data, include_headers=True, rows_per_batch=rows_per_batch)
    assert as_rows(table) == as_kafka_python_reads(plain)
    assert arrow.next_offset(data, -1) == (offset if batches else -1)


@pytest.mark.parametrize("codec", CODECS)
def test_reads_each_codec(codec: str) -> None:
    batch = written([(1000 + n, b"key", b"value %d" % n * 50, []) for n in range(300)], codec=codec)
    assert parse_batch_header(batch).codec == CODECS[codec][0]
    assert decoded(batch)["value"].to_pylist() == [b"value %d" % n * 50 for n in range(300)]


def test_columns_are_those_of_the_built_in_source() -> None:
    table = decoded(written([(1_700_000_000_123, b"k", b"v", [])], base_offset=7))
    assert table.schema.names == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    row = table.to_pylist()[0]
    assert row["timestamp"].isoformat() == "2023-11-14T22:13:20.123000+00:00"
    assert (row["topic"], row["partition"], row["offset"], row["timestampType"]) == ("orders", 3, 7, 0)


def test_null_and_empty_differ() -> None:
    table = decoded(written([(0, None, b"", []), (0, b"", None, [])]))
    assert table["key"].to_pylist() == [None, b""]
    assert table["value"].to_pylist() == [b"", None]


def test_under_log_append_time_every_record_has_the_time_of_the_broker() -> None:
    batch = bytearray(written([(1, None, b"a", []), (2, None, b"b", [])]))
    stamp_batch(batch, 0, base_offset=0, leader_epoch=0, log_append_time_ms=99)
    rows = as_rows(decoded(bytes(batch) + written([(7, None, b"c", [])], base_offset=2)))
    assert [(row["timestamp"], row["timestampType"]) for row in rows] == [(99, 1), (99, 1), (7, 0)]


@pytest.mark.parametrize(
    ("start", "end", "offsets"),
    [
        (0, None, list(range(10, 40))),
        (15, 16, [15]),
        (19, 21, [19, 20]),
        (0, 10, []),
        (40, 50, []),
        (30, 30, []),
    ],
)
def test_gives_the_range_that_is_asked_for(start: int, end: int | None, offsets: list[int]) -> None:
    data = b"".join(written([(0, None, b"v", [])] * 10, base_offset=base) for base in (10, 20, 30))
    assert decoded(data, start=start, end=end)["offset"].to_pylist() == offsets


def test_offsets_keep_the_gaps_of_compaction() -> None:
    batch = bytearray(written([(0, b"a", b"1", []), (0, b"b", b"2", [])], base_offset=100))
    # record bodies of a compacted batch keep their deltas: the second record's becomes 40
    second = batch.rindex(b"\x00\x00\x02", BATCH_OVERHEAD)
    batch[second + 2] = 80
    batch[23:27] = (49).to_bytes(4, "big")
    compacted = sealed(batch, base_offset=100)
    assert decoded(compacted)["offset"].to_pylist() == [100, 140]
    assert arrow.next_offset(compacted, 0) == 150


def test_a_batch_emptied_by_compaction_has_no_rows_and_moves_on() -> None:
    empty = bytearray(written([(0, None, b"x", [])])[:BATCH_OVERHEAD])
    empty[57:61] = bytes(4)
    data = sealed(empty, base_offset=5)
    assert decoded(data).num_rows == 0
    assert arrow.next_offset(data, 0) == 6


def test_a_batch_cut_short_by_the_limits_of_a_fetch_is_left_for_the_next_one() -> None:
    whole = written([(0, None, b"a", [])])
    for cut in (1, 30, BATCH_OVERHEAD, len(whole) - 1):
        data = whole + written([(0, None, b"b", [])], base_offset=1)[:cut]
        assert decoded(data)["value"].to_pylist() == [b"a"]
        assert arrow.next_offset(data, 0) == 1


def test_control_batches_are_no_rows() -> None:
    data = sent(b"a", base_offset=0, producer_id=9) + marker(COMMIT, base_offset=1, producer_id=9)
    assert decoded(data)["value"].to_pylist() == [b"a"]
    assert arrow.next_offset(data, 0) == 2


def test_aborted_transactions_are_left_out_up_to_their_marker() -> None:
    data = (
        sent(b"gone", base_offset=0, producer_id=9, count=2)
        + sent(b"other", base_offset=2, producer_id=8)
        + sent(b"plain", base_offset=3)
        + marker(COMMIT, base_offset=4, producer_id=8)
        + marker(ABORT, base_offset=5, producer_id=9)
        + sent(b"kept", base_offset=6, producer_id=9)
        + marker(COMMIT, base_offset=7, producer_id=9)
        + sent(b"gone too", base_offset=8, producer_id=9)
        + marker(ABORT, base_offset=9, producer_id=9)
    )
    table = decoded(data, aborted=[(9, 8), (9, 0)])
    assert table["value"].to_pylist() == [b"other", b"plain", b"kept"]
    assert decoded(data)["value"].to_pylist() == [b"gone", b"gone", b"other", b"plain", b"kept", b"gone too"]


@pytest.mark.parametrize("rows_per_batch", [1, 7, 100])
def test_batches_hold_no_more_rows_than_asked_for(rows_per_batch: int) -> None:
    data = b"".join(written([(0, None, b"v", [])] * 20, base_offset=base) for base in (0, 20, 40))
    sizes = [
        batch.num_rows for batch in arrow.decode(data, topic="t", partition=0, rows_per_batch=rows_per_batch)
    ]
    assert sum(sizes) == 60
    assert max(sizes) <= rows_per_batch


def corrupted(position: int) -> bytes:
    batch = bytearray(written([(0, b"key", b"value", [])] * 3))
    batch[position] ^= 0x55
    return bytes(batch)


@pytest.mark.parametrize("position", [16, 20, 22, BATCH_OVERHEAD, BATCH_OVERHEAD + 12])
def test_flipped_bits_are_found(position: int) -> None:
    with pytest.raises(CorruptBatchError):
        decoded(corrupted(position))


@settings(max_examples=200)
@given(body=st.binary(max_size=40), count=st.integers(-1, 5), codec=st.integers(0, 7))
def test_nonsense_under_a_right_checksum_is_corrupt_or_decoded_and_never_anything_else(
    body: bytes, count: int, codec: int
) -> None:
    batch = bytearray(written([(0, None, b"x", [])])[:BATCH_OVERHEAD] + body)
    batch[22] = codec
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    try:
        table = decoded(sealed(batch), include_headers=True)
    except CorruptBatchError:
        return
    table.validate(full=True)


def test_a_header_that_is_longer_than_its_record_is_corrupt() -> None:
    batch = bytearray(written([(0, None, b"v", [("name", b"x" * 9)])]))
    batch[batch.index(b"xxx") - 1] = 64
    assert decoded(sealed(batch)).num_rows == 1
    with pytest.raises(CorruptBatchError, match="unreadable record"):
        decoded(sealed(batch), include_headers=True)


def test_sizes_below_none_are_null_as_java_reads_them() -> None:
    batch = bytearray(written([(0, None, b"v", []), (1, None, b"w", [])]))
    batch[BATCH_OVERHEAD + 4] = 5
    assert decoded(sealed(batch))["key"].to_pylist() == [None, None]


def test_a_header_name_that_is_no_text_stops_nothing() -> None:
    batch = bytearray(written([(0, None, b"v", [("name", b"x"), ("b", None)])]))
    batch[batch.index(b"name")] = 0xFF
    names = decoded(sealed(batch), include_headers=True)["headers"].to_pylist()[0]
    assert names == [{"key": "\ufffdame", "value": b"x"}, {"key": "b", "value": None}]
