"""The disk of a simulated broker, and what goes wrong with it."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from typing import Final

from ...faults import FaultyFileSystem
from ._plan import Incident, SchedulePlan
from ._schedule import Schedule

_PAGE_BYTES: Final = 512


class FailingDisk(ABC):
    """The broker's side, with a disk that outlives its processes."""

    def __init__(self, schedule: Schedule[SchedulePlan]) -> None:
        self._schedule = schedule
        self._fs = FaultyFileSystem(page_bytes=_PAGE_BYTES)

    @abstractmethod
    def on_crash(self) -> None:
        """Called when the file system has stopped the process in the middle of an operation."""

    def heal(self) -> None:
        """Remove all faults."""
        self._fs.heal()
        self._fs.capacity_bytes = None

    def meet(self, incident: Incident) -> bool:
        """Carry out an incident; return False if it does not concern the broker."""
        method = getattr(self, f"_meet_{incident.kind.replace('-', '_')}", None)
        if method is not None:
            method(incident)
        return method is not None

    def _meet_torn_write(self, incident: Incident) -> None:
        # of the log's file: the next write, or the sync that follows it
        self._fs.crash_at(1 + int(incident.draw * 20) % 2, byte=int(incident.draw * 300), path=".log")

    def _meet_fsync_error(self, _incident: Incident) -> None:
        self._fs.fail_at(1, errno.EIO, kinds=("sync",))

    def _meet_short_write(self, incident: Incident) -> None:
        # a failed write to an index leaves the whole batch in the log
        self._fs.fail_at(1, errno.EIO, kinds=("write",), path="index" if incident.draw < 0.6 else "")

    def _meet_disk_full(self, incident: Incident) -> None:
        self._fs.capacity_bytes = self._fs.used_bytes + int(incident.draw * 600)
        fs, length_ms = self._fs, incident.length_ms
        self._schedule.heap.at(
            self._schedule.heap.now + length_ms, lambda: setattr(fs, "capacity_bytes", None)
        )

    def _what_is_left(self, *, power: bool) -> FaultyFileSystem:
        if not power:
            return self._fs.after_kill()
        return self._fs.after_crash(self._schedule.rng.getrandbits(32), flips=self._schedule.plan.flips)
