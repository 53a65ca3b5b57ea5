"""When a schedule of services is settled, and what must be so at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....coordinator.classic.group import live
from ....statemachine import GroupState, MemberState

if TYPE_CHECKING:
    from ._world import ServiceWorld


def still_waited_for(world: ServiceWorld) -> tuple[str, str] | None:
    """What is not as it should be yet: the name of the invariant, and what is amiss."""
    plan, shard = world.plan, world.broker.shard
    if shard is None:
        return "L1", "the coordinator does not serve"
    living = [process for process in world.processes.values() if process.alive]
    stopping = [process.name for process in living if process.stopping_ms is not None]
    if stopping or world.to_undo:
        return "L1", f"{stopping} are about to end, {world.restarting} to start"
    for process in living:
        consumer = process.consumer
        if consumer is None or consumer.state.state is not MemberState.STABLE:
            return "L1", f"{process.name} is {consumer}"
    group = live(shard, plan.group)
    if living and (
        group is None or group.state is not GroupState.STABLE or len(group.members) != len(living)
    ):
        return "L1", f"{plan.group} is {group}, alive are {living}"
    if not living:
        return None
    if left := world.ledger.left():
        return "L3", f"{left[0]} is not done, and in {len(left) - 1} other partitions is one"
    for partition, end in world.topics.ends().items():
        entry = shard.state.durable.offset(plan.group, partition)
        if partition.topic in world.plan.topics and end and (entry is None or entry.offset != end):
            name = f"{partition.topic}-{partition.partition}"
            return "L3", f"{name} ends at {end}, committed is {None if entry is None else entry.offset}"
    return None


def look_at_the_end(world: ServiceWorld) -> None:
    """All processes have ended."""
    shard, name = world.broker.shard, world.plan.group
    group = None if shard is None else live(shard, name)
    seats = [] if group is None else [m for m in group.members.values() if m.instance_id is None]
    if seats:
        world.checks.fail("L5", f"all processes have ended, and in {name} are still {seats}")
    if world.plan.kind == "once":
        _look_at_effects(world)


def _look_at_effects(world: ServiceWorld) -> None:
    counts: dict[int, int] = {}
    for (number,) in world.effects.execute("SELECT number FROM effects"):
        counts[number] = counts.get(number, 0) + 1
    for entry in world.ledger.entries:
        done = counts.get(entry.number, 0)
        if done > 1 or (done == 0 and not entry.gone and not entry.aside):
            world.checks.fail("S18", f"{entry} took effect {done} times")
