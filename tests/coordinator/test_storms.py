"""Members that come, go or are replaced at once cost as much each, however many: counted in steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from kohort.protocol import ApiKey, TopicPartition, encode_assignment
from tests.coordinator.consumer_groups.group_world import CLASSIC_SESSION_MS, Classic, World
from tests.coordinator.consumer_groups.test_holding import MOST_MS, hold

ASSIGNMENT = encode_assignment([TopicPartition("t", 0)])

#: Twice the members may take so many times the steps. What looks at all of them for each takes up to 4 times.
LINEAR = 2.05


def steps_of(work: Callable[[], object]) -> int:
    """How many instructions of the package's own code it takes, those of comprehensions included."""
    count = 0

    def step(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "opcode"
        return step

    def call(frame: FrameType, _event: str, _arg: object) -> Any:
        if "tests" in Path(frame.f_code.co_filename).parts:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


Work = Iterator[Callable[[], object]]


def come_classic(world: World, size: int) -> list[Classic]:
    """They join by two requests each, and sync when the initial delay is over."""
    members = [Classic(world) for _ in range(size)]
    parked = []
    for member in members:
        (answer,) = member.send_join()
        member.id = answer.member_id
        parked.append(member.send_join())
    world.advance(7_000)
    for member, answers in zip(members, parked, strict=True):
        member.learn(answers[0])
    for member in reversed(members):
        shares = [(each.id, ASSIGNMENT) for each in members] if member is members[0] else ()
        member.send_sync(shares)
    return members


def classic_storm(size: int) -> Work:
    world = World()
    yield lambda: come_classic(world, size)


def classic_leave(size: int) -> Work:
    """All but one leave in one request."""
    world = World()
    members = come_classic(world, size)
    leaving = [SimpleNamespace(member_id=each.id, group_instance_id=None, reason="") for each in members[1:]]
    yield lambda: members[0].send(ApiKey.LEAVE_GROUP, 5, members=leaving)


def classic_silence(size: int) -> Work:
    """All sessions end at once."""
    world = World()
    come_classic(world, size)
    yield lambda: world.advance(CLASSIC_SESSION_MS)


def come(world: World, names: Iterable[str], size: int) -> None:
    for name in names:
        world.join(name)
        world.advance(1_000 // size)


def settle(world: World) -> None:
    world.advance(1_000)
    for _ in range(3):
        for name in list(world.group().members):
            world.live(name)


def consumer_storm(size: int) -> Work:
    """They come within a second, as the default interval of assignments has it."""
    world = World({"t": size})

    def storm() -> None:
        come(world, (f"m{number}" for number in range(size)), size)
        settle(world)

    yield storm


def consumer_deploy(size: int) -> Work:
    """Each is replaced within a second; the new ones hold their heartbeats."""
    world = World({"t": size})
    come(world, (f"m{number}" for number in range(size)), size)
    settle(world)

    def deploy() -> None:
        for number in range(size):
            world.beat(f"m{number}", -1)
            world.join(f"n{number}")
            hold(world, f"n{number}", world.group().members[f"n{number}"].current.epoch, MOST_MS)
            world.advance(1_000 // size)
        settle(world)

    yield deploy


@pytest.mark.parametrize(
    "storm", [classic_storm, classic_leave, classic_silence, consumer_storm, consumer_deploy]
)
def test_of_twice_the_members_each_costs_what_it_did(storm: Callable[[int], Work]) -> None:
    few, many = (steps_of(next(storm(size))) for size in (30, 60))
    assert few > 0
    assert many <= LINEAR * few
