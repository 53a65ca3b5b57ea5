"""The supervisor: worker processes are kept running, renewed one by one, ended together."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kohort.service.run.workers import INSTANCE, Pace, Workers
from tests.waiting import until

QUICK = Pace(first_s=0.05, most_s=0.2, stop_timeout_s=60.0, ready_timeout_s=60.0)
IMPATIENT = Pace(first_s=0.05, most_s=0.2, stop_timeout_s=1.0, ready_timeout_s=60.0)

#: Stands for a service: writes down when it begins and ends, says that it is ready, ends on SIGTERM.
WORKER = """
import os, signal, socket, sys, time
folder = sys.argv[1]
index = os.environ["KOHORT_WORKER"]
def tell(what):
    fd = os.open(folder + "/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{what} {index}\\n".encode())
def end(*_):
    tell("end")
    os._exit(0)
modes = {"stubborn": signal.SIG_IGN, "deaf": signal.SIG_DFL}
signal.signal(signal.SIGTERM, modes.get(sys.argv[2] if len(sys.argv) > 2 else "", end))
tell("begin " + os.environ.get("KOHORT_WORKER_INSTANCE_ID", "-") + " " + str(os.getpid()))
if len(sys.argv) > 2 and sys.argv[2].isdigit():
    sys.exit(int(sys.argv[2]))
line = socket.socket(fileno=int(os.environ["KOHORT_WORKER_SOCKET"]))
time.sleep(0.05)
line.send(b"+")
line.recv(1)
tell("orphan")
"""


class Log:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "log"

    @property
    def lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    def begun(self) -> list[list[str]]:
        """[instance id, process id, worker] of each start."""
        return [line.split()[1:] for line in self.lines if line.startswith("begin")]


@asynccontextmanager
async def supervised(
    folder: Path, count: int, *arguments: str, prefix: str | None = None, pace: Pace = QUICK
) -> AsyncIterator[tuple[Log, asyncio.Task[int]]]:
    environment = {name: value for name, value in os.environ.items() if name != INSTANCE}
    workers = Workers(
        [sys.executable, "-c", WORKER, str(folder), *arguments],
        count,
        instance_prefix=prefix,
        environment=environment,
        pace=pace,
    )
    task = asyncio.create_task(workers.run())
    try:
        yield Log(folder), task
    finally:
        workers.stop()
        await asyncio.wait_for(task, 60)


async def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    async with supervised(tmp_path, 2) as (log, _):
        await until(lambda: len(log.begun()) == 2)
        [victim] = [pid for _, pid, index in log.begun() if index == "1"]
        os.kill(int(victim), signal.SIGKILL)
        await until(lambda: len(log.begun()) == 3)
        assert log.begun()[-1][2] == "1"


async def test_sigterm_ends_all_and_the_exit_code_is_theirs(tmp_path: Path) -> None:
    async with supervised(tmp_path, 3) as (log, task):
        await until(lambda: len(log.begun()) == 3)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(task, 60) == 0
        assert sum(line.startswith("end") for line in log.lines) == 3


async def test_one_that_is_ended_before_it_listens_has_not_failed(tmp_path: Path) -> None:
    async with supervised(tmp_path, 1, "deaf") as (log, task):
        await until(lambda: len(log.begun()) == 1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(task, 60) == 0


async def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    async with supervised(tmp_path, 1, "stubborn", pace=IMPATIENT) as (log, task):
        await until(lambda: len(log.begun()) == 1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(task, 60) == 128 + signal.SIGKILL


async def test_sighup_renews_one_after_the_other_with_the_same_instance_ids(tmp_path: Path) -> None:
    async with supervised(tmp_path, 2, prefix="billing") as (log, _):
        await until(lambda: len(log.begun()) == 2)
        await asyncio.sleep(0.3)
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: len(log.begun()) == 4)
        assert [line.split()[0] + line.split()[-1] for line in log.lines[2:]] == [
            "end0",
            "begin0",
            "end1",
            "begin1",
        ]
        assert {row[0] for row in log.begun()} == {"billing-0", "billing-1"}


@pytest.mark.parametrize(("code", "starts"), [("0", 1), ("2", 1)])
async def test_done_and_wrong_use_are_no_reason_to_start_again(
    tmp_path: Path, code: str, starts: int
) -> None:
    async with supervised(tmp_path, 1, code) as (log, task):
        assert await asyncio.wait_for(task, 60) == int(code)
        assert len(log.begun()) == starts


async def test_a_worker_that_cannot_live_is_tried_again_with_growing_pauses(tmp_path: Path) -> None:
    async with supervised(tmp_path, 1, "7") as (log, _):
        await until(lambda: len(log.begun()) == 4)
    pauses = [QUICK.pause_s(failures) for failures in (1, 2, 3, 4, 40)]
    assert pauses[0] < pauses[1] < pauses[2] < 0.25
    assert pauses[-1] <= QUICK.most_s * 1.2
