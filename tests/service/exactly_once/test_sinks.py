"""Offsets in the transaction of the results: each record's effect is there once, whatever happens.

Covers: service/exactly_once/stored_offsets.py.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from kohort.client.threads import DaemonThreads
from kohort.consumer import ConfigError, Record
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService, DbApiSink, Sink, SqlAlchemySink
from kohort.service.exactly_once.sinks import StoredOffset
from kohort.service.exactly_once.stored_offsets import Once
from tests.service.processes import processes

ORDERS = TopicPartition("orders", 0)
PARTITIONS, RECORDS, KILLS = 6, 1_200, 10


def _dbapi(path: Path) -> Sink:
    return DbApiSink(lambda: sqlite3.connect(path, timeout=30))


def _sqlalchemy(path: Path) -> Sink:
    return SqlAlchemySink(sqlalchemy.create_engine(f"sqlite:///{path}"))


@pytest.fixture(params=[_dbapi, _sqlalchemy], ids=["dbapi", "sqlalchemy"])
def once(request: pytest.FixtureRequest, tmp_path: Path) -> Once:
    make: Callable[[Path], Sink] = request.param
    once = Once(make(tmp_path / "results.db"), "billing")
    once.sink.prepare()
    once.sink.prepare()  # a second start finds the table
    with once.sink.transaction() as connection:
        once.sink.execute(connection, "CREATE TABLE effects (record_offset INTEGER)", {})
    return once


def _records(*offsets: int, session: int = 0) -> list[Record]:
    return [Record("orders", 0, offset, 0, None, b"{}", session_id=session) for offset in offsets]


def _effects(once: Once) -> list[int]:
    with once.sink.transaction() as connection:
        rows = once.sink.execute(connection, "SELECT record_offset FROM effects ORDER BY record_offset", {})
    return [row[0] for row in rows]


def _insert(once: Once) -> Callable[[list[Record], Any], None]:
    def handle(records: list[Record], connection: Any) -> None:
        for record in records:
            values = {"o": record.offset}
            once.sink.execute(connection, "INSERT INTO effects VALUES (:o)", values)

    return handle


def test_a_partition_that_was_never_begun_has_no_position(once: Once) -> None:
    assert once.positions([ORDERS]) == {}


def test_the_effect_and_the_offset_are_there_together(once: Once) -> None:
    once.run(_records(5), _insert(once))
    assert _effects(once) == [5]
    assert once.positions([ORDERS, TopicPartition("orders", 1)]) == {ORDERS: StoredOffset(6)}


def test_or_not_at_all(once: Once) -> None:
    once.run(_records(5), _insert(once))

    def fail(records: list[Record], connection: Any) -> None:
        _insert(once)(records, connection)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        once.run(_records(6), fail)
    assert _effects(once) == [5]
    assert once.positions([ORDERS]) == {ORDERS: StoredOffset(6)}
    once.run(_records(6), _insert(once))
    assert _effects(once) == [5, 6]


def test_what_is_done_is_left_out_of_a_batch_and_of_everything(once: Once) -> None:
    once.run(_records(5, 6), _insert(once))
    once.run(_records(4, 5, 6), _insert(once))
    once.run(_records(5, 6, 7, 8), _insert(once))
    assert _effects(once) == [5, 6, 7, 8]


@pytest.mark.parametrize(("done", "effects"), [((), [1, 3, 5]), ((0, 1, 2), [3, 5]), ((4,), [5])])
async def test_of_a_batch_a_middleware_may_pass_on_some(
    tmp_path: Path, done: tuple[int, ...], effects: list[int]
) -> None:
    once = Once(_dbapi(tmp_path / "results.db"), "billing")
    once.sink.prepare()
    if done:
        once.run(_records(*done), lambda *_: None)
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    service.exactly_once(once.sink)
    handled: list[int] = []

    @service.middleware
    async def only_odd(records: list[Record], call_next: Callable[[list[Record]], Any]) -> Any:
        return await call_next([record for record in records if record.offset % 2])

    @service.batch_handler("orders")
    def handle(records: list[Record], _: sqlite3.Connection) -> None:
        handled.extend(record.offset for record in records)

    (handler,) = service.checked_handlers()
    handler.once = once
    threads = DaemonThreads(1, "handlers")
    await handler.run(_records(*range(6)), 1, threads, lambda *_: pytest.fail("no letter"))
    threads.close()
    assert handled == effects
    assert once.positions([ORDERS]) == {ORDERS: StoredOffset(6)}


def test_a_dead_letter_counts_as_done(once: Once) -> None:
    once.skip(_records(5)[0])
    once.run(_records(5, 6), _insert(once))
    assert _effects(once) == [6]


def test_of_two_members_that_handle_the_same_record_one_does(once: Once) -> None:
    """A member that was thought dead goes on beside the new owner."""
    barrier, errors = threading.Barrier(2), []

    def member() -> None:
        try:
            for offset in range(40):
                barrier.wait(60)
                for _ in range(100):
                    try:
                        once.run(_records(offset), _insert(once))
                        break
                    except (sqlite3.OperationalError, sqlalchemy.exc.OperationalError):
                        time.sleep(0.01)  # locked: sqlite has one writer at a time
        except Exception as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=member) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert _effects(once) == list(range(40))


def test_groups_keep_their_own_offsets(once: Once) -> None:
    once.run(_records(5), _insert(once))
    assert Once(once.sink, "audit").positions([ORDERS]) == {}


def _handled_to_18(once: Once) -> None:
    once.begin(ORDERS, 1, "first")
    once.on_reached(ORDERS, 1, 3)
    once.run(_records(*range(18), session=1), _insert(once))
    assert once.positions([ORDERS]) == {ORDERS: StoredOffset(18, 3, "first")}


def test_records_that_took_the_place_of_handled_ones_are_handled(once: Once) -> None:
    """The log was cut at 12, or the topic recreated, and other records are there now."""
    _handled_to_18(once)
    once.begin(ORDERS, 2, "second", other_from=12)
    once.on_reached(ORDERS, 2, 4)
    once.run(_records(12, 13, session=2), _insert(once))
    once.run(_records(13, 14, session=2), _insert(once))
    assert _effects(once) == sorted([*range(18), 12, 13, 14])
    assert once.positions([ORDERS]) == {ORDERS: StoredOffset(15, 4, "second")}


def test_a_handler_that_fails_with_the_first_of_these_gets_it_again(once: Once) -> None:
    _handled_to_18(once)
    once.begin(ORDERS, 2, "second", other_from=12)

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        once.run(_records(12, session=2), fail)
    once.run(_records(12, session=2), _insert(once))
    assert _effects(once) == sorted([*range(18), 12])


def test_a_row_that_another_member_has_changed_is_not_taken_back(once: Once) -> None:
    _handled_to_18(once)
    once.begin(ORDERS, 2, "second", other_from=12)
    other = Once(once.sink, "billing")
    other.positions([ORDERS])
    other.begin(ORDERS, 7, "second", other_from=12)
    other.run(_records(12, 13, session=7), _insert(once))
    once.run(_records(12, 13, session=2), _insert(once))
    assert _effects(once) == sorted([*range(18), 12, 13])


def test_what_a_handler_still_holds_of_the_log_before_counts_as_far_as_the_log_has_it(once: Once) -> None:
    once.begin(ORDERS, 1, "first")
    once.begin(ORDERS, 2, "first", other_from=3)
    once.run(_records(2, 5, session=1), _insert(once))
    assert once.positions([ORDERS]) == {ORDERS: StoredOffset(3, -1, "first")}


def test_what_comes_late_of_a_log_that_is_gone_passes_over_no_new_records(once: Once) -> None:
    _handled_to_18(once)
    once.begin(ORDERS, 2, "first", other_from=12)
    once.run(_records(12, session=2), _insert(once))
    # a thread that began before the cut
    once.run(_records(18, session=1), _insert(once))
    once.run(_records(13, 14, session=2), _insert(once))
    assert _effects(once) == sorted([*range(18), 12, 13, 14])


def test_what_another_member_stores_late_for_a_deleted_topic_passes_over_no_records_of_the_new_one(
    once: Once,
) -> None:
    slow = Once(once.sink, "billing")
    slow.begin(ORDERS, 1, "first")
    slow.run(_records(0, session=1), _insert(once))
    once.positions([ORDERS])
    once.begin(ORDERS, 7, "second", other_from=0)
    once.run(_records(0, session=7), _insert(once))
    slow.run(_records(1, session=1), _insert(once))
    once.run(_records(1, 2, session=7), _insert(once))
    assert _effects(once) == [0, 0, 1, 1, 2]
    assert once.positions([ORDERS]) == {ORDERS: StoredOffset(3, -1, "second")}


def test_a_row_without_a_topic_id_counts_for_any_topic_of_the_name(once: Once) -> None:
    once.begin(ORDERS, 1, None)
    once.run(_records(0, 1, session=1), _insert(once))
    once.begin(ORDERS, 2, "first")
    once.run(_records(1, 2, session=2), _insert(once))
    assert _effects(once) == [0, 1, 2]


def test_what_is_before_a_cut_and_done_is_not_done_again(once: Once) -> None:
    _handled_to_18(once)
    once.begin(ORDERS, 2, "first", other_from=12)
    once.run(_records(10, 11, 12, session=2), _insert(once))
    assert _effects(once) == sorted([*range(18), 12])


def test_a_table_of_an_earlier_version_gets_the_columns_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE kohort_offsets (consumer_group VARCHAR(255) NOT NULL, topic VARCHAR(249) NOT NULL, "
            "topic_partition INTEGER NOT NULL, next_offset BIGINT NOT NULL, "
            "PRIMARY KEY (consumer_group, topic, topic_partition))"
        )
        database.execute("INSERT INTO kohort_offsets VALUES ('billing', 'orders', 0, 6)")
    sink = _dbapi(path)
    sink.prepare()
    sink.prepare()
    assert sink.positions("billing", [ORDERS]) == {ORDERS: StoredOffset(6, -1, None)}


@pytest.mark.parametrize(
    "make",
    [
        lambda path: DbApiSink(lambda: sqlite3.connect(path, timeout=30, isolation_level=None)),
        lambda path: SqlAlchemySink(
            sqlalchemy.create_engine(f"sqlite:///{path}", isolation_level="AUTOCOMMIT")
        ),
    ],
    ids=["dbapi", "sqlalchemy"],
)
async def test_connections_that_commit_by_themselves_are_refused(
    make: Callable[[Path], Sink], tmp_path: Path
) -> None:
    service = _service()
    service.exactly_once(make(tmp_path / "results.db"))

    def handle(record: Record, connection: object) -> None: ...

    handle.__annotations__["connection"] = service._once.sink.connection_type  # type: ignore[union-attr]
    service.handler("orders")(handle)
    with pytest.raises(ConfigError, match="cannot be rolled back"):
        await service.serve()
    with sqlite3.connect(tmp_path / "results.db") as database:
        assert database.execute("SELECT count(*) FROM kohort_offsets").fetchone() == (0,)


def test_psycopgs_parameters_are_written_its_way() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    class Cursor:
        description = None

        def execute(self, statement: str, parameters: dict[str, Any]) -> None:
            seen.append((statement, parameters))

        def close(self) -> None: ...

    class Connection:
        def cursor(self) -> Cursor:
            return Cursor()

        def commit(self) -> None: ...

        def close(self) -> None: ...

    sink = DbApiSink(Connection, paramstyle="pyformat")
    assert sink.connection_type is Connection
    Once(sink, "billing").positions([ORDERS])
    select = (
        "SELECT next_offset, leader_epoch, topic_id FROM kohort_offsets "
        "WHERE consumer_group = %(consumer_group)s AND topic = %(topic)s "
        "AND topic_partition = %(topic_partition)s"
    )
    assert seen == [(select, {"consumer_group": "billing", "topic": "orders", "topic_partition": 0})]


def _service() -> ConsumerService:
    return ConsumerService(bootstrap="localhost:1", group="billing")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: DbApiSink(lambda: sqlite3.connect(":memory:"), table="a b"), "table='a b'"),
        (lambda: DbApiSink(lambda: sqlite3.connect(":memory:"), paramstyle="qmark"), "paramstyle='qmark'"),
        (lambda: SqlAlchemySink("sqlite://"), "engine='sqlite://'"),
        (lambda: _service().exactly_once(sqlite3.connect(":memory:")), "is no sink"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_sink_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


async def _async_handler(record: Record, connection: sqlite3.Connection) -> None: ...


def _without_connection(record: Record) -> None: ...


def _good(record: Record, connection: sqlite3.Connection) -> None: ...


@pytest.mark.parametrize(
    ("handler", "options", "text"),
    [
        (_async_handler, {}, "must be a plain function"),
        (_without_connection, {}, "one parameter annotated sqlite3.Connection"),
        (_good, {"lanes": "key"}, 'needs lanes="partition"'),
    ],
)
async def test_handlers_that_do_not_go_with_it_are_refused_before_anything_connects(
    handler: Callable[..., Any], options: dict[str, Any], text: str, tmp_path: Path
) -> None:
    service = _service()
    service.exactly_once(_dbapi(tmp_path / "results.db"))
    service.handler("orders", **options)(handler)
    with pytest.raises(ConfigError, match=text):
        await service.serve()
    with pytest.raises(ConfigError, match="there is a sink already"):
        service.exactly_once(_dbapi(tmp_path / "results.db"))


MEMBER = """
import sqlite3, sys
from kohort.consumer import Record
from kohort.service import ConsumerService, DbApiSink, Retry

bootstrap, group, topic, path = sys.argv[1:]
service = ConsumerService(
    bootstrap=bootstrap, group=group, auto_offset_reset="earliest", session_timeout_ms=1000,
    heartbeat_interval_ms=200, auto_commit_interval_ms=300,
)
service.exactly_once(DbApiSink(lambda: sqlite3.connect(path, timeout=30)))

@service.handler(topic, retry=Retry(attempts=10, backoff_ms=20))
def handle(record: Record, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO effects VALUES (?)", (int(record.value),))

service.run()
"""


@pytest.mark.slow(8)
@pytest.mark.kafka
def test_through_kills_and_hangs_each_record_takes_effect_exactly_once(
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    topic, name, path = new_topic("orders", partitions=PARTITIONS), group("billing"), tmp_path / "results.db"
    database = sqlite3.connect(path, timeout=30)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE effects (number INTEGER)")
    database.commit()

    def send(round_: int) -> None:
        numbers = range(round_ * RECORDS // KILLS, (round_ + 1) * RECORDS // KILLS)
        produce(topic, numbers, partitions=PARTITIONS)

    def count() -> int:
        return int(database.execute("SELECT count(DISTINCT number) FROM effects").fetchone()[0])

    with processes(tmp_path, MEMBER, bootstrap, name, topic, str(path)) as members:
        members.disturb(KILLS, send)
        deadline = time.monotonic() + 60
        while count() < RECORDS:
            assert time.monotonic() < deadline, f"{RECORDS - count()} records are missing"
            time.sleep(0.1)
        members.end()
    numbers = [row[0] for row in database.execute("SELECT number FROM effects ORDER BY number")]
    assert numbers == list(range(RECORDS))
