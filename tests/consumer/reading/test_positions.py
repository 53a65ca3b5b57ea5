"""How a partition's start is found, and where it goes on."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kohort.consumer import EARLIEST, LATEST, CommittedOffset, NoOffsetError
from kohort.consumer.reading.positions import Phase, Position, Positions, Reset, ResetPolicy
from kohort.protocol import TopicPartition

ORDERS = TopicPartition("orders", 0)


def _one(policy: ResetPolicy = "latest") -> tuple[Positions, Position]:
    positions = Positions(policy)
    positions.add([ORDERS], 3)
    position = positions.get(ORDERS)
    assert position is not None
    positions.hold_partitions([ORDERS], held=False)
    return positions, position


def test_a_committed_offset_is_where_reading_starts() -> None:
    positions, position = _one()
    assert positions.in_phase(Phase.SEEKING, 0.0) == [position]
    positions.found_committed(ORDERS, CommittedOffset(42, 5))
    assert position.phase is Phase.VALIDATING, "whoever knows the epoch asks first whether the log was cut"
    positions.on_valid(position)
    assert (position.phase, position.fetch_offset, position.leader_epoch) == (Phase.READING, 42, 5)
    assert position.readable


@pytest.mark.parametrize(
    ("policy", "asks_for"),
    [("earliest", EARLIEST), ("latest", LATEST), (1_700_000_000_000, 1_700_000_000_000)],
)
def test_without_one_the_log_is_asked_by_the_policy(policy: ResetPolicy, asks_for: int) -> None:
    positions, position = _one(policy)
    positions.found_committed(ORDERS, None)
    assert (position.phase, position.reset_to) == (Phase.RESETTING, asks_for)
    reset = positions.reset_found(position, 17)
    assert reset is not None
    assert (reset.asked, reset.reason) == (None, "nothing is committed")
    assert (position.phase, position.fetch_offset) == (Phase.READING, 17)


@pytest.mark.parametrize("policy", ["latest", "fail", 1_700_000_000_000])
@pytest.mark.parametrize("committed", [None, CommittedOffset(99)])
def test_a_topic_with_a_policy_of_its_own_is_asked_by_that(
    policy: ResetPolicy, committed: CommittedOffset | None
) -> None:
    positions, position = _one(policy)
    positions.policies = {ORDERS.topic: "earliest"}
    positions.found_committed(ORDERS, committed)
    if committed is not None:
        positions.out_of_range(position, "the log does not have it")
    assert (position.phase, position.reset_to) == (Phase.RESETTING, EARLIEST)
    assert not positions.fails_without_offset(position)


def test_an_offset_out_of_range_is_reset_and_remembered() -> None:
    positions, position = _one("earliest")
    positions.found_committed(ORDERS, CommittedOffset(99))
    positions.out_of_range(position, "the log does not have it")
    reset = positions.reset_found(position, 4)
    assert reset is not None
    assert (reset.asked, reset.reason, position.fetch_offset) == (99, "the log does not have it", 4)


@pytest.mark.parametrize("committed", [None, CommittedOffset(99)])
def test_the_policy_fail_stops_the_partition_with_an_error_until_it_is_sought(
    committed: CommittedOffset | None,
) -> None:
    positions, position = _one("fail")
    positions.found_committed(ORDERS, committed)
    if committed is not None:
        positions.out_of_range(position, "the log does not have it")
    error = positions.first_error()
    assert isinstance(error, NoOffsetError)
    assert error.partition == ORDERS
    positions.seek(ORDERS, 3)
    assert positions.first_error() is None
    assert position.readable


def test_a_failed_partition_that_is_paused_or_given_up_raises_nothing() -> None:
    positions, _ = _one("fail")
    positions.found_committed(ORDERS, None)
    positions.pause([ORDERS])
    assert positions.first_error() is None
    positions.resume([ORDERS])
    positions.hold_partitions([ORDERS])
    assert positions.first_error() is None


def test_answers_that_come_too_late_are_ignored() -> None:
    positions, position = _one("earliest")
    positions.seek(ORDERS, 7)
    positions.found_committed(ORDERS, CommittedOffset(3))
    assert position.fetch_offset == 7
    assert positions.reset_found(position, 0) is None
    positions.remove([ORDERS])
    positions.found_committed(ORDERS, CommittedOffset(3))
    assert positions.get(ORDERS) is None


def test_each_move_marks_answers_from_before_as_stale() -> None:
    positions, position = _one("earliest")
    seen = {position.changed}
    positions.found_committed(ORDERS, CommittedOffset(5))
    seen.add(position.changed)
    positions.seek(ORDERS, 7)
    seen.add(position.changed)
    positions.seek(ORDERS, EARLIEST)
    seen.add(position.changed)
    positions.reset_found(position, 0)
    seen.add(position.changed)
    assert len(seen) == 5


def test_what_is_paused_or_held_is_not_readable_and_stays_where_it_is() -> None:
    positions, position = _one()
    positions.found_committed(ORDERS, CommittedOffset(5))
    positions.pause([ORDERS])
    seen = [position.readable]
    assert positions.paused() == {ORDERS}
    positions.resume([ORDERS])
    positions.hold_partitions([ORDERS])
    seen.append(position.readable)
    positions.hold_partitions([ORDERS], held=False)
    seen.append(position.readable)
    assert (seen, position.fetch_offset) == ([False, False, True], 5)


def test_partitions_that_stay_take_the_new_generation_and_are_not_disturbed() -> None:
    positions, position = _one()
    positions.found_committed(ORDERS, CommittedOffset(5))
    before = position.changed
    positions.keep([ORDERS], 4)
    assert (position.generation, position.changed, position.fetch_offset) == (4, before, 5)


def test_a_pause_after_an_error_is_waited_for() -> None:
    positions, position = _one()
    position.retry_at = 100.0
    assert positions.in_phase(Phase.SEEKING, 99.0) == []
    assert positions.in_phase(Phase.SEEKING, 100.0) == [position]


def test_partitions_that_are_not_assigned_cannot_be_sought_or_paused() -> None:
    positions, _ = _one()
    other = TopicPartition("orders", 1)
    with pytest.raises(KeyError):
        positions.seek(other, 0)
    with pytest.raises(KeyError):
        positions.pause([other])


def test_an_offset_that_was_reached_in_an_epoch_is_validated_after_seek() -> None:
    positions = Positions("earliest")
    positions.add([ORDERS], 1)
    positions.seek(ORDERS, 18, leader_epoch=3)
    position = positions.get(ORDERS)
    assert position is not None
    assert (position.phase, position.fetch_offset, position.leader_epoch) == (Phase.VALIDATING, 18, 3)


# every way in which a position moves


def _reading(policy: ResetPolicy = "earliest", offset: int = 50) -> tuple[Positions, Position]:
    """A partition that is read, with all that can be known of a place where it was read."""
    positions, position = _one(policy)
    positions.seek(ORDERS, offset)
    position.leader_epoch, position.checked_epoch = 4, 4
    position.committed = CommittedOffset(offset, 4)
    position.unasked, position.damaged = True, True
    position.failures, position.unreadable = 3, 2
    position.retry_at, position.read_replica = 7.0, 2
    position.error = OSError("refused")
    return positions, position


def _moved(positions: Positions, move: Callable[[], object], position: Position) -> tuple[int, int]:
    """How often a move marked older answers stale, and how often it called."""
    calls: list[None] = []
    positions.disturbed = lambda: calls.append(None)
    before = position.changed
    move()
    return position.changed - before, len(calls)


@pytest.mark.parametrize("how", ["seek", "reset", "cut"])
def test_nothing_that_was_known_of_the_last_place_is_known_of_the_next(how: str) -> None:
    positions, position = _reading()

    def move() -> None:
        if how == "seek":
            positions.seek(ORDERS, 60)
        elif how == "cut":
            positions.cut_at(position, 60)
        else:
            position.phase, position.reset = Phase.RESETTING, Reset(50, "gone")
            assert positions.reset_found(position, 60) == Reset(50, "gone")

    assert _moved(positions, move, position) == (1, 1)
    assert (position.phase, position.fetch_offset) == (Phase.READING, 60)
    assert (position.committed, position.leader_epoch, position.unasked) == (None, -1, False)
    assert (position.read_replica, position.reset, position.error) == (-1, None, None)
    assert (position.failures, position.unreadable, position.damaged, position.retry_at) == (0, 0, False, 0.0)
    assert position.checked_epoch == 4


@pytest.mark.parametrize(
    ("target", "reset_to"), [(EARLIEST, EARLIEST), (LATEST, LATEST), (None, 1_700_000_000_000)]
)
def test_the_ends_and_times_that_are_sought_are_asked_of_the_log(target: int | None, reset_to: int) -> None:
    positions, position = _reading("fail")

    def move() -> None:
        if target is None:
            positions.seek_to_time(ORDERS, 1_700_000_000_000)
        else:
            positions.seek(ORDERS, target)

    assert _moved(positions, move, position) == (1, 1)
    assert (position.phase, position.reset_to) == (Phase.RESETTING, reset_to)
    assert position.reset == Reset(None, "asked for by seek")
    assert (position.error, position.damaged, position.readable) == (None, False, False)


def test_a_seek_to_an_offset_without_an_epoch_asks_nobody() -> None:
    positions, position = _reading()
    positions.seek(ORDERS, 0)
    assert (position.phase, position.leader_epoch) == (Phase.READING, -1)
    positions.seek(ORDERS, 0, leader_epoch=0)
    assert (position.phase, position.leader_epoch) == (Phase.VALIDATING, 0)


@pytest.mark.parametrize(
    ("epoch", "leaders", "phase", "unasked", "checked"),
    [
        (-1, 5, Phase.READING, False, -1),
        (-1, -1, Phase.READING, False, -1),
        (5, 5, Phase.READING, True, 5),
        (0, 0, Phase.READING, True, 0),
        (4, 5, Phase.VALIDATING, False, -1),
        (5, -1, Phase.VALIDATING, False, -1),
    ],
)
def test_nobody_is_asked_about_an_offset_of_the_epoch_that_still_is_the_leaders(
    epoch: int, leaders: int, phase: Phase, unasked: bool, checked: int
) -> None:
    positions, position = _one()
    committed = CommittedOffset(42, epoch)
    positions.found_committed(ORDERS, committed, leaders)
    assert (position.phase, position.unasked, position.checked_epoch) == (phase, unasked, checked)
    assert (position.fetch_offset, position.leader_epoch) == (42, epoch)
    assert position.committed is committed


def test_an_offset_that_nobody_was_asked_about_is_asked_about_when_the_log_does_not_have_it() -> None:
    positions, position = _one("earliest")
    positions.found_committed(ORDERS, CommittedOffset(42, 5), 5)
    assert _moved(positions, lambda: positions.out_of_range(position, "gone"), position) == (1, 1)
    assert (position.phase, position.unasked) == (Phase.VALIDATING, False)
    positions.out_of_range(position, "gone")
    assert position.phase is Phase.VALIDATING, "it is not read now"
    position.failures, position.error = 2, OSError("refused")
    positions.on_valid(position)
    valid: Any = position
    assert (valid.phase, valid.failures, valid.error) == (Phase.READING, 0, None)
    positions.out_of_range(position, "gone")
    assert (position.phase, position.reset, position.reset_to) == (
        Phase.RESETTING,
        Reset(42, "gone"),
        EARLIEST,
    )


def test_a_log_of_which_nothing_is_left_is_read_by_the_policy() -> None:
    positions, position = _reading("latest")
    positions.cut_somewhere(position, "epoch 3 is gone")
    assert (position.phase, position.reset_to) == (Phase.RESETTING, LATEST)
    assert position.reset == Reset(50, "epoch 3 is gone", keep=True)


def test_latest_is_where_a_group_begins_and_what_is_newer_is_read_from_its_first_record() -> None:
    positions, position = _one("latest")
    positions.found_committed(ORDERS, None, newer=True)
    assert (position.phase, position.reset_to) == (Phase.RESETTING, EARLIEST)
    positions, position = _reading("latest")
    positions.made_anew(position)
    assert (position.phase, position.reset_to) == (Phase.RESETTING, EARLIEST)


@pytest.mark.parametrize("policy", ["earliest", "fail", 1_700_000_000_000])
def test_other_policies_are_the_same_for_what_is_newer(policy: ResetPolicy) -> None:
    of_old, of_new = _one(policy), _one(policy)
    of_old[0].found_committed(ORDERS, None)
    of_new[0].found_committed(ORDERS, None, newer=True)
    assert (of_new[1].phase, of_new[1].reset_to) == (of_old[1].phase, of_old[1].reset_to)


def test_a_start_is_kept_where_the_policy_may_say_another_one_later() -> None:
    for policy, keep in (("earliest", False), ("latest", True), (1_700_000_000_000, True)):
        positions, position = _one(policy)
        positions.found_committed(ORDERS, None)
        assert position.reset == Reset(None, "nothing is committed", keep)
    positions.seek(ORDERS, LATEST)
    assert position.reset == Reset(None, "asked for by seek")
    positions.reset_found(position, 7, kept=True)
    assert position.committed == CommittedOffset(7)


def test_where_a_group_begins_is_looked_for_when_the_user_has_been_told_and_has_not_sought() -> None:
    positions, position = _one("latest")
    positions.hold_partitions([ORDERS])
    positions.found_committed(ORDERS, None)
    assert positions.to_reset(0.0) == []
    positions.hold_partitions([ORDERS], held=False)
    assert positions.to_reset(0.0) == [position]
    positions.hold_partitions([ORDERS])
    positions.seek(ORDERS, LATEST)
    assert positions.to_reset(0.0) == [position], "a seek commits nothing"


@pytest.mark.parametrize(
    ("committed", "text"),
    [
        (None, "nothing is committed, and auto_offset_reset is 'fail': seek, or allow a reset"),
        (
            CommittedOffset(99),
            "offset 99: the log ends before, and auto_offset_reset is 'fail': seek, or allow a reset",
        ),
    ],
)
def test_the_policy_fail_says_what_cannot_be_read(committed: CommittedOffset | None, text: str) -> None:
    positions, position = _one("fail")
    assert positions.fails_without_offset(position)
    resetting, other = _one("latest")
    assert not resetting.fails_without_offset(other)
    positions.found_committed(ORDERS, committed)
    if committed is not None:
        calls = _moved(positions, lambda: positions.out_of_range(position, "the log ends before"), position)
        assert calls == (1, 1)
    assert position.phase is Phase.FAILED
    assert text in str(positions.first_error())


def test_a_refusal_is_news_once_and_over_when_it_is_read_again() -> None:
    positions, position = _one()
    positions.found_committed(ORDERS, CommittedOffset(1))
    first, second = OSError("one"), OSError("two")
    assert [positions.refuse_position(position, first), positions.refuse_position(position, second)] == [
        True,
        False,
    ]
    assert positions.first_error() is second
    positions.on_valid(position)
    assert positions.first_error() is None
    assert positions.refuse_position(position, first)


def test_who_had_its_turn_goes_behind_the_others() -> None:
    positions = Positions("earliest")
    parts = [TopicPartition("orders", number) for number in range(3)]
    positions.add(parts, 1)
    first, *_ = positions
    positions.had_its_turn(first)
    assert [position.partition.partition for position in positions] == [1, 2, 0]
    positions.remove([parts[0]])
    positions.had_its_turn(first)
    assert [position.partition.partition for position in positions] == [1, 2], "it is gone"
    assert positions.partitions() == set(parts[1:])


def test_partitions_come_are_given_up_and_go() -> None:
    positions = Positions("earliest")
    other, unknown = TopicPartition("orders", 1), TopicPartition("orders", 9)
    positions.add([ORDERS, other], 3)
    position = positions.get(ORDERS)
    assert position is not None
    assert (position.generation, position.held, position.leaving) == (3, True, False)
    assert positions.topic_id(ORDERS) is positions.topic_id(unknown) is None
    position.topic_id = uuid.UUID(int=7)
    assert positions.topic_id(ORDERS) == uuid.UUID(int=7)
    assert repr(positions) == "Positions(0 of 2 reading)"
    calls: list[None] = []
    positions.disturbed = lambda: calls.append(None)
    positions.hold_partitions([ORDERS, unknown], held=False)
    positions.seek(ORDERS, 1)
    assert (repr(positions), position.readable) == ("Positions(1 of 2 reading)", True)
    positions.give_up([ORDERS, unknown])
    assert (position.held, position.leaving, position.readable) == (True, True, False)
    positions.pause([ORDERS])
    positions.resume([ORDERS])
    positions.remove([ORDERS, unknown])
    assert positions.partitions() == {other}
    assert len(calls) == 5, "hold, seek, give up, pause, remove"
    positions.keep([other, unknown], 4)
    kept = positions.get(other)
    assert kept is not None
    assert kept.generation == 4
