"""Frames cut from a byte stream, however it arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import FrameReader, FrameReceiver, FrameTooLargeError, MalformedFrameError


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
    assert reader.buffered_bytes == 0


def test_a_negative_length_ends_the_stream() -> None:
    with pytest.raises(MalformedFrameError, match="negative length -1"):
        list(FrameReader().feed(b"\xff\xff\xff\xff"))


def test_a_frame_over_the_limit_is_refused_by_its_length_alone() -> None:
    reader = FrameReader(max_frame_bytes=100)
    with pytest.raises(FrameTooLargeError, match="101 bytes, the limit is 100"):
        list(reader.feed((101).to_bytes(4, "big")))


@pytest.mark.parametrize("began", [b"\x15\x03\x03\x00", b"\x16\x03\x01\x02"], ids=["alert", "hello"])
def test_tls_is_known_by_how_it_begins(began: bytes) -> None:
    with pytest.raises(FrameTooLargeError, match="TLS where plain text is expected"):
        list(FrameReader().feed(began))


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
    assert reader.buffered_bytes == 6
    assert "6 bytes" in repr(reader)


def received(receiver: FrameReceiver, stream: bytes, sizes: list[int]) -> list[bytes | memoryview]:
    """The frames of a stream of which the socket gives so many bytes at a time, as far as there is room."""
    frames: list[bytes | memoryview] = []
    position = 0
    for size in [*sizes, *[len(stream) or 1] * (len(stream) // 1000 + len(sizes) + 2)]:
        room = receiver.buffer()
        assert len(room) > 0
        piece = stream[position : position + min(size, len(room))]
        room[: len(piece)] = piece
        del room
        position += len(piece)
        frames += receiver.on_received(len(piece))
    assert position == len(stream)
    return frames


@given(
    st.lists(st.integers(0, 40) | st.sampled_from([65_531, 65_532, 65_533, 70_000, 300_000]), max_size=6),
    st.lists(st.integers(1, 30) | st.integers(30, 200_000), max_size=20),
)
def test_received_frames_come_out_whole_and_in_order_whatever_the_socket_gives(
    lengths: list[int], sizes: list[int]
) -> None:
    bodies = [bytes([n + 1]) * length for n, length in enumerate(lengths)]
    stream = b"".join(map(framed, bodies))
    assert received(FrameReceiver(), stream, sizes) == bodies


def test_a_long_frame_takes_room_as_it_arrives() -> None:
    receiver = FrameReceiver()
    size = 5_000_000
    receiver.buffer()[:6] = size.to_bytes(4, "big") + b"ab"
    assert list(receiver.on_received(6)) == []
    rooms = []
    left = size - 2
    frames: list[bytes | memoryview] = []
    while left:
        rooms.append(len(receiver.buffer()))
        left -= rooms[-1]
        frames += receiver.on_received(rooms[-1])
    assert [len(frame) for frame in frames] == [size]
    assert rooms[0] < 2**20
    assert max(rooms) <= size / 2 + 2**20
    assert len(rooms) <= 5
    assert "0 bytes" in repr(receiver)


@pytest.mark.parametrize(
    ("length", "problem"), [(-1, MalformedFrameError), (101, FrameTooLargeError), (100, None)]
)
def test_a_received_length_is_checked(length: int, problem: type[Exception] | None) -> None:
    receiver = FrameReceiver(max_frame_bytes=100)
    receiver.buffer()[:4] = length.to_bytes(4, "big", signed=True)
    if problem is None:
        assert list(receiver.on_received(4)) == []
        return
    with pytest.raises(problem):
        list(receiver.on_received(4))
