"""Batches that readers see as a whole or not at all, where the broker offers transactions; without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place

from kohort.client.transactions import ProducerId, Transaction
from kohort.protocol import TopicPartition
from kohort.spark import OptionsError, UnknownTopicError, _sink
from kohort.spark._sink import TopicWriter, Written
from kohort.spark._sink_options import read_sink_options
from kohort.spark._transaction import (
    Entry,
    Ledger,
    LedgerError,
    NoTransactionsError,
    TransactionLostError,
    end,
)
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic

pytestmark = pytest.mark.kafka

#: A batch in all that follows.
SEVEN = "7-f00d"


def visible(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """The values that a reader finds up to the end that it is told of."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([Place(topic, number, 0) for number in partitions])
        values, ends = [], 0
        while ends < len(partitions):
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                if message.error().name() != "_PARTITION_EOF":
                    raise KafkaException(message.error())
                ends += 1
            else:
                values.append(message.value())
        return sorted(values)
    finally:
        consumer.close()


def rows(*values: str, partition: int | None = None) -> Iterator[pa.RecordBatch]:
    columns: dict[str, pa.Array] = {"value": pa.array(values)}
    if partition is not None:
        columns["partition"] = pa.array([0] * (len(values) - 1) + [partition], pa.int32())
    yield pa.RecordBatch.from_pydict(columns)


Make = Callable[..., TopicWriter]


@pytest.fixture
def sink(side: Side) -> Make:
    def make(topic: str, **options: str) -> TopicWriter:
        given = {"kafka.bootstrap.servers": side.bootstrap, "topic": topic}
        return TopicWriter(read_sink_options(given | options))

    return make


@pytest.fixture
def transactions(sink: Make, new_topic: NewTopic) -> None:
    """Only where there are some."""
    if not transactions_offered(sink, new_topic("probe", 1)):
        pytest.skip("this broker offers no transactions")


def transactions_offered(sink: Make, topic: str) -> bool:
    try:
        sink(topic, transactions="required").write_rows(rows("unseen"), None, 0)
    except NoTransactionsError:
        return False
    return True


def test_without_transactions_that_is_said_and_can_be_an_error(
    side: Side, sink: Make, new_topic: NewTopic, caplog: pytest.LogCaptureFixture
) -> None:
    out = new_topic("out", partitions=1)
    if transactions_offered(sink, out):
        pytest.skip("this broker offers transactions")
    _sink._say_once.cache_clear()
    for task in range(2):
        sink(out).write_rows(rows("b"), None, task)
    said = [record.message for record in caplog.records if "transactions=never" in record.message]
    assert len(said) == 1
    sink(out, transactions="never").write_rows(rows("c"), None, 0)
    assert visible(side.bootstrap, out) == [b"b", b"b", b"c"]


@pytest.mark.usefixtures("transactions")
def test_a_batch_is_seen_when_all_its_tasks_are_done(side: Side, sink: Make, new_topic: NewTopic) -> None:
    out = new_topic("out", partitions=2)
    writer = sink(out)
    written = [writer.write_rows(rows(f"a{task}", f"b{task}"), None, task) for task in range(3)]
    assert visible(side.bootstrap, out) == []
    assert len(visible(side.bootstrap, out, "read_uncommitted")) == 6
    writer.commit(written)
    assert visible(side.bootstrap, out) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


@pytest.mark.usefixtures("transactions")
def test_nothing_is_seen_of_a_batch_with_a_task_that_failed(
    side: Side, sink: Make, new_topic: NewTopic
) -> None:
    out = new_topic("out", partitions=1)
    writer = sink(out)
    done = writer.write_rows(rows("a"), None, 0)
    with pytest.raises(UnknownTopicError, match="has 1 partitions, not number 5"):
        writer.write_rows(rows("b", "c", partition=5), None, 1)
    writer.abort([done, None])
    writer.commit([writer.write_rows(rows("d"), None, 0)])
    assert visible(side.bootstrap, out) == [b"d"]


@pytest.mark.usefixtures("transactions")
def test_a_second_attempt_of_a_task_takes_the_place_of_the_first(
    side: Side, sink: Make, new_topic: NewTopic
) -> None:
    out = new_topic("out", partitions=1)
    writer = sink(out)
    first = writer.write_rows(rows("a"), None, 0)
    second = writer.write_rows(rows("a"), None, 0)
    assert first.transaction is not None
    with pytest.raises(TransactionLostError, match="was over before it could be committed"):
        end(side.client, first.transaction, commit=True)
    writer.commit([second])
    assert visible(side.bootstrap, out) == [b"a"]


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("committed", [0, 1, 2])
def test_a_driver_that_died_between_the_commits_of_a_batch_is_followed_by_one_that_ends_it(
    committed: int, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    dying = sink(out, ledgerGroup=name)
    written = [dying.write_rows(rows(f"a{task}"), SEVEN, task) for task in range(2)]
    transactions = [one.transaction for one in written if one.transaction is not None]
    Ledger(side.client, name, TopicPartition(out, 0)).prepare(Entry(), SEVEN, transactions)
    for one in transactions[:committed]:
        end(side.client, one, commit=True)
    # what Spark asks for when the commit has raised an error
    dying.abort(written)

    after = sink(out, ledgerGroup=name)
    for _ in range(2):
        again = [after.write_rows(rows("another"), SEVEN, task) for task in range(3)]
        assert again == [Written(0, SEVEN)] * 3
        after.commit(again)
    assert visible(side.bootstrap, out) == [b"a0", b"a1"]
    assert side.committed(name, out) == {0: 1}


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("committed", [0, 1, 2])
def test_what_a_killed_driver_left_half_committed_is_ended_by_the_batch_of_another_key(
    committed: int, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    """The job was killed between the commits, and its offsets were reset before it came back."""
    out, name = new_topic("out", partitions=1), group("ledger")
    dying = sink(out, ledgerGroup=name)
    written = [dying.write_rows(rows(f"a{task}"), SEVEN, task) for task in range(2)]
    transactions = [one.transaction for one in written if one.transaction is not None]
    Ledger(side.client, name, TopicPartition(out, 0)).prepare(Entry(), SEVEN, transactions)
    for one in transactions[:committed]:
        end(side.client, one, commit=True)

    after = sink(out, ledgerGroup=name)
    after.commit([after.write_rows(rows(f"b{task}"), "0-beef", task) for task in range(2)])
    assert visible(side.bootstrap, out) == [b"a0", b"a1", b"b0", b"b1"]


@pytest.mark.usefixtures("transactions")
def test_a_batch_whose_transaction_was_lost_is_an_error_and_is_written_again(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=name)
    written = writer.write_rows(rows("a"), SEVEN, 0)
    assert written.transaction is not None
    ledger = Ledger(side.client, name, TopicPartition(out, 0))
    ledger.prepare(Entry(), SEVEN, [written.transaction])
    end(side.client, written.transaction, commit=False)  # as the broker does when its time is up
    with pytest.raises(TransactionLostError):
        writer.commit([Written(0, SEVEN)])
    assert ledger.read() == Entry()
    writer.commit([writer.write_rows(rows("a"), SEVEN, 0)])
    assert visible(side.bootstrap, out) == [b"a"]


def test_a_batch_whose_number_came_again_after_a_reset_is_written_and_its_replay_is_not(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    for key, value in (("0-one", "a"), ("1-two", "b"), ("0-three", "c"), ("0-three", "d")):
        writer = sink(out, ledgerGroup=name)
        writer.commit([writer.write_rows(rows(value), key, 0)])
    assert visible(side.bootstrap, out) == [b"a", b"b", b"c"]


def test_a_ledger_without_a_key_to_remember_is_an_error(
    sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    with pytest.raises(OptionsError, match="ledgerGroup needs batchKey"):
        sink(out, ledgerGroup=name).write_rows(rows("a"), None, 0)


def test_an_entry_of_somebody_else_holds_and_prepares_nothing(
    side: Side, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    ledger = Ledger(side.client, name, TopicPartition(out, 0))
    assert ledger.read() == Entry()
    for metadata in ("", "by hand", "[]", "7", '{"b":7}', '{"k":"7-f00d","t":[[1]]}', '{"t":[[0,1,2]]}'):
        side.commit(name, out, {0: 7}, metadata)
        assert ledger.read() == Entry(7)
    assert not ledger.read().holds(SEVEN)


def test_more_tasks_than_an_entry_takes_are_an_error(side: Side, new_topic: NewTopic, group: Named) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    ledger = Ledger(side.client, name, TopicPartition(out, 0))
    few = [Transaction(f"{name}-{n}", ProducerId(10_000 + n, 1)) for n in range(100)]
    ledger.prepare(Entry(6), SEVEN, few)
    assert ledger.read() == Entry(6, SEVEN, tuple(few))
    with pytest.raises(LedgerError, match="write with fewer tasks"):
        ledger.prepare(Entry(6), SEVEN, few * 10)
