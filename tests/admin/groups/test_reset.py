"""What each partition gets from a reset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin import Coordinator, GroupDescription, MemberDescription, ResetKind, ResetTo
from kohort.admin.groups.reset import change_for, refusal
from kohort.protocol import TopicPartition

P = TopicPartition("orders", 0)
WHERE = Coordinator(1, "localhost", 9092)


@pytest.mark.parametrize(
    ("to", "current", "new", "note"),
    [
        (ResetTo.earliest(), 50, 10, ""),
        (ResetTo.earliest(), None, 10, ""),
        (ResetTo.latest(), 50, 100, ""),
        (ResetTo.offset(60), 50, 60, ""),
        (ResetTo.offset(10), 50, 10, ""),
        (ResetTo.offset(100), 50, 100, ""),
        (ResetTo.offset(9), 50, 10, "9 is before the first offset: 10 taken"),
        (ResetTo.offset(101), 50, 100, "101 is after the end: 100 taken"),
        (ResetTo.shift(5), 50, 55, ""),
        (ResetTo.shift(-5), 50, 45, ""),
        (ResetTo.shift(0), 50, 50, ""),
        (ResetTo.shift(51), 50, 100, "101 is after the end: 100 taken"),
        (ResetTo.shift(-41), 50, 10, "9 is before the first offset: 10 taken"),
        (ResetTo.shift(-5), None, None, "no offset to shift: left as it is"),
        (ResetTo.current(), 50, 50, ""),
        (ResetTo.current(), 5, 10, "5 is before the first offset: 10 taken"),
        (ResetTo.current(), 200, 100, "200 is after the end: 100 taken"),
        (ResetTo.current(), None, 100, "no offset yet: the end taken"),
        (ResetTo.timestamp(1_000), 50, 70, ""),
    ],
)
def test_each_wish_on_a_log_from_10_to_100(
    to: ResetTo, current: int | None, new: int | None, note: str
) -> None:
    change = change_for(P, to, current, 10, 100, at_time=70)
    assert (change.topic, change.partition, change.current_offset) == ("orders", 0, current)
    assert (change.new_offset, change.note) == (new, note)
    assert (change.earliest_offset, change.end_offset) == (10, 100)


def test_a_time_after_the_last_record_is_the_end_and_said_so() -> None:
    change = change_for(P, ResetTo.timestamp(1_000), 50, 10, 100, at_time=100)
    assert (change.new_offset, change.note) == (100, "no record that late: the end taken")


@pytest.mark.parametrize(("earliest", "end"), [(None, None), (None, 100), (10, None)])
def test_a_partition_nobody_can_ask_about_is_left_as_it_is(earliest: int | None, end: int | None) -> None:
    change = change_for(P, ResetTo.offset(20), 50, earliest, end)
    assert change.new_offset is None
    assert "left as it is" in change.note


@given(
    st.sampled_from(ResetKind),
    st.integers(-(2**40), 2**40),
    st.none() | st.integers(0, 2**40),
    st.integers(0, 1_000),
    st.integers(0, 1_000),
)
def test_whatever_is_wished_the_log_has_it(
    kind: ResetKind, value: int, current: int | None, earliest: int, size: int
) -> None:
    end = earliest + size
    change = change_for(P, ResetTo(kind, value), current, earliest, end, at_time=end)
    assert change.new_offset is None or earliest <= change.new_offset <= end
    assert (change.new_offset is None) == (kind is ResetKind.SHIFT and current is None)


def described(state: str, members: int) -> GroupDescription:
    rows = tuple(
        MemberDescription(f"id-{n}", f"static-{n}" if n == 0 else None, f"app-{n}", f"/10.0.0.{n}", ())
        for n in range(members)
    )
    return GroupDescription("billing", state, "consumer", "range", "classic", WHERE, rows)


@pytest.mark.parametrize("state", ["Empty", "Dead"])
def test_a_group_without_members_may_be_reset(state: str) -> None:
    assert refusal(described(state, 0)) is None


def test_a_refusal_names_members_and_hosts() -> None:
    assert refusal(described("Stable", 2)) == (
        "group 'billing' is Stable and not Empty, it is held by "
        "static-0 (client 'app-0' at /10.0.0.0), id-1 (client 'app-1' at /10.0.0.1)"
    )


def test_a_refusal_of_a_large_group_stays_short() -> None:
    said = refusal(described("PreparingRebalance", 105))
    assert said is not None
    assert said.endswith("id-4 (client 'app-4' at /10.0.0.4), 100 more")
    assert "id-5" not in said
