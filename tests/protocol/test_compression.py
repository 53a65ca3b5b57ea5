"""Decompression: every codec, within limits, and errors that name the codec."""

from __future__ import annotations

import contextlib
import gzip
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import BrokenOffBatchError, Codec, CorruptBatchError, _compression, decompress
from tests.codecs import CODECS


@given(st.sampled_from(sorted(CODECS)), st.binary(min_size=1, max_size=500), st.integers(1, 30))
def test_what_was_compressed_comes_back(codec: str, piece: bytes, times: int) -> None:
    number, compress = CODECS[codec]
    assert decompress(number, compress(piece * times)) == piece * times
    assert decompress(number, memoryview(compress(piece * times))) == piece * times


def test_uncompressed_data_is_given_back_as_it_is() -> None:
    data = b"plain"
    assert decompress(0, data) is data


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_output_of_little_input_comes_out_whole(codec: str) -> None:
    number, compress = CODECS[codec]
    data = random.Random(1).randbytes(20_000) * 15
    assert decompress(number, compress(data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_output_is_capped_at_1000_to_1(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compression.MAX_COMPRESSION_RATIO == 1000
    monkeypatch.setattr(_compression, "_SMALLEST_LIMIT", 1000)
    monkeypatch.setattr(_compression, "MAX_COMPRESSION_RATIO", 2)
    number, compress = CODECS[codec]
    with pytest.raises(CorruptBatchError, match="cannot be decompressed"):
        decompress(number, compress(bytes(1 << 20)))


@pytest.mark.parametrize("codec", CODECS)
def test_output_is_capped_at_64_mib(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compression.MAX_DECOMPRESSED_BYTES == 64 << 20
    monkeypatch.setattr(_compression, "MAX_DECOMPRESSED_BYTES", 100)
    number, compress = CODECS[codec]
    with pytest.raises(CorruptBatchError, match="cannot be decompressed"):
        decompress(number, compress(b"abc" * 100))


@pytest.mark.parametrize("codec", CODECS)
def test_data_cut_short_is_an_error(codec: str) -> None:
    number, compress = CODECS[codec]
    with pytest.raises(CorruptBatchError, match="cannot be decompressed"):
        decompress(number, compress(b"abc" * 100)[:-5])


class CountedInflate:
    """zlib's, with the bytes that pass through it counted: those put in, and those it gives back."""

    made = calls = moved = 0

    def __init__(self, inflate: Any) -> None:
        self._inflate = inflate
        CountedInflate.made += 1

    def decompress(self, data: bytes, most: int) -> bytes:
        out: bytes = self._inflate.decompress(data, most)
        CountedInflate.calls += 1
        CountedInflate.moved += len(data) + len(self._inflate.unused_data)
        return out

    def copy(self) -> CountedInflate:
        return CountedInflate(self._inflate.copy())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inflate, name)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[CountedInflate]:
    original = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", lambda **how: CountedInflate(original(**how)))
    for name in ("made", "calls", "moved"):
        monkeypatch.setattr(CountedInflate, name, 0)
    return CountedInflate


def test_the_work_for_a_gzip_member_does_not_grow_with_what_follows_it(counted: type[CountedInflate]) -> None:
    members = 5_000
    data = gzip.compress(b"") * members + gzip.compress(b"end")
    assert decompress(Codec.GZIP, data) == b"end"
    assert counted.made <= 3 * members
    assert counted.moved <= 2 * members * _compression._GZIP_PIECE_BYTES


def test_a_damaged_gzip_member_is_not_read_byte_by_byte(counted: type[CountedInflate]) -> None:
    noise = random.Random(1).randbytes(500_000)
    data = bytearray(gzip.compress(noise))
    data[-5] ^= 1
    with pytest.raises(BrokenOffBatchError) as caught:
        decompress(Codec.GZIP, bytes(data))
    assert caught.value.before == noise
    assert counted.calls <= len(data) / _compression._GZIP_PIECE_BYTES + _compression._GZIP_PIECE_BYTES + 1


def test_gzip_members_are_limited_where_the_caller_asks_for_that() -> None:
    data = gzip.compress(b"a") * 3
    assert decompress(Codec.GZIP, data, most_members=3) == b"aaa"
    with pytest.raises(CorruptBatchError, match="more than 2 members"):
        decompress(Codec.GZIP, data, most_members=2)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=100))
def test_any_bytes_decompress_or_are_corrupt(codec: str, data: bytes) -> None:
    with contextlib.suppress(CorruptBatchError):
        assert len(decompress(CODECS[codec][0], data)) <= _compression.MAX_DECOMPRESSED_BYTES


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_is_not_assigned_is_named(codec: int) -> None:
    with pytest.raises(CorruptBatchError, match=f"codec {codec} data .* not assigned"):
        decompress(codec, b"x")
