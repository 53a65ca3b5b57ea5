"""A consumer in a process of its own, which can be killed.

It sends whenever it has polled something new: the partitions held, and the values that came. SIGTERM closes
the consumer. All processes are forked from one that has loaded the clients: to load them takes longer than
anything else that a member does.
"""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.connection import Connection
from types import FrameType

from tests.clients.drivers import DRIVERS, Choice
from tests.clients.members import POLL_S
from tests.forked import CONTEXT

STOP_TIMEOUT_S = 30.0


class MemberProcess:
    """One process, and what it has told so far."""

    def __init__(self, driver: str, bootstrap: str, group: str, topic: str, choice: Choice) -> None:
        self.name = driver
        self.held: frozenset[int] = frozenset()
        self.got: list[str] = []
        self._told, telling = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=work, args=(telling, driver, bootstrap, group, topic, choice))
        self._process.start()
        telling.close()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> MemberProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self.kill()

    def __repr__(self) -> str:
        return f"{self.name} {sorted(self.held)} got {len(self.got)}, exit code {self._process.exitcode}"

    def _read(self) -> None:
        with self._told:
            try:
                while True:
                    held, got = self._told.recv()
                    self.got += got
                    self.held = frozenset(held)
            except (EOFError, OSError):  # it has ended, perhaps as it was telling
                return

    def _end(self, number: signal.Signals) -> int | None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)
        self._process.join(STOP_TIMEOUT_S)
        self._reader.join(STOP_TIMEOUT_S)
        self.held = frozenset()
        return self._process.exitcode

    def kill(self) -> None:
        """SIGKILL: no goodbye to anyone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: it closes its consumer."""
        code = self._end(signal.SIGTERM)
        assert code == 0, f"the {self.name} member ended with exit code {code}"


def work(telling: Connection, driver: str, bootstrap: str, group: str, topic: str, choice: Choice) -> None:
    """Consume until SIGTERM."""
    stopping = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    consumer = DRIVERS[driver].consumer(bootstrap, group, topic, choice)
    told: set[int] = set()
    while not stopping:
        got = [(record.value or b"").decode() for record in consumer.poll(POLL_S)]
        held = consumer.assignment()
        if got or held != told:
            telling.send((sorted(held), got))
            told = held
    consumer.close()
