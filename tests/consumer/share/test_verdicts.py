"""In which order verdicts are sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer.share.verdicts import Gap, VerdictQueue
from kohort.protocol import AcknowledgeType


def gap(offset: int, end: float = 0.0) -> Gap:
    return Gap(offset, AcknowledgeType.GAP, end)


def taken(queue: VerdictQueue) -> list[list[int]]:
    parts = []
    while queue:
        parts.append([said.offset for said in queue.take()])
    return parts


def test_what_is_new_waits_for_one_part_of_what_was_refused_and_no_more() -> None:
    queue = VerdictQueue()
    queue.say_in_parts([gap(offset) for offset in range(4)])
    queue.say(gap(10), 5.0)
    order = []
    for offset in range(11, 14):
        order.append([said.offset for said in queue.take()])
        queue.say(gap(offset), 6.0)
    assert order == [[10], [0, 1], [11, 12]]
    assert taken(queue) == [[2, 3], [13]]


def test_of_what_was_refused_the_part_whose_lock_ends_first_is_sent_first() -> None:
    queue = VerdictQueue()
    queue.say_in_parts([gap(0, 90.0), gap(1, 70.0), gap(2, 80.0), gap(3, 60.0)])
    queue.say_apart([gap(4, 100.0), gap(5, 75.0)])
    assert taken(queue) == [[3, 1], [4, 5], [2, 0]]


def test_what_did_not_arrive_is_sent_before_what_is_new() -> None:
    queue = VerdictQueue()
    queue.say(gap(0), 1.0)
    part = queue.take()
    queue.say(gap(1), 2.0)
    queue.put_back(part, 3.0)
    assert queue.since == 3.0
    assert [said.offset for said in queue.take()] == [0]
    assert queue.since == 3.0
    assert taken(queue) == [[1]]


@given(
    st.lists(st.integers(0, 8), unique=True),
    st.lists(st.integers(10, 18), unique=True),
    st.sets(st.integers(0, 18)),
)
def test_what_is_dropped_is_not_sent_and_all_else_is(
    fresh: list[int], refused: list[int], gone: set[int]
) -> None:
    queue = VerdictQueue()
    for offset in fresh:
        queue.say(gap(offset), 0.0)
    if len(refused) > 1:
        queue.say_in_parts([gap(offset) for offset in refused])
    waiting = {said.offset for said in queue.all()}
    assert {said.offset for said in queue.drop(gone)} == waiting & gone
    parts = taken(queue)
    assert all(parts)
    assert sorted(offset for part in parts for offset in part) == sorted(waiting - gone)
