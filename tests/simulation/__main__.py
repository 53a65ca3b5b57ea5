"""``python -m tests.simulation [--seconds N] [--seed N] [--report FILE] [KIND...]``: new schedules.

Each kind of schedule gets its share of the time. A schedule that breaks an invariant is printed with the
command that replays it, and the run goes on; the exit code is 1 then. ``make soak-simulation``
"""

from __future__ import annotations

import argparse
import errno
import itertools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from kohort.testing import (
    simulate,
    simulate_cluster,
    simulate_service,
    simulate_share_consumers,
    simulate_share_groups,
    simulate_share_services,
    simulate_transactions,
)
from kohort.testing.simulation import SimulationReport, Stats
from tests.log import test_crashes, test_every_byte
from tests.reliability_report import table, write_section

INTRO: Final = """
## Simulated schedules

[The simulator](../simulation.md) runs the shipped code on virtual time and injects drawn faults. Each
schedule is drawn from its seed. The last two rows run the log alone, on a simulated file system: a log of
1,000 records is cut at every byte and opened; each operation of a scenario of appends, rolls, retention,
compaction and checkpoints fails once with a full disk or an I/O error.
`make soak-simulation`, `tests/simulation/__main__.py`
""".strip()

#: Of the many crashes of ``groups, many crashes``, in one schedule.
CRASHES: Final = 30
#: Every process prints what it has done after so long.
TELL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Kind:
    """Schedules of one kind: ``run`` runs ``at_a_time`` of them, for ``share`` of the time."""

    run: Callable[[range], SimulationReport]
    share: float
    at_a_time: int


def cut_logs(seeds: range) -> SimulationReport:
    """Cut the log of each seed at every byte."""
    return _count(seeds, lambda seed: test_every_byte.cut_at_every_byte(test_every_byte.thousand(seed)))


def fail_operations(seeds: range) -> SimulationReport:
    """Let each operation of the scenario of each seed fail, with every config and error."""

    def fail_each(seed: int) -> None:
        for config, error in itertools.product(
            test_crashes.CONFIGS_BY_NAME.values(), (errno.ENOSPC, errno.EIO)
        ):
            test_crashes.fail_each_operation(config, error, seed)

    return _count(seeds, fail_each)


def _count(seeds: range, check: Callable[[int], object]) -> SimulationReport:
    report = SimulationReport()
    for seed in seeds:
        report.stats.schedules += 1
        try:
            check(seed)
        except AssertionError as error:
            report.failed[seed] = str(error).partition("\n")[0]
    return report


KINDS: Final = {
    "groups": Kind(partial(simulate, go_on=True), 3, 400),
    "groups, many crashes": Kind(partial(simulate, crashes=CRASHES, go_on=True), 3, 50),
    "groups, members of both protocols": Kind(partial(simulate, protocol="mixed", go_on=True), 4, 200),
    "services, classic": Kind(partial(simulate_service, protocol="classic", go_on=True), 2, 20),
    "services, consumer": Kind(partial(simulate_service, protocol="consumer", go_on=True), 2, 20),
    "services, registry": Kind(partial(simulate_service, protocol="registry", go_on=True), 2, 20),
    "transactions": Kind(partial(simulate_transactions, go_on=True), 3, 50),
    "brokers": Kind(partial(simulate_cluster, go_on=True), 8, 10),
    "share groups": Kind(partial(simulate_share_groups, go_on=True), 4, 10),
    "share consumers": Kind(partial(simulate_share_consumers, go_on=True), 4, 10),
    "share services": Kind(partial(simulate_share_services, go_on=True), 2, 10),
    "logs cut at every byte": Kind(cut_logs, 1, 1),
    "logs, each operation fails": Kind(fail_operations, 1, 1),
}


@dataclass(slots=True)
class Outcome:
    """What came of a kind; ``seeds`` ran."""

    kind: str
    seeds: range
    seconds: float = 0.0
    stats: Stats = field(default_factory=Stats)
    failed: dict[int, str] = field(default_factory=dict)

    def row(self) -> tuple[object, ...]:
        """Its row in the table."""
        stats = self.stats
        counts = (
            stats.schedules,
            stats.crashes + stats.reloads,
            stats.rebalances,
            stats.commits,
            stats.records,
        )
        seeds = f"{self.seeds.start:,} to {self.seeds.stop - 1:,}"
        return (self.kind, seeds, *(f"{count:,}" if count else "" for count in counts), len(self.failed))


HEAD: Final = (
    "kind",
    "seeds",
    "schedules",
    "crashes and reloads",
    "rebalances",
    "commits",
    "records",
    "violations",
)


def run_kind(name: str, first: int, seconds: float) -> Outcome:
    """Run schedules of a kind, from the seed ``first`` on, for so long."""
    kind, outcome, began = KINDS[name], Outcome(name, range(first, first)), time.process_time()
    told = began
    for seeds in _ranges(first, kind.at_a_time):
        report = kind.run(seeds)
        outcome.stats.add(report.stats)
        outcome.failed |= report.failed
        outcome.seeds, now = range(first, seeds.stop), time.process_time()
        outcome.seconds = now - began
        for seed, violation in report.failed.items():
            print(f"{name}: seed {seed}: {violation}", flush=True)
        if now - told > TELL_S:
            told = now
            print(f"{name}: {outcome.stats.schedules:,} schedules, {outcome.seconds:.0f} s", flush=True)
        if outcome.seconds >= seconds:
            return outcome
    raise AssertionError("seeds do not end")


def _ranges(first: int, size: int) -> Iterator[range]:
    return (range(at, at + size) for at in itertools.count(first, size))


def report(outcomes: list[Outcome]) -> str:
    """The section of the report."""
    machine = f"{os.cpu_count()} processors, Python {platform.python_version()}, {platform.system()}"
    at = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    commit = f" at {at.stdout.strip()}" if at.returncode == 0 else ""
    minutes = sum(outcome.seconds for outcome in outcomes) / 60
    broken = [
        f"- {outcome.kind}, seed {seed}: {violation}"
        for outcome in outcomes
        for seed, violation in outcome.failed.items()
    ]
    parts = [
        INTRO,
        f"{minutes:.0f} minutes of processor time{commit}, {machine}.",
        table(HEAD, [o.row() for o in outcomes]),
    ]
    if broken:
        parts.append("\n".join(broken))
    return "\n\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"one of {', '.join(KINDS)}; by default all")
    parser.add_argument("--seconds", type=float, default=3_600, help="processor time of all kinds together")
    parser.add_argument("--seed", type=int, default=20_000_000, help="the first seed of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="kinds that run at the same time")
    parser.add_argument("--report", type=Path, help="the file whose section is written")
    args = parser.parse_args()
    if unknown := set(args.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    names = [name for name in KINDS if not args.kinds or name in args.kinds]
    whole = sum(KINDS[name].share for name in names)
    longest_first = sorted(names, key=lambda name: -KINDS[name].share)
    with ProcessPoolExecutor(args.jobs) as pool:
        running = [
            pool.submit(run_kind, name, args.seed, args.seconds * KINDS[name].share / whole)
            for name in longest_first
        ]
        done = {outcome.kind: outcome for outcome in (each.result() for each in as_completed(running))}
    outcomes = [done[name] for name in names]
    text = report(outcomes)
    print(text)
    if args.report is not None:
        write_section(args.report, "simulated schedules", text)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
