"""The log under load: append, fetch, restart, load, look-up, memory, kohort beside Apache Kafka.

``python -m benchmarks.log [--compare] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures it; ``--compare`` starts an Apache Kafka too and measures both in turn.
Rows of kohort's code alone are measured in processes of their own.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from . import _table
from ._brokers import APACHE_KAFKA, KOHORT, Contender, Running
from ._command import Begun, Command, effort_of, publish, say
from ._log_rows import PARTS, Effort, LogPart
from ._rows import Figures

NAMES = [part.name for part in PARTS]


class Run:
    """Measures the contenders in turn, the order of the turns changing from round to round."""

    def __init__(self, contenders: list[Contender], options: argparse.Namespace) -> None:
        self.contenders = contenders
        self.parts: list[LogPart] = [part for part in PARTS if part.name in options.wanted]
        self.rounds: int = options.rounds
        self.effort = effort_of(options, Effort())
        self.measured: dict[str, dict[str, list[Figures]]] = {
            contender.name: {part.name: [] for part in self.parts} for contender in contenders
        }
        self.versions: list[str] = []

    def __call__(self) -> None:
        for number in range(self.rounds):
            for part in self.parts:
                if part.own:
                    self._keep(self.contenders[-1], part, number, part.run("", self.effort))
                elif part.restarts:
                    for contender in self._turns(number):
                        self._keep(contender, part, number, part.run(contender, self.effort))
        served = [part for part in self.parts if not part.own and not part.restarts]
        if not served:
            return
        with ExitStack() as stack:
            running = {each.name: stack.enter_context(each.start()) for each in self.contenders}
            self.versions = [each.version for each in running.values()]
            for part in served:
                self._serve(part, running)

    def _serve(self, part: LogPart, running: dict[str, Running]) -> None:
        for contender in self.contenders:  # what was never used is not warm
            part.run(running[contender.name].bootstrap, self.effort)
        for number in range(self.rounds):
            for contender in self._turns(number):
                figures = part.run(running[contender.name].bootstrap, self.effort)
                self._keep(contender, part, number, figures)

    def _turns(self, number: int) -> list[Contender]:
        return self.contenders if number % 2 == 0 else self.contenders[::-1]

    def _keep(self, contender: Contender, part: LogPart, number: int, figures: Figures) -> None:
        self.measured[contender.name][part.name].append(figures)
        shown = "  ".join(f"{key} {value:,.{0 if value >= 100 else 4}f}" for key, value in figures.items())
        say(f"round {number + 1}  {part.name:14} {contender.name:14} {shown}")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    command = Command(
        "log",
        __doc__,
        NAMES,
        compare="with Apache Kafka; needs Java, Maven once",
    )
    command.takes(Effort())
    return command.parse(argv)


def main() -> int:
    options = parse()
    run = Run([APACHE_KAFKA, KOHORT] if options.compare else [KOHORT], options)
    begun = Begun()
    run()
    facts = _table.environment(run.versions) | begun.facts()
    peers = [contender.name for contender in run.contenders[:-1]]
    publish(_table.table(run.measured, run.parts, KOHORT.name, peers), run.measured, facts, options, "log")
    return 0


if __name__ == "__main__":
    sys.exit(main())
