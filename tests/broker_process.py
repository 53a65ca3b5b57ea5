"""kohort's broker in a process of its own: no event loop shared with the clients, and it can be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.ports import free_port

READY = "kohort broker ready on "
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0

#: Groups form at once, members may ask for short sessions, and transactions end soon after their timeout.
QUICK_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class BrokerProcess:
    """``python -m kohort broker``, started, killed and started again on the same port and data folder.

    ``folder`` holds what the process prints (``stdout``, and ``stderr`` of every start) and is where it runs.
    Without ``data`` the broker makes a folder of its own and forgets everything when it stops. Python runs
    ``program``, behind the words of ``prefix``. ``open_files`` is how many descriptors it may have at most.
    """

    def __init__(
        self,
        folder: Path,
        *,
        data: Path | None,
        settings: Mapping[str, str] = QUICK_SETTINGS,
        program: Sequence[str] = ("-m", "kohort"),
        prefix: Sequence[str] = (),
        open_files: int | None = None,
    ) -> None:
        self.folder = folder
        self.data = data
        self.settings = dict(settings)
        self.program = tuple(program)
        self.prefix = tuple(prefix)
        self.open_files = open_files
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``127.0.0.1:PORT``; the port stays the same over restarts."""
        return f"127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        """What the running process has printed so far, for the text of a failure."""
        return "".join(
            f"--- {name}\n{(self.folder / name).read_text(errors='replace')}" for name in ("stdout", "stderr")
        )

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.launch()
        self.port = self.await_port()

    def launch(self) -> None:
        """Start it."""
        assert not self.alive, "the broker runs already"
        command = [*self.prefix, sys.executable, *self.program, "broker"]
        if self.open_files is not None:
            command = ["sh", "-c", f'ulimit -n {self.open_files} && exec "$@"', "sh", *command]
        if "listeners" not in self.settings:
            command += ["--port", str(self.port)]
        if self.data is not None:
            command += ["--data", str(self.data)]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("ab") as err:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=err)

    def await_port(self) -> int:
        """Wait until it serves, and return the port of its first listener."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for line in (self.folder / "stdout").read_text(errors="replace").splitlines(keepends=True):
                if line.startswith(READY) and line.endswith("\n"):
                    # the first listener's
                    return int(line.removeprefix(READY).split(" ")[0].rsplit(":", 1)[1])
            if not self.alive:
                raise AssertionError(f"the broker ended while starting\n{self.log}")
            time.sleep(0.01)
        self.kill()
        raise AssertionError(f"the broker was not ready within {START_TIMEOUT_S:g} s\n{self.log}")

    def send(self, number: signal.Signals) -> None:
        """Send the running process a signal, and wait for nothing."""
        assert self.process is not None, "the broker was never started"
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL: no goodbye to anyone."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None, "the broker was never started"
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"the broker did not end by {number.name} in {STOP_TIMEOUT_S:g} s\n{self.log}"
            ) from None
