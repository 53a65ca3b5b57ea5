"""Starts, ends and commits of ``format("kohort")`` on a cluster, without a JVM."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import DataLossError, NoStartError, OffsetRange, StartStateError, UnknownTopicError
from kohort.spark._intent import add_log, find_log
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets
from kohort.spark._stream_plan import BatchReport, Reports
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, commits_of
from tests.spark.test_driver_refusals import member_of

pytestmark = pytest.mark.kafka

Make = Callable[..., SourceOffsets]


@pytest.fixture
def source(side: Side) -> Make:
    def make(group: str, topic: str, *, stream: bool = True, **options: str) -> SourceOffsets:
        given = {"kafka.bootstrap.servers": side.bootstrap, "groupId": group, "subscribe": topic} | options
        given = {key: value for key, value in given.items() if value}
        return SourceOffsets(read_source_options(given, stream=stream), side.client)

    return make


def test_a_query_begins_at_the_commits_and_commits_what_spark_has_done(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    a, b = TopicPartition(orders, 0), TopicPartition(orders, 1)
    side.produce(orders, {0: 1000, 1: 1000})
    side.commit(etl, orders, {0: 500, 1: 700})
    offsets = source(etl, orders)
    start = offsets.initial()
    assert start == {a: 500, b: 700}
    end = offsets.latest(start, 400, all_of_it=False)
    assert sum(end.values()) - 1200 == 400
    assert side.committed(etl, orders) == {0: 500, 1: 700}
    assert offsets.latest(end, None, all_of_it=True) == {a: 1000, b: 1000}
    assert side.committed(etl, orders) == {0: end[a], 1: end[b]}


def test_what_is_there_now_ends_although_more_comes(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 30})
    offsets = source(etl, orders, minOffsetsPerTrigger="1000")
    offsets.aim()
    side.produce(orders, {0: 30})
    at = offsets.initial()
    ends: list[int] = []
    while (end := offsets.latest(at, 20, all_of_it=False)) != at:
        ends += end.values()
        at = end
    assert ends == [20, 30]


def test_a_start_is_pinned_in_a_file_that_is_written_once(
    side: Side, source: Make, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    path = tmp_path / "kohort" / "start.json"
    first = source(etl, orders, startStatePath=str(path), startingOffsets="latest").initial()
    side.produce(orders, {0: 10})
    assert source(etl, orders, startStatePath=str(path), startingOffsets="latest").initial() == first
    assert json.loads(path.read_text()) == {orders: {"0": 10}}
    path.write_text("damaged")
    with pytest.raises(StartStateError, match="startStatePath="):
        source(etl, orders, startStatePath=str(path)).initial()


def test_a_fallback_is_kept_in_the_group_where_no_file_keeps_it(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    first = source(etl, orders, startingOffsetsFallback="latest")
    assert first.latest(first.initial(), None, all_of_it=False) == first.initial()
    side.produce(orders, {0: 10})
    assert source(etl, orders, startingOffsetsFallback="latest").initial() == first.initial()
    never = source(group("other"), orders, startingOffsetsFallback="latest", commitOffsets="never")
    assert never.initial() == {TopicPartition(orders, 0): 20}
    assert side.committed(etl, orders) == {0: 10}


@pytest.mark.parametrize("later", [0, 10, 80])
def test_a_first_batch_that_was_not_done_begins_where_it_did_though_latest_is_elsewhere_now(
    later: int, side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    """A query of ``readStream`` is killed in batch 0: Spark's log has only the batch's end."""
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    side.commit(etl, orders, {0: 100})
    killed = source(etl, orders, startingOffsets="latest")
    killed.initial()
    side.produce(orders, {0: 50})
    planned = killed.latest(killed.initial(), None, all_of_it=False)
    side.produce(orders, {0: later})

    after = source(etl, orders, startingOffsets="latest")
    for _ in range(2):  # a sink may read its batch twice
        assert after.ranges(after.initial(), planned) == [OffsetRange(orders, 0, 100, 150)]
    # and from the next batch on as ever
    end = after.latest(planned, None, all_of_it=False)
    assert after.ranges(planned, end) == ([OffsetRange(orders, 0, 150, 150 + later)] if later else [])
    assert side.committed(etl, orders) == {0: 150}
    fresh = source(etl, orders, startingOffsets="latest")
    assert fresh.latest(fresh.initial(), None, all_of_it=False) == {TopicPartition(orders, 0): 150 + later}
    assert side.committed(etl, orders) == {0: 150 + later}
    # a later batch may begin where the query would begin now
    place = TopicPartition(orders, 0)
    side.produce(orders, {0: 150})
    assert after.ranges(after.initial(), {place: 300}) == [OffsetRange(orders, 0, 150 + later, 300)]


def test_a_first_batch_whose_start_nobody_has_kept_is_an_error(
    side: Side, source: Make, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    options = {"startingOffsets": "latest", "commitOffsets": "never"}
    killed = source(etl, orders, **options)
    killed.initial()
    side.produce(orders, {0: 50})
    planned = killed.latest(killed.initial(), None, all_of_it=False)
    after = source(etl, orders, **options)
    with pytest.raises(StartStateError, match="does not tell where it began"):
        after.ranges(after.initial(), planned)
    named = source(etl, orders, commitOffsets="never", startingOffsets=json.dumps({orders: {"0": 100}}))
    assert named.ranges(named.initial(), planned) == [OffsetRange(orders, 0, 100, 150)]
    path = str(tmp_path / "start.json")
    kept = source(etl, orders, **options, startStatePath=path)
    start = kept.initial()
    side.produce(orders, {0: 10})
    assert kept.ranges(start, {TopicPartition(orders, 0): 160}) == [OffsetRange(orders, 0, 150, 160)]


def test_a_partition_that_came_during_the_first_batch_is_in_its_replay(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    a, b = TopicPartition(orders, 0), TopicPartition(orders, 1)
    side.produce(orders, {0: 100, 1: 30})
    first = json.dumps({orders: [0]})
    killed = source(etl, orders, startingOffsets="latest", subscribe="", assign=first)
    assert killed.latest(killed.initial(), None, all_of_it=False) == {a: 100}
    after = source(etl, orders, startingOffsets="latest")
    assert after.ranges(after.initial(), {a: 100, b: 30}) == [OffsetRange(orders, 1, 0, 30)]


def test_point_8_what_retention_took_is_named_and_500_stays_or_the_rest_is_read(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 2000})
    side.commit(etl, orders, {0: 500})
    side.delete_before(orders, {0: 800})
    strict = source(etl, orders)
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[500, 800\)"):
        strict.latest(strict.initial(), None, all_of_it=False)
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[500, 800\)"):
        source(etl, orders, stream=False).batch_ranges()
    assert side.committed(etl, orders) == {0: 500}
    lenient = source(etl, orders, failOnDataLoss="false")
    start = lenient.initial()
    end = lenient.latest(start, None, all_of_it=False)
    assert lenient.ranges(start, end) == [OffsetRange(orders, 0, 800, 2000)]


def test_the_driver_is_told_of_each_batch_and_of_what_was_lost_before_it(
    side: Side, source: Make, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    place = TopicPartition(orders, 0)
    side.produce(orders, {0: 200})
    side.commit(etl, orders, {0: 50})
    side.delete_before(orders, {0: 80})
    lost, options = (OffsetRange(orders, 0, 50, 80),), {"failOnDataLoss": "false"}
    reports = Reports(tmp_path)
    first = source(etl, orders, **options, reportFolder=str(tmp_path))
    start = first.initial()
    end = first.latest(start, 20, all_of_it=False)
    for _ in range(2):  # as Spark does for a sink that reads its batch twice
        first.ranges(start, end)
    assert reports.take() == [BatchReport({place: 50}, {place: 100}, lost)]
    # the batch is read again after a restart, and nothing else is there
    again = source(etl, orders, **options, reportFolder=str(tmp_path))
    assert again.ranges(start, end) == [OffsetRange(orders, 0, 80, 100)]
    after = again.latest(end, None, all_of_it=False)
    again.ranges(end, after)
    assert again.latest(after, None, all_of_it=False) == after
    assert reports.take() == [
        BatchReport({place: 50}, {place: 100}, lost),
        BatchReport({place: 100}, {place: 200}),
    ]
    idle = source(etl, orders, reportFolder=str(tmp_path))
    for _ in range(2):
        assert idle.latest(after, None, all_of_it=False) == after
    assert reports.take() == [BatchReport(after, after)]


def test_with_a_least_number_a_batch_waits_for_it_but_not_for_ever(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 5})
    offsets = source(group("etl"), orders, minOffsetsPerTrigger="10", maxTriggerDelay="200ms")
    start = offsets.initial()
    assert offsets.latest(start, None, all_of_it=False) == start
    time.sleep(0.25)
    assert list(offsets.latest(start, None, all_of_it=False).values()) == [5]


def test_a_partition_added_later_is_read_from_its_first_record(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    from kafka import KafkaAdminClient

    orders = new_topic("orders", partitions=1)
    offsets = source(group("etl"), orders, **{"kafka.metadata.max.age.ms": "1"})
    start = offsets.initial()
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        admin.create_partitions({orders: 2})
    producer = Side(side.bootstrap)
    try:
        producer.produce(orders, {1: 7})
    finally:
        producer.close()
    end = offsets.latest(start, None, all_of_it=False)
    assert end == {TopicPartition(orders, 0): 0, TopicPartition(orders, 1): 7}
    assert offsets.ranges(start, end) == [OffsetRange(orders, 1, 0, 7)]


def test_a_batch_read_goes_from_time_to_time_and_commits_nothing(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    for second in range(10):
        side.send(orders, value=b"x", partition=0, timestamp_ms=1_000_000 + second * 1000)

    def ranges(**options: str) -> list[tuple[int, int]]:
        return [
            (span.start, span.end) for span in source(etl, orders, stream=False, **options).batch_ranges()
        ]

    assert ranges() == [(0, 10)]
    assert ranges(startingTimestamp="1002500", endingTimestamp="1005000") == [(3, 5)]
    assert ranges(
        startingOffsets=json.dumps({orders: {"0": -2}}), endingOffsets=json.dumps({orders: {"0": 4}})
    ) == [(0, 4)]
    assert ranges(startingTimestamp="9999999999") == []
    with pytest.raises(NoStartError, match=f"no record at or after the time .* {orders}-0"):
        ranges(startingTimestamp="9999999999", startingOffsetsByTimestampStrategy="error")
    side.commit(etl, orders, {0: 6})
    assert ranges() == [(6, 10)]
    assert ranges(startingOffsets="earliest", endingOffsets="committed") == [(0, 6)]
    # all of it lies before what the group has
    assert ranges(endingTimestamp="1002500") == []
    behind = json.dumps({orders: {"0": 50}})
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[10, 50\)"):
        ranges(endingOffsets=behind)
    assert ranges(endingOffsets=behind, failOnDataLoss="false") == [(6, 10)]
    with pytest.raises(NoStartError, match="the ending offsets name typo-3, which is not among what is read"):
        ranges(endingOffsets='{"typo": {"3": 7}}')
    assert side.committed(etl, orders) == {0: 6}


def test_a_batch_read_without_a_group_has_all_there_is(side: Side, source: Make, new_topic: NewTopic) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 10})
    assert source("", orders, stream=False).batch_ranges() == [OffsetRange(orders, 0, 0, 10)]
    assert source("", orders, stream=False, startingOffsets="latest").batch_ranges() == []


def test_members_of_the_group_make_the_query_go_on_uncommitted_until_they_leave(
    bootstrap: str, side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    offsets = source(etl, orders)
    start = offsets.initial()
    with member_of(bootstrap, etl, orders):
        end = offsets.latest(start, 5, all_of_it=False)
        assert list(offsets.latest(end, 5, all_of_it=False).values()) == [10]
        assert side.committed(etl, orders) == {0: 0}
    offsets.latest(end, 5, all_of_it=False)
    assert side.committed(etl, orders) == {0: 5}


def test_a_topic_that_is_not_there_is_named(source: Make, group: Named) -> None:
    with pytest.raises(UnknownTopicError, match="'no-such-topic' does not exist"):
        source(group("etl"), "no-such-topic").initial()


def test_a_log_of_batches_stays_in_the_commits_of_a_plain_query(
    side: Side, source: Make, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 10, 1: 10})
    side.commit(etl, orders, {0: 2, 1: 2}, metadata=add_log('{"b":4}', "eJyr"))
    offsets = source(etl, orders)
    end = offsets.latest(offsets.initial(), None, all_of_it=True)
    for commit in (lambda: offsets.latest(end, None, all_of_it=True), lambda: offsets.follow(end)):
        commit()
        found = commits_of(side, etl)
        assert {at.offset for at in found.values()} == {10}
        assert {find_log(at.metadata) for at in found.values()} == {"eJyr"}


def test_what_this_run_has_done_is_left_to_the_driver_if_that_follows(
    side: Side, source: Make, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    """The source may have looked before the driver committed with the batch's row, and commit after it."""
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    only = TopicPartition(orders, 0)
    for strict, committed in (("", 4), ("true", 10)):
        side.commit(etl, orders, {0: 2})
        offsets = source(etl, orders, reportFolder=str(tmp_path), failOnCommitError=strict)
        # a run before this one ended between Spark's log and the commit
        begun = {only: 4}
        end = offsets.latest(begun, None, all_of_it=True)
        assert side.committed(etl, orders) == {0: 4}
        offsets.ranges(begun, end)
        offsets.latest(end, None, all_of_it=True)
        assert side.committed(etl, orders) == {0: committed}


def test_a_log_of_batches_stays_when_a_former_run_is_committed(
    side: Side, source: Make, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    side.commit(etl, orders, {0: 2}, metadata=add_log('{"b":4}', "eJyr"))
    offsets = source(etl, orders, reportFolder=str(tmp_path))
    offsets.latest({TopicPartition(orders, 0): 4}, None, all_of_it=True)
    (found,) = commits_of(side, etl).values()
    assert (found.offset, find_log(found.metadata)) == (4, "eJyr")
