"""Offsets stored with the results, in one transaction of the user's own database.

For each call of a handler one transaction: lock the partition's row, leave out what is stored as done, call
the handler with the connection, store the next offset, commit. So the effect of a record and the note
that it is done are there together or not at all, and whoever comes second (a member that was thought dead, a
retry, the next owner) finds the note and does nothing. That is also why no fencing of members is needed.

The table has a row for each group, topic and partition; ``next_offset`` is the first one that is not done.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...protocol import TopicPartition
from ..errors import ConfigError, ConsumerError

if TYPE_CHECKING:
    from ..record import Record

TABLE = "kohort_offsets"
_COLUMNS = ("consumer_group", "topic", "topic_partition")
_WHERE = " AND ".join(f"{column} = :{column}" for column in _COLUMNS)


class Sink(ABC):
    """A database that keeps offsets beside results; see DbApiSink and SqlAlchemySink.

    Statements are SQL with ``:name`` parameters. Used from several threads at once.
    """

    def __init__(self, connection_type: type, table: str = TABLE) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", table):
            raise ConfigError(f"table={table!r}: give the name of a table, such as {TABLE!r}")
        self.connection_type = connection_type
        self.table = table

    @abstractmethod
    def transaction(self) -> Any:
        """A context manager: gives a connection, commits at its end, rolls back when an exception passes."""

    @abstractmethod
    def execute(self, connection: Any, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """Run one statement in the open transaction; its rows, if it has any."""

    def prepare(self) -> None:
        """Make the table where it is missing."""
        with self.transaction() as connection:
            self.execute(
                connection,
                f"CREATE TABLE IF NOT EXISTS {self.table} (consumer_group VARCHAR(255) NOT NULL, "
                "topic VARCHAR(249) NOT NULL, topic_partition INTEGER NOT NULL, "
                "next_offset BIGINT NOT NULL, PRIMARY KEY (consumer_group, topic, topic_partition))",
                {},
            )

    def positions(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset of each partition that has one."""
        found = {}
        with self.transaction() as connection:
            for partition in partitions:
                key = _key(group, partition)
                select = f"SELECT next_offset FROM {self.table} WHERE {_WHERE}"
                if rows := self.execute(connection, select, key):
                    found[partition] = int(rows[0][0])
        return found

    def lock(self, connection: Any, group: str, partition: TopicPartition) -> int:
        """The next offset, -1 for none; nobody else can change it before the transaction ends."""
        key = _key(group, partition)
        # a write takes the lock in every database, which SELECT alone does not
        touch = f"UPDATE {self.table} SET next_offset = next_offset WHERE {_WHERE}"
        self.execute(connection, touch, key)
        rows = self.execute(connection, f"SELECT next_offset FROM {self.table} WHERE {_WHERE}", key)
        return int(rows[0][0]) if rows else -1

    def store(
        self, connection: Any, group: str, partition: TopicPartition, offset: int, *, is_new: bool
    ) -> None:
        """``offset`` is next. Raises the database's error when a row is new but there is one already."""
        parameters = {**_key(group, partition), "next_offset": offset}
        if is_new:
            names = ", ".join((*_COLUMNS, "next_offset"))
            marks = ", ".join(f":{column}" for column in (*_COLUMNS, "next_offset"))
            statement = f"INSERT INTO {self.table} ({names}) VALUES ({marks})"
        else:
            statement = f"UPDATE {self.table} SET next_offset = :next_offset WHERE {_WHERE}"
        self.execute(connection, statement, parameters)


def _key(group: str, partition: TopicPartition) -> dict[str, Any]:
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
        return self._engine.begin()

    def execute(self, connection: Any, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        result = connection.execute(self._text(statement), dict(parameters))
        return list(result) if result.returns_rows else []


class Once:
    """One group's use of a sink."""

    def __init__(self, sink: Sink, group: str) -> None:
        self.sink = sink
        self.group = group

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where to go on, for partitions that have been begun."""
        return self.sink.positions(self.group, partitions)

    def run(self, records: Sequence[Record], handle: Callable[[list[Record], Any], None]) -> None:
        """``handle(records, connection)`` with those of one partition's records that are not done yet."""
        try:
            self._run(records, handle)
        except _RowAppearedError:
            # another member has begun the partition between our look and our insert: look again
            self._run(records, handle)

    def _run(self, records: Sequence[Record], handle: Callable[[list[Record], Any], None]) -> None:
        partition = records[0].topic_partition
        with self.sink.transaction() as connection:
            stored = self.sink.lock(connection, self.group, partition)
            left = [record for record in records if record.offset >= stored]
            if not left:
                return
            if stored < 0:
                self._begin(connection, partition, left[0].offset)
            handle(left, connection)
            self.sink.store(connection, self.group, partition, left[-1].offset + 1, is_new=False)

    def _begin(self, connection: Any, partition: TopicPartition, offset: int) -> None:
        # before the handler, so that of two members only one gets past this line
        try:
            self.sink.store(connection, self.group, partition, offset, is_new=True)
        except Exception as error:
            raise _RowAppearedError(f"no row could be added: {error}") from error

    def skip(self, record: Record) -> None:
        """The record is dealt with elsewhere: it is a dead letter."""
        self.run([record], lambda *_: None)


class _RowAppearedError(ConsumerError):
    """The row was not there, and cannot be inserted."""
