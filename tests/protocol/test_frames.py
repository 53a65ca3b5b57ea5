"""Frames cut from a byte stream, however it arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import FrameReader, FrameTooLargeError, MalformedFrameError


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), max_size=40))
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(framed(body) for body in bodies)
    reader = FrameReader()
    frames: list[bytes] = []
    position = 0
    for cut in [*cuts, len(stream)]:
        frames += reader.feed(stream[position : position + cut])
        position += cut
    assert frames == bodies
    assert reader.buffered == 0


def test_a_negative_length_ends_the_stream() -> None:
    with pytest.raises(MalformedFrameError, match="negative length -1"):
        list(FrameReader().feed(b"\xff\xff\xff\xff"))


def test_a_frame_over_the_limit_is_refused_by_its_length_alone() -> None:
    reader = FrameReader(max_frame_bytes=100)
    with pytest.raises(FrameTooLargeError, match="101 bytes, the limit is 100"):
        list(reader.feed((101).to_bytes(4, "big")))


def test_a_frame_at_the_limit_passes() -> None:
    assert list(FrameReader(max_frame_bytes=3).feed(framed(b"abc"))) == [b"abc"]


def test_frames_before_a_broken_one_are_delivered_first() -> None:
    frames = FrameReader().feed(framed(b"good") + b"\x80\x00\x00\x00")
    assert next(frames) == b"good"
    with pytest.raises(MalformedFrameError):
        next(frames)


def test_an_announced_frame_takes_no_memory_before_it_arrives() -> None:
    reader = FrameReader()
    assert list(reader.feed((100_000_000).to_bytes(4, "big") + b"xy")) == []
    assert reader.buffered == 6
    assert "6 bytes" in repr(reader)
