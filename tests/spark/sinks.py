"""Sinks of four kinds, which keep (partition, offset) of the records that they were given.

Each writes a batch in two halves, with a call of ``halfway`` between them: there a test may kill the process.
"""

from __future__ import annotations

import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

Row = tuple[int, int]


class Sink(ABC):
    """``write`` is given a batch's key, which is the same for a replay, and its rows."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    @abstractmethod
    def write(self, key: str, rows: Sequence[Row], halfway: Callable[[], None]) -> None: ...

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """All that readers of the sink see."""


class Append(Sink):
    """Adds what it is given: nothing tells a replay from a new batch."""

    @property
    def _file(self) -> Path:
        return self.folder / "rows"

    def write(self, key: str, rows: Sequence[Row], halfway: Callable[[], None]) -> None:  # noqa: ARG002
        for nth, half in enumerate(_halves(rows)):
            if nth:
                halfway()
            with self._file.open("a") as file:
                file.write(_lines(half))

    def rows(self) -> Iterator[Row]:
        yield from _read(self._file)


class Overwrite(Sink):
    """A file for each batch's key, written over itself by a replay."""

    def write(self, key: str, rows: Sequence[Row], halfway: Callable[[], None]) -> None:
        first, second = _halves(rows)
        with (self.folder / key).open("w") as file:
            file.write(_lines(first))
            file.flush()
            halfway()
            file.write(_lines(second))

    def rows(self) -> Iterator[Row]:
        for file in self.folder.iterdir():
            yield from _read(file)


class SkipIfApplied(Sink):
    """A file for each batch's key, which is there or not; a key that is there is not written again."""

    def write(self, key: str, rows: Sequence[Row], halfway: Callable[[], None]) -> None:
        applied = self.folder / f"{key}.done"
        if applied.exists():
            return
        temporary = self.folder / f"{key}.new"
        first, second = _halves(rows)
        temporary.write_text(_lines(first))
        halfway()
        with temporary.open("a") as file:
            file.write(_lines(second))
        os.replace(temporary, applied)

    def rows(self) -> Iterator[Row]:
        for file in self.folder.glob("*.done"):
            yield from _read(file)


class LedgerInDatabase(Sink):
    """Rows and the batch's key in one transaction of a database."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with closing(self._open()) as database:
            database.execute("create table if not exists ledger (key text primary key)")
            database.execute("create table if not exists row (partition integer, at integer)")
            database.commit()

    def write(self, key: str, rows: Sequence[Row], halfway: Callable[[], None]) -> None:
        with closing(self._open()) as database:
            if database.execute("select 1 from ledger where key = ?", (key,)).fetchone():
                return
            for nth, half in enumerate(_halves(rows)):
                if nth:
                    halfway()
                database.executemany("insert into row values (?, ?)", half)
            database.execute("insert into ledger values (?)", (key,))
            database.commit()

    def rows(self) -> Iterator[Row]:
        with closing(self._open()) as database:
            yield from database.execute("select partition, at from row").fetchall()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "database", timeout=60)


SINKS: dict[str, type[Sink]] = {
    "append": Append,
    "overwrite": Overwrite,
    "skip-if-applied": SkipIfApplied,
    "ledger": LedgerInDatabase,
}


def _halves(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    return rows[: len(rows) // 2], rows[len(rows) // 2 :]


def _lines(rows: Iterable[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _read(file: Path) -> Iterator[Row]:
    for line in file.read_text().splitlines() if file.exists() else ():
        partition, offset = json.loads(line)
        yield partition, offset
