"""The driver of benchmarks that do the same rows of work on kohort and on Apache Kafka."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from . import _table
from ._command import Begun, Command, effort_of, publish, say
from ._rows import Figures

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def compare(
    name: str,
    describes: str | None,
    sides: Sequence[Any],
    rows: Sequence[Any],
    effort: DataclassInstance,
    argv: list[str] | None,
    *,
    start: Callable[[Any, argparse.Namespace], AbstractContextManager[Any]],
    at_once: bool,
    needs: str,
    facts: Callable[[argparse.Namespace], Mapping[str, str]] = lambda _: {},
) -> int:
    """The benchmark's command: it does the rows on the last of the sides, or on all with ``--compare``.

    ``start`` gives what ``Row.run`` gets, which has a ``version``. The sides run ``at_once``, their order
    changing from round to round, or one by one, where each needs the machine for itself.
    """
    command = Command(name, describes, [row.name for row in rows], compare=needs)
    command.takes(effort)
    options = command.parse(argv)
    begun, bounds = Begun(), effort_of(options, effort)
    chosen = list(sides if options.compare else sides[-1:])
    wanted = [row for row in rows if row.name in options.wanted]
    measured = {side.name: {row.name: list[Figures]() for row in wanted} for side in chosen}
    versions: list[str] = []
    for together in [chosen] if at_once else [[side] for side in chosen]:
        with ExitStack() as stack:
            running = {side.name: stack.enter_context(start(side, options)) for side in together}
            versions += [each.version for each in running.values()]
            for number in range(options.rounds):
                for row in wanted:
                    for side in list(running)[:: 1 if number % 2 == 0 else -1]:
                        figures = row.run(running[side], bounds)
                        measured[side][row.name].append(figures)
                        shown = "  ".join(f"{key} {value:,.2f}" for key, value in figures.items())
                        say(f"round {number + 1}  {row.name:10} {side:14} {shown}")
    environment = {**_table.environment(versions), **facts(options), **begun.facts()}
    table = _table.table(measured, wanted, chosen[-1].name, [side.name for side in chosen[:-1]])
    publish(table, measured, environment, options, name.replace("_", "-"))
    return 0
