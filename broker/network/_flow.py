"""Requests of one connection that have arrived and are not taken up yet."""

from __future__ import annotations

from collections import deque

from ..protocol import ProtocolError
from ._stopwatch import clock
from ._turns import MAX_WAITING_BYTES, MAX_WAITING_REQUESTS


class RequestQueue:
    """Frames in their order, and maybe behind them the error with which the stream ends."""

    __slots__ = ("_arrivals", "ended", "frames", "held_bytes")

    def __init__(self) -> None:
        #: To be looked at.
        self.frames: deque[bytes | ProtocolError] = deque()
        self._arrivals: deque[float] = deque()
        #: Bytes of the frames that are here, or taken and not released.
        self.held_bytes = 0
        #: Whether nothing that comes now can be trusted.
        self.ended = False

    @property
    def full(self) -> bool:
        """Whether no more should be read."""
        return len(self.frames) >= MAX_WAITING_REQUESTS or self.held_bytes >= MAX_WAITING_BYTES

    def add(self, frame: bytes) -> None:
        """One more waits."""
        self.frames.append(frame)
        self._arrivals.append(clock())
        self.held_bytes += len(frame)

    def end(self, error: ProtocolError) -> None:
        """What follows is no frame."""
        self.frames.append(error)
        self.ended = True

    def take(self) -> tuple[bytes | ProtocolError, float]:
        """The first, and how many seconds it has waited. Its bytes are held until they are released."""
        frame = self.frames.popleft()
        return frame, clock() - self._arrivals.popleft() if self._arrivals else 0.0

    def release(self, size: int) -> None:
        """So many bytes are held no longer."""
        self.held_bytes -= size

    def close(self) -> None:
        """Give all of it up, and what still comes."""
        self.ended = True
        self.frames.clear()
        self._arrivals.clear()
        self.held_bytes = 0
