"""What goes wrong is one error that says what, and the group's offsets are as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from kohort.consumer import BrokerConnectionError
from kohort.protocol import KafkaError, KohortError
from kohort.spark import GroupBatches, UnknownTopicError, _sink, stream
from kohort.spark._client import Client, ConnectionOptions
from kohort.spark._fetch import ReadTask, read_task
from kohort.spark._sink import Attempt, TopicWriter
from kohort.spark._sink_options import read_sink_options
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets
from kohort.spark._transaction import NoTransactionsError
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.spark.conftest import Side
from tests.spark.loops import NO_SPARK, bounds, next_of
from tests.spark.queries import run_to_end
from tests.spark.test_transaction import rows, visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Milliseconds that a request may take: short, for these brokers do not answer.
SOON = 500

ACCESS_RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def loop(bootstrap: str, **options: Any) -> GroupBatches:
    given: dict[str, Any] = {"group": "etl", "topics": "orders", "max_offsets": 10}
    return GroupBatches(NO_SPARK, bootstrap=bootstrap, **{"request_timeout_ms": SOON} | given | options)


def source(bootstrap: str, *, is_stream: bool, **options: str) -> SourceOffsets:
    given = {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.request.timeout.ms": str(SOON),
        "groupId": "etl",
        "subscribe": "orders",
    }
    checked = read_source_options(given | options, stream=is_stream)
    return SourceOffsets(checked, Client(checked.connection))


def nobodys_address() -> str:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_a_broker_that_is_away_is_named() -> None:
    address = nobodys_address()
    with loop(address) as batches, pytest.raises(BrokerConnectionError, match=f"{address}.*cannot connect"):
        batches.next_batch()
    for is_stream in (True, False):
        reading = source(address, is_stream=is_stream)
        with pytest.raises(BrokerConnectionError, match=f"{address}.*cannot connect"):
            reading.initial() if is_stream else reading.batch_ranges()
    given = {"kafka.bootstrap.servers": address, "kafka.request.timeout.ms": str(SOON), "topic": "out"}
    with pytest.raises(BrokerConnectionError, match=f"{address}.*cannot connect"):
        TopicWriter(read_sink_options(given)).write_rows(rows("a"), None, Attempt())


@pytest.fixture
def orders(broker_process: BrokerProcess) -> Iterator[Side]:
    """``orders`` with 30 records on a broker of the test's own, of which the group has had 10."""
    side = Side(broker_process.bootstrap)
    side.client.run(lambda cluster: cluster.create_topics({"orders": 1}))
    side.produce("orders", {0: 30})
    with loop(broker_process.bootstrap, request_timeout_ms=30_000) as batches:
        next_of(batches).commit()
    yield side
    side.close()


@pytest.mark.slow(4)
def test_a_broker_that_goes_away_in_a_batch_leaves_it_to_be_replayed(
    broker_process: BrokerProcess, orders: Side
) -> None:
    # long enough for a busy machine's answers, short enough to wait for
    with loop(broker_process.bootstrap, request_timeout_ms=2_000) as batches:
        batch = next_of(batches)
        broker_process.kill()
        task = ReadTask(ConnectionOptions(broker_process.bootstrap, request_timeout_ms=SOON), batch.ranges)
        with pytest.raises(BrokerConnectionError, match=broker_process.bootstrap):
            list(read_task(task))
        with pytest.raises(BrokerConnectionError, match=broker_process.bootstrap):
            batch.commit()
        broker_process.start()
        # the same batch can still be written and committed
        task = ReadTask(ConnectionOptions(broker_process.bootstrap), batch.ranges)
        assert sum(one.num_rows for one in read_task(task)) == 10
        assert orders.committed("etl", "orders") == {0: 10}
        batch.commit()
    assert orders.committed("etl", "orders") == {0: 20}


@pytest.mark.slow(4)
def test_a_driver_that_died_with_its_broker_is_followed_by_one_with_the_same_batch(
    broker_process: BrokerProcess, orders: Side
) -> None:
    with loop(broker_process.bootstrap, request_timeout_ms=30_000) as batches:
        batch = next_of(batches)
        broker_process.kill()
        broker_process.start()
    with loop(broker_process.bootstrap, request_timeout_ms=30_000, max_offsets=20) as batches:
        replayed = next_of(batches)
        assert (replayed.replayed, replayed.key, bounds(replayed)) == (True, batch.key, {0: (10, 20)})
    assert orders.committed("etl", "orders") == {0: 10}


@pytest.mark.spark
@pytest.mark.pyspark("4.2")
def test_a_query_whose_broker_goes_away_in_a_batch_ends_with_one_error_and_goes_on_where_it_was(
    spark: SparkSession, broker_process: BrokerProcess, orders: Side, tmp_path: Path
) -> None:
    written: list[tuple[int, int]] = []

    kills = [broker_process.kill]

    def sink(frame: DataFrame, number: int) -> None:
        if number == 1 and kills:
            kills.pop()()
        written.append((number, frame.count()))

    given: dict[str, Any] = {
        "checkpoint": str(tmp_path),
        "foreach_batch": sink,
        "trigger": {"availableNow": True},
        "bootstrap": broker_process.bootstrap,
        "group": "etl",
        "topics": "orders",
        "max_offsets": 10,
    }
    with pytest.raises(Exception, match="BrokerRefusedError") as failed:
        run_to_end(lambda: stream(spark, request_timeout_ms=2000, **given))
    assert broker_process.bootstrap in str(failed.value)
    assert written == [(0, 10)]
    broker_process.start()
    assert orders.committed("etl", "orders") == {0: 20}
    run_to_end(lambda: stream(spark, **given))
    assert written == [(0, 10), (1, 10)]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Others may read topic ``secrets``, commit to group ``theirs``, and write to topic ``results``."""
    broker = BrokerProcess(tmp_path, data=None, settings={**QUICK_SETTINGS, **ACCESS_RULES})
    broker.start()
    try:
        side = Side(broker.bootstrap)
        side.client.run(lambda cluster: cluster.create_topics({"orders": 1, "secrets": 1, "results": 1}))
        side.produce("orders", {0: 10})
        side.close()
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_acls(
                [
                    allowed(ResourceType.TOPIC, "secrets", ACLOperation.READ),
                    allowed(ResourceType.GROUP, "theirs", ACLOperation.READ),
                    allowed(ResourceType.TOPIC, "results", ACLOperation.WRITE),
                ]
            )
        yield broker
    finally:
        broker.stop()


def allowed(kind: ResourceType, name: str, operation: ACLOperation) -> ACL:
    return ACL("User:others", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name))


@pytest.mark.slow(4)
def test_what_one_may_not_do_is_an_error_that_names_it(guarded: BrokerProcess) -> None:
    at = guarded.bootstrap
    refused: list[tuple[dict[str, str], str]] = [
        ({"topics": "secrets"}, "TOPIC_AUTHORIZATION_FAILED.*'secrets'"),
        ({"group": "theirs"}, "GROUP_AUTHORIZATION_FAILED.*'theirs'"),
    ]
    for options, problem in refused:
        with (
            loop(at, request_timeout_ms=30_000, **options) as batches,
            pytest.raises(KafkaError, match=problem),
        ):
            batches.next_batch()
        named = {{"topics": "subscribe", "group": "groupId"}[key]: value for key, value in options.items()}
        for is_stream in (True, False):
            reading = source(at, is_stream=is_stream, **named, **{"kafka.request.timeout.ms": "30000"})
            with pytest.raises(KafkaError, match=problem):
                reading.initial() if is_stream else reading.batch_ranges()
    given = {"kafka.bootstrap.servers": at, "topic": "results"}
    with pytest.raises(KafkaError, match=r"TOPIC_AUTHORIZATION_FAILED.*results"):
        TopicWriter(read_sink_options(given)).write_rows(rows("a"), None, Attempt())


def test_a_batch_with_a_row_that_no_partition_takes_is_an_error_and_the_ledger_does_not_have_it(
    side: Side, new_topic: Any, group: Any
) -> None:
    out, ledger = new_topic("out", partitions=1), group("ledger")
    given = {"kafka.bootstrap.servers": side.bootstrap, "topic": out, "ledgerGroup": ledger}
    writer = TopicWriter(read_sink_options(given))
    with pytest.raises(UnknownTopicError, match="has 1 partitions, not number 5"):
        writer.write_rows(rows("a", "b", partition=5), "0-f00d", Attempt())
    assert side.committed(ledger, out) == {}
    assert issubclass(UnknownTopicError, KohortError)


@pytest.mark.slow(4)
def test_without_rights_to_transactional_ids_tasks_go_on_without_transactions_unless_required(
    guarded: BrokerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may write to a topic may use an idempotent producer, and no transactional id of others."""
    side = Side(guarded.bootstrap)
    side.client.run(lambda cluster: cluster.create_topics({"out": 1}))
    side.close()
    rule = ACL(
        "User:others",
        "*",
        ACLOperation.WRITE,
        ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TRANSACTIONAL_ID, "etl-", ACLResourcePatternType.PREFIXED),
    )
    with KafkaAdminClient(bootstrap_servers=guarded.bootstrap) as admin:
        admin.create_acls([rule])
    given = {"kafka.bootstrap.servers": guarded.bootstrap, "topic": "out", "ledgerGroup": "etl"}
    _sink._say_once.cache_clear()
    for value in ("a", "again"):
        writer = TopicWriter(read_sink_options(given))
        writer.start()
        written = writer.write_rows(rows(value), "0-f00d", Attempt())
        assert written.report.transaction is None
        writer.commit([written])
    assert visible(guarded.bootstrap, "out") == [b"a"]
    said = [one.message for one in caplog.records if "prefix 'etl-'" in one.message]
    assert len(said) == 1
    required = TopicWriter(read_sink_options(given | {"transactions": "required"}))
    with pytest.raises(NoTransactionsError, match="the rights Write and Describe on transactional ids with"):
        required.write_rows(rows("b"), "1-beef", Attempt())
