"""Limits on groups, each with its number. More of them stand in tests/coordinator."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

from kohort.coordinator import Append, GroupSettings, Reply
from kohort.protocol import ErrorCode
from kohort.statemachine import GroupState
from tests.coordinator.bodies import SESSION_MS
from tests.coordinator.driver import Call, World, errors_of

GROUPS = 2_000


class Quick(World):
    """Without the checks after each step, which look at every group and every call there was."""

    def _carry_out(self) -> None:
        while effects := self.shard.take_effects():
            for effect in effects:
                if isinstance(effect, Reply):
                    effect.handle.answers.append(effect.body)
                elif isinstance(effect, Append):
                    self.shard.on_appended(effect.ticket, 0, self.now)

    def send(self, *request: Any) -> Call:
        call = super().send(*request)
        self.calls.clear()
        return call


def test_a_group_has_at_most_5_000_members() -> None:
    world = Quick()
    assert world.settings.group_max_size == 5_000
    calls = [world.join(version=3) for _ in range(5_001)]
    assert all(call.parked for call in calls[1:5_000])
    assert calls[5_000].error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert len(world.groups["g"].members) == 5_000


def test_an_empty_group_takes_at_most_2_kib_with_its_offset() -> None:
    """A million of them would be 2 GiB; make bench-attack does that."""
    world = Quick()
    world.commit("warm", {("t", 0): 1})
    tracemalloc.start()
    try:
        for number in range(GROUPS):
            # somebody came, and never came back with the id it was given
            world.join(f"group-{number}")
            assert errors_of(world.commit(f"group-{number}", {("t", 0): 1})) == [0]
        world.advance(SESSION_MS)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    group = world.groups["group-7"]
    assert group.state is GroupState.EMPTY
    assert not group.pending_join
    assert len(world.groups) == GROUPS
    assert taken / GROUPS <= 2_048


@pytest.mark.parametrize(
    ("session_ms", "error"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_session_lasts_from_6_000_to_1_800_000_ms(session_ms: int, error: ErrorCode) -> None:
    assert World().join(session_ms=session_ms).error == error


@pytest.mark.parametrize(("length", "error"), [(4_096, 0), (4_097, ErrorCode.OFFSET_METADATA_TOO_LARGE)])
def test_an_offsets_metadata_has_at_most_4_096_characters(length: int, error: int) -> None:
    assert errors_of(World().commit("s", {("t", 0): 1}, metadata="m" * length)) == [error]


def test_the_numbers_of_the_page_are_the_defaults() -> None:
    settings = GroupSettings()
    assert settings.kohort_member_max_protocols == 32
    assert settings.kohort_member_max_metadata_bytes == 1_048_576
    assert settings.kohort_group_max_metadata_bytes == 67_108_864
    assert settings.kohort_group_max_pending_ids == 10_000
    assert settings.kohort_commit_max_partitions == 10_000


def test_limits_that_kafka_has_not_can_be_set() -> None:
    world = World(kohort_member_max_protocols=1, kohort_member_max_metadata_bytes=10)
    assert world.join().error == ErrorCode.INVALID_REQUEST
