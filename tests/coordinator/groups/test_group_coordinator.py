"""The coordinator as a broker runs it: whole lives, stopping, many groups at once.

Covers: coordinator/engine/runtime.py, coordinator/groups/groups.py.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import CoordinatorEvent, GroupCoordinator, MemberGone, RebalanceCompleted, ShardLoaded
from kohort.coordinator.engine import runtime
from kohort.coordinator.groups.groups import GroupShard
from kohort.offsets_topic import GroupStored, StoredMember, encode, partition_for
from kohort.protocol import ApiKey, ErrorCode, RequestContext, encode_response
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.testing._group_steps import end_session
from tests.coordinator.bodies import DIRECTORY, START_MS, commit_body, delete_body
from tests.coordinator.memory_log import (
    CONTEXT,
    MemoryLog,
    commit,
    coordinator,
    fetch,
    heartbeat,
    join,
    stable_member,
    sync,
)


async def test_a_member_lives_a_whole_life() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    member = await stable_member(c)
    beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", member), CONTEXT)
    leaving = SimpleNamespace(
        group_id="g", members=[SimpleNamespace(member_id=member, group_instance_id=None, reason=None)]
    )
    left = await c.handle(ApiKey.LEAVE_GROUP, 5, leaving, CONTEXT)
    assert (beat.error_code, left.members[0].error_code) == (0, 0)
    await c.stop()


def counted(c: GroupCoordinator) -> tuple[dict[tuple[str, str], int], int]:
    counts, members = c.group_counts()
    assert {("classic", "CompletingRebalance"), ("consumer", "Assigning")} <= counts.keys()
    return {which: count for which, count in counts.items() if count}, members


async def test_groups_are_counted_by_their_state_and_members_together() -> None:
    log = MemoryLog()
    first = coordinator(log)
    await first.start()
    assert counted(first) == ({}, 0)
    for group in ("g", "h"):
        await stable_member(first, group)
    joining = asyncio.create_task(first.handle(ApiKey.JOIN_GROUP, 3, join("g"), CONTEXT))
    for group in ("s1", "s2", "s3"):
        await commit(first, group)
    classic = {("classic", "Stable"): 1, ("classic", "PreparingRebalance"): 1, ("classic", "Empty"): 3}
    assert counted(first) == (classic, 3)
    await first.stop()
    await joining
    second = coordinator(log)
    await second.start()
    await fetch(second, "s1")
    classic = {("classic", "Stable"): 2, ("classic", "Empty"): 3}
    assert counted(second) == (classic, 2), "whether somebody asked for them or not"
    await second.stop()


def test_the_clock_begins_with_the_wall_clock_and_follows_none_of_its_jumps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, ran = [1_700_000_000_123_456_789], [50_000_000]
    clocks = SimpleNamespace(time_ns=lambda: wall[0], monotonic_ns=lambda: ran[0])
    monkeypatch.setattr(runtime, "time", clocks)
    clock_ms = runtime.steady_clock_ms()
    assert clock_ms() == 1_700_000_000_123
    wall[0] = 0
    ran[0] += 5_999_999
    assert clock_ms() == 1_700_000_000_129


def test_the_wall_clock_is_ahead_of_one_that_was_started_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(time_ns=lambda: 1_700_000_000_000_000_000)
    monkeypatch.setattr(runtime, "time", clocks)
    behind_ms = iter((5_000, 900, -5_000))
    told = [runtime.wall_clock_ahead_ms(lambda: 1_700_000_000_000 - next(behind_ms)) for _ in range(3)]
    assert told == [5_000, 0, 0]


@pytest.mark.parametrize("has_members", [False, True])
async def test_offsets_do_not_expire_at_a_restart_because_the_clock_was_wrong_at_the_start(
    has_members: bool,
) -> None:
    log, now_ms, notes = MemoryLog(partition_count=1), [START_MS], list[CoordinatorEvent]()
    years_ms = 10**12
    c = coordinator(log, notes, clock_ms=lambda: now_ms[0], ahead_ms=lambda: years_ms)
    await c.start()
    if has_members:
        member = await stable_member(c)
        c.steer("g", partial(_end_session, "g", member))
    assert await commit(c, "g") == [0]
    assert {event.timestamp_ms for event in notes} <= {START_MS + years_ms}
    await c.stop()
    assert {row[1] for batch in log.batches[0] for row in batch.records} == {START_MS + years_ms}
    now_ms[0] += years_ms
    c = coordinator(log, clock_ms=lambda: now_ms[0])
    await c.start()
    for day in range(8):
        there = (await fetch(c, "g")).groups[0].topics
        assert bool(there) == (day < 8 - 1), day
        now_ms[0] += 24 * 3_600_000
        c.time_moved()
        await asyncio.sleep(0.01)
    await c.stop()


async def test_a_coordinator_says_how_far_it_is() -> None:
    c = coordinator(MemoryLog())
    c.open()
    assert repr(c) == "<GroupCoordinator: 4 shards, 4 of them loading>"
    await c.load_all()
    assert repr(c) == "<GroupCoordinator: 4 shards, 0 of them loading>"
    await c.stop()


async def test_a_partition_that_is_taken_on_again_is_given_up_first() -> None:
    c = coordinator(MemoryLog(partition_count=1))
    await c.start()
    await stable_member(c)
    joining = asyncio.create_task(c.handle(ApiKey.JOIN_GROUP, 3, join(), CONTEXT))
    await asyncio.sleep(0)
    await c.load(0)
    assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
    assert c.history("g") == []
    await c.stop()


async def test_everything_is_there_after_a_restart() -> None:
    log, notes = MemoryLog(), list[CoordinatorEvent]()
    first = coordinator(log)
    await first.start()
    member = await stable_member(first)
    await commit(first, "s", 42)
    await first.stop()
    second = coordinator(log, notes)
    await second.start()
    beat = await second.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", member), CONTEXT)
    assert beat.error_code == 0
    assert (await fetch(second, "s")).groups[0].topics[0].partitions[0].committed_offset == 42
    loaded = [note for note in notes if isinstance(note, ShardLoaded)]
    assert {note.partition for note in loaded} == {partition_for(group, 4) for group in ("g", "s")}
    await second.stop()


async def test_a_step_from_outside_is_carried_out_as_a_request_is() -> None:
    now = [START_MS]
    c = coordinator(MemoryLog(), clock_ms=lambda: now[0])
    await c.start()
    members = {group: await stable_member(c, group) for group in ("g", "h", "i", "j", "k")}
    for group, member in members.items():
        assert c.steer(group, partial(_end_session, group, member)) == START_MS
        assert [type(entry.event) for entry in c.history(group)][-2:] == [MemberGone, RebalanceCompleted]
        beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat(group, member), CONTEXT)
        assert beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    await c.stop()


def _end_session(group: str, member: str, shard: GroupShard, now_ms: int) -> int:
    end_session(shard, group, member, now_ms)
    return now_ms


async def test_a_question_for_offsets_does_not_wait_for_ever_for_a_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "_LOAD_PARK_SECONDS", 0.01)
    c = coordinator(MemoryLog())
    c.open()
    answer = await asyncio.wait_for(fetch(c, "g", "h"), 60)
    assert [group.error_code for group in answer.groups] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    await c.stop()


async def test_many_groups_in_one_request_are_answered_in_its_order() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    groups = [f"s{number}" for number in range(9)]
    await asyncio.gather(*(commit(c, group, int(group[1:])) for group in groups))
    reply = await fetch(c, *reversed(groups))
    assert [g.group_id for g in reply.groups] == groups[::-1]
    assert [g.topics[0].partitions[0].committed_offset for g in reply.groups] == list(range(9))[::-1]
    asked = SimpleNamespace(groups=["s1", "missing"], include_authorized_operations=False)
    described = await c.handle(ApiKey.DESCRIBE_GROUPS, 6, asked, CONTEXT)
    assert [g.error_code for g in described.groups] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
    names = SimpleNamespace(groups_names=["s1", "missing", "s2", "s1"])
    deleted = await c.handle(ApiKey.DELETE_GROUPS, 2, names, CONTEXT)
    assert [(r.group_id, r.error_code) for r in deleted.results] == [("s1", 0), ("missing", 69), ("s2", 0)]
    listing = SimpleNamespace(states_filter=None, types_filter=None)
    listed = await c.handle(ApiKey.LIST_GROUPS, 5, listing, CONTEXT)
    assert sorted(g.group_id for g in listed.groups) == sorted(set(groups) - {"s1", "s2"})
    await c.stop()


async def test_a_group_without_a_name_is_that_of_the_first_partition() -> None:
    """The hash of the empty text is 0."""
    c = coordinator(MemoryLog(partition_count=50))
    await c.start()
    for partition in range(1, 50):
        c.unload(partition)
    nameless = SimpleNamespace(group_id=None, generation_id=1, member_id="m", group_instance_id=None)
    other = SimpleNamespace(group_id="XXXX", generation_id=1, member_id="m", group_instance_id=None)
    beats = [await c.handle(ApiKey.HEARTBEAT, 4, body, CONTEXT) for body in (nameless, other)]
    assert [beat.error_code for beat in beats] == [ErrorCode.INVALID_GROUP_ID, ErrorCode.NOT_COORDINATOR]
    await c.stop()


async def test_offsets_of_a_deleted_topic_go() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    await commit(c, "s")
    c.topics_deleted(["t"])
    assert (await fetch(c, "s")).groups[0].topics == []
    await c.stop()


async def test_a_caller_that_gives_up_leaves_the_others_alone() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    waiting = asyncio.create_task(c.handle(ApiKey.JOIN_GROUP, 3, join(), CONTEXT))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.02)
    assert await commit(c, "s") == [0]
    await c.stop()


@pytest.mark.parametrize(
    ("key", "versions"),
    [
        pytest.param(ApiKey.JOIN_GROUP, range(10), marks=pytest.mark.row("3.1/JoinGroup")),
        pytest.param(ApiKey.SYNC_GROUP, range(6), marks=pytest.mark.row("3.1/SyncGroup")),
        pytest.param(ApiKey.HEARTBEAT, range(5), marks=pytest.mark.row("3.1/Heartbeat")),
        pytest.param(ApiKey.LEAVE_GROUP, range(6), marks=pytest.mark.row("3.1/LeaveGroup")),
        pytest.param(ApiKey.OFFSET_COMMIT, range(2, 11), marks=pytest.mark.row("3.1/OffsetCommit")),
        pytest.param(ApiKey.OFFSET_FETCH, range(1, 11), marks=pytest.mark.row("3.1/OffsetFetch")),
        pytest.param(ApiKey.OFFSET_DELETE, range(1), marks=pytest.mark.row("3.1/OffsetDelete")),
        pytest.param(ApiKey.DESCRIBE_GROUPS, range(7), marks=pytest.mark.row("3.1/DescribeGroups")),
        pytest.param(ApiKey.LIST_GROUPS, range(6), marks=pytest.mark.row("3.1/ListGroups")),
        pytest.param(ApiKey.DELETE_GROUPS, range(3), marks=pytest.mark.row("3.1/DeleteGroups")),
    ],
)
async def test_every_version_of_every_api_has_an_answer_that_can_be_written(
    key: ApiKey, versions: range
) -> None:
    log = MemoryLog()
    for group in ("g", "s"):
        member = StoredMember("m", None, "c", "/h", 10, 10_000, b"", b"")
        record = GroupStored(group, "consumer", 1, "range", "m", START_MS, (member,))
        log.append(partition_for(group, 4), [encode(record)], START_MS)
    c = coordinator(log)
    await c.start()
    topics = [SimpleNamespace(name="t", partition_indexes=[0], topic_id=DIRECTORY.id_of_topic("t"))]
    fetching = SimpleNamespace(
        group_id="g", topics=topics, require_stable=False, member_id=None, member_epoch=-1
    )
    fetching.groups = [
        SimpleNamespace(group_id="g", topics=topics, member_id=None, member_epoch=-1),
        SimpleNamespace(group_id="s", topics=None, member_id=None, member_epoch=-1),
    ]
    bodies: dict[ApiKey, Any] = {
        ApiKey.JOIN_GROUP: join(member="unknown"),
        ApiKey.SYNC_GROUP: sync("g", "unknown", 1),
        ApiKey.HEARTBEAT: heartbeat(),
        ApiKey.LEAVE_GROUP: SimpleNamespace(
            group_id="g",
            member_id="unknown",
            members=[SimpleNamespace(member_id="unknown", group_instance_id=None, reason=None)],
        ),
        ApiKey.OFFSET_COMMIT: commit_body("g", {("t", 0): 1}, "m", 1, None, "", -1),
        ApiKey.OFFSET_FETCH: fetching,
        ApiKey.OFFSET_DELETE: delete_body("g", ("t", 0)),
        ApiKey.DESCRIBE_GROUPS: SimpleNamespace(groups=["g", "x"], include_authorized_operations=True),
        ApiKey.CONSUMER_GROUP_DESCRIBE: SimpleNamespace(
            group_ids=["g", "x"], include_authorized_operations=True
        ),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatRequest("new", "m", 0, None, None, 5, ["t"]),
        ApiKey.LIST_GROUPS: SimpleNamespace(states_filter=[], types_filter=[]),
        ApiKey.DELETE_GROUPS: SimpleNamespace(groups_names=["g", "x"]),
    }
    for version in versions:
        reply = await c.handle(key, version, bodies[key], CONTEXT)
        assert len(encode_response(key, version, 1, reply)) > 8
    await c.stop()


async def test_groups_that_somebody_asks_about_leave_nothing_behind_but_a_little() -> None:
    """Their ids may be 32 KB long, and they need not exist."""
    c = coordinator(MemoryLog())
    await c.start()
    tracemalloc.start()
    try:
        await _describe(c, ["g" * 2_000])
        before, _ = tracemalloc.get_traced_memory()
        for number in range(200):
            await _describe(c, [f"{number}{'g' * 2_000}"])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000
    await c.stop()


async def _describe(c: GroupCoordinator, groups: list[str]) -> None:
    body = SimpleNamespace(groups=groups, include_authorized_operations=False)
    answer = await c.handle(ApiKey.DESCRIBE_GROUPS, 5, body, CONTEXT)
    assert [group.group_state for group in answer.groups] == ["Dead"] * len(groups)


async def test_an_id_that_is_given_out_begins_with_the_clients_cut_to_255_characters() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    answer = await c.handle(ApiKey.JOIN_GROUP, 4, join(), RequestContext(client_id="x" * 30_000))
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    client, _, number = answer.member_id.partition("-")
    assert client == "x" * 255
    assert len(number) == 36
    await c.stop()


@pytest.mark.parametrize(("name", "gives_way"), [("DESCRIBE_GROUPS", True), ("DELETE_GROUPS", False)])
async def test_a_question_about_many_groups_lets_others_go_on(
    monkeypatch: pytest.MonkeyPatch, name: str, gives_way: bool
) -> None:
    monkeypatch.setattr(runtime, "_TURN_S", -1.0)
    c = coordinator(MemoryLog())
    await c.start()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    groups = [f"g{number}" for number in range(100)]
    body = SimpleNamespace(groups=groups, groups_names=groups, include_authorized_operations=False)
    await c.handle(ApiKey[name], 2, body, CONTEXT)
    beside.cancel()
    assert (turns >= 100) is gives_way
    await c.stop()
