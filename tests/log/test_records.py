"""Records of a batch: every codec, and bytes that are none."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log import _records
from kohort.log._records import decode_records
from kohort.protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, build_batch, parse_batch_header
from tests.log.batches import NOW_MS

RECORDS = [(b"key", b"value" * 50, [("h", b"1"), ("null", None)]), (None, b"", ()), (b"", None, ())]
EXPECTED = [(7, NOW_MS, b"key", b"value" * 50), (8, NOW_MS, None, b""), (9, NOW_MS, b"", None)]


def xerial(data: bytes, block: int = 64) -> bytes:
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        out += struct.pack(">i", len(packed)) + packed
    return out


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy of Java clients": (2, xerial),
    "snappy, one bare block": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (3, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data))),
}


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


@pytest.mark.parametrize("codec", CODECS)
def test_decompression_is_capped_at_1000_to_1(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_records, "_SMALLEST_LIMIT", 1000)
    monkeypatch.setattr(_records, "MAX_COMPRESSION_RATIO", 10)
    with pytest.raises(CorruptBatchError, match="records cannot be read"):
        decode(compressed(codec, bytes(1 << 20)))


@pytest.mark.parametrize("codec", CODECS)
def test_decompression_is_capped_at_64_mib(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _records.MAX_DECOMPRESSED_BYTES == 64 << 20
    monkeypatch.setattr(_records, "MAX_DECOMPRESSED_BYTES", 100)
    with pytest.raises(CorruptBatchError, match="records cannot be read"):
        decode(compressed(codec))


def test_large_records_come_out_of_a_few_bytes() -> None:
    value = bytes(3 << 20)
    plain = bytes(build_batch([(None, value, ())], timestamp_ms=NOW_MS))
    for number, compress in CODECS.values():
        body = compress(plain[BATCH_OVERHEAD:])
        if (len(plain) - BATCH_OVERHEAD) // len(body) >= 1000:
            continue  # past the cap
        data = bytearray(plain[:BATCH_OVERHEAD] + body)
        struct.pack_into(">i", data, 8, len(data) - 12)
        data[22] |= number
        assert decode(bytes(data)) == [(0, NOW_MS, None, value)]


def test_an_unassigned_codec_is_an_error() -> None:
    data = bytearray(build_batch(RECORDS, timestamp_ms=NOW_MS))
    data[22] |= 5
    with pytest.raises(CorruptBatchError, match="codec 5 is not assigned"):
        decode(bytes(data))


def test_the_record_count_of_the_header_must_be_met() -> None:
    data = bytearray(build_batch(RECORDS, timestamp_ms=NOW_MS))
    struct.pack_into(">i", data, 57, 2)
    with pytest.raises(CorruptBatchError, match="3 records, the header says 2"):
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
