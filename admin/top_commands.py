"""``kohort top``: a live look at a broker's metrics."""

from __future__ import annotations

import argparse
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

from .commands import OK, UNREACHABLE, WRONG_USE
from .top import Look, escaped, look_at, rows_of

if TYPE_CHECKING:
    from rich.console import Console, Group

#: How often at least and at most to look.
_LEAST_S, _MOST_S = 0.1, 3_600

_TIMEOUT_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words behind ``kohort top``."""
    parser.add_argument("address", metavar="HOST:PORT", help="the broker's --metrics-port")
    parser.add_argument(
        "--interval",
        type=_seconds,
        default=2.0,
        metavar="S",
        help="seconds between two looks (default: %(default)s)",
    )
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="rows of each table (default: 10)")
    parser.add_argument("--once", action="store_true", help="print one look, over one interval, and end")


def run(options: argparse.Namespace) -> int:
    """Show looks until interrupted; gives the exit code."""
    from rich.console import Console

    console = Console()
    try:
        if options.once:
            first, second = _two_looks(options)
            console.print(_screen(first, second, options))
        else:
            _live(console, options)
    except ImportError:
        print("kohort top: it needs prometheus-client: pip install 'kohort[service]'", file=sys.stderr)
        return WRONG_USE
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        print(
            f"kohort top: no metrics at {options.address} ({reason}): start the broker with --metrics-port",
            file=sys.stderr,
        )
        return UNREACHABLE
    except KeyboardInterrupt:
        pass
    return OK


def _two_looks(options: argparse.Namespace) -> tuple[Look, Look]:
    first = _fetch(options.address)
    time.sleep(options.interval)
    return first, _fetch(options.address)


def _live(console: Console, options: argparse.Namespace) -> None:
    from rich.live import Live

    before, now = _two_looks(options)
    with Live(_screen(before, now, options), console=console, screen=console.is_terminal) as live:
        while True:
            time.sleep(options.interval)
            before, now = now, _fetch(options.address)
            live.update(_screen(before, now, options))


def _fetch(address: str) -> Look:
    """A look at this moment. Raises OSError, and ValueError for what is no metrics."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT_S) as answer:
        return look_at(str(answer.read(), "utf-8"), time.monotonic())


def _screen(before: Look, now: Look, options: argparse.Namespace) -> Group:
    """All tables, with what was between two looks."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = rows_of(before, now, options.rows)
    tables: list[Table | Text] = [Text(escaped(f"{options.address}  {shown.headline}"), style="bold")]
    for title, columns, rows in shown.tables:
        if not rows:
            continue
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(escaped(cell)) for cell in row))
        tables.append(table)
    return Group(*tables)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _LEAST_S <= value <= _MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, {_LEAST_S:g} to {_MOST_S:,}")
    return value
