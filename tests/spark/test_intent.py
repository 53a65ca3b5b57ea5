from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import TopicPartition
from kohort.spark import OffsetRange, _intent
from kohort.spark._intent import (
    Announced,
    Mark,
    add_log,
    find_log,
    format_mark,
    intents_of,
    next_number,
    outcomes_of,
    parse_mark,
    pending_batch,
    positions_of,
    remove_log,
)
from kohort.spark._offsets import Committed, Plan

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOKENS = st.from_regex(r"[A-Za-z0-9_-]{0,64}", fullmatch=True)
RANGES = (OffsetRange("orders", 0, 500, 1000), OffsetRange("orders", 1, 700, 900))


def announced(
    number: int, ranges: tuple[OffsetRange, ...] = RANGES, token: str = "f00d"
) -> dict[TopicPartition, Committed]:
    return intents_of(Plan(number, ranges, token))


@given(st.integers(0, 2**40), st.integers(0, 2**62), TOKENS)
def test_reads_back_what_it_writes(batch: int, end: int, token: str) -> None:
    for mark in (Mark(batch), Mark(batch, end, token)):
        assert parse_mark(format_mark(mark)) == mark


def test_a_mark_that_many_partitions_have_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    def decode(metadata: str | None) -> Mark | None:
        decoded.append(metadata)
        return parse_mark(metadata)

    monkeypatch.setattr(_intent, "parse_mark", decode)
    ranges = [OffsetRange("orders", number, 0, 1000) for number in range(50)]
    committed = outcomes_of(3, ranges) | announced(4, RANGES)
    assert pending_batch(committed) == Announced(4, "f00d", RANGES)
    assert len(decoded) == 3
    assert set(decoded) == {commit.metadata for commit in committed.values()}


def test_an_intent_is_written_as_documented() -> None:
    assert announced(3, RANGES[:1]) == {P0: Committed(500, '{"b":3,"e":1000,"k":"f00d"}')}
    assert outcomes_of(3, RANGES[:1]) == {P0: Committed(1000, '{"b":3}')}


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "flink checkpoint 17",
        "{",
        "[3]",
        "3",
        "{}",
        '{"b":"3"}',
        '{"b":true}',
        '{"b":-1}',
        f'{{"b":{2**63}}}',
        '{"b":3,"e":"x","k":""}',
        '{"b":3,"e":-5,"k":""}',
        f'{{"b":3,"e":{2**63},"k":""}}',
        '{"b":3,"e":5,"k":5}',
        '{"b":3,"e":5,"k":"../.."}',
        f'{{"b":3,"e":5,"k":"{"f" * 65}"}}',
        '{"b":3,"e":5}',
        '{"b":3,"k":"f00d"}',
        '{"b":3,"host":"x"}',
        "[" * 100_000,
    ],
)
def test_metadata_of_others_is_no_mark(metadata: str | None) -> None:
    assert parse_mark(metadata) is None


def test_nothing_is_pending_after_a_commit_or_before_the_first_batch() -> None:
    assert pending_batch({}) is None
    assert pending_batch(outcomes_of(3, RANGES)) is None
    assert pending_batch({P0: Committed(5, "by hand")}) is None


def test_an_announced_batch_is_pending_with_its_ranges() -> None:
    assert pending_batch(announced(3)) == Announced(3, "f00d", RANGES)


def test_a_reset_of_a_partition_takes_it_out_of_the_announced_batch() -> None:
    reset = {**announced(3), P0: Committed(0, "")}
    assert pending_batch(reset) == Announced(3, "f00d", RANGES[1:])


def test_an_intent_left_behind_by_newer_batches_is_not_pending() -> None:
    # its number has been used for other ranges since: a sink that skips numbers would skip its records
    assert pending_batch({**announced(3, RANGES[:1]), **outcomes_of(7, RANGES[1:])}) is None
    both = {**announced(3, RANGES[:1]), **announced(7, RANGES[1:])}
    assert pending_batch(both) == Announced(7, "f00d", RANGES[1:])


def test_ranges_of_two_drivers_are_not_taken_for_one_batch() -> None:
    both = {**announced(3, RANGES[:1], "one"), **announced(3, RANGES[1:], "two")}
    assert pending_batch(both) == Announced(3, "one", RANGES[:1])


@pytest.mark.parametrize(
    ("committed", "number"),
    [
        ({}, 0),
        ({P0: Committed(5, "by hand")}, 0),
        (outcomes_of(0, RANGES), 1),
        ({**outcomes_of(9, RANGES[:1]), **outcomes_of(4, RANGES[1:])}, 10),
        (announced(3), 4),
    ],
)
def test_numbers_go_on_from_the_highest_one_known(
    committed: dict[TopicPartition, Committed], number: int
) -> None:
    assert next_number(committed) == number


def test_a_position_without_a_batch_keeps_the_last_number() -> None:
    assert positions_of(Plan(8, (), moves={P0: 800})) == {P0: Committed(800, '{"b":7}')}
    assert positions_of(Plan(0, (), moves={P0: 800})) == {P0: Committed(800, "")}


def test_a_position_beside_a_batch_has_its_number_and_is_no_intent() -> None:
    plan = Plan(8, RANGES[1:], moves={P0: 800})
    state = {**intents_of(plan), **positions_of(plan)}
    assert pending_batch(state) == Announced(8, "", RANGES[1:])
    assert next_number({P0: state[P0]}) == 9


@given(st.integers(0, 2**40), st.integers(0, 2**62), TOKENS)
def test_a_log_stands_beside_the_mark_and_is_not_part_of_it(batch: int, end: int, token: str) -> None:
    for bare in (format_mark(Mark(batch)), format_mark(Mark(batch, end, token)), ""):
        metadata = add_log(bare, "eJyr+/=")
        assert find_log(metadata) == "eJyr+/="
        assert parse_mark(metadata) == parse_mark(bare)
        assert remove_log(Committed(5, metadata)) == Committed(5, bare)
        assert remove_log(Committed(5, bare)) == Committed(5, bare)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "by hand",
        '{"b":3}',
        '"l":"',
        '["l",{"l":"x"}]',
        '{"x":{"l":"y"}}',
        '{"l":"by hand"}',
        "[" * 9 + '"l":"',
    ],
)
def test_metadata_of_others_has_no_log(metadata: str | None) -> None:
    assert find_log(metadata) is None
    assert remove_log(Committed(5, metadata or "")) == Committed(5, metadata or "")


def test_an_announced_batch_is_pending_whichever_commit_carries_the_log() -> None:
    commits = announced(3)
    commits[P0] = Committed(500, add_log(commits[P0].metadata, "eJyr"))
    assert pending_batch(commits) == Announced(3, "f00d", RANGES)
    # an operator's reset that keeps the log takes the partition out all the same
    commits[P0] = Committed(0, add_log("", "eJyr"))
    assert pending_batch(commits) == Announced(3, "f00d", RANGES[1:])
