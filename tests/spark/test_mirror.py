from __future__ import annotations

import threading

from kohort.protocol import KohortError, TopicPartition
from kohort.spark._batch_log import BatchRow
from kohort.spark._follower import Done, OffsetMirror

A = TopicPartition("orders", 0)


def done(number: int, end: int) -> Done:
    return Done(number, {A: end})


def test_each_place_is_committed_once() -> None:
    committed: list[int] = []
    mirror = OffsetMirror(lambda one: committed.append(one.number))
    mirror.tell(done(0, 10))
    mirror.close()
    mirror.join(5)
    assert committed == [0]
    mirror = OffsetMirror(lambda one: committed.append(one.number))
    for number in (1, 2):
        mirror.tell(done(number, 20))
    mirror.close()
    mirror.join(5)
    assert committed == [0, 1]


def test_a_refused_commit_is_tried_again_and_a_newer_batch_takes_its_place() -> None:
    attempts: list[int] = []
    refused, there = threading.Event(), threading.Event()

    def commit(one: Done) -> None:
        attempts.append(one.number)
        refused.set()
        if one.number == 0:
            raise KohortError("the group has members")
        there.set()

    mirror = OffsetMirror(commit)
    mirror.tell(done(0, 10))
    assert refused.wait(5)
    mirror.tell(done(1, 20))
    assert there.wait(5)
    mirror.close()
    mirror.join(5)
    assert attempts[0] == 0
    assert attempts[-1] == 1
    assert attempts.count(1) == 1


def test_an_error_of_a_listener_ends_neither_the_commits_nor_the_mirror() -> None:
    attempts: list[int] = []
    again, closed = threading.Event(), threading.Event()

    def commit(one: Done) -> None:
        attempts.append(one.number)
        if len(attempts) == 1:
            raise ZeroDivisionError("a listener that was told of a refusal")
        again.set()

    mirror = OffsetMirror(commit, closed.set)
    mirror.tell(done(0, 10))
    assert again.wait(5)
    mirror.close()
    assert closed.wait(5)
    assert attempts == [0, 0]


def test_closing_gives_what_waits_a_last_try_and_then_ends() -> None:
    closed = threading.Event()

    def refuse(_: Done) -> None:
        raise KohortError("no")

    mirror = OffsetMirror(refuse, closed.set)
    mirror.tell(done(0, 10))
    mirror.close()
    assert closed.wait(5)


def test_a_commit_has_the_rows_of_all_batches_that_none_before_it_had() -> None:
    committed: list[tuple[int, list[int]]] = []
    refused, go_on = threading.Event(), threading.Event()

    def commit(one: Done) -> None:
        if not refused.is_set():
            refused.set()
            assert go_on.wait(5)
            raise KohortError("the group has members")
        committed.append((one.number, [row.number for row in one.rows]))

    def batch(number: int) -> Done:
        return Done(number, {A: number}, (BatchRow(number, 0, 1, 1, 1000),))

    mirror = OffsetMirror(commit)
    mirror.tell(batch(1))
    assert refused.wait(5)
    mirror.tell(batch(2))
    go_on.set()
    mirror.close()
    mirror.join(5)
    mirror = OffsetMirror(commit)
    mirror.tell(batch(3))
    mirror.close()
    mirror.join(5)
    assert committed == [(2, [1, 2]), (3, [3])]
