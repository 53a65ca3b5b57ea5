"""A service in several processes, which are restarted when they fail, ended together, and renewed one by one.

The supervisor starts the same command for each worker, with its number and a socket in the environment. The
worker writes one byte to the socket when it has joined its group; when the supervisor is gone, the socket
ends and the worker stops by itself. Nothing here knows Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._service import ConsumerService
    from .._services import Services
from .._services import Services

#: Environment of a worker: its number, its instance id, and the number of its socket.
INDEX, INSTANCE, SOCKET = "KOHORT_WORKER", "KOHORT_WORKER_INSTANCE_ID", "KOHORT_WORKER_SOCKET"
#: Exit code of errors that a restart cannot mend: wrong use, wrong configuration.
WRONG_USE = 2
#: A worker that has run for this long starts again with the shortest pause.
SETTLED_S = 60.0
READY_POLL_S = 0.02

log = logging.getLogger("kohort.service")


@dataclass(frozen=True, slots=True)
class Pace:
    """Pauses between restarts double from ``first_s`` to ``most_s``, with jitter; the rest are bounds."""

    first_s: float = 1.0
    most_s: float = 30.0
    #: From SIGTERM to SIGKILL: more than a drain and the leave may take.
    stop_timeout_s: float = 40.0
    #: In a rolling restart, for a new worker to join its group.
    ready_timeout_s: float = 60.0

    def pause_s(self, failures: int) -> float:
        """After this many failures in a row, 1 or more."""
        longest = min(self.first_s * 2.0 ** min(failures - 1, 30), self.most_s)
        return longest * random.uniform(0.8, 1.2)


@dataclass(slots=True, eq=False)
class _Worker:
    index: int
    process: asyncio.subprocess.Process | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    renewing: bool = False
    code: int = 0


class Workers:
    """Runs ``command`` in ``count`` processes. With a prefix worker 2 is the static member PREFIX-2.

    SIGTERM and SIGINT end all of them. SIGHUP renews one after the other, each when the one before it has
    joined again; if one does not, the others are left as they are.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        *,
        instance_prefix: str | None = None,
        environment: Mapping[str, str] | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._command = list(command)
        self._workers = [_Worker(index) for index in range(count)]
        self._prefix = instance_prefix
        self._environment = dict(os.environ if environment is None else environment)
        self._pace = pace or Pace()
        self._stopping = asyncio.Event()
        self._rolling: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Run until a signal, or until every worker has ended by itself; return their highest exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.renew)
        try:
            await asyncio.gather(*(self._keep_running(worker) for worker in self._workers))
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)
            if self._rolling is not None:
                self._rolling.cancel()
        return max(worker.code for worker in self._workers)

    def stop(self) -> None:
        """SIGTERM to all; SIGKILL to those that take longer than ``stop_timeout_s``."""
        self._stopping.set()
        for worker in self._workers:
            self._terminate_worker(worker)

    def renew(self) -> None:
        """Begin a rolling restart, unless one is under way."""
        if self._rolling is None or self._rolling.done():
            self._rolling = asyncio.get_running_loop().create_task(self._restart_rolling())

    async def _keep_running(self, worker: _Worker) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            worker.code = await self._run_once(worker)
            if self._stopping.is_set() or (worker.code == 0 and not worker.renewing):
                return
            if worker.code == WRONG_USE:
                log.error("worker %d cannot run: exit code %d; all stop", worker.index, WRONG_USE)
                self.stop()
                return
            if worker.renewing:
                worker.renewing, failures = False, 0
                continue
            failures = 1 if time.monotonic() - began > SETTLED_S else failures + 1
            pause_s = self._pace.pause_s(failures)
            log.warning("worker %d: exit code %d, again in %.1f s", worker.index, worker.code, pause_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)

    async def _run_once(self, worker: _Worker) -> int:
        """Run a worker's process once; return its exit code, as a shell reports it."""
        mine, theirs = socket.socketpair()
        with mine, theirs:
            mine.setblocking(False)
            environment = {**self._environment, INDEX: str(worker.index), SOCKET: str(theirs.fileno())}
            if self._prefix is not None:
                environment[INSTANCE] = f"{self._prefix}-{worker.index}"
            worker.ready.clear()
            process = await asyncio.create_subprocess_exec(
                *self._command, env=environment, pass_fds=[theirs.fileno()], start_new_session=True
            )
            theirs.close()
            worker.process = process
            if self._stopping.is_set():
                self._terminate_worker(worker)
            listening = asyncio.create_task(_listen_for_signal(mine, worker.ready))
            code = await process.wait()
            listening.cancel()
            worker.process = None
            if code == -signal.SIGTERM and self._stopping.is_set():
                return 0  # it had not come so far as to listen: nothing was begun
            return code if code >= 0 else 128 - code

    def _terminate_worker(self, worker: _Worker) -> None:
        if (process := worker.process) is not None:
            with suppress(ProcessLookupError):
                process.terminate()
            loop = asyncio.get_running_loop()
            loop.call_later(self._pace.stop_timeout_s, self._kill_worker, worker, process)

    @staticmethod
    def _kill_worker(worker: _Worker, process: asyncio.subprocess.Process) -> None:
        if worker.process is process:
            log.error("worker %d does not end: killed", worker.index)
            with suppress(ProcessLookupError):
                process.kill()

    async def _restart_rolling(self) -> None:
        for worker in self._workers:
            if worker.process is None:
                continue
            worker.renewing = True
            worker.ready.clear()
            self._terminate_worker(worker)
            try:
                bound_s = self._pace.stop_timeout_s + self._pace.ready_timeout_s
                await asyncio.wait_for(worker.ready.wait(), bound_s)
            except TimeoutError:
                log.error("rolling restart given up: worker %d has not joined again", worker.index)
                return
            log.info("rolling restart: worker %d has joined", worker.index)


async def _listen_for_signal(mine: socket.socket, ready: asyncio.Event) -> None:
    if await asyncio.get_running_loop().sock_recv(mine, 1):
        ready.set()


def run_worker(service: ConsumerService | Services, environment: Mapping[str, str]) -> None:
    """In a worker's process: run the service, say when it is ready, stop it when the supervisor is gone."""
    service.as_worker(int(environment[INDEX]), instance_id=environment.get(INSTANCE))
    line = socket.socket(fileno=int(environment[SOCKET]))
    for job in (_tell_ready, _await_end):
        threading.Thread(target=job, args=(service, line), daemon=True).start()
    service.run()


def _tell_ready(service: ConsumerService | Services, line: socket.socket) -> None:
    while not service.ready:
        time.sleep(READY_POLL_S)
    with suppress(OSError):
        line.send(b"+")


def _await_end(service: ConsumerService | Services, line: socket.socket) -> None:
    with suppress(OSError):
        line.recv(1)
    service.stop("the supervisor is gone")
