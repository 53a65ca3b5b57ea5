"""One partition: what is delivered, done and committable."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer import CommittedOffset
from kohort.consumer.done.done_ahead import decode, encode
from kohort.consumer.done.partition_session import PartitionSession
from kohort.consumer.done.tracker import Tracker
from kohort.protocol import TopicPartition

ORDERS = TopicPartition("orders", 0)


@given(
    gaps=st.lists(st.integers(1, 3), min_size=1, max_size=60),
    order=st.randoms(use_true_random=False),
    done_count=st.integers(0, 60),
)
def test_committable_is_the_first_offset_that_is_not_done_whatever_the_order(
    gaps: list[int], order: object, done_count: int
) -> None:
    offsets, next_offset = [], 0
    stay = PartitionSession(ORDERS, 1, 0)
    for gap in gaps:
        next_offset += gap
        offsets.append(next_offset)
        stay.delivered_all([next_offset])
    shuffled = list(offsets)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    done: set[int] = set()
    for offset in shuffled[:done_count]:
        assert stay.done(offset)
        assert not stay.done(offset)
        done.add(offset)
        left = [o for o in offsets if o not in done]
        assert stay.committable == (left[0] if left else offsets[-1] + 1)
        assert stay.first_undone == (left[0] if left else None)
        assert stay.undone == len(left)


@given(st.lists(st.sampled_from(["deliver", "done", "pass", "before"]), max_size=80), st.data())
def test_committable_never_goes_back_and_never_passes_what_is_undone(
    steps: list[str], data: st.DataObject
) -> None:
    stay = PartitionSession(ORDERS, 1, 0)
    undone: list[int] = []
    before = 0
    for step in steps:
        if step == "deliver":
            undone.append(stay.position + data.draw(st.integers(0, 2)))
            stay.delivered_all([undone[-1]])
        elif step == "done" and undone:
            stay.done(undone.pop(data.draw(st.integers(0, len(undone) - 1))))
        elif step == "pass":
            stay.pass_by(stay.position + data.draw(st.integers(0, 3)))
        elif step == "before":
            limit = data.draw(st.integers(0, stay.position + 1))
            stay.done_before(limit)
            undone = [offset for offset in undone if offset >= limit]
        assert stay.committable >= before
        assert stay.committable == (undone[0] if undone else stay.position)
        assert stay.undone == len(undone)
        before = stay.committable


def test_offsets_that_were_never_delivered_are_no_news() -> None:
    stay = PartitionSession(ORDERS, 1, 10)
    assert not stay.done(10)
    stay.delivered_all([10])
    assert not stay.done(9)
    assert not stay.done(11)
    assert stay.committable == 10


def test_ranges_of_an_earlier_stay_are_kept_until_the_commit_passes_them() -> None:
    first = PartitionSession(ORDERS, 1, 0)
    first.delivered_all(list(range(10)))
    for offset in (2, 3, 7):
        first.done(offset)
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0, committed=first.to_commit())
    stay.delivered_all([0, 1, 4])
    stay.done(4)
    stay.done(0)
    third = Tracker().begin_session(ORDERS, 1, committed=stay.to_commit())
    offsets = range(1, 10)
    assert [offsets[at] for at in third.fresh_indexes(offsets)] == [1, 5, 6, 8, 9]
    stay.done(1)
    assert stay.committable == 5
    assert stay.to_commit().metadata
    stay.delivered_all([5, 6, 8])
    stay.done_before(9)
    assert (stay.committable, stay.to_commit().metadata) == (9, "")


@given(st.lists(st.tuples(st.integers(1, 2), st.booleans()), max_size=200))
def test_a_restart_redoes_what_was_undone_and_nothing_else(steps: list[tuple[int, bool]]) -> None:
    stay = PartitionSession(ORDERS, 1, 0)
    offset = 0
    done: list[int] = []
    undone: list[int] = []
    for gap, is_done in steps:
        offset += gap
        stay.delivered_all([offset])
        (done if is_done else undone).append(offset)
    for each in done:
        stay.done(each)
    commit = stay.to_commit()
    again = Tracker().begin_session(ORDERS, commit.offset, committed=commit)
    rest = [offset for offset in sorted(done + undone) if offset >= commit.offset]
    assert [rest[at] for at in again.fresh_indexes(rest)] == undone


def test_nothing_done_grows_behind_a_record_that_hangs() -> None:
    stay = PartitionSession(ORDERS, 1, 0)
    for first in range(0, 200_000, 500):
        stay.delivered_all(range(first, first + 500))
        for offset in range(max(first, 1), first + 500):
            stay.done(offset)
    assert stay.closed_beyond(0) == [(1, 200_000)]
    assert (stay.undone, stay.committable) == (1, 0)
    assert decode(0, stay.to_commit().metadata) == [(1, 200_000)]


def test_a_commit_says_nothing_of_holes_where_nothing_is_done() -> None:
    stay = PartitionSession(ORDERS, 1, 0)
    stay.delivered_all([0, 1, 5, 6, 9])
    stay.pass_by(12)
    assert stay.to_commit().metadata == ""
    stay.done(5)
    assert decode(0, stay.to_commit().metadata) == [(2, 6)]


def test_an_offset_in_a_hole_is_no_news_and_leaves_what_is_undone_undone() -> None:
    stay = PartitionSession(ORDERS, 1, 0)
    stay.delivered_all([0, 2, 5])
    for hole in (1, 3, 4):
        assert not stay.done(hole)
    assert (stay.undone, stay.first_undone) == (3, 0)
    assert stay.done(2)
    assert (stay.undone, stay.first_undone) == (2, 0)


def test_the_highest_leader_epoch_counts_so_that_what_was_done_under_it_can_be_checked() -> None:
    stay = PartitionSession(ORDERS, 1, 10, CommittedOffset(10, 7), 7)
    stay.read_under(5)
    stay.delivered_all([10])
    assert stay.to_commit().leader_epoch == 7
    assert (stay.epoch_at(11), stay.epoch_at(12)) == (7, -1)


@given(st.data())
def test_a_session_is_what_a_plain_table_of_offsets_is(data: st.DataObject) -> None:
    """Each offset is open, given out, done, or holds nothing."""
    draw = data.draw
    start = draw(st.integers(0, 5))
    ahead = [
        (start + 2 + 5 * n, start + 2 + 5 * n + draw(st.integers(1, 4)))
        for n in range(draw(st.integers(0, 3)))
    ]
    committed = CommittedOffset(start, metadata=encode(start, ahead))
    session = Tracker().begin_session(ORDERS, start, committed=committed)
    done_ahead = {offset for first, end in ahead for offset in range(first, end)}
    done: set[int] = set()
    out: set[int] = set()
    records: set[int] = set()
    position = seen = start
    for step in draw(st.lists(st.sampled_from("dddppnnnrbtc"), max_size=40)):
        if step == "d":
            ceiling = position + draw(st.integers(1, 12))
            holes = draw(st.sets(st.integers(position, ceiling - 1), max_size=6))
            # where the log was looked at before, it holds what it held
            holes = {o for o in holes if o >= seen} | (set(range(position, seen)) - records)
            offsets = [o for o in range(position, ceiling) if o not in holes]
            fresh = [offsets[at] for at in session.fresh_indexes(offsets)]
            assert fresh == [o for o in offsets if o not in done_ahead]
            if fresh:
                session.delivered_all(fresh)
                out |= set(fresh)
                records |= out
                position = fresh[-1] + 1
        elif step == "p" and position == seen:
            position += draw(st.integers(0, 4))
            session.pass_by(position)
        elif step == "n":
            offset = draw(st.integers(0, position + 2))
            assert session.done(offset) == (offset in out)
            done |= out & {offset}
            out.discard(offset)
        elif step == "r":
            first = draw(st.integers(0, position))
            end = first + draw(st.integers(0, 9))
            some = out & set(range(first, end))
            assert session.done_range(first, end) == len(some)
            done |= some
            out -= some
        elif step == "b" and out:
            some = set(draw(st.lists(st.sampled_from(sorted(out)), min_size=1)))
            session.done_all(draw(st.permutations(sorted(some))))
            done |= some
            out -= some
        elif step == "t" and out:
            # nothing of what is taken back is done
            offset = draw(st.sampled_from(sorted(out)))
            if not any(o >= offset for o in done):
                session.taken_back(offset)
                out = {o for o in out if o < offset}
                position = offset
        elif step == "c":
            offset = draw(st.integers(position, position + 12))
            session.cut(offset)
            done_ahead = {o for o in done_ahead if o < offset}
            seen = min(seen, offset)
            records = {o for o in records if o < offset}
        seen = max(seen, position)
        first = min(out, default=position)
        assert (session.position, session.undone, session.committable) == (position, len(out), first)
        assert session.first_undone == (first if out else None)
        says = {o for a, b in decode(first, session.to_commit().metadata) for o in range(a, b)}
        beyond = {o for o in done | done_ahead if o >= first}
        assert beyond <= says, "what is done is not done again"
        assert not says & out
        assert all(o < seen or o in done_ahead for o in says), "nothing that was not looked at"
        if seen == position:
            gaps = len(session.closed_beyond(first))
            assert gaps <= len(out) + len(ahead) + 1, "memory grows with what is not done"


@pytest.mark.parametrize(
    ("committed", "cut_at", "known"),
    [(None, 5, None), (4, 5, 4), (5, 5, 5), (6, 5, None), (9, 5, None), (9, 9, 9)],
)
def test_a_commit_beyond_the_cut_is_no_more_known(
    committed: int | None, cut_at: int, known: int | None
) -> None:
    session = PartitionSession(ORDERS, 1, 0)
    session.delivered_all(range(3))
    session.committed = None if committed is None else CommittedOffset(committed)
    session.cut(cut_at)
    assert (None if session.committed is None else session.committed.offset) == known


def test_a_cut_before_what_was_delivered_takes_nothing_of_that_back() -> None:
    session = PartitionSession(ORDERS, 1, 0)
    session.delivered_all(range(10))
    session.done_range(4, 8)
    session.cut(2)
    assert (session.position, session.undone, session.committable) == (10, 6, 0)
    assert session.closed_beyond(0) == [(4, 8)]


@pytest.mark.parametrize(
    ("offsets", "left"),
    [
        ([0, 1, 2], [3, 4, 5]),
        (range(1, 4), [0, 4, 5]),
        ([0, 0, 2], [1, 3, 4, 5]),
        ([0, 2, 2], [1, 3, 4, 5]),
        ([2, 0, 1], [3, 4, 5]),
        ([3, 1, 5], [0, 2, 4]),
        ([5], [0, 1, 2, 3, 4]),
        ([4, 4], [0, 1, 2, 3, 5]),
        ([9, 5], [0, 1, 2, 3, 4]),
    ],
)
def test_many_are_done_as_each_is_whatever_their_order_and_however_often(
    offsets: Sequence[int], left: list[int]
) -> None:
    session = PartitionSession(ORDERS, 1, 0)
    session.delivered_all(range(6))
    session.done_all(offsets)
    assert (session.undone, session.first_undone) == (len(left), left[0])
    again = Tracker().begin_session(ORDERS, left[0], committed=session.to_commit())
    assert [offset for offset in again.fresh_indexes(range(6)) if offset >= left[0]] == left
