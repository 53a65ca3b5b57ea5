"""Limits on what comes over the wire, each with its number."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import pytest

from kohort.protocol import (
    ApiKey,
    Codec,
    CorruptBatchError,
    FrameReader,
    FrameTooLargeError,
    MalformedFrameError,
    MalformedMessageError,
    compress,
    decode_request,
    decode_request_header,
    decompress,
)
from kohort.testing import running_broker
from tests.broker.wire import Wire


def test_a_frame_has_at_most_104_857_600_bytes() -> None:
    assert list(FrameReader().feed(struct.pack(">i", 104_857_600))) == []
    with pytest.raises(FrameTooLargeError):
        list(FrameReader().feed(struct.pack(">i", 104_857_601)))
    with pytest.raises(MalformedFrameError):
        list(FrameReader().feed(struct.pack(">i", -1)))


@pytest.mark.parametrize("announced", [104_857_601, 2**31 - 1, -1, -(2**31)])
def test_a_frame_over_104_857_600_bytes_or_of_negative_length_ends_its_connection_alone(
    announced: int,
) -> None:
    with running_broker() as broker, Wire(broker.bootstrap) as other, Wire(broker.bootstrap) as wire:
        wire.socket.sendall(struct.pack(">i", announced) + b"x")
        assert wire.closed_by_broker()
        assert other.call(ApiKey.METADATA, 1, topics=[]).brokers


def test_1_000_times_100_mib_announced_take_memory_for_the_10_bytes_that_came() -> None:
    readers = [FrameReader() for _ in range(1_000)]
    tracemalloc.start()
    try:
        for reader in readers:
            assert list(reader.feed(struct.pack(">i", 104_857_600) + bytes(10))) == []
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(reader.buffered_bytes for reader in readers) == 14_000
    assert taken < 1_000 * 200


def _header(key: ApiKey, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, 1) + b"x"


#: API, version, the fields in front of an array, and the fewest bytes that an element of it has.
ARRAYS = [
    pytest.param(ApiKey.METADATA, 1, b"", 2, id="strings"),
    pytest.param(ApiKey.OFFSET_FETCH, 1, b"\x00\x01g", 2 + 4, id="structs with an array"),
    pytest.param(ApiKey.OFFSET_COMMIT, 2, b"\x00\x01g" + bytes(4) + bytes(2) + bytes(8), 2 + 4, id="topics"),
    pytest.param(ApiKey.SYNC_GROUP, 0, b"\x00\x01g" + bytes(4) + bytes(2), 2 + 4, id="bytes"),
    pytest.param(ApiKey.LIST_OFFSETS, 1, bytes(4), 2 + 4, id="partitions"),
]


@pytest.mark.parametrize(("key", "version", "before", "least"), ARRAYS)
def test_an_arrays_count_times_its_smallest_element_must_fit_the_bytes_left(
    key: ApiKey, version: int, before: bytes, least: int
) -> None:
    head = _header(key, version) + before
    for count in (1_000, 2**31 - 1):
        frame = head + struct.pack(">i", count) + bytes(1_000 * least - 1)
        with pytest.raises(MalformedMessageError, match=f"{count} elements"):
            decode_request(frame, decode_request_header(frame))
    frame = head + struct.pack(">i", 1_000) + bytes(1_000 * least)
    assert decode_request(frame, decode_request_header(frame))


def test_a_strings_length_must_fit_the_bytes_left() -> None:
    frame = _header(ApiKey.FIND_COORDINATOR, 0) + struct.pack(">h", 32_767) + b"short"
    with pytest.raises(MalformedMessageError):
        decode_request(frame, decode_request_header(frame))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_decompresses_to_at_most_64_mib(codec: Codec) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, compress(codec, bytes((64 << 20) + 1)))


def test_a_batch_decompresses_to_at_most_1000_times_its_size() -> None:
    packed = zlib.compressobj(wbits=31)
    data = packed.compress(bytes(10_000_000)) + packed.flush()
    assert len(data) < 10_000
    with pytest.raises(CorruptBatchError):
        decompress(Codec.GZIP, data)
    noise = zlib.compressobj(wbits=31)
    mixed = noise.compress(bytes(range(256)) * 8 + bytes(200_000)) + noise.flush()
    assert len(decompress(Codec.GZIP, mixed)) == 202_048
