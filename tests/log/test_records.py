"""Records of a batch: every codec, and bytes that are none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log import _records
from kohort.log._records import decode_records
from kohort.protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, build_batch, parse_batch_header
from tests.codecs import CODECS
from tests.log.batches import NOW_MS

RECORDS = [(b"key", b"value" * 50, [("h", b"1"), ("null", None)]), (None, b"", ()), (b"", None, ())]
EXPECTED = [(7, NOW_MS, b"key", b"value" * 50), (8, NOW_MS, None, b""), (9, NOW_MS, b"", None)]


def compressed(codec: str, payload: bytes | None = None) -> bytes:
    plain = build_batch(RECORDS, timestamp_ms=NOW_MS, base_offset=7)
    number, compress = CODECS[codec]
    body = compress(bytes(plain[BATCH_OVERHEAD:]) if payload is None else payload)
    data = bytearray(plain[:BATCH_OVERHEAD] + body)
    struct.pack_into(">i", data, 8, len(data) - 12)
    data[22] |= number
    return bytes(data)


def decode(data: bytes) -> list[_records.Record]:
    return decode_records(data, parse_batch_header(data))


def test_uncompressed_records_are_read_without_their_headers() -> None:
    assert decode(bytes(build_batch(RECORDS, timestamp_ms=NOW_MS, base_offset=7))) == EXPECTED


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_records_are_the_same(codec: str) -> None:
    assert decode(compressed(codec)) == EXPECTED


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_compressed_records_are_told_with_their_position(codec: str) -> None:
    data = compressed(codec)
    cut = bytearray(data[:-5])
    struct.pack_into(">i", cut, 8, len(cut) - 12)
    with pytest.raises(CorruptBatchError, match="records cannot be read") as caught:
        decode_records(b"xyz" + cut, parse_batch_header(bytes(cut)), 3)
    assert caught.value.position == 3


def test_the_record_count_of_the_header_must_be_met() -> None:
    data = bytearray(build_batch(RECORDS, timestamp_ms=NOW_MS))
    struct.pack_into(">i", data, 57, 2)
    with pytest.raises(CorruptBatchError, match="2 records do not fill"):
        decode(bytes(data))


def test_time_deltas_count_unless_the_broker_stamped_the_batch() -> None:
    # length, attributes, time delta 1000, offset delta 2, null key, null value, no headers
    record = bytes([14, 0]) + b"\xd0\x0f" + bytes([4, 1, 1, 0])
    batch = bytearray(build_batch([(None, None, ())], timestamp_ms=NOW_MS)[:BATCH_OVERHEAD] + record)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    assert decode(bytes(batch)) == [(2, NOW_MS + 1000, None, None)]
    batch[22] |= 8
    struct.pack_into(">q", batch, 35, NOW_MS + 5)
    assert decode(bytes(batch)) == [(2, NOW_MS + 5, None, None)]


@given(st.binary(max_size=120), st.integers(1, 5))
def test_no_bytes_do_more_than_raise(junk: bytes, count: int) -> None:
    header = BatchHeader(
        0, len(junk) + BATCH_OVERHEAD - 12, 0, 2, 0, 0, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count
    )
    data = bytes(BATCH_OVERHEAD) + junk
    try:
        records = decode_records(data, header)
    except CorruptBatchError:
        return
    assert len(records) == count


@given(st.binary(max_size=200), st.sampled_from([1, 2, 3, 4]))
def test_no_compressed_bytes_do_more_than_raise(junk: bytes, codec: int) -> None:
    header = BatchHeader(0, len(junk) + BATCH_OVERHEAD - 12, 0, 2, 0, codec, 0, 0, 0, -1, -1, -1, 1)
    with pytest.raises(CorruptBatchError):
        decode_records(bytes(BATCH_OVERHEAD) + junk, header)
