"""The loop from committed offsets to commits, without a JVM: only ``Batch.df`` needs Spark.

Covers: spark/_group.py.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient

from kohort.producer import BlockingProducer
from kohort.protocol import TopicPartition
from kohort.spark import (
    Batch,
    BatchCommitted,
    Event,
    GroupBatches,
    NoStartError,
    OffsetRange,
    OffsetsReset,
    OptionsError,
    UncommittedBatchError,
    UnknownTopicError,
)
from kohort.spark._intent import Mark, format_mark
from tests.spark.conftest import Side
from tests.spark.loops import NO_SPARK, Driver, Named, NewTopic, bounds, next_of

pytestmark = pytest.mark.kafka


def test_nothing_to_read_is_no_batch(driver: Driver, new_topic: NewTopic, group: Named, side: Side) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    batches = driver(etl, orders)
    assert batches.next_batch() is None
    side.produce(orders, {0: 1})
    assert bounds(next_of(batches)) == {0: (0, 1)}


def test_a_fallback_of_latest_is_decided_once(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    assert driver(etl, orders, starting_offsets_fallback="latest").next_batch() is None
    side.produce(orders, {0: 5})
    restarted = driver(etl, orders, starting_offsets_fallback="latest")
    assert bounds(next_of(restarted)) == {0: (10, 15)}


def test_no_commit_and_no_fallback_is_an_error(driver: Driver, new_topic: NewTopic, group: Named) -> None:
    with pytest.raises(NoStartError, match="starting_offsets_fallback"):
        driver(group("etl"), new_topic("orders"), starting_offsets_fallback="fail").next_batch()


def test_a_start_in_the_options_counts_for_the_first_batch_only(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    side.commit(etl, orders, {0: 90})
    batches = driver(etl, orders, starting_offsets="earliest", max_offsets=40)
    for expected in ((0, 40), (40, 80), (80, 100)):
        batch = next_of(batches)
        assert bounds(batch) == {0: expected}
        batch.commit()


@pytest.mark.parametrize("sink_was_done", [False, True])
def test_a_batch_that_was_announced_and_not_committed_is_replayed_exactly(
    sink_was_done: bool, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    applied: dict[str, int] = {}

    def sink(batch: Batch) -> None:
        """Skips a key that it has applied, and so trusts that a key always has the same rows."""
        applied.setdefault(batch.key, sum(span.offsets for span in batch.ranges))

    side.produce(orders, {0: 300, 1: 300})
    dying = driver(etl, orders, max_offsets=200)
    for _ in range(2):
        batch = next_of(dying)
        sink(batch)
        batch.commit()
    last = next_of(dying)
    if sink_was_done:
        sink(last)
    side.produce(orders, {0: 600, 1: 100})

    restarted = driver(etl, orders)  # other limits change nothing
    replayed = next_of(restarted)
    assert (replayed.number, replayed.ranges, replayed.replayed) == (last.number, last.ranges, True)
    assert replayed.key == last.key
    sink(replayed)
    replayed.commit()
    restarted.run(sink, trigger="available_now")
    assert sum(applied.values()) == 1300
    assert side.lag(etl, orders) == 0


def test_an_operators_reset_moves_a_running_loop(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 100})
    batches = driver(etl, orders)
    next_of(batches).commit()
    side.commit(etl, orders, {0: 30})
    batch = next_of(batches)
    assert (batch.number, bounds(batch)) == (1, {0: (30, 100)})


def test_a_reset_while_a_batch_is_written_stays(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 100})
    events: list[Event] = []
    batches = driver(etl, orders, max_offsets=20, on_event=events.append)
    batch = next_of(batches)
    side.commit(etl, orders, {0: 60})
    batch.commit()
    assert side.committed(etl, orders) == {0: 60, 1: 10}
    assert OffsetsReset(etl, 0, {TopicPartition(orders, 0): 60}) in events
    after = next_of(batches)
    assert (after.number, {p: start for p, (start, _) in bounds(after).items()}) == (1, {0: 60, 1: 10})


def test_ends_that_an_earlier_attempt_has_committed_are_no_reset(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    events: list[Event] = []
    batch = next_of(driver(etl, orders, on_event=events.append))
    side.commit(etl, orders, {0: 10}, metadata=format_mark(Mark(batch.number)))
    batch.commit()
    assert [type(event) for event in events] == [BatchCommitted]


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_partitions_that_are_added_are_read_from_their_start_whatever_the_fallback(
    restarted: bool, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    options: dict[str, Any] = {"starting_offsets_fallback": "latest", "metadata_max_age_ms": 1}
    batches = driver(etl, orders, **options)
    assert batches.next_batch() is None
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        admin.create_partitions({orders: 2})
    producer = Side(side.bootstrap)  # one that has not heard of the topic with one partition
    producer.produce(orders, {0: 5, 1: 100})
    producer.close()
    again = driver(etl, orders, **options) if restarted else batches
    assert bounds(next_of(again)) == {0: (10, 15), 1: (0, 100)}


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("how", ["rewound", "deleted"])
def test_no_batch_after_a_reset_of_all_offsets_is_taken_for_an_earlier_one(
    how: str, restarted: bool, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    applied: dict[str, list[OffsetRange]] = {}

    def sink(batch: Batch) -> None:
        applied.setdefault(batch.key, list(batch.ranges))

    side.produce(orders, {0: 20, 1: 20})
    batches = driver(etl, orders, max_offsets=20)
    batches.run(sink, trigger="available_now")
    assert len(applied) == 2
    if how == "rewound":
        side.commit(etl, orders, {0: 0, 1: 0})
    else:
        side.delete_group(etl)
        side.produce(orders, {0: 20, 1: 20})
    (driver(etl, orders, max_offsets=20) if restarted else batches).run(sink, trigger="available_now")
    written = sum(span.offsets for spans in applied.values() for span in spans)
    # a driver that runs knows where it was; one that is started has only the group to ask
    again = 0 if how == "deleted" and not restarted else 40
    assert written == 40 + again + (40 if how == "deleted" else 0)
    assert side.lag(etl, orders) == 0


def test_a_reset_cancels_the_announced_batch(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    next_of(driver(etl, orders, max_offsets=10))
    side.commit(etl, orders, {0: 50}, metadata="by hand")
    batch = next_of(driver(etl, orders))
    assert (batch.replayed, bounds(batch)) == (False, {0: (50, 100)})


def test_a_reset_of_one_partition_leaves_the_announced_batch_to_the_others(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 100})
    announced = next_of(driver(etl, orders, max_offsets=100))
    side.commit(etl, orders, {0: 3})
    batches = driver(etl, orders)
    # a sink that has applied it skips it by its key, as is right for this partition
    batch = next_of(batches)
    assert (batch.key, batch.replayed, bounds(batch)) == (announced.key, True, {1: (0, 50)})
    batch.commit()
    assert bounds(next_of(batches)) == {0: (3, 100), 1: (50, 100)}


def test_a_batch_must_be_committed_before_the_next(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 10})
    batches = driver(group("etl"), orders, max_offsets=5)
    batch = next_of(batches)
    with pytest.raises(UncommittedBatchError, match=r"batch 0 is not committed: call its commit\(\)"):
        batches.next_batch()
    batch.commit()
    batch.commit()
    assert bounds(next_of(batches)) == {0: (5, 10)}


def test_available_now_ends_with_what_was_there_at_the_start(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=4), group("etl")
    side.produce(orders, dict.fromkeys(range(4), 500))
    seen: list[int] = []

    def sink(batch: Batch) -> None:
        seen.append(sum(span.offsets for span in batch.ranges))
        side.produce(orders, {0: 10})

    assert driver(etl, orders, max_offsets=500).run(sink, trigger="available_now") == 4
    assert sum(seen) == 2000
    assert side.lag(etl, orders) == 40


def test_an_exception_of_the_handler_leaves_its_batch_to_be_replayed(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})

    def failing(_: Batch) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        driver(etl, orders).run(failing)
    assert side.committed(etl, orders) == {0: 0}
    assert next_of(driver(etl, orders)).replayed


def test_sigterm_lets_the_batch_under_way_finish_and_commit(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})

    def terminated(_: Batch) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    assert driver(etl, orders, max_offsets=10).run(terminated) == 1
    assert side.committed(etl, orders) == {0: 10}
    assert signal.getsignal(signal.SIGTERM) is before


def test_iteration_waits_for_records_and_ends_with_stop(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders = new_topic("orders", partitions=1)
    batches = driver(group("etl"), orders)
    producing = threading.Timer(0.2, side.produce, (orders, {0: 3}))
    producing.start()
    seen = []
    for batch in batches:
        seen.append(bounds(batch))
        batch.commit()
        batches.stop()
    producing.join()
    assert sum(end - start for ranges in seen for start, end in ranges.values()) >= 1


def test_every_seconds_spaces_the_batches(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 3})
    batches = driver(group("etl"), orders, max_offsets=1)
    starts: list[float] = []

    def sink(batch: Batch) -> None:
        starts.append(time.monotonic())
        if batch.number == 2:
            batches.stop()

    began = time.monotonic()
    assert batches.run(sink, every_seconds=0.2) == 3
    assert starts[1] - began >= 0.2
    assert starts[2] - began >= 0.4


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        (lambda a, b: {"topics": [a, b]}, {0: {"a", "b"}, 1: {"a", "b"}}),
        (lambda a, b: {"topic_pattern": f"{a}|{b}"}, {0: {"a", "b"}, 1: {"a", "b"}}),
        (lambda a, b: {"assign": {a: [1], b: [0]}}, {0: {"b"}, 1: {"a"}}),
    ],
    ids=["topics", "pattern", "assign"],
)
def test_topics_are_chosen_in_three_ways(
    choice: Callable[[str, str], dict[str, Any]],
    read: dict[int, set[str]],
    side: Side,
    new_topic: NewTopic,
    group: Named,
) -> None:
    names = {new_topic(name, partitions=2): name for name in ("a", "b")}
    for topic in names:
        side.produce(topic, {0: 1, 1: 1})
    options = choice(*names)
    with GroupBatches(NO_SPARK, bootstrap=side.bootstrap, group=group("etl"), **options) as batches:
        found: dict[int, set[str]] = {}
        for span in next_of(batches).ranges:
            found.setdefault(span.partition, set()).add(names[span.topic])
    assert found == read


def test_an_unknown_topic_or_partition_is_named(driver: Driver, new_topic: NewTopic, group: Named) -> None:
    with pytest.raises(UnknownTopicError, match="topic 'no-such-topic' does not exist"):
        driver(group("etl"), "no-such-topic").next_batch()
    orders = new_topic("orders", partitions=2)
    choice: dict[str, Any] = {"topics": None, "assign": {orders: [5]}}
    with pytest.raises(UnknownTopicError, match="has 2 partitions, not number 5"):
        driver(group("etl"), **choice).next_batch()


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"trigger": "availablenow"}, "trigger='availablenow': write 'available_now'"),
        ({"trigger": {"availableNow": True}}, "write 'available_now'"),
        ({"every_seconds": -1}, "every_seconds=-1: write seconds, not less than 0"),
        ({"every_seconds": float("nan")}, "every_seconds=nan"),
    ],
)
def test_a_trigger_that_is_none_is_an_error_at_once(
    how: dict[str, Any], problem: str, driver: Driver, group: Named
) -> None:
    with pytest.raises(OptionsError, match=problem):
        driver(group("etl"), "orders").run(lambda _: None, **how)


@pytest.mark.timeout(60)
def test_sparks_spelling_of_available_now_ends_too(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 10})
    assert driver(group("etl"), orders, max_offsets=4).run(lambda _: None, trigger="availableNow") == 3


@pytest.mark.parametrize("strict", [True, False])
def test_offsets_that_were_reset_behind_an_open_transaction_are_kept_until_it_ends(
    strict: bool, bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    with BlockingProducer(bootstrap=bootstrap, transactional_id=group("open")) as producer:
        producer.begin_transaction()
        producer.send_and_wait(orders, b"not committed yet", partition=0)
        side.produce(orders, {0: 5})
        side.commit(etl, orders, {0: 16})  # the log's end
        batches = driver(etl, orders, isolation_level="read_committed", fail_on_data_loss=strict)
        assert batches.next_batch() is None
        assert side.committed(etl, orders) == {0: 16}
        side.produce(orders, {0: 3})
        producer.commit_transaction()
    while (batch := batches.next_batch()) is None:
        time.sleep(0.01)
    assert bounds(batch)[0][0] == 16
