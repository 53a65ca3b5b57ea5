"""How long the machine let processes wait for a processor (Linux: elsewhere nothing is known of it).

A process that waits says nothing meanwhile, as one that is stopped: its session may end, and what it has done
since its last commit is done again. That is the machine's doing; where nobody waited it is ours.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.churn.judge import AFTERMATH_S, Trouble

_PAUSE_S = 0.2
#: Seconds at a time, and how many of them a thread may wait: the half of a session of ``crowd.SESSION_MS``.
WINDOW_S, MOST_WAITED_S = 2.0, 1.0

#: When it was looked, and the seconds that a thread has waited since it began.
Sample = tuple[float, float]


def waited_s(pid: int) -> dict[str, float]:
    """Seconds in which each of a process's threads could have run and did not; none once it has ended."""
    found = {}
    # a thread may end meanwhile, and another system has none of this
    with contextlib.suppress(OSError, IndexError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
    return found


def starved(samples: Sequence[Sample], member: str | None) -> list[Trouble]:
    """The times, and what comes of them, in which a thread waited for more than MOST_WAITED_S of WINDOW_S."""
    troubles: list[Trouble] = []
    first = 0
    for last, (at, waited) in enumerate(samples):
        # a wait is known once it is over: the window begins with the last look before it
        while first + 1 < last and samples[first + 1][0] <= at - WINDOW_S:
            first += 1
        begin, before = samples[first]
        if waited - before <= MOST_WAITED_S:
            continue
        if troubles and begin <= troubles[-1].end:
            begin = troubles.pop().begin
        troubles.append(Trouble("starved", member, begin, at + AFTERMATH_S))
    return troubles


class Watch:
    """Looks at processes, by name, in a thread of its own; None is the broker's."""

    def __init__(self, processes: Callable[[], Mapping[str | None, int]]) -> None:
        self._processes = processes
        self._samples: dict[tuple[str | None, str], list[Sample]] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> list[Trouble]:
        """What it has seen."""
        self._ending.set()
        self._thread.join()
        return [trouble for (name, _), samples in self._samples.items() for trouble in starved(samples, name)]

    def _run(self) -> None:
        while not self._ending.wait(_PAUSE_S):
            for name, pid in self._processes().items():
                for thread, waited in waited_s(pid).items():
                    self._samples.setdefault((name, thread), []).append((time.monotonic(), waited))
