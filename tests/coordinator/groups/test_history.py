"""The history of a group: bounded, numbered, and not flushed by what is of no interest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator import (
    CommitRefused,
    GroupEvent,
    JoinRefused,
    MemberFenced,
    MemberGone,
    MemberJoined,
    RebalanceCompleted,
    RebalanceStarted,
)
from kohort.coordinator.groups import history as module
from kohort.coordinator.groups.events import size_of
from kohort.coordinator.groups.history import History
from kohort.protocol import ErrorCode


def rebalance(group: str = "g", generation: int = 1, owners: int = 0) -> RebalanceCompleted:
    after = {f"m{number}": b"" for number in range(owners)}
    return RebalanceCompleted(
        group,
        generation=generation,
        members=owners,
        members_before=0,
        duration_ms=3,
        join_ms=2,
        sync_ms=1,
        before={},
        after=after,
    )


def fenced(member: str = "m", group: str = "g", **fields: Any) -> MemberFenced:
    fields = {"api": "HEARTBEAT", "error_code": ErrorCode.UNKNOWN_MEMBER_ID, **fields}
    return MemberFenced(group, member=member, **fields)


def kinds(history: History, group: str = "g") -> list[str]:
    return [entry.event.name for entry in history.of(group)]


def test_entries_are_numbered_in_each_group_and_come_oldest_first() -> None:
    history = History(10)
    for group in ("g", "h", "g"):
        history.add(MemberJoined(group))
    assert [entry.event.sequence for entry in history.of("g")] == [1, 2]
    assert [entry.event.sequence for entry in history.of("h")] == [1]
    assert history.of("nobody") == []


@pytest.mark.parametrize(
    ("limit", "after", "expected"),
    [(-1, -1, [1, 2, 3, 4]), (2, -1, [3, 4]), (0, -1, []), (9, 2, [3, 4]), (1, 2, [4]), (-1, 4, [])],
)
def test_part_of_it_can_be_asked_for(limit: int, after: int, expected: list[int]) -> None:
    history = History(10)
    for _ in range(4):
        history.add(MemberJoined("g"))
    assert [entry.event.sequence for entry in history.of("g", limit, after)] == expected


def test_a_history_that_began_anew_is_given_whole_to_who_knew_the_old_one() -> None:
    history = History(10)
    history.add(MemberJoined("g"))
    assert [entry.event.sequence for entry in history.of("g", after=57)] == [1]


def test_with_size_0_nothing_is_kept() -> None:
    history = History(0)
    history.add(event := MemberJoined("g"))
    assert (history.of("g"), event.sequence, len(history)) == ([], 0, 0)


def test_a_group_that_is_gone_leaves_nothing() -> None:
    history = History(10)
    for group in ("g", "h"):
        history.add(rebalance(group, owners=3))
    history.drop("g")
    history.drop("never there")
    history.drop_where(lambda group: group == "h")
    assert (history.of("g"), history.of("h"), len(history)) == ([], [], 0)
    assert repr(history) == "<History: 0 events of 0 groups>"


def test_equal_refusals_of_a_member_are_one_entry_that_comes_up_again() -> None:
    history = History(10)
    for at_ms in (5, 6, 7):
        history.add(fenced(timestamp_ms=at_ms))
    history.add(fenced("other"))
    history.add(fenced(api="SYNC_GROUP"))
    history.add(fenced(timestamp_ms=9))
    *others, last = history.of("g")
    assert [(entry.event.member, entry.count) for entry in others] == [("other", 1), ("m", 1)]
    assert (last.count, last.first_ms, last.event.timestamp_ms, last.event.sequence) == (4, 5, 9, 6)


def test_the_end_of_a_rebalance_takes_the_place_of_its_beginnings() -> None:
    history = History(10)
    for event in (MemberJoined("g"), RebalanceStarted("g"), RebalanceStarted("g"), rebalance()):
        history.add(event)
    assert kinds(history) == ["MemberJoined", "RebalanceCompleted"]


@pytest.mark.parametrize("flood", [MemberJoined, fenced, CommitRefused])
def test_a_flood_of_one_kind_leaves_the_rebalances_their_half(flood: Any) -> None:
    history = History(20)
    for generation in range(30):
        history.add(rebalance(generation=generation))
    for number in range(500):
        if flood is fenced:
            history.add(fenced(f"m{number}"))
        elif flood is CommitRefused:
            history.add(CommitRefused("g", member=f"m{number}", error_code=25, claimed_generation=number))
        else:
            history.add(flood("g", member=f"m{number}"))
    kept = [
        entry.event.generation for entry in history.of("g") if isinstance(entry.event, RebalanceCompleted)
    ]
    assert len(kept) >= 10
    assert kept == list(range(30))[-len(kept) :], "the oldest go first"
    assert len(history.of("g")) == 20


@pytest.mark.parametrize(
    ("rebalances", "members", "refusals", "last", "goes"),
    [
        (1, 3, 4, MemberJoined, MemberFenced),
        (1, 4, 3, fenced, MemberJoined),
        (6, 0, 2, fenced, RebalanceCompleted),
        (5, 3, 0, rebalance, MemberJoined),
        (0, 0, 8, MemberJoined, MemberFenced),
        (8, 0, 0, MemberJoined, RebalanceCompleted),
    ],
)
def test_the_kind_that_is_over_its_share_makes_way_for_the_newest(
    rebalances: int, members: int, refusals: int, last: Any, goes: type[GroupEvent]
) -> None:
    history = History(8)
    for number in range(members):
        history.add(MemberJoined("g", member=f"m{number}"))
    for number in range(refusals):
        history.add(fenced(f"m{number}"))
    for number in range(rebalances):
        history.add(rebalance(generation=number))
    oldest = next(entry.event for entry in history.of("g") if type(entry.event) is goes)
    kept = [entry.event for entry in history.of("g") if entry.event is not oldest]
    event = MemberJoined("g", member="new") if last is MemberJoined else last()
    history.add(event)
    assert [entry.event for entry in history.of("g")] == [*kept, event]


def test_what_one_kind_does_not_use_the_others_may() -> None:
    history = History(20)
    for generation in range(30):
        history.add(rebalance(generation=generation))
    assert kinds(history) == ["RebalanceCompleted"] * 20


def test_old_rebalances_of_large_groups_are_kept_without_their_assignments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_OWNERS", 25)
    history = History(10)
    told = [rebalance(generation=generation, owners=10) for generation in range(4)]
    for note in told:
        history.add(note)
    kept = [entry.event for entry in history.of("g")]
    assert [isinstance(e, RebalanceCompleted) and e.after is not None for e in kept] == [
        False,
        False,
        True,
        True,
    ]
    assert [event.sequence for event in kept] == [1, 2, 3, 4]
    assert all(note.after is not None for note in told), "those who were told keep theirs"


def test_over_the_limit_of_all_the_group_that_was_quiet_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENTRIES", 5)
    history = History(4)
    for group in "abca":
        history.add(MemberJoined(group))
    for _ in range(2):
        history.add(MemberGone("d"))
    assert [bool(history.of(group)) for group in "abcd"] == [True, False, True, True]


EVENTS = st.one_of(
    st.builds(MemberJoined, st.sampled_from("gh"), member=st.sampled_from("xyz")),
    st.builds(RebalanceStarted, st.sampled_from("gh")),
    st.builds(rebalance, st.sampled_from("gh"), st.integers(0, 5), st.integers(0, 4)),
    st.builds(fenced, st.sampled_from("xyz"), st.sampled_from("gh")),
)


@given(st.integers(0, 12), st.lists(EVENTS, max_size=60), st.integers(0, 59))
def test_it_is_bounded_and_its_numbers_rise(size: int, events: list[GroupEvent], drop_at: int) -> None:
    history = History(size)
    for number, event in enumerate(events):
        history.add(event)
        if number == drop_at:
            history.drop("h")
        for group in "gh":
            sequences = [entry.event.sequence for entry in history.of(group)]
            assert len(sequences) <= size
            assert sequences == sorted(set(sequences))
            if size and event.group == group and number != drop_at:
                assert sequences[-1] == event.sequence
        assert len(history) == len(history.of("g")) + len(history.of("h"))
    history.drop("g")
    history.drop("h")
    assert repr(history) == "<History: 0 events of 0 groups>"
    assert (history._owners, history._bytes) == (0, 0)


def heavy(group: str = "g") -> RebalanceCompleted:
    """Six owners, and 72 bytes of their names and assignments."""
    note = rebalance(group)
    note.before, note.after = ({f"m{number}": bytes(10) for number in range(3)} for _ in range(2))
    return note


@pytest.mark.parametrize(
    ("limit", "size", "kept"),
    [("MAX_OWNERS", 6, True), ("MAX_OWNERS", 5, False), ("MAX_BYTES", 72, True), ("MAX_BYTES", 71, False)],
)
def test_a_group_may_reach_its_limits(
    monkeypatch: pytest.MonkeyPatch, limit: str, size: int, kept: bool
) -> None:
    monkeypatch.setattr(module, limit, size)
    history = History(10)
    history.add(heavy())
    (entry,) = history.of("g")
    assert isinstance(entry.event, RebalanceCompleted)
    assert (entry.event.after is not None) is kept


@pytest.mark.parametrize(
    ("limit", "size", "left"),
    [
        ("MAX_ALL_OWNERS", 12, 1),
        ("MAX_ALL_OWNERS", 11, 0),
        ("MAX_ALL_BYTES", 144, 1),
        ("MAX_ALL_BYTES", 143, 0),
    ],
)
def test_all_groups_together_may_reach_theirs(
    monkeypatch: pytest.MonkeyPatch, limit: str, size: int, left: int
) -> None:
    monkeypatch.setattr(module, limit, size)
    history = History(10)
    history.add(heavy("h"))
    history.add(heavy("g"))
    assert [len(history.of(group)) for group in "hg"] == [left, 1]


def test_refusals_of_two_kinds_are_two_entries() -> None:
    history = History(10)
    history.add(CommitRefused("g", member="m", error_code=25, claimed_generation=1))
    history.add(JoinRefused("g", member="m", error_code=25))
    assert kinds(history) == ["CommitRefused", "JoinRefused"]


def test_equal_refusals_weigh_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ALL_BYTES", 4_000)
    history = History(100)
    history.add(fenced("quiet", "h"))
    for _ in range(50):
        history.add(fenced("m" * 1_000))
    assert [len(history.of(group)) for group in "gh"] == [1, 1]


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("äbc", 12)])
def test_a_text_takes_a_byte_a_character_or_four_if_any_is_not_ascii(text: str, size: int) -> None:
    assert size_of(text) == size


def test_long_texts_and_large_assignments_make_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes: first the assignments of the oldest rebalances, then the group that was quiet longest."""
    monkeypatch.setattr(module, "MAX_BYTES", 3_000)
    monkeypatch.setattr(module, "MAX_ALL_BYTES", 8_000)
    history = History(100)
    for generation in range(4):
        note = rebalance("g", generation)
        note.after = {"m": bytes(1_000)}
        history.add(note)
    kept = [entry.event for entry in history.of("g")]
    assert [isinstance(e, RebalanceCompleted) and e.after is not None for e in kept] == [
        False,
        False,
        True,
        True,
    ]
    for number in range(5):
        history.add(fenced("m" * 1_000 + str(number), "h"))
    assert [len(history.of(group)) for group in "gh"] == [4, 5]
    history.add(fenced("ü" * 300, "h"))
    assert [len(history.of(group)) for group in "gh"] == [0, 6]
