"""Groups under load: rates, latencies, rebalances and memory, kohort beside Apache Kafka.

``python -m benchmarks.coordinator [--compare | --bootstrap HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures it; ``--compare`` starts an Apache Kafka too and measures both in turn.
``--bootstrap`` measures a broker that runs already and leaves out what needs one of its own. ``--beside``
measures one more that runs already, in the same turns. ``--tls`` runs each row over TLS too, and asks that
the ratio be the same; ``--guards`` compares a kohort with one that has hundreds of access rules and quotas.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from . import _table
from ._brokers import APACHE_KAFKA, APACHE_KAFKA_TLS, KOHORT, KOHORT_TLS, Contender, given
from ._command import Begun, Command, effort_of, publish, say
from ._connection import prepare
from ._guards import GUARDED
from ._load import ceiling
from ._rows import (
    CONNECTIONS,
    FRESH,
    IDLE,
    PARTITIONS,
    ROWS,
    TOPIC,
    Effort,
    Figures,
    Metric,
    Part,
    Row,
    fresh,
)

#: Of a broker of one's own only: it is started anew, or left with 100,000 groups.
OWN = (FRESH.name, IDLE.name)
NAMES = [FRESH.name, *(row.name for row in ROWS), IDLE.name]
#: What is added to the name of a broker whose TLS listener is measured.
TLS = ", TLS"
#: What access rules and quotas may cost: a twentieth.
GUARDS_COST = 0.05
#: A row counts as warm after so many seconds, when its last so many figures differ by no more than a tenth.
WARM_S, STEADY = 2.0, 4


T = TypeVar("T")


class Run:
    """Measures the contenders in turn, the order of the turns changing from round to round."""

    def __init__(self, contenders: list[Contender], wanted: list[str], options: argparse.Namespace) -> None:
        self.contenders = contenders
        self._own = [contender for contender in contenders if contender.own]
        self.parts: list[Part] = [part for part in (FRESH, *ROWS, IDLE) if part.name in wanted]
        self.rounds: int = options.rounds
        self.warm_s: float = options.warm
        #: Two processes that run the same code differ by a tenth: what is compared that closely is started
        #: anew for each round.
        self.anew: bool = options.guards
        self.effort = effort_of(options, Effort())
        names = [contender.name for contender in contenders]
        self.faces = [name + face for face in (("", TLS) if options.tls else ("",)) for name in names]
        self.measured: dict[str, dict[str, list[Figures]]] = {
            face: {part.name: [] for part in self.parts} for face in self.faces
        }
        self.versions: list[str] = []

    def __call__(self) -> None:
        if FRESH in self.parts:
            for number in range(self.rounds):
                for contender in self._turns(self._own, number):
                    self._keep(contender.name, FRESH, number, fresh(contender, self.effort))
        rows = [part for part in self.parts if isinstance(part, Row)]
        if not rows:
            return
        numbers = list(range(self.rounds))
        for some in [[number] for number in numbers] if self.anew else [numbers]:
            self._with_brokers(rows, some)

    def _with_brokers(self, rows: list[Row], numbers: list[int]) -> None:
        """These rounds, with brokers that are started for them."""
        with ExitStack() as stack:
            running = {each.name: stack.enter_context(each.start()) for each in self.contenders}
            self.versions = [each.version for each in running.values() if each.version]
            for each in running.values():
                prepare(each.bootstrap, TOPIC, PARTITIONS)
            addresses = {name: each.bootstrap for name, each in running.items()}
            addresses |= {name + TLS: each.tls for name, each in running.items() if each.tls}
            self._load([row for row in rows if row is not IDLE], addresses, numbers)
            if IDLE in rows:
                for contender in self._own:
                    self._measure(contender.name, IDLE, 0, addresses)

    def _load(self, rows: list[Row], addresses: dict[str, str], numbers: list[int]) -> None:
        for row in rows:
            for face in self.faces:
                took = self._warm(row, addresses[face])
                say(f"warmed   {row.name:18} {face:18} in {took:.1f} s")
        for number in numbers:
            for row in rows:
                for face in self._turns(self.faces, number):
                    self._measure(face, row, number, addresses)

    def _turns(self, who: list[T], number: int) -> list[T]:
        return who if number % 2 == 0 else who[::-1]

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

    def _measure(self, face: str, row: Row, number: int, addresses: dict[str, str]) -> None:
        self._keep(face, row, number, row.run(addresses[face], self.effort))

    def _keep(self, face: str, part: Part, number: int, figures: Figures) -> None:
        self.measured[face][part.name].append(figures)
        shown = "  ".join(f"{key} {value:,.{0 if value >= 100 else 2}f}" for key, value in figures.items())
        say(f"round {number + 1}  {part.name:18} {face:18} {shown}")

    def tables(self) -> list[str]:
        """The contenders beside each other, the last of them kohort; then the same with TLS."""
        parts = self.parts
        if self.contenders[-1] is GUARDED:
            parts = [replace(part, metrics=tuple(map(_guarded_goal, part.metrics))) for part in parts]
        tables = []
        for at in range(0, len(self.faces), len(self.contenders)):
            *peers, subject = self.faces[at : at + len(self.contenders)]
            if at and peers:  # the next are asked for what the first have
                parts = [
                    replace(part, metrics=tuple(self._same_goal(part, metric) for metric in part.metrics))
                    for part in parts
                ]
            tables.append(_table.table(self.measured, parts, subject, peers))
        return tables

    def _same_goal(self, part: Part, metric: Metric) -> Metric:
        peer, subject = self.faces[:2]
        ratio = _table.ratio(self.measured, part.name, metric, subject, peer)
        return replace(metric, goal=round(ratio, 2))


def _guarded_goal(metric: Metric) -> Metric:
    return replace(metric, goal=1 - GUARDS_COST if metric.more_is_better else 1 + GUARDS_COST, own=False)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    command = Command(
        "coordinator",
        __doc__,
        NAMES,
        compare="with Apache Kafka; needs Java, Maven once",
    )
    command.takes_a_broker()
    command.which.add_argument(
        "--guards", action="store_true", help="with a kohort that has rules and quotas"
    )
    command.add_argument(
        "--beside",
        metavar="NAME=HOST:PORT",
        action="append",
        default=[],
        help="with one more broker, which runs already; may be given again",
    )
    command.add_argument("--tls", action="store_true", help="each row over TLS too; needs openssl")
    command.add_argument(
        "--warm", type=float, default=8.0, metavar="S", help="at most, each row (default: 8)"
    )
    command.takes(Effort())
    options = command.parse(argv, without=OWN)
    if options.tls and (options.bootstrap or options.guards):
        command.error("--tls is for brokers that this starts: leave --bootstrap and --guards out")
    if options.beside and (options.tls or options.guards):
        command.error("--beside goes with neither --tls nor --guards")
    if unnamed := [each for each in options.beside if not all(each.partition("="))]:
        command.error(f"--beside takes NAME=HOST:PORT, not {unnamed[0]}")
    return options


def contenders(options: argparse.Namespace) -> list[Contender]:
    if options.guards:
        return [KOHORT, GUARDED]
    kafka, ours = (APACHE_KAFKA_TLS, KOHORT_TLS) if options.tls else (APACHE_KAFKA, KOHORT)
    if options.bootstrap:
        ours = given(options.bootstrap)
    beside = [given(address, name) for name, _, address in (each.partition("=") for each in options.beside)]
    return [*([kafka] if options.compare else []), *beside, ours]


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
    block = "coordinator"
    if options.tls or options.guards:
        block += "-tls" if options.tls else "-guards"
    publish("\n\n".join(run.tables()), run.measured, facts, options, block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
