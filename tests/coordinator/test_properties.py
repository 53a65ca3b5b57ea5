"""Random lives of a shard: whatever happens, the log tells what is durable and everybody gets one answer.

The driver checks the invariants of groups and timers after every step; here come the ones over time.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.classic_groups.group import CLASSIC_TYPE
from kohort.coordinator.classic_groups.rebalance import EMPTY_ASSIGNMENT
from kohort.offsets_topic import GroupStored, decode
from kohort.protocol import ErrorCode
from kohort.protocol.messages.sync_group import SyncGroupResponse
from kohort.statemachine import GroupState
from tests.coordinator.bodies import protocols, subscription
from tests.coordinator.driver import World

GROUPS = ("g", "h")
OFFERS = (
    protocols(range=subscription("t")),
    protocols(range=subscription("t"), sticky=subscription("t")),
    protocols(sticky=b"no subscription", range=subscription("u")),
    protocols(other=b""),
)

groups = st.sampled_from(GROUPS)
picks = st.integers(0, 7)
STEP = st.one_of(
    st.tuples(st.just("new"), groups, st.sampled_from([3, 5, 9]), st.integers(0, 3)),
    st.tuples(st.just("static"), groups, st.sampled_from(["i", "j"]), st.integers(0, 3)),
    st.tuples(st.just("join"), groups, picks, st.integers(0, 3)),
    st.tuples(st.just("sync"), groups, picks, st.integers(-1, 0)),
    st.tuples(st.just("sync all"), groups),
    st.tuples(st.just("heartbeat"), groups, picks),
    st.tuples(st.just("leave"), groups, picks),
    st.tuples(st.just("commit"), groups, picks, st.integers(-1, 1)),
    st.tuples(st.just("simple"), groups, picks),
    st.tuples(st.just("fetch"), groups),
    st.tuples(st.just("offset delete"), groups, picks),
    st.tuples(st.just("delete"), groups),
    st.tuples(st.just("topic"), st.just("t")),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 500, 4_000, 11_000, 61_000, 700_000])),
    st.tuples(st.just("hold")),
    st.tuples(st.just("release")),
    st.tuples(st.just("write")),
    st.tuples(
        st.just("fail"), st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR])
    ),
)


def names(world: World, group: str) -> list[str]:
    """Ids a client may use: members, ids handed out, and one nobody has."""
    live = world.groups.get(group)
    return ([*live.members, *live.pending_join] if live is not None else []) + ["nobody"]


def take(world: World, step: tuple[Any, ...]) -> None:
    what, *args = step
    if what == "advance":
        world.advance(*args)
    elif what == "hold":
        world.hold_writes = True
    elif what == "release":
        world.hold_writes = False
        world.write_all()
    elif what == "write":
        if world.held_writes:
            world.write()
    elif what == "fail":
        world.fail_next_write = args[0]
    elif what == "topic":
        world.topics_deleted(*args)
    elif what == "delete":
        world.delete(*args)
    elif what == "fetch":
        world.fetch_call(*args)
    else:
        of_a_group(world, what, *args)


def of_a_group(world: World, what: str, group: str, *args: Any) -> None:
    live = world.groups.get(group)
    generation = 0 if live is None else live.generation
    known = names(world, group)
    if what == "new":
        world.join(group, version=args[0], offers=OFFERS[args[1]])
    elif what == "static":
        world.join(group, instance=args[0], offers=OFFERS[args[1]])
    elif what == "sync all":
        for member in list(live.members) if live is not None else []:
            member_of(world, "sync", group, member, generation, 0)
    elif what in ("simple", "offset delete"):
        if what == "simple":
            world.commit(group, {("t", args[0]): args[0], ("u", 0): 1})
        else:
            world.offset_delete(group, ("t", args[0]))
    else:
        member_of(world, what, group, known[args[0] % len(known)], generation, *args[1:])


def member_of(world: World, what: str, group: str, member: str, generation: int, *args: Any) -> None:
    live = world.groups.get(group)
    instance = None
    if live is not None and member in live.members:
        instance = live.members[member].instance_id
    if what == "join":
        world.join(group, member, instance=instance, offers=OFFERS[args[0]])
    elif what == "sync":
        protocol = None if live is None else live.protocol_name
        shares = {m: m.encode() for m in (live.members if live is not None else ())}
        version = 3 if protocol is None else 5
        generation += args[0]
        world.sync(group, member, generation, shares, instance=instance, version=version, protocol=protocol)
    elif what == "heartbeat":
        world.heartbeat(group, member, generation, instance=instance)
    elif what == "leave":
        world.leave(group, (member, instance))
    else:
        world.commit(group, {("t", 0): 5, ("t", 3): 6}, member, generation + args[0], instance=instance)


def generations(world: World) -> dict[str, int]:
    return {group_id: group.generation for group_id, group in world.groups.items()}


@pytest.mark.row("6.2/prefix")
@settings(max_examples=150)
@given(st.lists(STEP, max_size=60))
def test_the_log_tells_what_is_durable_at_every_prefix(steps: list[tuple[Any, ...]]) -> None:
    world = World(group_max_size=4)
    for step in steps:
        take(world, step)
        assert world.reloaded() == world.shard.state.durable


@pytest.mark.row("6.2/generations")
@settings(max_examples=100)
@given(st.lists(STEP, max_size=60))
def test_generations_only_grow(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    before = generations(world)
    for step in steps:
        take(world, step)
        after = generations(world)
        assert all(after[g] >= before[g] for g in before.keys() & after.keys() if after[g] > 0)
        before = after


@pytest.mark.row("6.2/parked", "6.2/once")
@settings(max_examples=100)
@given(st.lists(STEP, max_size=60))
def test_once_everybody_falls_silent_nobody_is_left_waiting(steps: list[tuple[Any, ...]]) -> None:
    world = World(initial_delay_ms=500)
    for step in steps:
        take(world, step)
    world.fail_next_write = None
    world.hold_writes = False
    world.write_all()
    world.advance(1_200_000)
    assert [call for call in world.calls if call.parked] == []
    assert {group.state for group in world.groups.values()} <= {GroupState.EMPTY}
    assert len(world.shard.timers) == 1, "only the retention timer is left"


@pytest.mark.row("6.2/prefix", "6.2/generations")
@settings(max_examples=100)
@given(st.lists(STEP, max_size=40), st.lists(STEP, max_size=20), st.integers(0, 60))
def test_after_a_crash_anywhere_the_shard_goes_on_from_what_was_written(
    steps: list[tuple[Any, ...]], more: list[tuple[Any, ...]], keep: int
) -> None:
    world = World()
    for step in steps:
        take(world, step)
    expected = world.reloaded(keep)
    world.hold_writes = False
    world.crash(keep)
    for group_id, stored in expected.of_type(CLASSIC_TYPE).items():
        assert world.shard.state.durable.of_type(CLASSIC_TYPE)[group_id] == stored
        if stored.members:
            assert world.groups[group_id].generation == stored.generation
    assert world.shard.state.durable == expected
    for step in more:
        take(world, step)


@pytest.mark.row("6.2/deterministic")
@settings(max_examples=60)
@given(st.lists(STEP, max_size=60))
def test_the_same_inputs_give_the_same_answers_and_notes(steps: list[tuple[Any, ...]]) -> None:
    worlds = World(), World()
    for world in worlds:
        for step in steps:
            take(world, step)
    one, other = worlds
    assert [call.answers for call in one.calls] == [call.answers for call in other.calls]
    assert one.notes == other.notes
    assert one.log == other.log


@pytest.mark.row("6.2/kth-append", "9/39")
@settings(max_examples=120)
@given(st.lists(STEP, max_size=60), st.integers(1, 6))
def test_whichever_writes_fail_memory_and_log_agree_and_everybody_is_answered(
    steps: list[tuple[Any, ...]], every: int
) -> None:
    world = World(group_max_size=4)
    world.fail_every = every
    for step in steps:
        take(world, step)
        # of groups in Stable the driver compares all there is
        assert world.reloaded() == world.shard.state.durable
    world.fail_every = 0
    world.fail_next_write = None
    world.hold_writes = False
    world.write_all()
    world.advance(1_200_000)
    assert [call for call in world.calls if call.parked] == []


@pytest.mark.row("6.2/one-owner", "1.6/6")
@settings(max_examples=100)
@given(st.lists(STEP, max_size=60), st.integers(0, 4))
def test_a_share_is_the_logs_and_in_one_generation_nobody_else_has_it(
    steps: list[tuple[Any, ...]], every: int
) -> None:
    world = World()
    world.fail_every = every
    for step in steps:
        take(world, step)
        for group in world.groups.values():
            if group.state is GroupState.STABLE:
                shares = [m.assignment for m in group.members.values() if m.assignment != EMPTY_ASSIGNMENT]
                assert len(set(shares)) == len(shares)
    written: dict[tuple[str, int, str], set[bytes]] = {}
    for pair in world.log:
        record = decode(*pair)
        if isinstance(record, GroupStored):
            for member in record.members:
                key = (record.group, record.generation, member.member_id)
                written.setdefault(key, set()).add(member.assignment)
    for call in world.calls:
        if call.answers and isinstance(call.reply, SyncGroupResponse) and not call.reply.error_code:
            body = call.body
            assert call.reply.assignment in written[body.group_id, body.generation_id, body.member_id]


@pytest.mark.row("1.6/1", "1.6/2", "1.6/3", "1.6/4", "1.6/5", "1.6/6", "1.6/7")
@settings(max_examples=100)
@given(st.lists(STEP, max_size=80), st.sampled_from([2, 3, 5_000]), st.sampled_from([0, 3_000]))
def test_the_invariants_hold_whatever_the_limits(
    steps: list[tuple[Any, ...]], max_size: int, delay_ms: int
) -> None:
    # the driver checks them after every step, and that nobody is answered twice
    world = World(initial_delay_ms=delay_ms, group_max_size=max_size)
    for step in steps:
        take(world, step)
    world.hold_writes = False
    world.write_all()
    world.unload()
    assert all(len(call.answers) == 1 for call in world.calls)
