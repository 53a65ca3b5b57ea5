"""Writes and flushes that are under way: a disk that hangs returns no error, it just does not return."""

from __future__ import annotations

import os
from threading import get_ident
from time import monotonic
from typing import Final

from ..protocol.named_tuples import NamedTuple


class DiskCall(NamedTuple):
    """A call to the operating system that has not returned. ``begun_s`` is on the monotonic clock."""

    begun_s: float
    kind: str
    path: str


class DiskCalls:
    """The calls of all threads of this process, at most one each."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[int, tuple[float, str, str]] = {}

    def __repr__(self) -> str:
        return f"DiskCalls({len(self._under_way)} under way)"

    def begin(self, kind: str, path: str) -> None:
        """This thread calls now; ``end`` follows whatever becomes of the call."""
        self._under_way[get_ident()] = monotonic(), kind, path

    def end(self) -> None:
        """This thread's call has returned."""
        self._under_way.pop(get_ident(), None)

    def find_oldest(self, folder: str) -> DiskCall | None:
        """The call for a file in ``folder`` that has been under way for longest. From any thread."""
        inside = os.path.join(folder, "")
        # the copy is made at once: other threads go on
        calls = map(DiskCall._make, self._under_way.copy().values())
        found = (each for each in calls if each.path == folder or each.path.startswith(inside))
        return min(found, default=None)


#: Of this process.
DISK_CALLS: Final = DiskCalls()
