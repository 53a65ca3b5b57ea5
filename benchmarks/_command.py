"""What the benchmarks' command lines have in common: options, what goes on, and where the figures go."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from . import _table
from ._processes import others_seconds

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Effort = TypeVar("Effort", bound=DataclassInstance)


def say(text: str) -> None:
    """How it goes on; the output is for the figures."""
    print(text, file=sys.stderr, flush=True)


class Command(argparse.ArgumentParser):
    """``python -m benchmarks.NAME``: which rows, how often, and where the figures go."""

    def __init__(
        self,
        name: str,
        describes: str | None,
        rows: Sequence[str],
        *,
        compare: str,
        rounds: int = 3,
        counts: str = "the median",
    ) -> None:
        super().__init__(
            prog=f"python -m benchmarks.{name}",
            description=describes,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._rows = rows
        #: Of these at most one is given.
        self.which = self.add_mutually_exclusive_group()
        self.which.add_argument("--compare", action="store_true", help=compare)
        self.add_argument("--only", metavar="ROW,...", help=f"of {', '.join(rows)}")
        chosen = f"of which {counts} counts (default: {rounds})"
        self.add_argument("--rounds", type=int, default=rounds, help=chosen)
        raw = "raw figures; -: on the output"
        self.add_argument("--json", metavar="FILE", nargs="?", const="-", help=raw)
        self.add_argument(
            "--update-docs", action="store_true", help=f"write the table into docs/{_table.PAGE.name}"
        )

    def takes_a_broker(self) -> None:
        self.which.add_argument("--bootstrap", metavar="HOST:PORT", help="a broker that runs already")

    def takes(self, effort: DataclassInstance) -> None:
        """An option for each bound of how much a row does."""
        size = self.add_argument_group("how much of each row a round does")
        for name, value in asdict(effort).items():
            option = f"--{name.replace('_', '-')}"
            size.add_argument(option, type=type(value), default=value, help=f"(default: {value:,})")

    def parse(self, argv: list[str] | None, without: Iterable[str] = ()) -> argparse.Namespace:
        """``wanted`` are the names of the rows; with a given broker, or one with TLS, those ``without`` it
        cannot be.
        """
        options = self.parse_args(argv)
        other = getattr(options, "bootstrap", None) or getattr(options, "tls", False)
        possible = [name for name in self._rows if not (other and name in without)]
        options.wanted = options.only.split(",") if options.only else possible
        if unknown := sorted(set(options.wanted) - set(possible)):
            self.error(f"no row here is named {', '.join(unknown)}; there are {', '.join(possible)}")
        if options.rounds < 1:
            self.error("--rounds must be at least 1")
        return options


def effort_of(options: argparse.Namespace, effort: Effort) -> Effort:
    """The bounds as the command line has them."""
    return replace(effort, **{name: getattr(options, name) for name in asdict(effort)})


def _loads() -> str:
    """The load averages of the last 1, 5 and 15 minutes."""
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


@dataclass(frozen=True, slots=True)
class Begun:
    """When a run began, and how busy the machine was then."""

    loads: str = field(default_factory=_loads)
    at: float = field(default_factory=time.monotonic)
    others: float = field(default_factory=others_seconds)

    def facts(self) -> dict[str, str]:
        took = time.monotonic() - self.at
        return {"load average": f"{self.loads} before, {_loads()} after {took:,.0f} s"}

    def others_share(self) -> float:
        """What other programs have taken of all processors since then, from 0 to 1."""
        whole = (time.monotonic() - self.at) * (os.cpu_count() or 1)
        return max(0.0, others_seconds() - self.others) / whole


def publish(
    table: str, figures: Mapping[str, Any], facts: Mapping[str, str], options: argparse.Namespace, block: str
) -> None:
    """The table or the raw figures on the output, and into the file and the page that were asked for."""
    publish_all({block: table}, figures, facts, options)


def publish_all(
    tables: Mapping[str, str],
    figures: Mapping[str, Any],
    facts: Mapping[str, str],
    options: argparse.Namespace,
) -> None:
    """As ``publish``, tables by the block of the page that each is for."""
    told = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    texts = {block: f"{table}\n\n{told}" for block, table in tables.items()}
    raw = json.dumps({"environment": facts, "figures": figures}, indent=1)
    if options.json and options.json != "-":
        Path(options.json).write_text(raw + "\n")
    print(raw if options.json == "-" else "\n\n".join(texts.values()))
    if options.update_docs:
        for block, text in texts.items():
            _table.update_page(text, block)
