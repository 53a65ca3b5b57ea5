"""How a partition's start is found, and where it goes on."""

from __future__ import annotations

import pytest

from kohort.consumer import EARLIEST, LATEST, CommittedOffset, NoOffsetError
from kohort.consumer.positions import Phase, Position, Positions, ResetPolicy
from kohort.protocol import TopicPartition

ORDERS = TopicPartition("orders", 0)


def _one(policy: ResetPolicy = "latest") -> tuple[Positions, Position]:
    positions = Positions(policy)
    positions.add([ORDERS], 3)
    position = positions.get(ORDERS)
    assert position is not None
    positions.hold([ORDERS], held=False)
    return positions, position


def test_a_committed_offset_is_where_reading_starts() -> None:
    positions, position = _one()
    assert positions.in_phase(Phase.SEEKING, 0.0) == [position]
    positions.found_committed(ORDERS, CommittedOffset(42, 5))
    assert position.phase is Phase.VALIDATING, "whoever knows the epoch asks first whether the log was cut"
    positions.valid(position)
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
    positions.hold([ORDERS])
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
    positions.hold([ORDERS])
    seen.append(position.readable)
    positions.hold([ORDERS], held=False)
    seen.append(position.readable)
    assert (seen, position.fetch_offset) == ([False, False, True], 5)


def test_partitions_that_stay_take_the_new_generation_and_are_not_disturbed() -> None:
    positions, position = _one()
    positions.found_committed(ORDERS, CommittedOffset(5))
    before = position.changed
    positions.kept([ORDERS], 4)
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
