"""Members of a group as processes that are killed and stopped while they work."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.forked import Forked, run_program

#: A member that is stopped for this long was thought dead, if its session is a second.
STOPPED_S = 1.5


class Processes:
    """Members that run the same program; what they print goes into ``folder``."""

    def __init__(self, folder: Path, program: str, arguments: tuple[str, ...]) -> None:
        self._folder = folder
        self._program, self._arguments = program, arguments
        self._running: list[Forked] = []
        self._chance = random.Random(5)

    def join(self) -> None:
        """Start one more member."""
        log = self._folder / f"{len(self._running)}-{time.monotonic_ns()}.log"
        self._running.append(Forked(run_program, self._program, *self._arguments, output=log))

    def disturb(self, rounds: int, before: Callable[[int], None]) -> None:
        """Start three; each round calls ``before``, then kills and replaces one or stops one for a while."""
        for _ in range(3):
            self.join()
        for number in range(rounds):
            before(number)
            time.sleep(self._chance.uniform(0.3, 1.0))
            victim = self._running.pop(self._chance.randrange(len(self._running)))
            if number % 2:
                victim.send_signal(signal.SIGSTOP)  # comes back in the middle of its work
                time.sleep(STOPPED_S)
                victim.send_signal(signal.SIGCONT)
                self._running.append(victim)
            else:
                victim.kill()
                victim.wait()
                self.join()

    def end(self) -> None:
        """Have all of them end by SIGTERM."""
        for member in self._running:
            member.terminate()
        # one that had only been started has no ear for the signal yet
        assert {member.wait(30) for member in self._running} <= {0, -signal.SIGTERM}

    def kill(self) -> None:
        for member in self._running:
            member.kill()
            member.wait()


@contextmanager
def processes(folder: Path, program: str, *arguments: str) -> Iterator[Processes]:
    members = Processes(folder, program, arguments)
    try:
        yield members
    finally:
        members.kill()
