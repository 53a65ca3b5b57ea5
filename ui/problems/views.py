"""The first page: what is wrong now, and where to look."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ...admin import GroupAdmin
from ...admin.cluster.problems import (
    ProblemReport,
    find_in_processes,
    find_problems,
    read_metrics,
)
from ...admin.records.letter_topics import USUAL_NAMES, LetterTopicFinder
from ...lag import LagTracker
from ...problems import Samples, find_in_rebalances, keep_since, most_severe_first
from ..observer import View, now_ms
from ..recording import ClusterRecorder


class ProblemsView(View):
    """What is wrong with the cluster, its groups, and the processes whose metrics can be read at
    ``addresses``, HOST:PORT or URLs. ``silent`` are those that gave none, with the reason. A ``recorder``
    tells which groups rebalance too often.
    """

    every_s = 10.0

    def __init__(self, addresses: Sequence[str] = (), recorder: ClusterRecorder | None = None) -> None:
        super().__init__()
        self.report: ProblemReport | None = None
        self.silent: dict[str, str] = {}
        self._addresses = addresses
        self._recorder = recorder
        self._before: list[tuple[str, Samples]] = []
        self._tracker = LagTracker()
        self._finder = LetterTopicFinder(USUAL_NAMES)

    async def look(self, admin: GroupAdmin) -> None:
        """Ask the cluster, and the processes whose metrics are read, at the same time."""
        asked, processes = await asyncio.gather(
            find_problems(admin.cluster, tracker=self._tracker, finder=self._finder), self._read_processes()
        )
        often = [] if self._recorder is None else find_in_rebalances(self._recorder.count_rebalances())
        told = find_in_processes(processes, self._before, admin.cluster.known_metadata.cluster_id)
        problems = most_severe_first([*asked.found, *often, *told])
        self._before = processes
        # the first look does not know since when
        known = problems if self.report is None else keep_since(self.report.found, problems, now_ms())
        report = replace(asked, found=known)
        if report != self.report or not self.version:
            self.report = report
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
