"""Why did it rebalance: causes, durations, and how many partitions moved.

Covers: protocol/_events.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kohort.coordinator import CoordinatorEvent, RebalanceCompleted, RebalanceStarted
from kohort.protocol import ErrorCode, TopicPartition, encode_assignment
from tests.coordinator.bodies import protocols, subscription
from tests.coordinator.driver import World


def shares(owned: Mapping[str, range]) -> dict[str, bytes]:
    return {m: encode_assignment([TopicPartition("t", p) for p in parts]) for m, parts in owned.items()}


def last(world: World) -> RebalanceCompleted:
    return next(note for note in reversed(world.notes) if isinstance(note, RebalanceCompleted))


def two_members(world: World) -> tuple[str, str]:
    a, _ = world.new_member(client="alpha", host="/10.0.0.1")
    world.advance(0)
    world.sync("g", a, 1, shares({a: range(6)}))
    b, _ = world.new_member(client="beta", host="/10.0.0.2")
    world.advance(250)
    world.join("g", a)
    world.advance(50)
    world.sync("g", a, 2, shares({a: range(3), b: range(3, 6)}))
    world.sync("g", b, 2)
    return a, b


def test_a_rebalance_tells_its_cause_its_length_and_what_moved() -> None:
    world = World()
    _, b = two_members(world)
    note = last(world)
    assert (note.group, note.generation, note.cause) == ("g", 2, f"member {b} joined")
    assert (note.member, note.client_id, note.client_host) == (b, "beta", "/10.0.0.2")
    assert (note.members_before, note.members) == (1, 2)
    assert (note.duration_ms, note.join_ms) == (300, 250)
    assert (note.partitions_moved, note.partitions_total) == (3, 6)
    assert (note.protocol_type, note.protocol) == ("consumer", "range")


def test_in_the_first_generation_everything_moves() -> None:
    world = World()
    a, _ = world.new_member()
    world.advance(0)
    world.sync("g", a, 1, shares({a: range(6)}))
    assert (last(world).partitions_moved, last(world).members_before) == (6, 0)


@pytest.mark.parametrize(("before", "after"), [(None, {}), ({}, None)])
def test_without_both_assignments_it_is_not_known_what_moved(
    before: dict[str, bytes] | None, after: dict[str, bytes] | None
) -> None:
    note = RebalanceCompleted(
        "g",
        members=0,
        members_before=0,
        protocol_type="consumer",
        duration_ms=0,
        join_ms=0,
        sync_ms=0,
        before=before,
        after=after,
    )
    assert (note.partitions_moved, note.partitions_total) == (None, None)
    assert (note.moves(), note.joined(), note.left()) == ([], [], [])


def test_when_nothing_changes_hands_nothing_moves() -> None:
    world = World()
    a, b = two_members(world)
    world.join("g", a)
    world.join("g", b)
    world.sync("g", a, 3, shares({a: range(3), b: range(3, 6)}))
    assert (last(world).partitions_moved, last(world).partitions_total) == (0, 6)
    assert last(world).cause == f"leader {a} asked for a rebalance"


def test_a_static_member_owns_under_its_name_across_restarts() -> None:
    world = World()
    world.join(instance="i")
    world.advance(0)
    old = world.groups["g"].static_members["i"]
    world.sync("g", old, 1, shares({old: range(4)}), instance="i")
    back = world.join(instance="i", offers=protocols(range=subscription("t", "u"))).reply
    world.sync("g", back.member_id, 2, shares({back.member_id: range(5)}), instance="i")
    assert (last(world).partitions_moved, last(world).partitions_total) == (1, 5)
    assert last(world).cause == "rejoin of static i with other subscriptions"


def test_a_static_member_from_another_host_is_told_apart() -> None:
    world = World()
    world.join(instance="i")
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"]])
    world.join(instance="i", offers=protocols(range=subscription("u")), host="/10.9.9.9")
    started = next(note for note in reversed(world.notes) if isinstance(note, RebalanceStarted))
    expected = "rejoin of static i from another host /10.9.9.9 with other subscriptions"
    assert started.cause == expected


def test_for_other_protocol_types_no_bytes_are_looked_into() -> None:
    world = World()
    a, _ = world.new_member(type_="connect")
    world.advance(0)
    world.sync("g", a, 1, shares({a: range(6)}), type_="connect")
    assert (last(world).partitions_moved, last(world).partitions_total) == (None, None)
    assert last(world).moves() == []


def test_an_assignment_that_cannot_be_read_counts_as_nothing() -> None:
    world = World()
    (a,) = world.stable()
    after = last(world).after
    assert after is not None
    assert a.encode() in after.values()
    assert (last(world).partitions_moved, last(world).partitions_total) == (0, 0)


def test_a_round_that_starts_over_keeps_all_its_reasons_and_its_start() -> None:
    world = World()
    a, b = two_members(world)
    c, _ = world.new_member()
    world.advance(100)
    world.join("g", a)
    world.join("g", b)
    d, _ = world.new_member()
    world.advance(100)
    world.settle([a, b, c, d])
    assert last(world).cause == f"member {c} joined; member {d} joined"
    assert (last(world).duration_ms, last(world).members_before, last(world).members) == (200, 2, 4)


def test_an_emptied_group_ends_its_rebalance_with_nobody() -> None:
    world = World()
    (a,) = world.stable()
    world.leave("g", (a, None))
    assert (last(world).members, last(world).cause) == (0, f"member {a} left")


@pytest.mark.parametrize(
    ("count", "shown"), [(1, "member c-2"), (2, "members c-2, c-3"), (3, "members c-2, c-3, c-4")]
)
def test_who_did_not_sync_is_named(count: int, shown: str) -> None:
    world = World()
    leader, _ = world.new_member(session_ms=100_000)
    for _ in range(count):
        world.new_member(session_ms=100_000)
    world.advance(0)
    world.sync("g", leader)
    world.advance(60_000)
    started = next(note for note in reversed(world.notes) if isinstance(note, RebalanceStarted))
    assert started.cause == f"{shown} did not sync within 60.0 s"


def test_a_failed_write_is_a_cause() -> None:
    world = World()
    leader, _ = world.new_member()
    world.advance(0)
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.sync("g", leader)
    started = next(note for note in reversed(world.notes) if isinstance(note, RebalanceStarted))
    assert started.cause == "the assignment could not be written: COORDINATOR_NOT_AVAILABLE"


def test_names_on_the_wire_are_constants_and_none_is_there_twice() -> None:
    """They stay when a class is renamed: clients and logs go by them."""

    def kinds(base: type[CoordinatorEvent]) -> set[type[CoordinatorEvent]]:
        below = base.__subclasses__()
        return set().union(*map(kinds, below)) if below else {base}

    # other coordinators have events of their own
    ours = [kind for kind in kinds(CoordinatorEvent) if kind.__module__.startswith("kohort.coordinator.")]
    names = sorted(kind.name for kind in ours)
    assert len(names) == len(set(names)) > 15
    assert RebalanceCompleted.name == "RebalanceCompleted"


def test_in_a_share_group_owners_get_and_lose_partitions_that_others_keep() -> None:
    event = RebalanceCompleted(
        "g",
        members=3,
        members_before=2,
        protocol_type="share",
        duration_ms=0,
        join_ms=0,
        sync_ms=0,
        before={"a": {"t": [0, 1]}, "b": {"t": [0]}},
        after={"a": {"t": [0]}, "b": {"t": [0, 1]}, "c": {"t": [0]}},
    )
    assert event.moves() == [("t", 0, None, "c"), ("t", 1, None, "b"), ("t", 1, "a", None)]
    assert (event.partitions_moved, event.partitions_total) == (2, 4)
    assert (event.joined(), event.left()) == (["c"], [])
