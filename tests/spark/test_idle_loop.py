"""A loop or query that finds nothing looks less often the longer nothing came and the more a look costs.

Covers: spark/_driver.py, spark/_idle.py, spark/_stream.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import _driver, _stream
from kohort.spark._group import CommitRefusedError, GroupPositions
from kohort.spark._idle import TOUCH_SECONDS
from kohort.spark._offsets import Bounds, Commits, Committed
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets
from tests.spark.loops import Driver

#: What a look at 1,000 partitions takes.
LOOK = 0.028


class Clock:
    """Time that passes in waits and, for the processor, in looks."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0
        self.waits: list[float] = []
        self.ends_at = 3_600.0
        self.state = GroupPositions({}, {})

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.worked

    def look(self) -> GroupPositions:
        self.worked += LOOK
        return self.state

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def is_set(self) -> bool:
        return self.now >= self.ends_at


@pytest.mark.parametrize("how", ["run", "iteration"])
def test_an_idle_loop_of_1000_partitions_takes_less_than_a_hundredth_of_a_core(
    how: str, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: Any = Clock()
    monkeypatch.setattr(_driver, "time", clock)
    batches = driver("etl", "orders")
    monkeypatch.setattr(batches, "_stopping", clock)
    monkeypatch.setattr(batches._group, "look", clock.look)
    if how == "run":
        batches.run(lambda _: None)
    else:
        assert list(batches) == []
    # once it has been idle for a minute
    assert min(wait for at, wait in enumerate(clock.waits) if sum(clock.waits[:at]) > 60) >= LOOK * 100
    assert clock.worked / clock.now < 0.01
    # and who has just had records gets the next ones soon
    assert clock.waits[0] == 0.05
    assert sum(wait <= 0.1 for wait in clock.waits) >= 10


def test_an_idle_loop_commits_its_offsets_again_so_that_they_do_not_expire(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: Any = Clock()
    clock.ends_at = 2.5 * TOUCH_SECONDS
    monkeypatch.setattr(_driver, "time", clock)
    batches = driver("etl", "orders")
    monkeypatch.setattr(batches, "_stopping", clock)
    monkeypatch.setattr(batches._group, "look", clock.look)
    place, gone = TopicPartition("orders", 0), TopicPartition("orders", 9)
    there = Committed(10, '{"b":3,"l":"eNp"}')
    clock.state = GroupPositions({place: there, gone: Committed(5)}, {place: Bounds(0, 10)})
    touched: list[Commits] = []

    def commit(_number: int, commits: Commits) -> None:
        touched.append(commits)
        raise CommitRefusedError("the group has members")

    monkeypatch.setattr(batches._group, "commit_once", commit)
    batches.run(lambda _: None)
    assert touched == [{place: there}] * 2


def test_an_idle_query_looks_as_seldom_although_spark_asks_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock: Any = Clock()
    monkeypatch.setattr(_stream, "time", clock)
    given = {"kafka.bootstrap.servers": "localhost:9092", "groupId": "etl", "subscribe": "orders"}
    offsets = SourceOffsets(read_source_options(given, stream=True))
    monkeypatch.setattr(offsets._group, "look", clock.look)
    place = TopicPartition("orders", 0)
    start, more = {place: 10}, {place: 20}
    clock.state = GroupPositions({place: Committed(10)}, {place: Bounds(0, 10)})

    def ask_until(end: dict[TopicPartition, int], longest: float) -> float:
        """Ask as Spark does; return how long it took until there were records."""
        began = clock.now
        while clock.now - began < longest and offsets.latest(start, None, all_of_it=False) != end:
            clock.now += 0.01
        waited: float = clock.now - began
        return waited

    assert offsets.initial() == start
    # soon after there were records they are found soon
    ask_until(more, 1.0)
    assert clock.worked / LOOK >= 10
    ask_until(more, 60.0)
    before = clock.worked
    ask_until(more, 240.0)
    assert (clock.worked - before) / 240 < 0.01
    clock.state = GroupPositions({place: Committed(10)}, {place: Bounds(0, 20)})
    assert ask_until(more, 60.0) <= LOOK / 0.008 + 0.02
