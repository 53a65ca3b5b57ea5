"""Requests of one connection that have arrived and are not taken up yet."""

from __future__ import annotations

from collections import deque

from ..protocol import ProtocolError
from ._stopwatch import clock
from ._turns import MAX_WAITING_BYTES, MAX_WAITING_REQUESTS


class RequestQueue:
    """Frames in their order, and maybe behind them the error with which the stream ends."""

    __slots__ = ("_arrivals", "_frames", "held_bytes")

    def __init__(self) -> None:
        self._frames: deque[bytes | ProtocolError] = deque()
        self._arrivals: deque[float] = deque()
        #: Bytes of the frames that are here, or taken and not released.
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def full(self) -> bool:
        """Whether no more should be read."""
        return len(self._frames) >= MAX_WAITING_REQUESTS or self.held_bytes >= MAX_WAITING_BYTES

    @property
    def ended(self) -> bool:
        """Whether nothing that comes now can be trusted."""
        return bool(self._frames) and isinstance(self._frames[-1], ProtocolError)

    def add(self, frame: bytes) -> None:
        """One more waits."""
        self._frames.append(frame)
        self._arrivals.append(clock())
        self.held_bytes += len(frame)

    def end(self, error: ProtocolError) -> None:
        """What follows is no frame."""
        self._frames.append(error)

    def take(self) -> tuple[bytes | ProtocolError, float]:
        """The first, and how many seconds it has waited. Its bytes are held until they are released."""
        frame = self._frames.popleft()
        return frame, clock() - self._arrivals.popleft() if self._arrivals else 0.0

    def release(self, size: int) -> None:
        """So many bytes are held no longer."""
        self.held_bytes -= size

    def clear(self) -> None:
        """Give all of it up."""
        self._frames.clear()
        self._arrivals.clear()
        self.held_bytes = 0
