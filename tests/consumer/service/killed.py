"""Members of one group, each a process, that are killed or hang and are replaced while records come."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType


class Members:
    """Processes that run ``program`` with these words; ``folder`` gets what they print."""

    def __init__(self, program: str, *words: object, folder: Path, count: int = 3) -> None:
        self._command = [sys.executable, "-c", program, *map(str, words)]
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            self._join()

    def __enter__(self) -> Members:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._running:
            member.kill()
            member.wait()

    def _join(self) -> None:
        with (self._folder / f"member-{time.monotonic_ns()}.log").open("wb") as log:
            self._running.append(subprocess.Popen(self._command, stderr=log))

    def disturb(self, produce: Callable[[Sequence[int]], object], records: int, times: int) -> None:
        """Produce the numbers of ``records`` in as many parts; after each one member is killed, or hangs."""
        chance = random.Random(5)
        for turn in range(times):
            produce(range(turn * records // times, (turn + 1) * records // times))
            time.sleep(chance.uniform(0.3, 1.0))
            victim = self._running.pop(chance.randrange(len(self._running)))
            if turn % 2:
                victim.send_signal(signal.SIGSTOP)  # thought dead, comes back in the middle of its work
                time.sleep(1.5)
                victim.send_signal(signal.SIGCONT)
                self._running.append(victim)
            else:
                victim.kill()
                victim.wait()
                self._join()

    def stop(self) -> None:
        """Ask all of them to end, which they must do without an error."""
        for member in self._running:
            member.terminate()
        # one that had only been started has no ear for the signal yet
        assert {member.wait(30) for member in self._running} <= {0, -signal.SIGTERM}
