"""Spark jobs in processes of their own, which are killed with SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 600


class Job:
    """A module of tests.spark in a process of its own, with its JVM.

    It gets FOLDER as its last argument and adds a line to ``batches`` there when a batch begins. If it writes
    the process id of its JVM into ``jvm``, that can be killed alone.
    """

    def __init__(self, module: str, folder: Path, *arguments: str) -> None:
        self._folder = folder
        (folder / "jvm").unlink(missing_ok=True)
        self._begun = self._batches()
        self._printed = folder / "printed"
        with self._printed.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, str(folder)],
                cwd=ROOT,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, *, jvm_alone: bool, after: float) -> bool:
        """Kill it so many seconds after it began a batch. Return False if it ended before."""
        if not self.reaches(lambda: self._batches() > self._begun):
            return False
        time.sleep(after)
        if self.process.poll() is not None:
            return False
        if jvm_alone:
            os.kill(int((self._folder / "jvm").read_text()), signal.SIGKILL)
        self.close(jvm_alone=jvm_alone)
        return True

    def reaches(self, point: Callable[[], bool]) -> bool:
        """Wait until it is there. Return False if it ended before."""
        self._await(lambda: self.process.poll() is not None or point())
        return point()

    def end(self) -> bool:
        """Wait for its end. Return whether it has read everything."""
        self._await(lambda: self.process.poll() is not None)
        return self.process.returncode == 0

    @property
    def printed(self) -> str:
        return self._printed.read_text(errors="replace")

    def close(self, *, jvm_alone: bool = False) -> None:
        if jvm_alone:
            # Python notices at the latest when it next calls the JVM
            self._await(lambda: self.process.poll() is not None)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)

    def _batches(self) -> int:
        file = self._folder / "batches"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def _await(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, self.printed[-4000:]
            time.sleep(0.05)
