"""Consumers side by side: kohort's, kafka-python's, confluent-kafka's, aiokafka's; on both brokers.

``python -m benchmarks.consumer [--compare | --bootstrap HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures all clients on it; ``--compare`` starts an Apache Kafka too and measures
them on both. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable
from contextlib import ExitStack

from . import _table
from ._brokers import Contender, choose_contenders
from ._command import Begun, Command, effort_of, publish_all, say
from ._consumer_rows import ROWS, Effort, Row, measure, prepare
from ._rows import Figures

NAMES = [row.name for row in ROWS]
OURS = "kohort"
CLIENTS = ("kafka-python", "confluent-kafka", "aiokafka", "FastStream", OURS)
#: Rows with kohort's consumer alone, by their block of the page: a table of their own.
ALONE = {"consumer-protocols": ("rebalance_protocols",)}

#: By broker, row and client: the figures of each round.
Measured = dict[str, dict[str, dict[str, list[Figures]]]]


def run(brokers: list[Contender], options: argparse.Namespace) -> tuple[Measured, list[str]]:
    """Every row with every client on every broker, the order of the clients changing from round to round."""
    rows = [row for row in ROWS if row.name in options.wanted]
    effort = effort_of(options, Effort())
    measured: Measured = {
        broker.name: {row.name: {client: [] for client in row.works} for row in rows} for broker in brokers
    }
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start()) for each in brokers}
        for each in running.values():
            prepare(each.bootstrap, effort, rows)
        for number in range(options.rounds):
            # what two rows do alike is done once
            known: dict[tuple[str, str, str], Figures] = {}
            for row in (row for row in rows if number < row.rounds):
                for broker, at in running.items():
                    for client in list(row.works)[:: 1 if number % 2 == 0 else -1]:
                        what = broker, row.works[client], row.topic
                        if what not in known:
                            known[what] = measure(row, client, at.bootstrap, effort, number)
                            shown = "  ".join(f"{key} {value:,.2f}" for key, value in known[what].items())
                            say(f"round {number + 1}  {row.name:18} {broker:14} {client:16} {shown}")
                        measured[broker][row.name][client].append(known[what])
        return measured, [each.version for each in running.values() if each.version]


def tables(measured: Measured) -> dict[str, str]:
    """The tables by their block of the page; a block without a row that was measured has none."""
    names = {name for row in measured.values() for name in row}
    rows = [row for row in ROWS if row.name in names]
    apart = {block: [row for row in rows if row.name in alone] for block, alone in ALONE.items()}
    beside = [row for row in rows if not any(row.name in alone for alone in ALONE.values())]
    found = {"consumer": table(measured, CLIENTS, beside)} if beside else {}
    for block, those in apart.items():
        if those:
            clients = dict.fromkeys(client for row in those for client in row.works)
            found[block] = table(measured, tuple(clients), those)
    return found


def table(measured: Measured, clients: tuple[str, ...], rows: Iterable[Row]) -> str:
    """Aligned Markdown: a line for each figure of these rows on each broker."""
    lines = [["work", "unit", "broker", *clients, "ratio", "goal", ""]]
    for row in rows:
        for key, title in row.metrics.items():
            for broker, figures in measured.items():
                if row.name in figures:
                    lines.append(_line(row, key, title, broker, figures[row.name], clients))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines[2:]:
        line[:] = [cell if i < 3 else cell.rjust(widths[i]) for i, cell in enumerate(line)]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def _line(
    row: Row, key: str, title: str, broker: str, figures: dict[str, list[Figures]], clients: tuple[str, ...]
) -> list[str]:
    medians = {name: statistics.median(each[key] for each in rounds) for name, rounds in figures.items()}
    others = {name: value for name, value in medians.items() if name != OURS}
    best = (max if row.more_is_better else min)(others.values(), default=0.0)
    if row.beside or row.published:
        best = medians[row.beside] if row.beside else row.published[key]
    ratio = medians[OURS] / best
    cells = [f"{medians[name]:,.{row.digits}f}" if name in medians else "-" for name in clients]
    goal = f"{'≥' if row.more_is_better else '≤'} {row.goal:g}"
    verdict = "met" if row.met(ratio) else "missed"
    return [row.title + title, row.unit, broker, *cells, f"{ratio:.2f}", goal, verdict]


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    command = Command(
        "consumer",
        __doc__,
        NAMES,
        compare="on Apache Kafka too; needs Java, Maven once",
    )
    command.takes_a_broker()
    command.takes(Effort())
    return command.parse(argv)


def main() -> int:
    options = parse()
    begun = Begun()
    measured, versions = run(choose_contenders(options), options)
    facts = _table.environment(versions) | begun.facts()
    publish_all(tables(measured), measured, facts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
