"""Decompression: every codec, within limits, and errors that name the codec."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import CorruptBatchError, _compression, decompress
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


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=100))
def test_any_bytes_decompress_or_are_corrupt(codec: str, data: bytes) -> None:
    with contextlib.suppress(CorruptBatchError):
        assert len(decompress(CODECS[codec][0], data)) <= _compression.MAX_DECOMPRESSED_BYTES


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_is_not_assigned_is_named(codec: int) -> None:
    with pytest.raises(CorruptBatchError, match=f"codec {codec} data .* not assigned"):
        decompress(codec, b"x")
