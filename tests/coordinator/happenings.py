"""Ways in which something happens in a group, each told from a fresh world."""

from __future__ import annotations

from typing import Any

from kohort.protocol import ErrorCode
from tests.coordinator.bodies import protocols, subscription
from tests.coordinator.driver import World

OTHER = protocols(range=subscription("u"))


def joins(world: World) -> None:
    world.new_member()


def joins_static(world: World) -> None:
    world.join(instance="i")


def leaves(world: World) -> None:
    world.leave("g", (world.stable()[0], None))


def leaves_with_a_reason(world: World) -> None:
    world.leave("g", (world.stable()[0], None), reason="the\nend")


def is_removed_by_an_administrator(world: World) -> None:
    world.join(instance="i")
    world.advance(0)
    world.leave("g", ("", "i"))


def falls_silent(world: World) -> None:
    world.stable()
    world.advance(10_000)


def falls_silent_static(world: World) -> None:
    world.join(instance="i")
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"]])
    world.advance(10_000)


def never_gets_to_finish_joining(world: World) -> None:
    world.stable(session_ms=900_000, rebalance_ms=900_000)
    world.new_member()
    world.advance(300_000)


def does_not_rejoin(world: World) -> None:
    a, b = world.stable(2, session_ms=100_000)
    world.join("g", a, offers=OTHER, session_ms=100_000)
    world.advance(60_000)
    world.settle([a])
    assert b not in world.groups["g"].members


def many_do_not_rejoin(world: World) -> None:
    a, *_ = world.stable(6, session_ms=100_000)
    world.join("g", a, offers=OTHER, session_ms=100_000)
    world.advance(60_000)
    world.settle([a])


def does_not_sync(world: World) -> None:
    leader, _ = world.new_member(session_ms=100_000)
    world.new_member(session_ms=100_000)
    world.advance(0)
    world.sync("g", leader)
    world.advance(60_000)


def leader_does_not_sync(world: World) -> None:
    world.new_member(session_ms=100_000)
    follower, _ = world.new_member(session_ms=100_000)
    world.advance(0)
    world.sync("g", follower)
    world.advance(60_000)


def leader_changes(world: World) -> None:
    a, _ = world.stable(2)
    world.join("g", a, offers=OTHER)


def follower_changes(world: World) -> None:
    _, b = world.stable(2)
    world.join("g", b, offers=OTHER, reason="new topic")


def leader_asks(world: World) -> None:
    a, _ = world.stable(2)
    world.join("g", a)


def returns(world: World, **options: Any) -> None:
    world.join(instance="i", host="/10.0.0.1")
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"]])
    world.join(instance="i", **{"host": "/10.0.0.1", **options})


def returns_from_elsewhere(world: World) -> None:
    returns(world, host="/10.0.0.2")


def returns_changed(world: World) -> None:
    returns(world, offers=OTHER)


def returns_too_soon(world: World) -> None:
    world.join(instance="i")
    world.advance(0)
    world.join(instance="i")


def cannot_be_written(world: World) -> None:
    leader, _ = world.new_member()
    world.advance(0)
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.sync("g", leader)


def cannot_be_created(world: World) -> None:
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.join()


def too_many_are_loaded(world: World) -> None:
    world.stable(3)
    world.settings.group_max_size = 2
    world.crash()


def comes_to_a_full_group(world: World) -> None:
    world.settings.group_max_size = 1
    world.stable()
    world.join()


def comes_to_a_full_group_with_an_id(world: World) -> None:
    world.stable()
    member = world.join().reply.member_id
    world.settings.group_max_size = 1
    world.join("g", member)


def comes_last(world: World) -> None:
    a, b = world.stable(2)
    world.settings.group_max_size = 1
    world.join("g", a, offers=OTHER)
    world.join("g", b)


def id_is_not_used(world: World) -> None:
    world.join()
    world.advance(10_000)


def leaves_before_it_joined(world: World) -> None:
    first = world.join()
    world.leave("g", (first.reply.member_id, None))


def is_no_member(world: World) -> None:
    world.stable()
    world.heartbeat("g", "x", 1)


def has_no_group(world: World) -> None:
    world.heartbeat("g", "x", 1)


def is_late(world: World) -> None:
    (a,) = world.stable()
    world.heartbeat("g", a, 7)


def is_fenced(world: World) -> None:
    returns(world)
    world.heartbeat("g", "old", 1, instance="i")


def is_static_nowhere(world: World) -> None:
    world.stable()
    world.sync("g", "x", 1, instance="z")


def leaves_without_being_there(world: World) -> None:
    world.stable()
    world.leave("g", ("x", None))


def joins_with_an_id_nobody_gave(world: World) -> None:
    world.stable()
    world.join("g", "x")


def asks_for_a_short_session(world: World) -> None:
    world.join(session_ms=1)


def offers_too_much(world: World) -> None:
    world.join(offers=protocols(**{f"p{number}": b"" for number in range(33)}))


def offers_nothing_common(world: World) -> None:
    world.stable()
    world.join(offers=protocols(other=b""))


def has_another_type(world: World) -> None:
    world.stable()
    world.join(type_="connect")


def takes_a_strangers_id(world: World) -> None:
    first = world.join()
    world.join("g", first.reply.member_id, instance="i")


def commits_in_the_wrong_generation(world: World) -> None:
    (a,) = world.stable()
    world.commit("g", {("t", 0): 1}, a, 7)


def commits_before_it_synced(world: World) -> None:
    a, _ = world.new_member()
    world.advance(0)
    world.commit("g", {("t", 0): 1}, a, 1)


def commits_as_nobody(world: World) -> None:
    world.stable()
    world.commit("g", {("t", 0): 1})


def commit_cannot_be_written(world: World) -> None:
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.commit("g", {("t", 0): 1})


def deletion_cannot_be_written(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.delete("g")


def offset_deletion_cannot_be_written(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.offset_delete("g", ("t", 0))


def topic_deletion_cannot_be_written(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.topics_deleted("t")


def expiry_cannot_be_written(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.advance(8 * 24 * 3_600_000)


def end_cannot_be_written(world: World) -> None:
    (a,) = world.stable()
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.leave("g", (a, None))


def return_cannot_be_written(world: World) -> None:
    world.join(instance="i")
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"]])
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.join(instance="i")


def is_deleted(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.delete("g")


def offsets_are_deleted(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.offset_delete("g", ("t", 0))


def offsets_expire(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.advance(8 * 24 * 3_600_000)


def is_never_used(world: World) -> None:
    world.join()
    world.advance(1_200_000)


def topic_is_deleted(world: World) -> None:
    world.commit("g", {("t", 0): 1})
    world.topics_deleted("t")
