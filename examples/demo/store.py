"""The services' database: one row for each flight, with partition and offset of its record as the primary
key.

A record that is handled twice, because a service was killed before the commit, has its row already, so
nothing counts twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from data import Figures, Table

SCHEMA = """
CREATE TABLE IF NOT EXISTS delays (
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    carrier   TEXT    NOT NULL,
    origin    TEXT    NOT NULL,
    month     INTEGER NOT NULL,
    dep_delay INTEGER,
    service   TEXT    NOT NULL,
    PRIMARY KEY (partition, "offset")
) WITHOUT ROWID
"""

#: partition, offset, carrier, origin, month, departure delay (None: cancelled), name of the service
Row = tuple[int, int, str, str, int, int | None, str]


class Store:
    """A connection to the database. Several processes may each have one."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(SCHEMA)

    def keep(self, rows: Iterable[Row]) -> None:
        """Write rows in one transaction. Rows that exist already stay unchanged."""
        with self._db:
            self._db.executemany("INSERT OR IGNORE INTO delays VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def count(self) -> int:
        """Return the number of flights in the database."""
        (count,) = self._db.execute("SELECT count(*) FROM delays").fetchone()
        return int(count)

    def by_service(self) -> dict[str, int]:
        """Return the number of flights that each service has written."""
        return dict(
            self._db.execute("SELECT service, count(*) FROM delays GROUP BY service ORDER BY service")
        )

    def most_delayed_carrier(self) -> tuple[str, float]:
        """Return the carrier with the greatest mean delay, and that delay in minutes."""
        carrier, delay = self._db.execute(
            "SELECT carrier, avg(dep_delay) AS mean FROM delays GROUP BY carrier ORDER BY mean DESC LIMIT 1"
        ).fetchone()
        return str(carrier), float(delay)

    def figures(self) -> Table:
        """Return flights and delays per origin and month."""
        rows = self._db.execute(
            "SELECT origin, month, count(*), count(dep_delay), sum(dep_delay) "
            "FROM delays GROUP BY origin, month"
        )
        return {
            (origin, month): Figures(flights, departed, minutes or 0)
            for origin, month, flights, departed, minutes in rows
        }

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
