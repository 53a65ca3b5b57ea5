"""Frames: an int32 length, then that many bytes. The reader does no I/O: bytes in, frames out."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ._errors import FrameTooLargeError, MalformedFrameError

#: Largest frame, in bytes, as Kafka's ``socket.request.max.bytes``.
MAX_FRAME_BYTES = 104_857_600

#: Bytes of the length in front of each frame.
LENGTH_PREFIX = 4
_LENGTH = struct.Struct(">i")


def _too_large(size: int, limit: int) -> FrameTooLargeError:
    text = f"frame of {size} bytes, the limit is {limit}"
    # a TLS handshake or alert begins with its kind and the major version 3
    if size >> 16 in (0x1503, 0x1603):
        text = f"TLS where plain text is expected ({text})"
    return FrameTooLargeError(text)


class FrameReader:
    """Cuts a byte stream into frames. Memory grows with what has arrived, not with announced lengths."""

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
        size = len(data) - LENGTH_PREFIX
        if 0 <= size <= self._max_frame_bytes and not self._buffer and type(data) is bytes:
            # a request that comes alone
            (told,) = _LENGTH.unpack_from(data)
            if told == size:
                return iter((data[LENGTH_PREFIX:],))
        return self._frames(data)

    def _frames(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        buffer = self._buffer
        # requests mostly come whole: then nothing is kept of what arrived
        whole = not buffer and isinstance(data, bytes)
        if not whole:
            buffer += data
        source = data if whole else buffer
        start, end = 0, len(source)
        try:
            while end - start >= LENGTH_PREFIX:
                (size,) = _LENGTH.unpack_from(source, start)
                if size < 0:
                    raise MalformedFrameError(f"frame of negative length {size}")
                if size > self._max_frame_bytes:
                    raise _too_large(size, self._max_frame_bytes)
                begin, stop = start + LENGTH_PREFIX, start + LENGTH_PREFIX + size
                if stop > end:
                    return
                start = stop
                if whole:
                    yield source[begin:stop]  # type: ignore[misc]
                else:
                    yield bytes(memoryview(source)[begin:stop])
        finally:
            if whole:
                buffer += source[start:]
            elif start:
                del buffer[:start]


#: What is received at once unless a frame is known to be longer.
_SCRATCH_BYTES = 64 * 1024

#: Room for a long frame at first; it grows with what arrives.
_FIRST_ROOM_BYTES = 1024 * 1024

#: What room is made of: fresh zeros would have to be brought into memory just to be copied.
_ZEROS = memoryview(bytes(_FIRST_ROOM_BYTES))


#: Buffers of long frames that are kept for the next ones, and their most bytes.
_SPARE_BUFFERS, _SPARE_BYTES = 2, 8 * 1024 * 1024


class FrameReceiver:
    """Cuts a byte stream into frames, which the caller lets the socket write where ``buffer`` says.

    A long frame is written where it stays, and is a view of that place: for answers of megabytes that is half
    the work of FrameReader. The place is used again when nobody has a view of it any more. ``received``
    raises what ``FrameReader.feed`` raises.
    """

    __slots__ = ("_filled", "_held", "_long", "_max_frame_bytes", "_scratch", "_size", "_spare")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._held = 0
        self._long: bytearray | None = None
        self._filled = self._size = 0
        self._spare: list[bytearray] = []
        self._max_frame_bytes = max_frame_bytes

    def __repr__(self) -> str:
        return f"FrameReceiver({self._held or self._filled} bytes waiting)"

    def buffer(self) -> memoryview:
        """Room for the next bytes, one at least. Valid until ``received`` is told of them."""
        if self._long is None:
            return memoryview(self._scratch)[self._held :]
        if self._filled == len(self._long):
            # as much again: memory grows with what has arrived, never with what a length announces
            more = min(self._filled, self._size - self._filled)
            for part in range(0, more, len(_ZEROS)):
                self._long += _ZEROS[: more - part]
        return memoryview(self._long)[self._filled : self._size]

    def received(self, count: int) -> Iterator[bytes | memoryview]:
        """Take in this many bytes; each frame that is complete now, without its length.

        A long one is a view of where it was written, which nobody writes to while there are views of it.
        """
        if self._long is not None:
            self._filled += count
            if self._filled == self._size:
                yield self._end_long(self._long)
            return
        view, end, start = memoryview(self._scratch), self._held + count, 0
        self._held = 0
        while end - start >= LENGTH_PREFIX:
            size = int.from_bytes(view[start : start + LENGTH_PREFIX], "big", signed=True)
            if size < 0:
                raise MalformedFrameError(f"frame of negative length {size}")
            if size > self._max_frame_bytes:
                raise _too_large(size, self._max_frame_bytes)
            body = start + LENGTH_PREFIX
            if size > end - body:
                if size + LENGTH_PREFIX > _SCRATCH_BYTES:
                    self._begin_long(size, view[body:end])
                    return
                break
            start = body + size
            yield bytes(view[body:start])
        self._held = end - start
        view[: self._held] = bytes(view[start:end])

    def _begin_long(self, size: int, begun: memoryview) -> None:
        self._size, self._filled = size, len(begun)
        self._long = self._spare_one() or bytearray(min(size, _FIRST_ROOM_BYTES))
        self._long[: len(begun)] = begun

    def _end_long(self, buffer: bytearray) -> memoryview:
        self._long = None
        if len(buffer) <= _SPARE_BYTES:
            self._spare = [*self._spare[1 - _SPARE_BUFFERS :], buffer]
        return memoryview(buffer).toreadonly()[: self._size]

    def _spare_one(self) -> bytearray | None:
        """A buffer of an earlier frame that nobody has a view of."""
        for nth, buffer in enumerate(self._spare):
            try:
                # what is looked at elsewhere cannot change its length
                buffer.append(0)
            except BufferError:
                continue
            del buffer[-1], self._spare[nth]
            return buffer
        return None
