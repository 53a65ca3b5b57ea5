"""How much of the past is kept: by age and by size, what is old with less detail than what is new.

Of samples of lag the highest of each step stays, so that a peak is seen however old it is. Of events details
go first: who joined, which partitions moved, what was refused. Rows that last say why a group rebalanced;
they go last. When the file is full, the group that takes the most of it loses first.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS

#: Age in ms from which of the samples in each step, in seconds, only the highest is kept.
SAMPLE_STEPS: Final = ((6 * _HOUR_MS, 600), (4 * _DAY_MS, 3_600))

#: Bytes that a sample takes in the file, about.
SAMPLE_BYTES: Final = 40

#: A full file is emptied to this share of its limit, so that it is not emptied again at once.
_ROOM_LEFT: Final = 0.9

#: Most steps of one emptying: each frees a part of what one group has.
_MOST_STEPS: Final = 2_000


@dataclass(frozen=True, slots=True)
class RecordingBounds:
    """``max_bytes`` of the file, ``keep_ms`` of time, and ``details_ms`` of time with every detail."""

    max_bytes: int = 100 << 20
    keep_ms: int = 7 * _DAY_MS
    details_ms: int = _DAY_MS


def thin_by_age(connection: sqlite3.Connection, bounds: RecordingBounds, now_ms: int) -> None:
    """Drop what is too old, and details of what is old. Raises sqlite3.Error."""
    details_ms, oldest_ms = now_ms - bounds.details_ms, now_ms - bounds.keep_ms
    for (group_id,) in connection.execute("SELECT id FROM groups").fetchall():
        # each group for itself: another process may read between two of them
        with FileTransaction(connection):
            if details_ms > 0:
                _drop_details(connection, group_id, details_ms)
            if oldest_ms > 0:
                _drop_events(connection, group_id, oldest_ms)
            _thin_samples(connection, group_id, now_ms)
            if oldest_ms > 0:
                old = (group_id, oldest_ms // 1_000)
                connection.execute("DELETE FROM samples WHERE group_id = ? AND at_s < ?", old)
    with FileTransaction(connection):
        for table in ("losses", "spans"):
            connection.execute(f"DELETE FROM {table} WHERE until_ms < ?", (oldest_ms,))
        connection.execute(
            "DELETE FROM spans WHERE until_ms IS NULL"
            " AND run_id IN (SELECT id FROM runs WHERE alive_ms < ? AND id < (SELECT max(id) FROM runs))",
            (oldest_ms,),
        )
        connection.execute(
            "DELETE FROM runs WHERE id NOT IN (SELECT run_id FROM spans) AND id < (SELECT max(id) FROM runs)"
        )
        set_mark(connection, "samples_from_ms", oldest_ms)
        _forget_groups(connection)


def thin_by_size(connection: sqlite3.Connection, bounds: RecordingBounds) -> None:
    """Drop the oldest of whatever takes the most, if the file is too large. Raises sqlite3.Error."""
    if used_bytes(connection) <= bounds.max_bytes:
        return
    wanted = int(bounds.max_bytes * _ROOM_LEFT)
    (samples,) = connection.execute("SELECT count(*) FROM samples").fetchone()
    for _ in range(_MOST_STEPS):
        with FileTransaction(connection):
            group_id, _, all_bytes = connection.execute(
                "SELECT id, max(bytes), sum(bytes) FROM groups"
            ).fetchone()
            if samples and samples * SAMPLE_BYTES >= (all_bytes or 0):
                gone = _drop_old_samples(connection)
                samples -= gone
            else:
                gone = 0 if group_id is None else _shrink_group(connection, group_id)
            if not gone:
                gone = _drop_old_spans(connection) + _forget_groups(connection)
        if not gone or used_bytes(connection) <= wanted:
            return


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that are in use; free pages are used again."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def set_mark(connection: sqlite3.Connection, name: str, value: int) -> None:
    """Raise a mark of the file to ``value``."""
    if value > 0:
        connection.execute(
            "INSERT INTO marks VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
            (name, value),
        )


class FileTransaction:
    """Commits at the end of the block, or takes everything back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        # SQLite has ended the transaction itself after some errors, such as a full disk
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _drop_details(connection: sqlite3.Connection, group_id: int, before_ms: int) -> int:
    """Drop details of a group's events before a time; return how many rows were changed."""
    (known_ms,) = connection.execute(
        "SELECT details_from_ms FROM groups WHERE id = ?", (group_id,)
    ).fetchone()
    stretch = (group_id, before_ms)
    changed = connection.execute(
        "DELETE FROM events WHERE group_id = ? AND at_ms < ? AND NOT lasting", stretch
    ).rowcount
    changed += _drop_extras(connection, stretch)
    if changed and before_ms > known_ms:
        connection.execute("UPDATE groups SET details_from_ms = ? WHERE id = ?", (before_ms, group_id))
    if changed:
        _count_bytes(connection, group_id)
    return changed


def _drop_events(connection: sqlite3.Connection, group_id: int, before_ms: int) -> int:
    """Drop a group's events before a time; return how many."""
    gone = connection.execute(
        "DELETE FROM events WHERE group_id = ? AND at_ms < ?", (group_id, before_ms)
    ).rowcount
    _drop_extras(connection, (group_id, before_ms))
    if gone:
        connection.execute(
            "UPDATE groups SET events_from_ms = max(events_from_ms, ?) WHERE id = ?", (before_ms, group_id)
        )
        _count_bytes(connection, group_id)
    return gone


def _drop_extras(connection: sqlite3.Connection, stretch: tuple[int, int]) -> int:
    return connection.execute("DELETE FROM extras WHERE group_id = ? AND at_ms < ?", stretch).rowcount


def _shrink_group(connection: sqlite3.Connection, group_id: int) -> int:
    """Drop the details of the older half of a group's events, or of more; if few have any, the oldest
    quarter.
    """
    (count,) = connection.execute("SELECT count(*) FROM events WHERE group_id = ?", (group_id,)).fetchone()
    for share, drop in _SHRINKING:
        found = connection.execute(
            "SELECT at_ms FROM events WHERE group_id = ? ORDER BY at_ms LIMIT 1 OFFSET ?",
            (group_id, min(int(count * share), max(count - 1, 0))),
        ).fetchone()
        # the event there goes, too: all of them may be of one time
        if found is not None and (gone := drop(connection, group_id, found[0] + 1)):
            return gone
    return 0


def _count_bytes(connection: sqlite3.Connection, group_id: int) -> None:
    connection.execute(
        "UPDATE groups SET bytes = length(name)"
        " + (SELECT coalesce(sum(bytes), 0) FROM events WHERE group_id = groups.id)"
        " + (SELECT coalesce(sum(length(data)), 0) FROM extras WHERE group_id = groups.id) WHERE id = ?",
        (group_id,),
    )


def _thin_samples(connection: sqlite3.Connection, group_id: int, now_ms: int) -> None:
    """Keep the highest sample of each step of what is old."""
    for index, (age_ms, step) in enumerate(SAMPLE_STEPS):
        # a step is thinned as a whole
        until_s = (now_ms - age_ms) // 1_000 // step * step
        from_s = 0
        if index + 1 < len(SAMPLE_STEPS):
            # older ones have longer steps, and were thinned to this one before
            from_s = max(0, (now_ms - SAMPLE_STEPS[index + 1][0]) // 1_000)
        connection.execute(
            "DELETE FROM samples WHERE group_id = ? AND at_s >= ? AND at_s < ? AND EXISTS ("
            " SELECT 1 FROM samples AS other WHERE other.group_id = samples.group_id"
            " AND other.at_s >= samples.at_s / ? * ? AND other.at_s < samples.at_s / ? * ? + ?"
            " AND (coalesce(other.records, -1), other.at_s) > (coalesce(samples.records, -1), samples.at_s))",
            (group_id, from_s, until_s, step, step, step, step, step),
        )


def _drop_old_samples(connection: sqlite3.Connection) -> int:
    """Drop the oldest tenth of the time of which there are samples; return how many went."""
    first, last = connection.execute("SELECT min(at_s), max(at_s) FROM samples").fetchone()
    until_s = first + max(1, (last - first) // 10)
    gone = connection.execute("DELETE FROM samples WHERE at_s < ?", (until_s,)).rowcount
    set_mark(connection, "samples_from_ms", until_s * 1_000)
    return gone


def _drop_old_spans(connection: sqlite3.Connection) -> int:
    """Drop the older half of the ended spans and of the losses: what they covered becomes unknown."""
    gone = 0
    for table in ("spans", "losses"):
        gone += connection.execute(
            f"DELETE FROM {table} WHERE until_ms IS NOT NULL AND id IN ("
            f" SELECT id FROM {table} ORDER BY id LIMIT (SELECT count(*) / 2 FROM {table}))"
        ).rowcount
    return gone


def _forget_groups(connection: sqlite3.Connection) -> int:
    """Drop groups of which nothing is left."""
    return connection.execute(
        "DELETE FROM groups WHERE id NOT IN (SELECT group_id FROM events)"
        " AND NOT EXISTS (SELECT 1 FROM samples WHERE samples.group_id = groups.id)"
    ).rowcount


#: Steps by which a group is made smaller: of which share of its events what goes.
_SHRINKING: Final = ((0.5, _drop_details), (0.75, _drop_details), (0.9, _drop_details), (0.25, _drop_events))
