"""Databases that store offsets beside results.

The table has a row for each group, topic and partition: ``next_offset`` is the first one that is not done;
``leader_epoch`` (-1: unknown) and ``topic_id`` (null: unknown) identify the log.
"""

from __future__ import annotations

import re
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from ...client.errors import ConfigError
from ...protocol import TopicPartition

TABLE = "kohort_offsets"
_KEY = ("consumer_group", "topic", "topic_partition")
_VALUES = ("next_offset", "leader_epoch", "topic_id")
_WHERE = " AND ".join(f"{column} = :{column}" for column in _KEY)
#: Name used instead of a group, in a row that is written and rolled back.
_PROBE = "kohort-probe"
#: Columns that tables made by earlier versions do not have.
_ADDED = {"leader_epoch": "INTEGER", "topic_id": "VARCHAR(36)"}


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The values of a row. ``leader_epoch`` is -1 and ``topic_id`` None if unknown."""

    next_offset: int
    leader_epoch: int = -1
    topic_id: str | None = None


class Sink(ABC):
    """A database that stores offsets beside results; see DbApiSink and SqlAlchemySink.

    Statements are SQL with ``:name`` parameters. Used from several threads at once.
    """

    def __init__(self, connection_type: type, table: str = TABLE) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", table):
            raise ConfigError(f"table={table!r}: give the name of a table, such as {TABLE!r}")
        self.connection_type = connection_type
        self.table = table

    @abstractmethod
    def transaction(self) -> Any:
        """A context manager that yields a connection, commits at its end, and rolls back after an
        exception.
        """

    @abstractmethod
    def execute(self, connection: Any, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """Run one statement in the open transaction; return its rows, if any."""

    def prepare(self) -> None:
        """Create the table if it is missing. Raises ConfigError for a database without transactions."""
        with self.transaction() as connection:
            self.execute(
                connection,
                f"CREATE TABLE IF NOT EXISTS {self.table} (consumer_group VARCHAR(255) NOT NULL, "
                "topic VARCHAR(249) NOT NULL, topic_partition INTEGER NOT NULL, "
                "next_offset BIGINT NOT NULL, leader_epoch INTEGER, topic_id VARCHAR(36), "
                "PRIMARY KEY (consumer_group, topic, topic_partition))",
                {},
            )
        try:
            self._look_for_columns()
        except Exception:
            for column, kind in _ADDED.items():
                # another member may be quicker; the check that follows decides
                with suppress(Exception), self.transaction() as connection:
                    self.execute(connection, f"ALTER TABLE {self.table} ADD COLUMN {column} {kind}", {})
            self._look_for_columns()
        self._require_transactions()

    def _look_for_columns(self) -> None:
        with self.transaction() as connection:
            self.execute(connection, f"SELECT {', '.join(_VALUES)} FROM {self.table} WHERE 1 = 0", {})

    def _require_transactions(self) -> None:
        """Write a row and roll it back: it must be gone."""
        row = TopicPartition(f"kohort-{uuid.uuid4()}", 0)
        with suppress(_RollBackError), self.transaction() as connection:
            self.store(connection, _PROBE, row, StoredOffset(0), is_new=True)
            raise _RollBackError
        with self.transaction() as connection:
            stays = self._read_offset(connection, _PROBE, row) is not None
            self.execute(connection, f"DELETE FROM {self.table} WHERE {_WHERE}", _row_key(_PROBE, row))
        if stays:
            raise ConfigError(
                "exactly_once: what is written to the database cannot be rolled back: its connections commit "
                "each statement by themselves. Leave autocommit off (sqlite3: no isolation_level=None, no "
                "autocommit=True; psycopg: no autocommit=True; SQLAlchemy: no isolation_level='AUTOCOMMIT'), "
                "and keep the tables where there are transactions"
            )

    def positions(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, StoredOffset]:
        """The stored offsets, of partitions that have a row."""
        found = {}
        with self.transaction() as connection:
            for partition in partitions:
                if (row := self._read_offset(connection, group, partition)) is not None:
                    found[partition] = row
        return found

    def _read_offset(self, connection: Any, group: str, partition: TopicPartition) -> StoredOffset | None:
        select = f"SELECT {', '.join(_VALUES)} FROM {self.table} WHERE {_WHERE}"
        rows = self.execute(connection, select, _row_key(group, partition))
        if not rows:
            return None
        offset, epoch, topic_id = rows[0]
        return StoredOffset(int(offset), -1 if epoch is None else int(epoch), topic_id)

    def lock(self, connection: object, group: str, partition: TopicPartition) -> StoredOffset | None:
        """Lock a row until the transaction ends, and return it; None if there is none."""
        # a write takes the lock in every database, which SELECT alone does not
        touch = f"UPDATE {self.table} SET next_offset = next_offset WHERE {_WHERE}"
        self.execute(connection, touch, _row_key(group, partition))
        return self._read_offset(connection, group, partition)

    def store(
        self, connection: Any, group: str, partition: TopicPartition, offset: StoredOffset, *, is_new: bool
    ) -> None:
        """Write a row. Raises the database's error when it is new but there is one already."""
        parameters = {**_row_key(group, partition), **asdict(offset)}
        if is_new:
            names = ", ".join((*_KEY, *_VALUES))
            marks = ", ".join(f":{column}" for column in (*_KEY, *_VALUES))
            statement = f"INSERT INTO {self.table} ({names}) VALUES ({marks})"
        else:
            changes = ", ".join(f"{column} = :{column}" for column in _VALUES)
            statement = f"UPDATE {self.table} SET {changes} WHERE {_WHERE}"
        self.execute(connection, statement, parameters)


class _RollBackError(Exception):
    """Ends a transaction that must leave nothing behind."""


def _row_key(group: str, partition: TopicPartition) -> dict[str, object]:
    return {
        "consumer_group": group,
        "topic": partition.topic,
        "topic_partition": partition.partition,
    }


class DbApiSink(Sink):
    """Any DB-API 2.0 driver: ``connect`` makes a connection, one for each thread that handles records.

    sqlite3 as it comes; for psycopg say ``paramstyle="pyformat"``. ``connection_type`` is what handlers name
    in their signature; by default that of the first connection, which is made at once.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        connection_type: type | None = None,
        paramstyle: str = "named",
        table: str = TABLE,
    ) -> None:
        if paramstyle not in ("named", "pyformat"):
            raise ConfigError(
                f"paramstyle={paramstyle!r}: it must be 'named' (sqlite3) or 'pyformat' (psycopg)"
            )
        if connection_type is None:
            connection = connect()
            connection_type = type(connection)
            connection.close()
        super().__init__(connection_type, table)
        self._connect = connect
        self._named = paramstyle == "named"
        self._of_thread = threading.local()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """This thread's connection; after an error it is closed, and the next transaction opens a new one."""
        connection = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = self._connect()
        try:
            yield connection
            connection.commit()
        except BaseException:
            self._of_thread.connection = None
            connection.close()  # rolls back, also where a rollback would fail
            raise

    def execute(self, connection: Any, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """See Sink. ``:name`` becomes ``%(name)s`` where the driver wants that."""
        if not self._named:
            statement = re.sub(r":(\w+)", r"%(\1)s", statement)
        cursor = connection.cursor()
        try:
            cursor.execute(statement, dict(parameters))
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()


class SqlAlchemySink(Sink):
    """An SQLAlchemy engine; handlers ask for ``sqlalchemy.Connection``."""

    def __init__(self, engine: Any, *, table: str = TABLE) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise ConfigError("SqlAlchemySink needs SQLAlchemy: pip install sqlalchemy") from None
        if not isinstance(engine, sqlalchemy.Engine):
            raise ConfigError(f"engine={engine!r}: give what sqlalchemy.create_engine() returns")
        super().__init__(sqlalchemy.Connection, table)
        self._engine = engine
        self._text = sqlalchemy.text

    def transaction(self) -> Any:
        """See Sink."""
        return self._engine.begin()

    def execute(self, connection: Any, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """See Sink."""
        result = connection.execute(self._text(statement), dict(parameters))
        return list(result) if result.returns_rows else []
