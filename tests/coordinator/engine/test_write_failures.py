"""What waits for a write goes on when the write has failed, at the time of that."""

from __future__ import annotations

from functools import partial
from typing import Any

from kohort.coordinator.engine.effects import Append, Reply, Request
from kohort.protocol import ApiKey, ErrorCode, RequestContext
from tests.coordinator.driver import World, errors_of


def test_a_member_that_waited_for_a_deletion_joins_when_that_has_failed() -> None:
    world = World()
    world.commit("g")
    world.hold_writes = True
    deleting = world.delete("g")
    joining = world.join("g", member="", instance="i")
    assert (deleting.parked, joining.parked) == (True, True)
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.write()
    assert deleting.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.hold_writes = False
    world.advance(0)
    assert joining.error == 0
    assert world.state() == "CompletingRebalance"


def test_what_waits_for_a_write_when_its_shard_goes_is_sent_to_look_for_it() -> None:
    world = World()
    world.commit("g")
    world.hold_writes = True
    committing, deleting, reading = world.commit("g"), world.delete("g"), world.fetch_call("g")
    assert (committing.parked, deleting.parked, reading.parked) == (True, True, True)
    world.unload()
    assert errors_of(committing) == [ErrorCode.NOT_COORDINATOR]
    assert (deleting.error, reading.reply.error_code) == (ErrorCode.NOT_COORDINATOR,) * 2


def test_writes_that_build_on_one_that_fails_fail_with_it_and_no_others_do() -> None:
    world = World()
    shard = world.shard
    told: list[tuple[str, int]] = []
    undone: list[int] = []
    for name, key, undo in (("first", "g", undone.append), ("other", "h", None), ("second", "g", None)):
        outcome = partial(lambda name, error, _now_ms: told.append((name, int(error))), name)
        shard.append(key, (), outcome, undo=undo)
    first, other, second = (effect.ticket for effect in shard.take_effects() if isinstance(effect, Append))
    shard.append_failed(first, ErrorCode.KAFKA_STORAGE_ERROR, 7)
    assert told == [("first", 56), ("second", 56)]
    assert undone == [7]
    assert not shard.awaits(second)
    assert not shard.is_busy("g")
    shard.append_failed(other, ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert told[-1] == ("other", 56)


def test_records_of_writes_that_failed_together_are_not_under_way_when_the_first_is_undone() -> None:
    shard = World().shard
    under_way: list[Any] = []
    shard.append("g", ("first",), undo=lambda _now_ms: under_way.extend(shard.records_in_flight()))
    shard.append("g", ("second",))
    shard.append("h", ("other",))
    first, *_ = (effect.ticket for effect in shard.take_effects() if isinstance(effect, Append))
    shard.append_failed(first, ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert under_way == ["other"]


def test_an_answer_that_goes_by_the_writes_of_its_key_waits_for_these_alone() -> None:
    world = World()
    shard = world.shard
    handles: tuple[list[Any], list[Any]] = ([], [])
    shard.append("g", ())
    shard.append("h", ())
    for key, handle in zip("gi", handles, strict=True):
        request = Request(ApiKey.HEARTBEAT, 4, None, RequestContext("c"), handle)
        shard.reply_when_written(key, request, key)
    effects = shard.take_effects()
    assert [effect.handle for effect in effects if isinstance(effect, Reply)] == [handles[1]]
    ours, theirs = (effect.ticket for effect in effects if isinstance(effect, Append))
    shard.append_failed(theirs, ErrorCode.KAFKA_STORAGE_ERROR, 0)
    shard.on_appended(ours, 0, 0)
    assert [e.body for e in shard.take_effects() if isinstance(e, Reply)] == ["g"]


def test_nobody_waits_for_the_writes_of_a_key_while_one_of_them_takes_too_long() -> None:
    world = World()
    shard = world.shard
    shard.append("g", ())
    (write,) = shard.take_effects()
    assert isinstance(write, Append)

    def answer_of(body: Any) -> list[Any]:
        shard.reply_when_written("g", Request(ApiKey.HEARTBEAT, 4, None, RequestContext("c"), []), body)
        return [effect.body for effect in shard.take_effects() if isinstance(effect, Reply)]

    assert answer_of("waits") == []
    shard.append_overdue(write.ticket, 0)
    waited = [effect.body for effect in shard.take_effects() if isinstance(effect, Reply)]
    assert [body.error_code for body in waited] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    (late,) = answer_of("late")
    assert late.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    shard.on_appended(write.ticket, 0, 0)
    shard.append_overdue(write.ticket, 0)
    assert shard.take_effects() == []
    shard.append("g", ())
    shard.take_effects()
    assert answer_of("waits again") == []
