"""Frames of a connection. No I/O: bytes go in, frames come out.

======  =====  ============================================
offset  type   field
======  =====  ============================================
0       int32  length of what follows, big-endian
4              a request or a response, its header included
======  =====  ============================================
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ._errors import FrameTooLargeError, MalformedFrameError

#: Largest frame in bytes: Kafka's default of ``socket.request.max.bytes``.
MAX_FRAME_BYTES = 104_857_600

#: Size in bytes of the length in front of each frame.
LENGTH_PREFIX = 4
_LENGTH = struct.Struct(">i")


def _too_large(size: int, limit: int) -> FrameTooLargeError:
    text = f"frame of {size} bytes, the limit is {limit}"
    # a TLS handshake (0x16) or alert (0x15) begins with its type and the major version 3
    if size >> 16 in (0x1503, 0x1603):
        text = f"TLS where plain text is expected ({text})"
    return FrameTooLargeError(text, size, limit)


class FrameReader:
    """Cuts a byte stream into frames. Memory grows with the bytes received, not with announced lengths."""

    __slots__ = ("_buffer", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max_frame_bytes = max_frame_bytes

    def __repr__(self) -> str:
        return f"FrameReader({len(self._buffer)} bytes waiting)"

    @property
    def buffered_bytes(self) -> int:
        """Number of bytes received of a frame that is not complete yet."""
        return len(self._buffer)

    def limit(self, max_frame_bytes: int) -> None:
        """Set the size of the largest frame, in bytes, from now on."""
        self._max_frame_bytes = max_frame_bytes

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Take received bytes and yield each frame that is complete now, without its length.

        Raises MalformedFrameError for a negative length and FrameTooLargeError for one over the limit; the
        connection must be closed then. Frames are cut as the iterator is consumed.
        """
        size = len(data) - LENGTH_PREFIX
        if 0 <= size <= self._max_frame_bytes and not self._buffer and type(data) is bytes:
            # mostly, data is exactly one request
            (told,) = _LENGTH.unpack_from(data)
            if told == size:
                return iter((data[LENGTH_PREFIX:],))
        return self._whole_frames(data)

    def _whole_frames(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        buffer = self._buffer
        # if nothing is buffered, frames are cut from data itself, and only an incomplete one is copied
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


#: Bytes received at once, unless a frame is known to be longer.
_SCRATCH_BYTES = 64 * 1024

#: First size of the buffer of a long frame; it grows with the bytes received.
_FIRST_ROOM_BYTES = 1024 * 1024

#: Source of the zeros by which buffers grow; creating new ones each time would touch as much memory again.
_ZEROS = memoryview(bytes(_FIRST_ROOM_BYTES))


#: How many buffers of long frames are kept for reuse, and the largest size of one in bytes.
_SPARE_BUFFERS, _SPARE_BYTES = 2, 8 * 1024 * 1024


class FrameReceiver:
    """Cuts a byte stream into frames. The socket receives into ``buffer`` (as in
    ``asyncio.BufferedProtocol``).

    A long frame is received into a buffer of its own and returned as a view of it, without a copy: for
    responses of megabytes that is half the work of FrameReader. The buffer is reused once no view is left.
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

    def limit(self, max_frame_bytes: int) -> None:
        """Set the size of the largest frame, in bytes, from now on."""
        self._max_frame_bytes = max_frame_bytes

    def buffer(self) -> memoryview:
        """Return where to receive the next bytes, at least one; valid until the next call of ``received``."""
        if self._long is None:
            return memoryview(self._scratch)[self._held :]
        if self._filled == len(self._long):
            # double it: memory grows with the bytes received, never with an announced length
            more = min(self._filled, self._size - self._filled)
            for part in range(0, more, len(_ZEROS)):
                self._long += _ZEROS[: more - part]
        return memoryview(self._long)[self._filled : self._size]

    def on_received(self, count: int) -> Iterator[bytes | memoryview]:
        """Report ``count`` bytes received into ``buffer``; yields each frame that is complete now, without
        its length. Raises as ``FrameReader.feed`` does.

        A long frame is a view of its buffer, which is not reused while the view exists.
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
        """Take a buffer of an earlier frame of which no view is left."""
        for nth, buffer in enumerate(self._spare):
            try:
                # a bytearray with views cannot be resized
                buffer.append(0)
            except BufferError:
                continue
            del buffer[-1], self._spare[nth]
            return buffer
        return None
