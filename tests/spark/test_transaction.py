"""The ends that a batch of the sink can meet, one by one, against a broker; without a JVM.

Covers: spark/_transaction.py, spark/_sink.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place

from kohort.client.transactions import (
    END_VERSION,
    Transaction,
    end_transaction,
    init_producer_id,
    list_transactions_of,
)
from kohort.consumer import Cluster
from kohort.spark import OptionsError, UnknownTopicError, _sink, _transaction
from kohort.spark._batch_steps import End, PartialBatchError, TransactionLostError, UndecidedBatchError, Work
from kohort.spark._ledger_entry import Entry, LedgerError, Stage, is_name_of
from kohort.spark._sink import Attempt, BatchWriter, TopicWriter, Written
from kohort.spark._sink_options import read_sink_options
from kohort.spark._transaction import Ledger, NoTransactionsError
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.test_ledger_entry import random_entry

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
def transactions(sink: Make, new_topic: NewTopic, group: Named) -> None:
    """Only where there are some."""
    if not transactions_offered(sink, new_topic("probe", 1), group("probe")):
        pytest.skip("this broker offers no transactions")


def transactions_offered(sink: Make, topic: str, ledger: str) -> bool:
    writer = sink(topic, transactions="required", ledgerGroup=ledger)
    try:
        write(writer, "unseen")
    except NoTransactionsError:
        return False
    writer.abort([])
    return True


def write(
    writer: TopicWriter, *values: str, key: str | None = SEVEN, task: int = 0, attempt: int = 0
) -> Written:
    return writer.write_rows(rows(*values), key, Attempt(task, attempt))


def run(writer: TopicWriter, *values: str, key: str = SEVEN) -> None:
    """Run a batch with a row for each task, as a job does that has just started."""
    writer.start()
    writer.commit([write(writer, value, key=key, task=task) for task, value in enumerate(values)])


class StoppedError(Exception):
    """The driver ends here."""


Dying = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Dying:
    """``with dying(n):`` the driver ends after n commits, at the latest before it notes the outcome."""

    @contextmanager
    def end_after(count: int) -> Iterator[None]:
        committed: list[Transaction] = []

        async def commit(cluster: Cluster, transaction: Transaction) -> End:
            if len(committed) == count:
                raise StoppedError
            committed.append(transaction)
            return await commit_one(cluster, transaction)

        async def note(ledger: Ledger, cluster: Cluster, entry: Entry) -> None:
            if entry.stage is Stage.WRITTEN:
                raise StoppedError
            await write_entry(ledger, cluster, entry)

        commit_one, write_entry = _transaction._commit_transaction, Ledger.commit
        with monkeypatch.context() as patched:
            patched.setattr(_transaction, "_commit_transaction", commit)
            patched.setattr(Ledger, "commit", note)
            with pytest.raises(StoppedError):
                yield

    return end_after


Abort = Callable[[Side, Transaction], None]


def abort_transaction(side: Side, transaction: Transaction) -> None:
    """Abort it, and leave its epoch."""
    side.client.run(
        lambda cluster: end_transaction(cluster, transaction, commit=False, max_version=END_VERSION)
    )


def time_out_transaction(side: Side, transaction: Transaction) -> None:
    """Abort it, and raise its epoch: coordinators do so when its time is up, or another producer begins."""
    side.client.run(lambda cluster: _transaction._fence_id(cluster, transaction.name, 60_000))


ABORTS = pytest.mark.parametrize("abort", [abort_transaction, time_out_transaction])


def transaction_of(written: Written) -> Transaction:
    assert written.report.transaction is not None
    return written.report.transaction


def ids_of(side: Side, prefix: str, *states: str) -> list[str]:
    async def ask(cluster: Cluster) -> list[str]:
        nodes = (await cluster.metadata([])).nodes
        found = [row for node in nodes for row in await list_transactions_of(cluster, node, states)]
        return sorted(row.transactional_id for row in found if is_name_of(prefix, row.transactional_id))

    return side.client.run(ask)


def test_without_transactions_that_is_said_and_can_be_an_error(
    side: Side, sink: Make, new_topic: NewTopic, group: Named, caplog: pytest.LogCaptureFixture
) -> None:
    out, ledger = new_topic("out", partitions=1), group("ledger")
    if transactions_offered(sink, out, ledger):
        pytest.skip("this broker offers transactions")
    _sink._say_once.cache_clear()
    for task in range(2):
        write(sink(out, ledgerGroup=ledger), "b", task=task)
    said = [record.message for record in caplog.records if "transactions=never" in record.message]
    assert len(said) == 1
    write(sink(out, transactions="never"), "c")
    assert visible(side.bootstrap, out) == [b"b", b"b", b"c"]


def test_df_write_without_a_ledger_has_no_transactions_and_can_require_none(
    side: Side, sink: Make, new_topic: NewTopic
) -> None:
    out = new_topic("out", partitions=1)
    writer = sink(out)
    written = write(writer, "a", key=None)
    assert (written.report.transaction, written.prefix) == (None, None)
    assert visible(side.bootstrap, out) == [b"a"]
    writer.commit([written])
    writer.abort([written])
    with pytest.raises(OptionsError, match="transactions=required needs ledgerGroup"):
        BatchWriter(sink(out, transactions="required").options)


@pytest.mark.usefixtures("transactions")
def test_a_batch_is_seen_when_all_its_tasks_are_done(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out = new_topic("out", partitions=2)
    writer = sink(out, ledgerGroup=group("ledger"))
    written = [write(writer, f"a{task}", f"b{task}", task=task) for task in range(3)]
    assert visible(side.bootstrap, out) == []
    assert len(visible(side.bootstrap, out, "read_uncommitted")) == 6
    writer.commit(written)
    assert visible(side.bootstrap, out) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


@pytest.mark.usefixtures("transactions")
def test_all_batches_of_a_ledger_or_a_query_have_the_same_transactional_ids(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, ledger, query = new_topic("out", partitions=1), group("ledger"), group("query")
    for number in range(3):
        run(sink(out, ledgerGroup=ledger), "a", "b", "c", key=f"{number}-f00d")
        of_query = [
            sink(out).write_rows(rows("d"), f"{query}-{number}", Attempt(task, 0, query)) for task in range(2)
        ]
        # Spark makes a writer of its own for each commit of a query
        sink(out).commit(of_query)
    assert ids_of(side, ledger) == [f"{ledger}-{task}" for task in range(3)]
    assert ids_of(side, f"kohort-{query}") == [f"kohort-{query}-{task}" for task in range(2)]
    assert len(visible(side.bootstrap, out)) == 15


@pytest.mark.usefixtures("transactions")
def test_nothing_is_seen_of_a_failed_batch_and_nothing_of_it_holds_readers_back(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    """Spark kills the other tasks, also one that has sent its rows: it hands in no message for them."""
    out, ledger = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=ledger)
    done = write(writer, "a", task=0)
    write(writer, "killed", task=2)
    with pytest.raises(UnknownTopicError, match="has 1 partitions, not number 5"):
        writer.write_rows(rows("b", "c", partition=5), SEVEN, Attempt(1))
    writer.abort([done, None, None])
    assert ids_of(side, ledger, "Ongoing") == []
    run(sink(out, ledgerGroup=ledger), "d")
    assert visible(side.bootstrap, out) == [b"d"]


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("number", [0, 1], ids=["stage tried again", "speculation"])
def test_a_copy_of_a_task_does_not_end_the_finished_original(
    number: int, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, ledger = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=ledger)
    other, original = write(writer, "b", task=1), write(writer, "a")
    copy = write(writer, "a", attempt=number)
    assert transaction_of(copy).name == f"{ledger}-0.1"
    writer.commit([original, other])
    assert visible(side.bootstrap, out) == [b"a", b"b"]
    assert ids_of(side, ledger, "Ongoing") == []


@pytest.mark.usefixtures("transactions")
def test_a_task_whose_attempt_failed_is_written_by_the_next_one(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, ledger = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=ledger)
    write(writer, "a")  # its executor is killed now
    writer.commit([write(writer, "a", attempt=1), write(writer, "b", task=1)])
    assert visible(side.bootstrap, out) == [b"a", b"b"]
    assert ids_of(side, ledger, "Ongoing") == []


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("starts", [True, False], ids=["df.write", "a query"])
def test_what_a_killed_run_of_more_tasks_left_open_holds_nobody_back(
    starts: bool, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    """The writer of a query is not asked to start: there the commit ends it."""
    out, ledger = new_topic("out", partitions=1), group("ledger")
    for task in range(4):
        write(sink(out, ledgerGroup=ledger), "killed", task=task)
    writer = sink(out, ledgerGroup=ledger)
    if starts:
        writer.start()
    writer.commit([write(writer, "a")])
    assert visible(side.bootstrap, out) == [b"a"]


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("lost", [0, 1])
@ABORTS
def test_a_batch_of_which_a_transaction_is_gone_before_the_first_commit_is_not_seen_and_comes_again(
    lost: int, abort: Abort, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, ledger = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=ledger)
    written = [write(writer, f"a{task}", task=task) for task in range(2)]
    abort(side, transaction_of(written[lost]))
    with pytest.raises(TransactionLostError, match="nothing of the batch is in the topics"):
        writer.commit(written)
    writer.abort(written)
    assert visible(side.bootstrap, out) == []
    run(sink(out, ledgerGroup=ledger), "a0", "a1")
    assert visible(side.bootstrap, out) == [b"a0", b"a1"]


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("committed", [0, 1, 2])
@pytest.mark.parametrize("key", [SEVEN, "0-beef"], ids=["the same batch", "after a reset"])
@pytest.mark.parametrize("starts", [True, False], ids=["df.write", "a query"])
def test_a_driver_that_ended_between_the_commits_is_followed_by_one_that_goes_on(
    committed: int,
    key: str,
    starts: bool,
    side: Side,
    sink: Make,
    new_topic: NewTopic,
    group: Named,
    dying: Dying,
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=name)
    written = [write(writer, f"a{task}", task=task) for task in range(2)]
    with dying(committed):
        writer.commit(written)
    # what Spark asks for when the commit has raised an error
    writer.abort(written)

    after = sink(out, ledgerGroup=name)
    for _ in range(2):
        if starts:
            after.start()
        after.commit([write(after, f"another{task}", key=key, task=task) for task in range(3)])
    others = [] if key == SEVEN else [b"another0", b"another1", b"another2"]
    assert visible(side.bootstrap, out) == [b"a0", b"a1", *others]
    assert side.committed(name, out) == {0: 1 + (key != SEVEN)}


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("committed", [0, 1])
@ABORTS
def test_a_batch_of_which_a_part_is_committed_and_the_rest_is_gone_is_completed(
    committed: int, abort: Abort, side: Side, sink: Make, new_topic: NewTopic, group: Named, dying: Dying
) -> None:
    """The driver was killed between two commits, and comes back after the transactions' time."""
    out, name = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=name)
    written = [write(writer, f"a{task}", f"b{task}", task=task) for task in range(3)]
    with dying(committed):
        writer.commit(written)
    for one in written[committed:]:
        abort(side, transaction_of(one))
    assert len(visible(side.bootstrap, out)) == 2 * committed

    after = sink(out, ledgerGroup=name)
    after.start()
    # a shuffle gives the rows in another order, and tasks whose rows are missing may have other ones
    again = [write(after, f"b{task}", f"a{task}", task=task) for task in range(2)]
    again += [write(after, "a2", task=2), write(after, "b2", task=3)]
    assert [one.report.work for one in again] == [Work.COMPARE] * committed + [Work.WRITE] * (4 - committed)
    after.commit(again)
    assert visible(side.bootstrap, out) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
    assert side.committed(name, out) == {0: 1}


@pytest.mark.usefixtures("transactions")
def test_a_querys_batch_that_turns_out_to_be_there_in_part_is_completed_by_the_next_run(
    side: Side, sink: Make, new_topic: NewTopic, group: Named, dying: Dying
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=name)
    written = [write(writer, f"a{task}", task=task) for task in range(2)]
    with dying(1):
        writer.commit(written)
    time_out_transaction(side, transaction_of(written[1]))
    with pytest.raises(TransactionLostError, match="the next run writes what is missing"):
        writer.commit([write(writer, f"a{task}", task=task) for task in range(2)])
    writer.commit([write(writer, f"a{task}", task=task) for task in range(2)])
    assert visible(side.bootstrap, out) == [b"a0", b"a1"]


@pytest.fixture
def partial(side: Side, sink: Make, new_topic: NewTopic, group: Named, dying: Dying) -> TopicWriter:
    """Has started after a run of which task 0 with ``a0`` stands, and task 1 with ``a1`` is gone."""
    writer = sink(new_topic("out", partitions=1), ledgerGroup=group("ledger"))
    written = [write(writer, f"a{task}", task=task) for task in range(2)]
    with dying(1):
        writer.commit(written)
    time_out_transaction(side, transaction_of(written[1]))
    writer.start()
    return writer


@pytest.mark.usefixtures("transactions")
def test_a_part_that_comes_with_other_rows_is_an_error_and_nothing_is_written_twice(
    side: Side, partial: TopicWriter
) -> None:
    other = write(partial, "a1", task=1)
    with pytest.raises(PartialBatchError, match="task 0, whose rows are there, has other rows than then"):
        write(partial, "another")
    partial.abort([None, other])
    with pytest.raises(PartialBatchError, match="the rows of task 0 are there"):
        partial.commit([other])
    assert visible(side.bootstrap, partial.options.topic or "") == [b"a0"]


@pytest.mark.usefixtures("transactions")
def test_another_batch_follows_one_that_stays_in_part(
    side: Side, partial: TopicWriter, caplog: pytest.LogCaptureFixture
) -> None:
    run(partial, "b0", "b1", key="0-beef")
    assert visible(side.bootstrap, partial.options.topic or "") == [b"a0", b"b0", b"b1"]
    assert "stays in the topics in part" in caplog.text


@pytest.mark.usefixtures("transactions")
def test_an_outcome_that_nobody_can_tell_is_an_error(
    side: Side, sink: Make, new_topic: NewTopic, group: Named, dying: Dying
) -> None:
    """A producer of somebody else took the id after the decision: that hides whether it was committed."""
    out, name = new_topic("out", partitions=1), group("ledger")
    with dying(0):
        run(sink(out, ledgerGroup=name), "a0", "a1")

    async def take(cluster: Cluster) -> None:
        id_ = f"{name}-0"
        await cluster.retrying(lambda: init_producer_id(cluster, id_))

    side.client.run(take)
    for _ in range(2):
        with pytest.raises(UndecidedBatchError, match=f"transactions {name}-0 .* delete the offsets"):
            run(sink(out, ledgerGroup=name), "a0", "a1")


def test_a_batch_whose_number_came_again_after_a_reset_is_written_and_its_replay_is_not(
    side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    for key, value in (("0-one", "a"), ("1-two", "b"), ("0-three", "c"), ("0-three", "d")):
        run(sink(out, ledgerGroup=name), value, key=key)
    assert visible(side.bootstrap, out) == [b"a", b"b", b"c"]


def test_a_ledger_without_a_key_to_remember_is_an_error(
    sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    with pytest.raises(OptionsError, match="ledgerGroup needs batchKey"):
        write(sink(out, ledgerGroup=name), "a", key=None)


def test_an_entry_of_somebody_else_holds_and_prepares_nothing(
    side: Side, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    ledger = Ledger(side.client, name, out)
    assert ledger.read() == Entry()
    for metadata in ("", "by hand", "[]", "7", '{"c":7}', '{"k":"7-f00d","t":[[1]]}', '{"t":[[0,1,2]]}'):
        side.commit(name, out, {0: 7}, metadata)
        assert ledger.read() == Entry(7)
    assert not ledger.read().holds(SEVEN)


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_an_entry_of_an_earlier_kohort_is_gone_on_with_unless_rows_would_be_written_twice(
    lost: int, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=1), group("ledger")
    writer = sink(out, ledgerGroup=name)
    written = [transaction_of(write(writer, f"a{task}", task=task)) for task in range(2)]
    listed = ",".join(f"[{task},{one.producer.id},{one.producer.epoch}]" for task, one in enumerate(written))
    side.commit(name, out, {0: 5}, f'{{"k":"{SEVEN}","t":[{listed}]}}')
    for one in written[2 - lost :]:
        time_out_transaction(side, one)
    if lost == 1:
        with pytest.raises(PartialBatchError, match="has rows that were not noted then"):
            run(writer, "a0", "a1")
    else:
        run(writer, "a0", "a1")
        assert side.committed(name, out) == {0: 6}
    assert visible(side.bootstrap, out) == [b"a0", b"a1"][: 1 if lost == 1 else 2]


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_task_for_which_the_ledger_has_no_room_is_refused_before_it_writes(
    partitions: int, side: Side, sink: Make, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=partitions), group("ledger")
    writer = sink(out, ledgerGroup=name)
    write(writer, "a", task=400 * partitions - 1)
    with pytest.raises(LedgerError, match=f"in each of the {partitions} partitions of its topic"):
        write(writer, "a", task=400 * partitions)
    writer.abort([])
    assert visible(side.bootstrap, out) == []
    assert len(visible(side.bootstrap, out, "read_uncommitted")) == 1


def test_an_entry_of_many_tasks_is_read_as_it_was_written(
    side: Side, new_topic: NewTopic, group: Named
) -> None:
    out, name = new_topic("out", partitions=2), group("ledger")
    ledger = Ledger(side.client, name, out)
    for count in (1, 600, 200):
        entry = random_entry(name, count)
        ledger.write(entry)
        assert ledger.read() == entry
