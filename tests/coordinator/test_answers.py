"""Every cell of the table "request, sender, generation, state" is asked of a real shard.

Covers: coordinator/shared_responses.py, coordinator/groups/shards.py.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from kohort.coordinator.groups.kinds import KINDS
from kohort.coordinator.groups.shards import OFFSETS_TOPIC
from kohort.protocol import ApiKey, ErrorCode
from kohort.protocol.messages.leave_group import LeaveGroupResponse
from kohort.statemachine import GroupState
from tests.coordinator.answers import (
    COLUMNS,
    ERRORS,
    GROUP_ANSWERS,
    PARKED,
    Generation,
    answers_table,
    errors_table,
)
from tests.coordinator.bodies import RANGE_T
from tests.coordinator.driver import Call, World, errors_of
from tests.coordinator.scenes import API_KEYS, ask, scene, senders


class Cell(NamedTuple):
    """One question and its expected answer; ``generation`` is None for requests that carry none."""

    request: str
    sender: str
    generation: Generation | None
    state: GroupState | None
    expected: int | str

    def __str__(self) -> str:
        state = "no group" if self.state is None else self.state.value
        generation = "" if self.generation is None else f", generation {self.generation.value}"
        return f"{self.request}, {self.sender}{generation}: {state}"


ROWS = [
    [Cell(row.request, sender, generation, state, row.answers[state]) for state in COLUMNS]
    for row in GROUP_ANSWERS
    for sender in senders(row.sender)
    for generation in row.generations or (None,)
]

#: A scene that nobody asks, for the numbers of its generations.
looked_at = cache(scene)


def answer(asked: Call | int) -> int | str:
    if isinstance(asked, int):
        return asked
    if asked.parked:
        return PARKED
    if isinstance(asked.reply, LeaveGroupResponse) and asked.reply.members:
        return int(asked.reply.members[0].error_code)
    error = int(getattr(asked.reply, "error_code", 0))
    return error or next((code for code in errors_of(asked) if code), 0)


@pytest.mark.row(
    "3.3/order",
    "3.3/other",
    "3.4/order",
    "3.4/states",
    "3.5/order",
    "3.5/states",
    "3.6/identity",
    "3.7/5",
    "3.7/6",
    "3.7/7",
    "3.7/8",
    "3.9/subscribed",
    "3.9/type",
    "3.12/states",
    "3.0/check-member",
    "3.0/group-id",
)
@pytest.mark.parametrize("cells", ROWS, ids=lambda cells: str(cells[0]).partition(":")[0])
def test_the_answer_is_that_of_the_table(cells: list[Cell]) -> None:
    for cell in cells:
        type_ = "connect" if cell.sender == "of a group of another type than consumer" else "consumer"
        for generation in looked_at(cell.state).generation_of(cell.generation):
            played = scene(cell.state, type_)
            assert answer(ask(played, cell.request, cell.sender, generation)) == cell.expected, str(cell)
            drain(played.world)


def drain(world: World) -> None:
    """When everybody falls silent everybody is answered."""
    world.advance(1_200_000)
    assert [call for call in world.calls if call.parked] == []


#: Requests whose answers do not follow from a classic group's state alone: offsets/test_transactional.py, and
#: the folders of other types.
ELSEWHERE = {ApiKey.TXN_OFFSET_COMMIT, *(key for kind in KINDS[1:] for key in kind.apis)}


def test_every_request_that_a_shard_takes_is_in_the_table() -> None:
    asked = {API_KEYS[key] for key in OFFSETS_TOPIC.apis if key not in ELSEWHERE}
    assert asked == {row.request for row in GROUP_ANSWERS}


def test_every_error_of_the_table_is_explained_by_its_name() -> None:
    used = {cell for row in GROUP_ANSWERS for cell in row.answers.values() if cell != PARKED}
    assert used | {int(ErrorCode.NOT_COORDINATOR)} == set(ERRORS)
    assert {number: name for number, (name, _) in ERRORS.items()} == {n: ErrorCode(n).name for n in ERRORS}


@pytest.mark.parametrize("state", [state for state in COLUMNS if state is not None])
def test_a_scene_is_what_the_table_speaks_of(state: GroupState) -> None:
    played = scene(state)
    live = played.world.groups["g"]
    if state is not GroupState.EMPTY:
        assert live.leader_id == played.leader
        assert live.static_members == {"i": played.static}
        assert [p.metadata for p in RANGE_T] == [live.members[played.follower].metadata("range")]
    assert played.fenced not in live.members


def test_when_the_shard_is_gone_everything_is_not_coordinator() -> None:
    played = scene(GroupState.STABLE)
    played.world.unload()
    asked = played.world.heartbeat("g", played.leader, played.generation)
    assert asked == ErrorCode.NOT_COORDINATOR


def test_the_answers_cover_every_living_state_and_a_missing_group() -> None:
    living = set(GroupState) - {GroupState.DEAD}
    assert set(COLUMNS) == living | {None}
    assert all(tuple(row.answers) == COLUMNS for row in GROUP_ANSWERS)


def test_a_sender_has_one_row_for_each_generation() -> None:
    asked = [(row.request, row.sender, g) for row in GROUP_ANSWERS for g in row.generations or (None,)]
    assert len(set(asked)) == len(asked)


def test_the_answers_render_as_one_row_each() -> None:
    table = answers_table()
    assert len(table.splitlines()) == 2 + len(GROUP_ANSWERS)
    # a row may have more columns: a state more is no reason to change this test
    assert "\n| Heartbeat | leader | current | 25 | 25 | 27 | 0 | 0 |" in table
    assert "\n| Heartbeat | member | another or -1 | 25 | 25 | 22 | 22 | 22 |" in table
    assert "\n| Heartbeat | unknown member id | any | 25 | 25 | 25 | 25 | 25 |" in table


def test_the_errors_render_with_name_and_meaning() -> None:
    lines = errors_table().splitlines()
    assert len(lines) == 2 + len(ERRORS)
    assert "| 27 | REBALANCE_IN_PROGRESS | rejoin with the same member id |" in lines
