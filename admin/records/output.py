"""What the reader of standard output has used of the records that were written there."""

from __future__ import annotations

import array
import os
import select
import stat
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: A reader that is there for so long after it has read everything has not ended in the middle of it.
STAYS_S: Final = 0.1
#: At the end a reader that does not read is waited for so long: it may wait for the end of this process.
END_S: Final = 2.0
#: How often it is looked at then.
LOOK_S: Final = 0.01


@dataclass(slots=True, eq=False)
class Output(Generic[T]):
    """Records that were written and may not have been used: a pipe holds up to 64 KiB that nobody has read,
    and a program such as ``head`` reads a block and ends in the middle of it. What it had read is used once
    it reads on, or stays. What is written to anything but a pipe is used.
    """

    pipe: int | None
    _waiting: deque[tuple[int, list[T]]] = field(default_factory=deque)
    #: Bytes that were written, that the reader had taken when it was looked at last, and that are used.
    _written: int = 0
    _taken: int = 0
    _used: int = 0
    _since: float = 0.0
    _until: float | None = None

    def note_written(self, records: list[T], size: int) -> None:
        """Records of ``size`` bytes were written."""
        self._written += size
        self._waiting.append((self._written, records))

    def end(self) -> bool:
        """Nothing more is written; return whether some are not used."""
        if self._until is None:
            self._until = time.monotonic() + END_S
        return bool(self._waiting)

    def take_used(self) -> list[T]:
        """The records that were used since the last call. Raises BrokenPipeError if the reader has ended."""
        now = time.monotonic()
        if self.pipe is None or (self._until is not None and now > self._until):
            self._used = self._written
        else:
            taken = self._written - _unread_bytes(self.pipe)
            if taken > self._taken:
                self._used, self._taken, self._since = self._taken, taken, now
            elif now - self._since > STAYS_S:
                self._used = taken
        used: list[T] = []
        while self._waiting and self._waiting[0][0] <= self._used:
            used += self._waiting.popleft()[1]
        return used


def pipe_of_stdout() -> int | None:
    """The pipe that standard output is, if it is one."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (AttributeError, OSError, ValueError):  # not a file
        return None


def _unread_bytes(pipe: int) -> int:
    """How many bytes in a pipe nobody has read. Raises BrokenPipeError if nobody can any more."""
    from fcntl import ioctl
    from termios import FIONREAD

    look = select.poll()
    look.register(pipe, 0)
    if any(events & select.POLLERR for _, events in look.poll(0)):
        raise BrokenPipeError
    unread = array.array("i", [0])
    ioctl(pipe, FIONREAD, unread)
    return unread[0]
