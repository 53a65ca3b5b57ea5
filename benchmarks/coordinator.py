"""Groups under load: rates, latencies, rebalances and memory, kohort beside Apache Kafka.

``python -m benchmarks.coordinator [--compare | --bootstrap HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures it; ``--compare`` starts an Apache Kafka too and measures both in turn.
``--bootstrap`` measures a broker that runs already and leaves out what needs one of its own.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from contextlib import ExitStack

from . import _table
from ._brokers import APACHE_KAFKA, KOHORT, Contender, Running, given
from ._command import Begun, Command, effort_of, publish, say
from ._connection import prepare
from ._load import ceiling
from ._rows import CONNECTIONS, FRESH, IDLE, PARTITIONS, ROWS, TOPIC, Effort, Figures, Part, Row, fresh

#: Of a broker of one's own only: it is started anew, or left with 100,000 groups.
OWN = (FRESH.name, IDLE.name)
NAMES = [FRESH.name, *(row.name for row in ROWS), IDLE.name]
#: A row counts as warm after so many seconds, when its last so many figures differ by no more than a tenth.
WARM_S, STEADY = 2.0, 4


class Run:
    """Measures the contenders in turn, the order of the turns changing from round to round."""

    def __init__(self, contenders: list[Contender], wanted: list[str], options: argparse.Namespace) -> None:
        self.contenders = contenders
        self.parts: list[Part] = [part for part in (FRESH, *ROWS, IDLE) if part.name in wanted]
        self.rounds: int = options.rounds
        self.warm_s: float = options.warm
        self.effort = effort_of(options, Effort())
        self.measured: dict[str, dict[str, list[Figures]]] = {
            contender.name: {part.name: [] for part in self.parts} for contender in contenders
        }
        self.versions: list[str] = []

    def __call__(self) -> None:
        if FRESH in self.parts:
            for number in range(self.rounds):
                for contender in self._turns(number):
                    self._keep(contender, FRESH, number, fresh(contender, self.effort))
        rows = [part for part in self.parts if isinstance(part, Row)]
        if not rows:
            return
        with ExitStack() as stack:
            running = {each.name: stack.enter_context(each.start()) for each in self.contenders}
            self.versions = [each.version for each in running.values() if each.version]
            for each in running.values():
                prepare(each.bootstrap, TOPIC, PARTITIONS)
            self._load([row for row in rows if row is not IDLE], running)
            if IDLE in rows:
                for contender in self.contenders:
                    self._measure(contender, IDLE, 0, running)

    def _load(self, rows: list[Row], running: dict[str, Running]) -> None:
        for row in rows:
            for contender in self.contenders:
                took = self._warm(row, running[contender.name].bootstrap)
                say(f"warmed   {row.name:18} {contender.name:14} in {took:.1f} s")
        for number in range(self.rounds):
            for row in rows:
                for contender in self._turns(number):
                    self._measure(contender, row, number, running)

    def _turns(self, number: int) -> list[Contender]:
        return self.contenders if number % 2 == 0 else self.contenders[::-1]

    def _warm(self, row: Row, bootstrap: str) -> float:
        """Run the row in small pieces until its first figure is steady or the time is up; seconds."""
        begin, seen = time.monotonic(), list[float]()
        while time.monotonic() - begin < self.warm_s:
            seen.append(row.run(bootstrap, self.effort.scaled(0.25))[row.metrics[0].key])
            last = seen[-STEADY:]
            settled = len(last) == STEADY and max(last) <= 1.1 * min(last)
            if settled and time.monotonic() - begin >= WARM_S:
                break
        return time.monotonic() - begin

    def _measure(self, contender: Contender, row: Row, number: int, running: dict[str, Running]) -> None:
        self._keep(contender, row, number, row.run(running[contender.name].bootstrap, self.effort))

    def _keep(self, contender: Contender, part: Part, number: int, figures: Figures) -> None:
        self.measured[contender.name][part.name].append(figures)
        shown = "  ".join(f"{key} {value:,.{0 if value >= 100 else 2}f}" for key, value in figures.items())
        say(f"round {number + 1}  {part.name:18} {contender.name:14} {shown}")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    command = Command(
        "coordinator",
        __doc__,
        NAMES,
        compare="with Apache Kafka; needs Java, Maven once",
    )
    command.takes_a_broker()
    command.add_argument(
        "--warm", type=float, default=8.0, metavar="S", help="at most, each row (default: 8)"
    )
    command.takes(Effort())
    return command.parse(argv, without=OWN)


def contenders(options: argparse.Namespace) -> list[Contender]:
    if options.bootstrap:
        return [given(options.bootstrap)]
    return [APACHE_KAFKA, KOHORT] if options.compare else [KOHORT]


def main() -> int:
    options = parse()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))  # a connection each of 1,000 members
    gc.disable()  # nothing here makes cycles, and a pause would be the broker's in the figures
    run = Run(contenders(options), options.wanted, options)
    begun = Begun()
    limit = ceiling(CONNECTIONS, 64, min(run.effort.seconds, 1.0))
    say(f"generator {_table.generator(limit)}")
    run()
    facts = _table.environment(run.versions) | begun.facts() | {"generator": _table.generator(limit)}
    peer = run.contenders[0].name if options.compare else None
    table = _table.table(run.measured, run.parts, run.contenders[-1].name, peer)
    publish(table, run.measured, facts, options, "coordinator")
    return 0


if __name__ == "__main__":
    sys.exit(main())
