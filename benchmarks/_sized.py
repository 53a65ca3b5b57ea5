"""A broker process whose memory and processor time are read while it is given more and more."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ._brokers import ENVIRONMENT, first_answer, free_port, kept
from ._processes import tree_seconds

#: Nothing is refused for its number alone.
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "1000",
    "group.max.size": "100000",
    "group.consumer.max.size": "100000",
    "group.share.max.size": "1000",
    "group.min.session.timeout.ms": "500",
    "max.connections": "1000000",
    "max.connections.per.ip": "1000000",
    "offsets.topic.num.partitions": "1",
}
_DESCRIPTORS = 200_000


class Reading(NamedTuple):
    """What a broker uses: resident KiB, and seconds of processors so far."""

    kib: int
    cpu_s: float


class SizedBroker:
    """``bootstrap`` is where it serves; it may be killed and started again on what it has."""

    def __init__(self, folder: Path, more: Mapping[str, str], descriptors: int | None = None) -> None:
        self._folder, self._port, self._more = folder, free_port(), more
        self._descriptors = descriptors
        self.bootstrap = f"127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Reading:
        """Start it; return what it uses when it answers."""
        command = [sys.executable, "-m", "kohort", "broker", "--data", str(self._folder / "data")]
        command += ["--port", str(self._port)]
        command += [f"--set={key}={value}" for key, value in {**_SETTINGS, **self._more}.items()]
        if self._descriptors is not None:
            command = ["sh", "-c", f'ulimit -n {self._descriptors} && exec "$@"', "sh", *command]
        with (self._folder / "log").open("ab") as log:
            process = self._process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=log, env=ENVIRONMENT
            )
        first_answer(self._port, lambda: process.poll() is not None)
        return self.read()

    def read(self) -> Reading:
        """What it uses now."""
        assert self._process is not None, "it is started first"
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return Reading(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]), tree_seconds(self._process.pid))

    def end(self, what: signal.Signals = signal.SIGKILL) -> None:
        """End it, by default as a machine that loses power would."""
        if self._process is not None:
            self._process.send_signal(what)
            self._process.wait()

    def lines(self) -> list[str]:
        """What it has logged."""
        return (self._folder / "log").read_text(errors="replace").splitlines()


@contextmanager
def sized_broker(descriptors: int | None = None, **more: str) -> Iterator[SizedBroker]:
    """A broker that serves, with at most so many descriptors and with settings whose dots are underscores."""
    folder = kept()
    settings = {key.replace("_", "."): value for key, value in more.items()}
    broker = SizedBroker(folder, settings, descriptors)
    try:
        broker.start()
        yield broker
    finally:
        broker.end()
        shutil.rmtree(folder, ignore_errors=True)


def raise_descriptor_limit() -> int:
    """As many descriptors as this process may have, for itself and the brokers that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_DESCRIPTORS, most):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, most)))
        except (ValueError, OSError):
            continue
        return wanted
    return os.sysconf("SC_OPEN_MAX")
