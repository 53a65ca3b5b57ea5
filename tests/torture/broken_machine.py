"""``python broken_machine.py FILE broker ...``: kohort on a machine whose disk is slow and whose clock jumps.

FILE says how: three numbers of eight characters, the ms that each write and fsync of the log takes longer,
the seconds by which the wall clock is wrong, and whether each fsync of the log fails. It may be changed at
any time. (libfaketime 0.9.10, told to leave the monotonic clock alone, makes Python's ``time.sleep`` fail
with EINVAL and holds its locks up, so the wall clock is replaced where the process reads it.)
"""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

#: The variable of the environment that names a bug to be planted.
PLANTED = "KOHORT_PLANTED_BUG"
_FIELD = 8
_really = time.time_ns
#: Keeps a bug that was planted.
_planted = ExitStack()


class Control:
    """The file's other end, for the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._disk_ms = self._clock_s = self._fails = 0
        self._write()

    def slow_disk(self, delay_ms: int) -> None:
        """From now on each write and fsync takes so much longer."""
        self._disk_ms = delay_ms
        self._write()

    def set_clock(self, ahead_s: int) -> None:
        """From now on the wall clock is so much ahead (or, negative, behind)."""
        self._clock_s = ahead_s
        self._write()

    def fail_disk(self, fails: bool) -> None:
        """From now on each fsync is an error, or none."""
        self._fails = int(fails)
        self._write()

    def _write(self) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        os.pwrite(descriptor, b"%08d%+08d%08d" % (self._disk_ms, self._clock_s, self._fails), 0)
        os.close(descriptor)


def break_clock(descriptor: int) -> None:
    """Let ``time.time`` and ``time.time_ns`` be wrong; before anything is imported that keeps them."""

    def time_ns() -> int:
        return _really() + int(os.pread(descriptor, _FIELD, _FIELD)) * 1_000_000_000

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def break_disk(descriptor: int) -> None:
    """Let every write and fsync of the log wait first, and every fsync fail."""
    from kohort.log import _files

    write, sync = _files.OsFile.write, _files.OsFile.sync

    def wait() -> None:
        delay_ms = int(os.pread(descriptor, _FIELD, 0))
        if delay_ms:
            time.sleep(delay_ms / 1000)

    def slow_write(file: _files.OsFile, position: int, data: bytes | bytearray | memoryview) -> None:
        wait()
        write(file, position, data)

    def slow_sync(file: _files.OsFile) -> None:
        wait()
        if int(os.pread(descriptor, _FIELD, 2 * _FIELD)):
            raise OSError(errno.EIO, "the disk fails, on purpose")
        sync(file)

    _files.OsFile.write = slow_write  # type: ignore[assignment, method-assign]
    _files.OsFile.sync = slow_sync  # type: ignore[assignment, method-assign]


def plant(what: str) -> None:
    """Let the broker have a planted bug, by its name: is it found?"""
    # this file is run as a script, in another folder
    sys.path.append(str(Path(__file__).resolve().parents[2] / ".src"))
    from tests.torture.planted import bug_named

    _planted.enter_context(bug_named(what).planted())


def main() -> int:
    descriptor = os.open(sys.argv[1], os.O_RDONLY)
    break_clock(descriptor)
    break_disk(descriptor)
    if PLANTED in os.environ:
        plant(os.environ[PLANTED])
    from kohort.cli import main as kohort

    return kohort(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
