"""The loop from committed offsets to commits, without a JVM: only ``Batch.df`` needs Spark."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kohort.spark import (
    Batch,
    DataLossError,
    Event,
    GroupBatches,
    NoStartError,
    OffsetRange,
    OffsetsLost,
    UncommittedBatchError,
    UnknownTopicError,
)
from tests.spark.conftest import Side
from tests.spark.loops import NO_SPARK, Driver, Named, NewTopic, bounds, next_of

pytestmark = pytest.mark.kafka


def test_the_first_batch_starts_at_the_committed_offsets(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 1000, 1: 1000})
    side.commit(etl, orders, {0: 500, 1: 700})
    batch = next_of(driver(etl, orders))
    assert bounds(batch) == {0: (500, 1000), 1: (700, 1000)}
    assert (batch.number, batch.replayed, batch.lag) == (0, False, 0)


def test_while_a_batch_is_written_the_group_stands_at_its_start_and_then_at_its_end(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 300, 1: 100})
    batches = driver(etl, orders, max_offsets=20)
    for number in range(20):
        batch = next_of(batches)
        assert batch.number == number
        before = side.committed(etl, orders)
        batch.commit()
        after = side.committed(etl, orders)
        for partition, (start, end) in bounds(batch).items():
            assert (before[partition], after[partition]) == (start, end)
    assert batches.next_batch() is None
    assert side.lag(etl, orders) == 0


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
    applied: dict[int, int] = {}

    def sink(batch: Batch) -> None:
        """Skips a number that it has applied, and so trusts that a number always has the same rows."""
        applied.setdefault(batch.number, sum(span.offsets for span in batch.ranges))

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


def test_a_reset_cancels_the_announced_batch(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    next_of(driver(etl, orders, max_offsets=10))
    side.commit(etl, orders, {0: 50}, metadata="by hand")
    batch = next_of(driver(etl, orders))
    assert (batch.replayed, bounds(batch)) == (False, {0: (50, 100)})


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


def test_loss_is_an_error_that_names_the_range_and_leaves_the_offset(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 2000})
    side.commit(etl, orders, {0: 500})
    side.delete_before(orders, {0: 800})
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[500, 800\)"):
        driver(etl, orders).next_batch()
    assert side.committed(etl, orders) == {0: 500}

    events: list[Event] = []
    batch = next_of(driver(etl, orders, fail_on_data_loss=False, on_event=events.append))
    lost = (OffsetRange(orders, 0, 500, 800),)
    assert bounds(batch) == {0: (800, 2000)}
    assert batch.lost == lost
    assert events == [OffsetsLost(etl, lost)]


def test_a_partition_added_meanwhile_is_read_from_its_beginning(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    from kafka import KafkaAdminClient

    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 5})
    batches = driver(etl, orders, metadata_max_age_ms=1)
    next_of(batches).commit()
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        admin.create_partitions({orders: 2})
    producer = Side(side.bootstrap)  # one that has not heard of the topic with one partition
    producer.send(orders, value=b"first", partition=1)
    producer.close()
    assert bounds(next_of(batches)) == {1: (0, 1)}


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


def test_a_tool_sees_the_group_and_its_offsets(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    from kafka import KafkaAdminClient
    from kafka.structs import TopicPartition as KafkaPartition

    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    next_of(driver(etl, orders, max_offsets=4)).commit()
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        listed = {row["group_id"] for row in admin.list_groups()}
        offsets = admin.list_group_offsets([etl])[etl]
    assert etl in listed
    assert offsets[KafkaPartition(orders, 0)].offset == 4
