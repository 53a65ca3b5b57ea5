"""The demo's processes: it starts them, reads their reports, kills some on purpose, and all when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
#: Number of lines of a failed process's log that are shown.
TAIL_LINES = 25
STOP_TIMEOUT_S = 30.0


class ChildFailedError(Exception):
    """A process ended unexpectedly."""


class Child:
    """One process. Standard output carries its events (see child_side.py), standard error goes to ``log``."""

    def __init__(self, name: str, process: Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Iterate over its reports until it ends. Other output is skipped."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if line.startswith(b"{"):
                yield json.loads(line)

    def kill(self) -> None:
        """Send SIGKILL to it and to every process it has started."""
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM, so that it can finish its work."""
        if self.alive:
            self._process.terminate()

    async def ended(self, *, expected: int = 0, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Wait until it ends. Raises ChildFailedError for another exit code, or if it takes too long."""
        try:
            code = await asyncio.wait_for(self._process.wait(), timeout_s)
        except TimeoutError:
            raise self.failure(f"has not ended within {timeout_s:.0f} s") from None
        if code != expected:
            raise self.failure(f"ended with exit code {code}")

    def check_alive(self) -> None:
        """Raise ChildFailedError if it has ended."""
        if not self.alive:
            raise self.failure(f"ended with exit code {self._process.returncode} before its work was done")

    def failure(self, what: str) -> ChildFailedError:
        """Return an error with the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return ChildFailedError(
            "\n".join([f"process {self.name} {what}. Its log ends:", *(f"  | {x}" for x in lines)])
        )


class Children:
    """Starts processes. Those that still run are killed at the end of the block."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._all: list[Child] = []

    async def __aenter__(self) -> Children:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._all:
            child.kill()
        await asyncio.gather(*(child._process.wait() for child in self._all))

    async def start(self, name: str, script: str, *args: object) -> Child:
        """Run a script of this folder."""
        return await self.command(name, sys.executable, HERE / script, *args)

    async def command(self, name: str, *words: object) -> Child:
        """Run a command, in a process group of its own, so that Ctrl-C reaches only the demo."""
        log = self._logs / f"{name}.log"
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *map(str, words),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                start_new_session=True,
            )
        child = Child(name, process, log)
        self._all.append(child)
        return child
