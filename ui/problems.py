"""The first page: what is wrong now, and where to look."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..admin import GroupAdmin
from ..admin.cluster.problems import find_in_processes, find_problems, read_metrics
from ..lag import LagTracker
from ..problems import FoundProblem, Samples, keep_since, most_severe_first
from .observer import View
from .views import now_ms


class ProblemsView(View):
    """What is wrong with the cluster, its groups, and the processes whose metrics can be read at
    ``addresses``, HOST:PORT or URLs. ``silent`` are those that gave none, with the reason.
    """

    every_s = 10.0

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        super().__init__()
        self.found: list[FoundProblem] | None = None
        self.silent: dict[str, str] = {}
        self._addresses = addresses
        self._before: list[tuple[str, Samples]] = []
        self._tracker = LagTracker()

    async def look(self, admin: GroupAdmin) -> None:
        asked, processes = await asyncio.gather(
            find_problems(admin.cluster, tracker=self._tracker), self._read_processes()
        )
        problems = most_severe_first([*asked, *find_in_processes(processes, self._before)])
        self._before = processes
        # the first look does not know since when
        known = problems if self.found is None else keep_since(self.found, problems, now_ms())
        if known != self.found or not self.version:
            self.found = known
            self.tell("page", None)

    async def _read_processes(self) -> list[tuple[str, Samples]]:
        results = await asyncio.gather(
            *(asyncio.to_thread(read_metrics, address) for address in self._addresses),
            return_exceptions=True,
        )
        read, silent = [], {}
        for address, result in zip(self._addresses, results, strict=True):
            if isinstance(result, (OSError, ValueError)):
                silent[address] = str(getattr(result, "reason", result))
            elif isinstance(result, BaseException):
                raise result
            else:
                read.append(result)
        self.silent = silent
        return read
