from __future__ import annotations

import threading

from kohort.protocol import KohortError, TopicPartition
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


def test_closing_gives_what_waits_a_last_try_and_then_ends() -> None:
    closed = threading.Event()

    def refuse(_: Done) -> None:
        raise KohortError("no")

    mirror = OffsetMirror(refuse, closed.set)
    mirror.tell(done(0, 10))
    mirror.close()
    assert closed.wait(5)
