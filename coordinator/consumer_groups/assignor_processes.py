"""Processes that run assignors: started when needed, ended when idle or when they do not answer.

Each assignor has its own process, so that one that hangs holds up only its own groups. Requests and results
are sent in small frames, so that other work runs in between.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ...assignors import AssignorError
from ...assignors.server import Numbers, from_frame, length_of, numbers_of, to_frame, to_frames
from ...protocol import KohortError
from ..engine.runner import ShardRunner
from ..groups.groups import Groups
from .assigning import step_for_failure, steps_to_target
from .target import ComputeTarget

#: Time in seconds after which an idle process is ended.
_IDLE_S: Final = 60.0

_LENGTH_BYTES: Final = 4
_CODE: Final = (
    "import json, os, sys; sys.path[:] = json.loads(sys.argv.pop(1)); os.nice(5); "
    "from kohort.assignors.server import main; main()"
)


@dataclass(slots=True, eq=False)
class _Process:
    """The process of one assignor, with one request at a time."""

    spec: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    child: asyncio.subprocess.Process | None = None
    end: asyncio.TimerHandle | None = None

    async def ask_assignor(self, asked: ComputeTarget, timeout_s: float) -> dict[str, Numbers]:
        """Return the assignor's result. Raises AssignorError."""
        async with self.lock:
            if self.end is not None:
                self.end.cancel()
            answered = False
            try:
                async with asyncio.timeout(timeout_s):
                    answer, why = await self._exchange_frames(asked)
                answered = True
            except TimeoutError:
                raise AssignorError(f"it gave no answer within {timeout_s:g} s, and was ended") from None
            except (OSError, EOFError):
                raise AssignorError("its process ended before it had answered") from None
            finally:
                if answered:
                    self.end = asyncio.get_running_loop().call_later(_IDLE_S, self.close)
                else:
                    self.close()
        if why:
            raise AssignorError(why)
        return answer

    async def _exchange_frames(self, asked: ComputeTarget) -> tuple[dict[str, Numbers], str]:
        child = self.child
        if child is None or child.returncode is not None:
            child = self.child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _CODE, json.dumps(sys.path), self.spec),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(to_frame(asked.counts))
        for frame in to_frames(asked.served_members()):
            child.stdin.write(frame)
            await child.stdin.drain()
            await asyncio.sleep(0)
        child.stdin.write(to_frame(None))
        answer: dict[str, Numbers] = {}
        while True:
            length = length_of(await child.stdout.readexactly(_LENGTH_BYTES))
            part = from_frame(await child.stdout.readexactly(length))
            if isinstance(part, str):
                return answer, part
            answer.update((name, numbers_of(row)) for name, row in part.items())
            await asyncio.sleep(0)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        child, self.child = self.child, None
        if self.end is not None:
            self.end.cancel()
        if child is not None:
            with suppress(ProcessLookupError):
                child.kill()


class AssignorProcesses:
    """Carries out the ComputeTargets of a coordinator's shards."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_s = timeout_ms / 1000
        self._processes: dict[str, _Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<AssignorProcesses: {', '.join(self._processes) or 'none'}, {len(self._tasks)} at work>"

    def carry_out(self, runner: ShardRunner[Groups], asked: ComputeTarget) -> None:
        """Have a target computed, and apply it."""
        task = asyncio.get_running_loop().create_task(self._carry_out(runner, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End all processes; results that come later are ignored."""
        children = [process.child for process in self._processes.values() if process.child is not None]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        # returns when their pipes are closed
        await asyncio.gather(*(child.communicate() for child in children), return_exceptions=True)

    async def _carry_out(self, runner: ShardRunner[Groups], asked: ComputeTarget) -> None:
        process = self._processes.setdefault(asked.spec, _Process(asked.spec))
        try:
            for step in steps_to_target(asked, await process.ask_assignor(asked, self._timeout_s)):
                runner.steer(step)
                await asyncio.sleep(0)
        except Exception as error:  # whatever it is, the group waits for a result
            runner.steer(
                step_for_failure(asked, str(error) if isinstance(error, KohortError) else repr(error))
            )
