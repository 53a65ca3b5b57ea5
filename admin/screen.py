"""Output of commands: results on standard output, remarks on standard error; JSON, and exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


#: Exit codes. REFUSED: the broker refused, or there is no such group. UNREACHABLE: no broker answered.
OK, REFUSED, WRONG_USE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

#: Columns below which a table is unreadable.
_LEAST_WIDTH = 40
#: A pipe has no width: each row stays on one line, for ``grep`` and ``cut``.
_PIPE_WIDTH = 100_000


class Screen:
    """Tables for people, one JSON document for programs.

    ``progress`` is for long reads; it writes to standard error, and only where that is a terminal.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._progressing = False

    @property
    def live(self) -> bool:
        """Return whether output can be redrawn in place."""
        return not self.as_json and sys.stdout.isatty()

    def console(self) -> Console:
        """rich's console for standard output."""
        from rich.console import Console

        if sys.stdout.isatty() or "COLUMNS" in os.environ:
            console = Console(file=sys.stdout, highlight=False)
            console.width = max(console.width, _LEAST_WIDTH)
            return console
        return Console(file=sys.stdout, highlight=False, width=_PIPE_WIDTH)

    def show(self, *parts: object) -> None:
        """Print tables and texts, a blank line between them."""
        self._end_progress()
        console = self.console()
        with console.capture() as captured:
            for number, part in enumerate(parts):
                if number:
                    console.print()
                console.print(part)
        self.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")

    def document(self, value: object, *, one_line: bool = False) -> None:
        """Write a value as JSON, indented or on one line."""
        self._end_progress()
        self.write(document(value, indent=None if one_line else 2) + "\n")

    def write(self, text: str) -> None:
        """Plain text to standard output, at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def remark(self, *remarks: str) -> None:
        """A line each, for people only: programs that read standard output do not see it."""
        # the records matter, and nobody may be there for this
        with suppress(OSError):
            for words in remarks:
                self._end_progress()
                print(f"({words})", file=sys.stderr)

    def progress(self, done: int, total: int) -> None:
        """Show how far the reading of a group's records is."""
        self.status(f"read {done:,} of at most {total:,} offsets of __consumer_offsets")

    def status(self, words: str) -> None:
        """A line that the next output replaces, on a terminal."""
        if sys.stderr.isatty():
            self._progressing = True
            sys.stderr.write(f"\r{words} ")
            sys.stderr.flush()

    def _end_progress(self) -> None:
        if self._progressing:
            self._progressing = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def ask_agreement(question: str) -> bool:
    """Ask for confirmation on a terminal; a program is taken at its word."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def drop_output() -> None:
    """Send standard output to the null device: the interpreter would fail on what is left of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(value: object) -> Any:
    """The value in lists, dicts, strings and numbers."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def document(value: object, *, indent: int | None = 2) -> str:
    """Return a value as JSON; data classes are objects, bytes and enums as ``plain`` has them."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False)
