"""The log under load: append, fetch, restart, load, look-up, memory, kohort beside Apache Kafka.

``python -m benchmarks.log [--compare] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures it; ``--compare`` starts an Apache Kafka too and measures both in turn.
Rows of kohort's code alone are measured in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from . import _table
from ._brokers import APACHE_KAFKA, KOHORT, Contender, Running
from ._log_rows import PARTS, Effort, LogPart
from ._rows import Figures

NAMES = [part.name for part in PARTS]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Run:
    """Measures the contenders in turn, the order of the turns changing from round to round."""

    def __init__(self, contenders: list[Contender], options: argparse.Namespace) -> None:
        self.contenders = contenders
        self.parts: list[LogPart] = [part for part in PARTS if part.name in options.wanted]
        self.rounds: int = options.rounds
        self.effort = Effort(**{name: value for name, value in options.effort if value is not None})
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
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.log",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--compare", action="store_true", help="with Apache Kafka; needs Java, Maven once")
    parser.add_argument("--only", metavar="ROW,...", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median counts (default: 3)")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="raw figures; -: on the output")
    parser.add_argument("--update-docs", action="store_true", help="write the table into docs/performance.md")
    size = parser.add_argument_group("how much of each row a round does")
    for name, value in Effort().items():
        size.add_argument(f"--{name}", type=type(value), help=f"(default: {value})")
    options = parser.parse_args(argv)
    options.effort = [(name, getattr(options, name)) for name, _ in Effort().items()]
    options.wanted = options.only.split(",") if options.only else NAMES
    if unknown := sorted(set(options.wanted) - set(NAMES)):
        parser.error(f"no row here is named {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main() -> int:
    options = parse()
    run = Run([APACHE_KAFKA, KOHORT] if options.compare else [KOHORT], options)
    load, begin = _table.loads(), time.monotonic()
    run()
    facts = _table.environment(run.versions) | {
        "load average": f"{load} before, {_table.loads()} after {time.monotonic() - begin:,.0f} s"
    }
    peer = run.contenders[0].name if options.compare else None
    text = _table.table(run.measured, run.parts, KOHORT.name, peer)
    text += "\n\n" + "\n".join(f"- {key}: {value}" for key, value in facts.items())
    raw = json.dumps({"environment": facts, "figures": run.measured}, indent=1)
    if options.json and options.json != "-":
        Path(options.json).write_text(raw + "\n")
    print(raw if options.json == "-" else text)
    if options.update_docs:
        _table.update_page(text, "log")
    return 0


if __name__ == "__main__":
    sys.exit(main())
