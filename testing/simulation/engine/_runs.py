"""Schedules by seed: run them, and shrink the first failure to a minimum."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from ._phases import Phases
from ._plan import SchedulePlan
from ._schedule import Stats
from ._violation import Violation

#: Lines of a failed schedule that are shown.
_SHOWN_LINES = 60
_COLLECT_EVERY = 50


class SimulationFailed(AssertionError):  # noqa: N818
    """An invariant does not hold in a schedule. ``left_out``: parts of the plan that are not needed to
    show it.
    """

    def __init__(
        self, seed: int, violation: Violation, left_out: tuple[str, ...], trace: list[str], options: str = ""
    ) -> None:
        lines = [f"seed {seed}: {violation}", f"replay: {replay_command(seed, left_out, options)}", ""]
        if len(trace) > _SHOWN_LINES:
            lines.append(f"({len(trace) - _SHOWN_LINES} lines before)")
        super().__init__("\n".join([*lines, *trace[-_SHOWN_LINES:]]))
        self.seed = seed
        self.violation = violation
        self.left_out = left_out
        self.trace = trace


@dataclass(slots=True)
class SimulationReport:
    """Counts of all schedules that ran; with ``go_on``, ``failed`` maps failed seeds to invariants."""

    stats: Stats = field(default_factory=Stats)
    failed: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        stats = self.stats
        counts = ", ".join(f"{getattr(stats, f.name):,} {f.name.replace('_', ' ')}" for f in fields(stats))
        return f"{counts}; {len(self.failed)} failed"


def replay_command(seed: int, left_out: Collection[str] = (), options: str = "") -> str:
    """The command line that runs a schedule again."""
    without = f" --without {','.join(left_out)}" if left_out else ""
    return f"python -m kohort.testing.simulation{options} --seed {seed}{without}"


@dataclass(frozen=True, slots=True)
class ScheduleKind:
    """A kind of schedules. ``options`` is what the command line needs besides the seed, ``draw_plan`` makes
    the plan of a seed, and ``make_world(plan, checked=, traced=)`` a schedule that is about to run.
    """

    options: str
    draw_plan: Callable[[int], SchedulePlan]
    make_world: Callable[..., Phases[Any]]

    def simulate(
        self,
        seeds: int | Iterable[int] = 100,
        *,
        left_out: Collection[str] = (),
        checked: bool = True,
        go_on: bool = False,
    ) -> SimulationReport:
        """Run schedules; ``seeds`` is how many, or which. ``left_out`` are faults, incidents or members not
        to take part; with ``checked`` False nothing is compared.

        Raises SimulationFailed with the shrunk first failure; with ``go_on`` failures are counted instead.
        """
        report = SimulationReport()
        with _own_loop():
            for number, seed in enumerate(range(seeds) if isinstance(seeds, int) else seeds):
                if number % _COLLECT_EVERY == 0:
                    gc.collect(0)
                world, violation = self._run(seed, left_out, checked=checked)
                report.stats.add(world.stats)
                if violation is not None:
                    report.failed[seed] = violation.name
                    if not go_on:
                        raise self._shrink(seed, violation, left_out, checked=checked)
        return report

    def trace(self, seed: int, *, left_out: Collection[str] = ()) -> tuple[list[str], Violation | None]:
        """The trace of a schedule, line by line, and the violation that ends it."""
        with _own_loop():
            world, violation = self._run(seed, left_out, traced=True)
        return world.trace or [], violation

    def _run(
        self, seed: int, left_out: Collection[str], *, checked: bool = True, traced: bool = False
    ) -> tuple[Phases[Any], Violation | None]:
        world = self.make_world(self.draw_plan(seed).leave_out(left_out), checked=checked, traced=traced)
        for name, what in world.describe().items() if traced else ():
            world.say(f"{name}: {what}")
        try:
            world.run()
        except Violation as violation:
            return world, violation
        except Exception as error:
            error.add_note(f"in a schedule of seed {seed}: {replay_command(seed, left_out, self.options)}")
            raise
        finally:
            world.close()
        return world, None

    def _shrink(
        self, seed: int, violation: Violation, left_out: Collection[str], *, checked: bool
    ) -> SimulationFailed:
        """Find the least that fails alike: faults, incidents and members are left out in turn."""
        out = list(left_out)
        for name in self.draw_plan(seed).leave_out(left_out).names():
            if name in out:
                continue
            _, found = self._run(seed, [*out, name], checked=checked)
            if found is not None and found.name == violation.name:
                out.append(name)
        world, found = self._run(seed, out, checked=checked, traced=True)
        left = self.draw_plan(seed).leave_out(left_out).names()
        kept = tuple(name for name in out if name in left or name in left_out)
        return SimulationFailed(seed, found or violation, kept, world.trace or [], self.options)


@contextmanager
def _own_loop() -> Iterator[None]:
    """Give the thread its event loop back at the end; and the garbage collector, which has little to do: a
    schedule is taken apart when it is over.
    """
    set_running: Callable[[asyncio.AbstractEventLoop | None], None] = asyncio._set_running_loop
    before = asyncio._get_running_loop()
    collecting = gc.isenabled()
    log = logging.getLogger("kohort")
    level = log.level
    # services' log lines about injected faults are in the trace
    log.setLevel(logging.CRITICAL + 1)
    gc.disable()
    unraisable = sys.unraisablehook
    # a coroutine of a killed process is discarded in the middle of its work
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        set_running(before)
        log.setLevel(level)
        sys.unraisablehook = unraisable
        if collecting:
            gc.enable()
