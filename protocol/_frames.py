"""Frames: an int32 length, then that many bytes. The reader does no I/O: bytes in, frames out."""

from __future__ import annotations

from collections.abc import Iterator

from ._errors import FrameTooLargeError, MalformedFrameError

#: Largest frame, in bytes, as Kafka's ``socket.request.max.bytes``.
MAX_FRAME_BYTES = 104_857_600

#: Bytes of the length in front of each frame.
LENGTH_PREFIX = 4


class FrameReader:
    """Cuts a byte stream into frames.

    Memory grows with what has arrived, never with what a length announces.
    """

    __slots__ = ("_buffer", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max_frame_bytes = max_frame_bytes

    def __repr__(self) -> str:
        return f"FrameReader({len(self._buffer)} bytes waiting)"

    @property
    def buffered(self) -> int:
        """Bytes of the frame that is still incomplete."""
        return len(self._buffer)

    def limit(self, max_frame_bytes: int) -> None:
        """Let frames be as large as this from now on."""
        self._max_frame_bytes = max_frame_bytes

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Take bytes as they arrived; give each frame that is complete now, without its length.

        Raises MalformedFrameError for a negative length and FrameTooLargeError for one over the limit; the
        stream cannot be trusted after that. Frames are cut as the iterator is consumed.
        """
        buffer = self._buffer
        size = len(data) - LENGTH_PREFIX
        if (
            not buffer
            and 0 <= size <= self._max_frame_bytes
            and data[:LENGTH_PREFIX] == size.to_bytes(4, "big")
        ):
            # one whole frame, as requests mostly come
            yield bytes(data[LENGTH_PREFIX:])
            return
        buffer += data
        start = 0
        try:
            while (waiting := len(buffer) - start) >= LENGTH_PREFIX:
                size = int.from_bytes(buffer[start : start + LENGTH_PREFIX], "big", signed=True)
                if size < 0:
                    raise MalformedFrameError(f"frame of negative length {size}")
                if size > self._max_frame_bytes:
                    raise FrameTooLargeError(f"frame of {size} bytes, the limit is {self._max_frame_bytes}")
                if waiting - LENGTH_PREFIX < size:
                    return
                end = start + LENGTH_PREFIX + size
                frame = bytes(memoryview(buffer)[start + LENGTH_PREFIX : end])
                start = end
                yield frame
        finally:
            if start:
                del buffer[:start]
