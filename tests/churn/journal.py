"""What a member has handled, one line each, written so that a killed process has still said it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple


class Handled(NamedTuple):
    """A record was handled: ``at`` is the machine's monotonic clock in seconds, one for all processes."""

    at: float
    member: str
    partition: int
    offset: int
    number: int


class Journal:
    """Appends to a file; each call is one write to the system, which outlives the process.

    The file is there from ``begin`` on, when the member has loaded what it needs: before that SIGTERM only
    waits for the end of its start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def begin(self) -> None:
        """The member takes part."""
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def handled(self, partition: int, offset: int, value: bytes | None) -> None:
        """The record with the number ``value`` has been handled just now."""
        assert value is not None, "the run writes no null values"
        line = f"{time.monotonic():.6f} {partition} {offset} {int(value)}\n"
        os.write(self._file, line.encode())


def read_journal(path: Path, member: str) -> list[Handled]:
    """All lines of a member, oldest first."""
    lines = []
    for line in path.read_text().splitlines():
        at, partition, offset, number = line.split()
        lines.append(Handled(float(at), member, int(partition), int(offset), int(number)))
    return lines
