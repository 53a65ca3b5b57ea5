"""Sticky assignment, fresh and after one member has left: kohort beside kafka-python and Apache Kafka's Java.

``python -m benchmarks.assignors [--compare] [--only CASE,...] [--rounds 5]``

Alone it measures kohort; ``--compare`` asks kafka-python and, where there is a JVM, Apache Kafka's own
assignor for the same in the same run. Times are those of ``assign`` alone, from subscriptions that were read
to lists of partitions; the fastest round counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict

from . import _table
from ._brokers import java_classpath
from ._command import Begun, Command, publish, say
from ._sticky import Case, Took, java, kafka_python, kohort, mixed, peak_mib, same, sync_group

CASES = [
    same("small", topics=10, partitions=200, members=100, goals=(2, 3)),
    same("medium", topics=100, partitions=200, members=500, goals=(4, 6)),
    mixed("mixed", topics=50, members=200, goals=(3, 3)),
    same("large", topics=200, partitions=2000, members=2000, goals=(60, 80)),
    same("huge", topics=500, partitions=2000, members=2000, goals=(500, 500)),
]
#: Memory and SyncGroup are measured with this one.
LARGE = "large"
MEMORY_GOAL_MIB = 200

KOHORT, KAFKA_PYTHON, JAVA = "kohort", "kafka-python", "Java"
Results = dict[str, dict[str, Took]]


def measure(cases: list[Case], options: argparse.Namespace) -> Results:
    """By case, then by client."""
    classpath = java_classpath() if options.compare else None
    results: Results = {}
    for case in cases:
        took = results.setdefault(case.name, {})
        took[KOHORT] = kohort(case, options.rounds)
        if classpath:
            took[JAVA] = java(case, classpath)
        if options.compare and case.partitions <= options.peer_partitions:
            took[KAFKA_PYTHON] = kafka_python(case)
        for client, one in took.items():
            say(f"{case.name:8} {client:14} {one.fresh:>10,.1f} ms {one.leave:>10,.1f} ms")
    return results


def table(cases: list[Case], results: Results) -> str:
    head = ["partitions x members", KAFKA_PYTHON, JAVA, KOHORT, "goal", "", "moves", "loads"]
    rows = [head]
    for case in cases:
        took = results[case.name]
        ours = took[KOHORT]
        met = ours.fresh <= case.goals[0], ours.leave <= case.goals[1]
        rows.append(
            [
                case.title,
                _times(took.get(KAFKA_PYTHON)),
                _times(took.get(JAVA)),
                _times(ours),
                f"≤ {case.goals[0]:g} / {case.goals[1]:g} ms",
                "met" if all(met) else "missed",
                _each(took, lambda one: str(one.moves)),
                _each(took, lambda one: f"{one.lowest}-{one.highest}"),
            ]
        )
    return _aligned(rows)


def _times(took: Took | None) -> str:
    if took is None:
        return "-"
    if max(took.fresh, took.leave) >= 1000:
        return f"{took.fresh / 1000:.2f} / {took.leave / 1000:.2f} s"
    return f"{took.fresh:.1f} / {took.leave:.1f} ms"


def _each(took: dict[str, Took], show: Callable[[Took], str]) -> str:
    clients = (KAFKA_PYTHON, JAVA, KOHORT)
    return " / ".join(show(took[client]) if client in took else "-" for client in clients)


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    cells = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def large_facts(case: Case, rounds: int) -> dict[str, str]:
    peak, synced = peak_mib(case), sync_group(case, rounds)
    verdict = "met" if peak <= MEMORY_GOAL_MIB else "missed"
    return {
        f"peak memory beyond the input, {case.title}": f"{peak:.0f} MiB (≤ {MEMORY_GOAL_MIB}: {verdict})",
        "the leader's SyncGroup at that size": f"{synced.mib:.1f} MiB, {synced.encode:.0f} ms to write; "
        f"{synced.decode:.0f} ms for the broker to read it and all members to read theirs",
    }


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    command = Command(
        "assignors",
        __doc__,
        [case.name for case in CASES],
        compare="with kafka-python, and Java if there is one",
        rounds=5,
        counts="of kohort's the fastest",
    )
    command.add_argument(
        "--peer-partitions", type=int, default=6000, help="largest case kafka-python is asked (default: 6000)"
    )
    return command.parse(argv)


def main() -> int:
    options = parse()
    cases = [case for case in CASES if case.name in options.wanted]
    begun = Begun()
    results = measure(cases, options)
    facts: dict[str, str] = {}
    for case in cases:
        if case.name == LARGE:
            facts |= large_facts(case, options.rounds)
    facts |= {key: value for key, value in _table.environment([]).items() if key in ("cores", "Python")}
    facts |= begun.facts()
    took = {case: {client: asdict(one) for client, one in of.items()} for case, of in results.items()}
    publish(table(cases, results), took, facts, options, "assignors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
