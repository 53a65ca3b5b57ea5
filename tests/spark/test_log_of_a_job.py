"""The log of batches in the commits of a job that runs, dies, is reset and started again. No JVM.

Covers: spark/_log_keeper.py, spark/_driver.py, spark/_group.py.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from kohort.client import offsets as client_offsets
from kohort.protocol import TopicPartition
from kohort.spark import GroupBatches, _group
from kohort.spark._intent import find_log
from kohort.spark._log_keeper import FoundLog, find_newest
from kohort.testing import running_broker
from tests.spark.conftest import Side
from tests.spark.loops import NO_SPARK, Driver, Named, NewTopic, commits_of, next_of

pytestmark = pytest.mark.kafka


def log_of(side: Side, group: str) -> FoundLog:
    found = find_newest(commits_of(side, group))
    assert found is not None, "no log"
    assert not found.trouble
    return found


def test_each_batch_has_a_row_and_costs_no_commit_more(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, etl, sent = new_topic("orders", partitions=2), group("etl"), list[int]()

    async def counted(*args: object, **named: object) -> object:
        sent.append(1)
        return await client_offsets.commit_once(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(_group, "commit_once", counted)
    side.produce(orders, {0: 300, 1: 100})
    began_ms = round(time.time() * 1_000)
    batches = driver(etl, orders, max_offsets=200)
    next_of(batches).commit()
    assert len(sent) == 2  # intent and end, as ever
    (row,) = log_of(side, etl).log.rows
    assert (row.number, row.offsets, row.partitions, row.largest_part) == (0, 200, 2, 750)
    assert (row.lag, row.replays, row.run) == (200, 0, 1)
    assert began_ms <= row.started_ms <= began_ms + 60_000
    assert row.plan_ms is not None
    assert row.sink_ms is not None
    # nobody read the records; how long the commit took is known after it
    assert (row.rows, row.read_ms, row.lag_ms, row.commit_ms) == (None, None, None, None)
    next_of(batches)
    assert len(sent) == 3
    found = log_of(side, etl).log
    assert found.rows[0].commit_ms is not None
    assert found.under_way is not None
    assert (found.under_way.number, found.under_way.replays) == (1, 0)


def test_replays_and_runs_are_counted_over_restarts(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    first = next_of(driver(etl, orders))
    for _ in range(2):  # each driver before dies without a commit
        last = next_of(driver(etl, orders))
        assert (last.key, last.replayed) == (first.key, True)
    last.commit()
    (row,) = log_of(side, etl).log.rows
    assert (row.number, row.replays, row.run) == (0, 2, 3)


@pytest.mark.parametrize("metadata", ["", '{"b":0}'], ids=["reset", "a version without a log"])
def test_a_commit_without_a_log_takes_nothing_from_a_running_job(
    metadata: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 100})
    batches = driver(etl, orders)
    next_of(batches).commit()
    side.commit(etl, orders, {0: 30, 1: 40}, metadata=metadata)
    assert find_newest(commits_of(side, etl)) is None
    batch = next_of(batches)
    # once more while the batch is written, which leaves one partition to carry the log
    side.commit(etl, orders, {0: 20})
    batch.commit()
    found = log_of(side, etl)
    assert found.carrier == TopicPartition(orders, 1)
    assert [row.number for row in found.log.rows] == [0, 1]
    assert side.committed(etl, orders) == {0: 20, 1: 100}


def test_a_job_that_was_reset_or_is_older_than_logs_goes_on_and_begins_one(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    side.commit(etl, orders, {0: 4}, metadata='{"b":8}')
    batch = next_of(driver(etl, orders))
    assert batch.number == 9
    batch.commit()
    assert [row.number for row in log_of(side, etl).log.rows] == [9]
    side.commit(etl, orders, {0: 0}, metadata='{"l":"by hand"}')
    restarted = next_of(driver(etl, orders))
    restarted.commit()
    assert [row.number for row in log_of(side, etl).log.rows] == [0]


def test_one_partition_carries_the_log_whichever_has_records(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=3), group("etl")
    batches = driver(etl, orders)
    for partition in (0, 2, 1, 1):
        side.produce(orders, {partition: 5})
        next_of(batches).commit()
        carriers = [p.partition for p, commit in commits_of(side, etl).items() if find_log(commit.metadata)]
        assert carriers == [partition]
    assert [row.number for row in log_of(side, etl).log.rows] == [0, 1, 2, 3]
    assert side.committed(etl, orders) == {0: 5, 1: 10, 2: 5}


def test_a_position_without_a_batch_keeps_the_log(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    batches = driver(etl, orders, max_offsets=4, fail_on_data_loss=False)
    next_of(batches).commit()
    side.delete_before(orders, {0: 10})
    assert batches.next_batch() is None
    assert side.committed(etl, orders) == {0: 10}
    assert [row.number for row in log_of(side, etl).log.rows] == [0]


def test_brokers_that_take_little_metadata_get_none_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with running_broker(offset_metadata_max_bytes=100, num_partitions=2) as broker:
        side = Side(broker.bootstrap)
        try:
            side.produce("orders", {0: 10, 1: 10})
            options: dict[str, Any] = {"bootstrap": broker.bootstrap, "group": "etl", "topics": ["orders"]}
            with GroupBatches(NO_SPARK, max_offsets=10, **options) as batches:
                for _ in range(2):
                    next_of(batches).commit()
            assert side.committed("etl", "orders") == {0: 10, 1: 10}
            assert find_newest(commits_of(side, "etl")) is None
        finally:
            side.close()
    assert caplog.text.count("no log of batches is kept") == 1
