"""Processes that are forked from one which has loaded kohort and the clients: to load them takes longer than
most of what such a process does. They are killed, stopped and waited for as those of ``subprocess``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
# loaded once by each process that runs tests
CONTEXT.set_forkserver_preload(["tests.clients.drivers", "kohort.producer", "kohort.service", __name__])


class Forked:
    """Runs ``work(*arguments)``, a function of a module; ``output`` gets what it prints."""

    def __init__(self, work: Callable[..., object], *arguments: Any, output: Path) -> None:
        self._process = CONTEXT.Process(target=_run, args=(work, arguments, output))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.returncode: int | None = None
        # how it has ended is told once
        self._asking = threading.Lock()

    def poll(self) -> int | None:
        with self._asking:
            self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        with self._asking:
            self._process.join(timeout_s)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"process {self.pid} does not end in {timeout_s} s")
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def run_program(text: str, *arguments: str) -> None:
    """What ``python -c TEXT ARGUMENTS`` does."""
    sys.argv = ["-c", *arguments]
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


def _run(work: Callable[..., object], arguments: tuple[Any, ...], output: Path) -> None:
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    work(*arguments)
