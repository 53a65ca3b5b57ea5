"""Processor time of a process and of all that it has started, the ones that have ended included."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

STAT: Final = Path("/proc/stat")


def tree_seconds(root: int) -> float:
    """User and system time so far: of each live process of the tree, and of the children it has reaped."""
    parents: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(entry.name)
        parents[int(fields[1])].append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += parents[pid]
    return total / os.sysconf("SC_CLK_TCK")


def others_seconds() -> float:
    """Processor time so far of all but this process's tree, what other machines of its host took included;
    0 where the system does not tell.
    """
    try:
        user, nice, system, _idle, _waits, *interrupts_and_stolen = map(
            int, STAT.read_text().partition("\n")[0].split()[1:9]
        )
    except OSError:
        return 0.0
    ticks = user + nice + system + sum(interrupts_and_stolen)
    return ticks / os.sysconf("SC_CLK_TCK") - tree_seconds(os.getpid())


class Meter:
    """``with Meter() as meter``: ``seconds`` on the clock and ``cpu_seconds`` of this process's tree."""

    seconds = 0.0
    cpu_seconds = 0.0

    def __enter__(self) -> Self:
        self._work, self._began = tree_seconds(os.getpid()), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._began
        self.cpu_seconds = tree_seconds(os.getpid()) - self._work
