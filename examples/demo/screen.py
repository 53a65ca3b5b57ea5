"""The demo's output: headlines, lines, a progress line, a table. Uses rich if it is installed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

#: Without a terminal, progress is printed as a line at this interval.
PLAIN_EVERY_S = 3.0


class Update(Protocol):
    """Sets the number of a progress line."""

    def __call__(self, done: int) -> None: ...


class Screen:
    """Standard output, as a terminal or as a file."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._console = _rich_console()

    def headline(self, text: str) -> None:
        """Print the headline of a stage."""
        self._print(f"\n{text}", bold=True)

    def line(self, text: str) -> None:
        """Print a line, with the time since the start in seconds."""
        self._print(f"  {time.monotonic() - self._began:5.1f} s  {text}")

    def result(self, text: str) -> None:
        """Print the final result."""
        self._print(f"\n{text}", bold=True)

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Update]:
        """Show a progress line during the block."""
        if self._console is not None and self._console.is_terminal:
            with _rich_progress(self._console) as bar:
                task = bar.add_task(what, total=total)
                yield lambda done: bar.update(task, completed=done)
            return
        plain = _PlainProgress(self, what, total)
        yield plain.update
        plain.finish()

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int) -> None:
        """Print a table. The first ``text_columns`` columns are text, the others numbers."""
        if self._console is None:
            _plain_table(columns, rows, text_columns)
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
        for at, column in enumerate(columns):
            table.add_column(column, justify="left" if at < text_columns else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    def _print(self, text: str, *, bold: bool = False) -> None:
        if self._console is None:
            print(text, flush=True)
        else:
            self._console.print(text, style="bold" if bold else None, markup=False, soft_wrap=True)


class _PlainProgress:
    def __init__(self, screen: Screen, what: str, total: int) -> None:
        self._screen, self._what, self._total = screen, what, total
        self._shown_at = time.monotonic()
        self._shown = self._done = 0

    def update(self, done: int) -> None:
        self._done = done
        if time.monotonic() - self._shown_at >= PLAIN_EVERY_S:
            self._show()

    def finish(self) -> None:
        if self._done != self._shown:
            self._show()

    def _show(self) -> None:
        share = 100 * self._done // self._total
        self._screen.line(f"{self._what}: {self._done:,} of {self._total:,} ({share} %)")
        self._shown, self._shown_at = self._done, time.monotonic()


def _rich_console() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def _rich_progress(console: Any) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int) -> None:
    widths = [max(len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    for row in (columns, ["-" * width for width in widths], *rows):
        cells = (
            text.ljust(width) if at < text_columns else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells))
    sys.stdout.flush()
