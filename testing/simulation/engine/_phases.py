"""The two phases of a schedule: faults, then quiet, in which all must come to an end."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ...faults import SimulatedCrash
from ._disk import FailingDisk
from ._plan import Incident
from ._schedule import P, Schedule
from ._violation import Violation

#: How often records are produced, and how often the end is looked for.
PRODUCE_MS: Final = 250
LOOK_MS: Final = 100


#: The invariant that does not hold yet, and why; None when all is settled.
Left = tuple[str, str] | None


class Phases(Schedule[P]):
    """The two phases of a schedule. ``happen`` carries out all incidents that are not the broker's; set it
    before ``run``.
    """

    happen: Callable[[Incident], None]

    @property
    @abstractmethod
    def machine(self) -> FailingDisk:
        """The broker's side."""

    def run(self) -> None:
        """Run both phases. Raises Violation."""
        try:
            self._run()
        finally:
            self.stats.events = self.heap.events
            self.stats.virtual_ms = self.heap.now

    @abstractmethod
    def _run(self) -> None:
        """Start all participants, inject the faults, then wait until everything is settled."""

    def _plan_incidents(self) -> None:
        for incident in self.plan.incidents:
            self.heap.at(incident.at_ms, self._meet, incident)

    def _meet(self, incident: Incident) -> None:
        self.say(f"{incident.name}: {incident.kind}")
        self.stats.incidents += 1
        if not self.machine.meet(incident):
            self.happen(incident)

    def _let_pass(self, end: int) -> None:
        while True:
            try:
                self.heap.run(end, self)
                return
            except SimulatedCrash:
                self.machine.on_crash()
            except Violation:
                raise
            except Exception as error:
                self.fail("S0", f"{type(error).__name__}: {error}")

    def _wait(self, most_ms: int, why_unsettled: Callable[[], Left]) -> None:
        """Let time pass until all is settled. Raises Violation when that takes longer."""
        start = self.heap.now
        while (left := why_unsettled()) is not None and not self.is_given_up:
            if self.heap.now - start > most_ms:
                self.fail(left[0], f"{left[1]}, after {self.heap.now - start} ms")
                return
            self._let_pass(self.heap.now + LOOK_MS)

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        """Let whoever draws from the process' generator draw by the schedule's seed."""
        state = random.getstate()
        random.seed(self.plan.run_seed)
        try:
            yield
        finally:
            random.setstate(state)

    @abstractmethod
    def close(self) -> None:
        """Drop the participants."""

    def describe(self) -> dict[str, object]:
        """Return the plan in a few words, for a trace."""
        plan = self.plan
        return {
            "topics": plan.topics,
            "session (ms)": plan.session_ms,
            "fsync": plan.fsync,
            "network": sorted(plan.network),
            "incidents": [f"{i.name}: {i.kind} at {i.at_ms / 1000:.3f}" for i in plan.incidents],
        }
