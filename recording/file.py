"""The file of a recording: an SQLite database, with write-ahead log, that one writer has at a time.

A file that is damaged, or that a later version wrote, is set aside under another name, and a new one begun.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

log = logging.getLogger("kohort.recording")

FILE_NAME: Final = "recording.db"
_LOCK_NAME: Final = "recording.lock"
_ASIDE_NAME: Final = "recording.db.damaged"

#: Names of groups, members and their hosts are for the owner alone. SQLite gives its journal the same mode.
_MODE: Final = 0o600

#: Number of the tables below. A file with another number is set aside.
_VERSION: Final = 1

#: A write-ahead log that grew larger than this is cut when it is empty, and a page of the file.
_MOST_JOURNAL_BYTES: Final = 4 << 20
PAGE_BYTES: Final = 4096

_TABLES: Final = """
CREATE TABLE groups(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL,
    details_from_ms INTEGER NOT NULL DEFAULT 0, events_from_ms INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events(
    id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, at_ms INTEGER NOT NULL, kind TEXT NOT NULL,
    generation INTEGER NOT NULL, cause TEXT NOT NULL, member TEXT NOT NULL, client_id TEXT NOT NULL,
    client_host TEXT NOT NULL, lasting INTEGER NOT NULL, details BLOB NOT NULL, bytes INTEGER NOT NULL
);
CREATE TABLE extras(
    event_id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, at_ms INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE INDEX extras_of_group ON extras(group_id, at_ms);
CREATE INDEX events_of_group ON events(group_id, at_ms);
CREATE TABLE samples(
    group_id INTEGER NOT NULL, at_s INTEGER NOT NULL, records INTEGER, age_ms INTEGER, members INTEGER,
    PRIMARY KEY (group_id, at_s)
) WITHOUT ROWID;
CREATE TABLE runs(id INTEGER PRIMARY KEY, alive_ms INTEGER NOT NULL);
CREATE TABLE spans(
    id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, scope TEXT NOT NULL, from_ms INTEGER NOT NULL,
    until_ms INTEGER
);
CREATE TABLE losses(
    id INTEGER PRIMARY KEY, group_name TEXT NOT NULL, from_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL,
    count INTEGER NOT NULL
);
CREATE TABLE marks(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


class InUseError(OSError):
    """Another process records in this folder."""


class FileLock:
    """The right to write in a folder, of one writer at a time. It ends with the process."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            # flock, not lockf: it also keeps out another writer of this process
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise InUseError(f"another process records in {folder}") from None

    def release(self) -> None:
        """Let another writer have the folder."""
        # whatever it says, the descriptor is closed
        with suppress(OSError):
            os.close(self._descriptor)


def open_writable(folder: Path) -> sqlite3.Connection:
    """Open the file to write, whatever its state; its folder is locked by the caller. Raises sqlite3.Error
    and OSError where no file can be made.
    """
    path = folder / FILE_NAME
    if path.exists() and path.stat().st_size:
        try:
            return _open_known(path)
        except sqlite3.OperationalError as error:
            if not is_damage(error):
                raise
            set_aside(folder, error)
        except sqlite3.DatabaseError as error:
            set_aside(folder, error)
    return _make_file(path)


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error says that the file is not as it should be; else disk or folder are at fault."""
    name = getattr(error, "sqlite_errorname", "")
    if name:
        return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_SCHEMA"))
    return not isinstance(error, sqlite3.OperationalError)


def set_aside(folder: Path, error: object) -> None:
    """Give the file another name, in place of what was set aside before. Raises OSError."""
    aside = folder / _ASIDE_NAME
    os.replace(folder / FILE_NAME, aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(folder / f"{FILE_NAME}{suffix}")
    log.warning(
        "the recording cannot be read (%s): it is set aside as %s, and a new one begins", error, aside
    )


def open_readable(folder: Path) -> sqlite3.Connection:
    """Open the file to read, while another process may write to it. Raises sqlite3.Error."""
    path = (folder / FILE_NAME).absolute()
    try:
        return _connect_reader(f"{path.as_uri()}?mode=ro")
    except sqlite3.OperationalError:
        # a folder that may not be written to has no room for what readers share; nobody writes there either
        if not path.exists() or os.access(folder, os.W_OK):
            raise
        return _connect_reader(f"{path.as_uri()}?mode=ro&immutable=1")


def _connect_reader(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=5.0, check_same_thread=False)
    try:
        _check_version(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _open_known(path: Path) -> sqlite3.Connection:
    # what a writer that has ended leaves nothing of
    was_killed = path.with_name(f"{FILE_NAME}-wal").exists()
    connection = _connect_writer(path)
    try:
        _check_version(connection)
        # of a damage elsewhere a later statement tells
        if was_killed and (found := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(found)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        raise sqlite3.DatabaseError(f"its tables have the number {version}, not {_VERSION}")


def _connect_writer(path: Path) -> sqlite3.Connection:
    # transactions are begun and ended by the caller
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        # a commit survives the process; of a machine that fails, the last seconds may be lost
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_MOST_JOURNAL_BYTES}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make_file(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE))
    connection = _connect_writer(path)
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
