"""Which commit carries the log, and what a driver takes over of it. No broker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import BatchCommitted, OffsetRange
from kohort.spark._batch_log import BatchLog, BatchRow, decode_log, encode_log
from kohort.spark._intent import add_log, find_log, parse_mark, remove_log
from kohort.spark._log_keeper import LogKeeper, find_newest, keep_log, row_of
from kohort.spark._offsets import Commits, Committed

A, B, C = (TopicPartition("orders", number) for number in range(3))
ROW = BatchRow(4, 1_000, offsets=10, partitions=1, largest_part=1_000)


def carriers(commits: Commits) -> list[TopicPartition]:
    return [partition for partition, commit in commits.items() if find_log(commit.metadata) is not None]


def text(log: BatchLog) -> str:
    return add_log('{"b":4}', encode_log(log))


def loaded(committed: Commits) -> LogKeeper:
    keeper = LogKeeper()
    keeper.load(committed, "local-1")
    return keeper


def plain(*partitions: TopicPartition) -> Commits:
    return {partition: Committed(10, '{"b":5}') for partition in partitions}


def test_a_driver_goes_on_with_the_newest_log_of_its_group() -> None:
    old, new = BatchLog((ROW,), writes=3, runs=1), BatchLog((ROW, replace(ROW, number=5)), writes=4, runs=2)
    keeper = loaded({A: Committed(1, text(new)), B: Committed(1, text(old)), C: Committed(1, "by hand")})
    assert keeper.log == replace(new, runs=3, applications={3: "local-1"})
    keeper.load({}, "local-2")  # once is enough
    assert keeper.log.runs == 3


def test_one_commit_carries_the_log_and_stays_the_carrier() -> None:
    keeper = loaded({B: Committed(1, text(BatchLog((ROW,), writes=7)))})
    commits = keeper.carry(plain(A, B), keeper.log)
    assert carriers(commits) == [B]
    assert commits[A] == plain(A)[A]
    written = decode_log(find_log(commits[B].metadata) or "")
    assert written == replace(keeper.log, writes=8)
    assert carriers(keeper.carry(plain(C, A), keeper.log)) == [A]
    assert carriers(keeper.carry(plain(A, B), keeper.log)) == [A]
    last = keeper.carry(plain(A), keeper.log)[A].metadata
    assert decode_log(find_log(last) or "").writes == 11
    assert keeper.carry({}, keeper.log) == {}


def test_partitions_that_carried_the_log_before_are_cleared_of_it() -> None:
    committed = {A: Committed(1, text(BatchLog())), B: Committed(2, text(BatchLog())), C: Committed(3)}
    cleared = {A: Committed(1, '{"b":4}')}
    assert loaded(committed).clear_others(committed, plain(B), {A, B, C}) == cleared
    # of a topic that the job read once
    assert loaded(committed).clear_others(committed, plain(B), {B, C}) == {}


def test_a_log_that_cannot_be_read_is_said_and_a_new_one_begins(caplog: pytest.LogCaptureFixture) -> None:
    garbage = {A: Committed(1, add_log("", "byhand"))}
    found = find_newest(garbage)
    assert found is not None
    assert "cannot be decoded" in found.trouble
    assert "commit of orders-0" in found.trouble
    keeper = loaded(garbage)
    assert (keeper.log.rows, keeper.log.runs) == ((), 1)
    assert "a new log of batches begins" in caplog.text
    # a good one counts, however few its writes
    both = garbage | {B: Committed(1, text(BatchLog((ROW,))))}
    assert loaded(both).log.rows == (ROW,)
    assert find_newest({A: Committed(1, '{"b":3}')}) is None


def test_batches_that_ended_before_the_group_could_be_asked_come_after_its_own() -> None:
    keeper = LogKeeper()
    keeper.log = keeper.log.end(replace(ROW, number=0))
    keeper.load({A: Committed(1, text(BatchLog((ROW,), runs=6)))}, None)
    assert [(row.number, row.run) for row in keeper.log.rows] == [(4, None), (0, 7)]


def test_a_commit_keeps_the_log_of_the_one_before() -> None:
    before = Committed(1, text(BatchLog((ROW,))))
    for commit in (Committed(9), Committed(9, '{"b":6}')):
        kept = keep_log(commit, before)
        assert remove_log(kept) == commit
        assert loaded({A: kept}).log.rows == (ROW,)
        assert keep_log(commit, Committed(1, '{"b":3}')) == keep_log(commit, None) == commit


def test_a_reset_writes_nothing_of_a_stranger_s_log_that_would_be_a_mark() -> None:
    forged = Committed(1, '{"l":"x\\",\\"b\\":5,\\"e\\":9,\\"k\\":\\"f00d"}')
    assert parse_mark(keep_log(Committed(0), forged).metadata) is None


def test_a_row_has_the_figures_of_the_batch_in_milliseconds() -> None:
    event = BatchCommitted(
        "etl",
        7,
        (OffsetRange("orders", 0, 0, 30), OffsetRange("orders", 1, 5, 15)),
        replayed=True,
        rows=None,
        lag_before=50,
        lag=10,
        plan_seconds=0.0034,
        read_seconds=None,
        sink_seconds=1.5,
        commit_seconds=0.01,
        lag_seconds=2.0,
    )
    assert row_of(event, 99, 2) == BatchRow(
        7, 99, 40, 2, 750, plan_ms=3, sink_ms=1_500, commit_ms=10, lag=10, lag_ms=2_000, replays=2
    )
