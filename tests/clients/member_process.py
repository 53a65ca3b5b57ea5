"""A consumer in a process of its own, which can be killed: ``python -m tests.clients.member_process``.

It prints a line of JSON whenever it has polled something new: the partitions held, and the values that came.
SIGTERM closes the consumer.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

from tests.clients.drivers import DRIVERS, Choice
from tests.clients.members import POLL_S

ROOT = Path(__file__).resolve().parents[2]
STOP_TIMEOUT_S = 30.0


class MemberProcess:
    """One process, and what it has told so far."""

    def __init__(self, driver: str, bootstrap: str, group: str, topic: str, choice: Choice) -> None:
        self.name = driver
        self.held: frozenset[int] = frozenset()
        self.got: list[str] = []
        command = [sys.executable, "-m", __name__, driver, bootstrap, group, topic, json.dumps(choice)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> MemberProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def __repr__(self) -> str:
        return f"{self.name} {sorted(self.held)} got {len(self.got)}, exit code {self._process.poll()}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            held, got = json.loads(line)
            self.got += got
            self.held = frozenset(held)

    def _end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        code = self._process.wait(STOP_TIMEOUT_S)
        self._reader.join(STOP_TIMEOUT_S)
        self.held = frozenset()
        return code

    def kill(self) -> None:
        """SIGKILL: no goodbye to anyone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: it closes its consumer."""
        code = self._end(signal.SIGTERM)
        assert code == 0, f"the {self.name} member ended with exit code {code}"


def main(driver: str, bootstrap: str, group: str, topic: str, choice: str) -> None:
    stopping = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    consumer = DRIVERS[driver].consumer(bootstrap, group, topic, Choice(*json.loads(choice)))
    told: set[int] = set()
    while not stopping:
        got = [(record.value or b"").decode() for record in consumer.poll(POLL_S)]
        held = consumer.assignment()
        if got or held != told:
            print(json.dumps([sorted(held), got]), flush=True)
            told = held
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
