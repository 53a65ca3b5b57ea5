"""Writes rows to the file of a recording, and reads them back."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from .file import open_readable
from .rows import (
    MAX_CAUSE,
    MAX_DETAILS,
    MAX_EXTRAS,
    MAX_TEXT,
    EventRow,
    GroupRecording,
    KeptRow,
    LagSample,
    Loss,
    Stretch,
)
from .thinning import FileTransaction, set_mark

#: Bytes that a row takes in the file beside its texts, about, with its entry in the index.
_ROW_BYTES: Final = 60

#: What most details and extras are made of: compressed with it, a short text takes half as much.
_USUAL: Final = (
    b'"left":[],"joined":[],"moves":[["partitions_total":,"partitions_moved":,"slowest":"","slowest_ms":0,'
    b'"cause_kind":"session_expired","protocol_type":"consumer","protocol":"cooperative-sticky","sync_ms":'
    b',"join_ms":,"duration_ms":,"members_before":,"members":,"leader":"{"instance_id":null,"cause_kind":"'
)

#: Most samples that one reading returns: every second one goes until it is so.
MOST_SAMPLES: Final = 2_000

#: Latest time: SQLite has no larger numbers.
END_OF_TIME: Final = 2**62


class Store:
    """The writing side of a file, for one thread. Methods are transactions, and raise sqlite3.Error."""

    def __init__(self, connection: sqlite3.Connection, now_ms: int) -> None:
        self.connection = connection
        self._group_ids: dict[str, int] = {}
        self._run_id = 0
        self.begin_run(now_ms)

    def begin_run(self, now_ms: int) -> None:
        """Begin a stretch of time in which this process is there; what was watched before ended with it."""
        with FileTransaction(self.connection):
            done = self.connection.execute("INSERT INTO runs(alive_ms) VALUES (?)", (now_ms,))
        self._run_id = done.lastrowid or 0

    def watch(self, scope: str, from_ms: int) -> None:
        """Begin a stretch of time in which everything in ``scope`` is recorded."""
        with FileTransaction(self.connection):
            self.connection.execute(
                "INSERT INTO spans(run_id, scope, from_ms) VALUES (?, ?, ?)", (self._run_id, scope, from_ms)
            )

    def end_watch(self, scope: str, until_ms: int) -> None:
        """End the stretch of time that began last in ``scope``."""
        with FileTransaction(self.connection):
            self.connection.execute(
                "UPDATE spans SET until_ms = max(from_ms, ?)"
                " WHERE run_id = ? AND scope = ? AND until_ms IS NULL",
                (until_ms, self._run_id, scope),
            )

    def mark(self, name: str, value: int) -> None:
        """Raise a mark of the file to ``value``."""
        with FileTransaction(self.connection):
            set_mark(self.connection, name, value)

    def write(
        self,
        rows: Iterable[EventRow],
        samples: Iterable[LagSample],
        losses: Iterable[Loss],
        alive_ms: int | None,
    ) -> None:
        """Write rows, and that everything was watched until ``alive_ms``, unless more rows are to come."""
        try:
            with FileTransaction(self.connection):
                self._insert_events(rows)
                self.connection.executemany(
                    "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?)",
                    ((self._id_of(each.group), each.timestamp_ms // 1_000, *each[2:]) for each in samples),
                )
                self.connection.executemany(
                    "INSERT INTO losses(group_name, from_ms, until_ms, count) VALUES (?, ?, ?, ?)", losses
                )
                if alive_ms is not None:
                    # a clock that went back is believed: better too short than longer than is known
                    self.connection.execute(
                        "UPDATE runs SET alive_ms = ? WHERE id = ?", (alive_ms, self._run_id)
                    )
        except BaseException:
            # groups that were new are not there
            self._group_ids.clear()
            raise

    def forget_ids(self) -> None:
        """Look groups up again: some may have gone with all that they had."""
        self._group_ids.clear()

    def _insert_events(self, rows: Iterable[EventRow]) -> None:
        sizes: dict[int, int] = {}
        for row in rows:
            group_id = self._id_of(row.group)
            values = _values_of(row)
            size = _ROW_BYTES + sum(len(value) for value in values if isinstance(value, str | bytes))
            done = self.connection.execute(
                "INSERT INTO events(group_id, at_ms, kind, generation, cause, member, client_id, client_host,"
                " lasting, details, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (group_id, *values, size),
            )
            extras = row.extras.encode("utf-8", "replace")
            if 0 < len(extras) <= MAX_EXTRAS:
                packed = _pack(extras)
                size += len(packed)
                self.connection.execute(
                    "INSERT INTO extras VALUES (?, ?, ?, ?)",
                    (done.lastrowid, group_id, row.timestamp_ms, packed),
                )
            sizes[group_id] = sizes.get(group_id, 0) + size
        self.connection.executemany(
            "UPDATE groups SET bytes = bytes + ? WHERE id = ?", ((size, key) for key, size in sizes.items())
        )

    def _id_of(self, group: str) -> int:
        group = _as_text(group)
        known = self._group_ids.get(group)
        if known is None:
            self.connection.execute(
                "INSERT OR IGNORE INTO groups(name, bytes) VALUES (?, ?)", (group, len(group))
            )
            (known,) = self.connection.execute("SELECT id FROM groups WHERE name = ?", (group,)).fetchone()
            assert isinstance(known, int), "an id"
            self._group_ids[group] = known
        return known


def _values_of(row: EventRow) -> tuple[object, ...]:
    return (
        row.timestamp_ms,
        row.kind,
        row.generation,
        _cut(row.cause, MAX_CAUSE),
        *(_cut(text, MAX_TEXT) for text in (row.member, row.client_id, row.client_host)),
        row.lasting,
        _pack(row.details.encode("utf-8", "replace") if len(row.details) <= MAX_DETAILS else b""),
    )


def _cut(text: str, length: int) -> str:
    text = text if len(text) <= length else f"{text[:length]}..."
    # SQLite takes no lone surrogates
    return text.encode("utf-8", "replace").decode()


def read_group(
    folder: Path,
    group: str,
    from_ms: int,
    until_ms: int,
    *,
    scopes: Sequence[str] | None = ("",),
    limit: int = 1_000,
    before: tuple[int, int] | None = None,
    only_lasting: bool = False,
) -> GroupRecording:
    """Read what is recorded of a group from ``from_ms`` until ``until_ms``: the newest ``limit`` rows, those
    before the row with this time and number. It was watched where one of ``scopes`` was; None: where any was.
    Raises sqlite3.Error.
    """
    connection = open_readable(folder)
    try:
        # all of it as it is at one moment
        connection.execute("BEGIN")
        found = connection.execute(
            "SELECT id, details_from_ms, events_from_ms FROM groups WHERE name = ?", (_as_text(group),)
        ).fetchone()
        rows: list[KeptRow] = []
        has_older = False
        samples: tuple[LagSample, ...] = ()
        if found is not None:
            last_ms, last = before or (until_ms, END_OF_TIME)
            stretch = (found[0], from_ms, min(last_ms, until_ms), last_ms, last)
            rows, has_older = _read_events(connection, group, stretch, only_lasting, limit)
            samples = _read_samples(connection, group, found[0], from_ms, until_ms)
        marks = dict(connection.execute("SELECT name, value FROM marks").fetchall())
        return GroupRecording(
            _read_spans(connection, scopes, from_ms, until_ms),
            _read_losses(connection, group, from_ms, until_ms),
            tuple(rows),
            samples,
            details_from_ms=found[1] if found else 0,
            events_from_ms=found[2] if found else 0,
            samples_from_ms=marks.get("samples_from_ms", 0),
            hidden_ms=marks.get("hidden_ms", 0),
            has_older=has_older,
        )
    finally:
        connection.close()


def group_names(folder: Path) -> list[str]:
    """Names of all groups that are recorded, in order. Raises sqlite3.Error."""
    connection = open_readable(folder)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM groups ORDER BY name")]
    finally:
        connection.close()


def _as_text(group: str) -> str:
    return group.encode("utf-8", "replace").decode()


def _read_events(
    connection: sqlite3.Connection,
    group: str,
    stretch: tuple[int, int, int, int, int],
    only_lasting: bool,
    limit: int,
) -> tuple[list[KeptRow], bool]:
    found = connection.execute(
        "SELECT id, events.at_ms, kind, generation, cause, member, client_id, client_host, lasting, details,"
        " data FROM events LEFT JOIN extras ON event_id = id"
        " WHERE events.group_id = ? AND events.at_ms >= ? AND events.at_ms <= ?"
        f" AND (events.at_ms, id) < (?, ?){' AND lasting' if only_lasting else ''}"
        " ORDER BY events.at_ms DESC, id DESC LIMIT ?",
        (*stretch, limit + 1),
    ).fetchall()
    rows = [
        KeptRow(number, EventRow._make((group, *values, bool(lasting), _unpack(details), _unpack(data))))
        for number, *values, lasting, details, data in reversed(found[:limit])
    ]
    return rows, len(found) > limit


def _pack(text: bytes) -> bytes:
    if not text:
        return b""
    packing = zlib.compressobj(1, wbits=-zlib.MAX_WBITS, zdict=_USUAL)
    return packing.compress(text) + packing.flush()


def _unpack(data: bytes | None) -> str:
    if not data:
        return ""
    try:
        return zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=_USUAL).decompress(data).decode()
    except (zlib.error, UnicodeDecodeError):
        return ""  # a damage: the rest of the row is still of use


def _read_samples(
    connection: sqlite3.Connection, group: str, group_id: int, from_ms: int, until_ms: int
) -> tuple[LagSample, ...]:
    found = connection.execute(
        "SELECT at_s, records, age_ms, members FROM samples"
        " WHERE group_id = ? AND at_s >= ? AND at_s <= ? ORDER BY at_s",
        (group_id, from_ms // 1_000, until_ms // 1_000),
    ).fetchall()
    return tuple(LagSample(group, at_s * 1_000, *rest) for at_s, *rest in _thin_out(found))


#: A time in seconds, records, age, members.
_Point: TypeAlias = tuple[int, int | None, int | None, int | None]


def _thin_out(found: list[_Point]) -> list[_Point]:
    """The highest of as many neighbours as it takes for MOST_SAMPLES to be left."""
    size = -(-len(found) // MOST_SAMPLES)
    if size <= 1:
        return found
    parts = (found[at : at + size] for at in range(0, len(found), size))
    return [max(part, key=lambda each: -1 if each[1] is None else each[1]) for part in parts]


def _read_spans(
    connection: sqlite3.Connection, scopes: Sequence[str] | None, from_ms: int, until_ms: int
) -> tuple[Stretch, ...]:
    of_scopes = "" if scopes is None else f" WHERE scope IN ({', '.join('?' * len(scopes))})"
    found = connection.execute(
        "SELECT from_ms, until FROM (SELECT from_ms, coalesce(until_ms, alive_ms) AS until"
        f" FROM spans JOIN runs ON runs.id = run_id{of_scopes})"
        " WHERE until >= ? AND from_ms <= ? ORDER BY from_ms",
        (*(scopes or ()), from_ms, until_ms),
    )
    return tuple(Stretch(*row) for row in found)


def _read_losses(connection: sqlite3.Connection, group: str, from_ms: int, until_ms: int) -> tuple[Loss, ...]:
    found = connection.execute(
        "SELECT group_name, from_ms, until_ms, count FROM losses"
        " WHERE group_name IN ('', ?) AND until_ms >= ? AND from_ms <= ? ORDER BY from_ms",
        (_as_text(group), from_ms, until_ms),
    )
    return tuple(Loss(*row) for row in found)
