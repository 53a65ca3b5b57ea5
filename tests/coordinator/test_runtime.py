"""The coordinator as a broker runs it: batching, timers in real time, stopping, many groups at once."""

from __future__ import annotations

import asyncio
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import GroupCoordinator, MemberGone, Note, ShardLoaded, runner, runtime
from kohort.offsets_topic import (
    GroupStored,
    OffsetCommitted,
    StoredMember,
    encode,
    encode_all,
    partition_for,
)
from kohort.protocol import ApiKey, ErrorCode, KafkaError, RequestContext, encode_response
from tests.coordinator.bodies import DIRECTORY, START_MS, commit_body
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


async def test_requests_that_come_together_share_one_write() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    await c.start()
    outcomes = await asyncio.gather(*(commit(c, f"s{number}") for number in range(50)))
    assert outcomes == [[0]] * 50
    assert [len(batch.records) for batch in log.batches[0]] == [50]
    assert log.flushed == 0
    await c.stop()


async def test_with_a_linger_writes_wait_for_those_that_come_later() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    c._settings.group_coordinator_append_linger_ms = 100
    await c.start()
    first = asyncio.create_task(commit(c, "a"))
    await asyncio.sleep(0.01)
    assert log.batches == {}
    assert list(await asyncio.gather(first, commit(c, "b"))) == [[0], [0]]
    assert [len(batch.records) for batch in log.batches[0]] == [2]
    await c.stop()


@pytest.mark.row("4/offsets.commit.timeout.ms")
async def test_a_slow_write_is_answered_as_what_it_became() -> None:
    class Slow(MemoryLog):
        def append(self, partition: int, records: list[tuple[bytes, bytes | None]], now_ms: int, /) -> int:
            now[0] += 60_000
            return super().append(partition, records, now_ms)

    now = [0]
    c = coordinator(Slow(), clock_ms=lambda: now[0])
    assert c._settings.offsets_commit_timeout_ms < 60_000
    await c.start()
    assert await commit(c, "s", 7) == [0]
    assert (await fetch(c, "s")).groups[0].topics[0].partitions[0].committed_offset == 7
    await c.stop()


async def test_with_fsync_each_write_is_flushed_before_it_is_acknowledged() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log, fsync=True)
    await c.start()
    await asyncio.gather(commit(c, "a"), commit(c, "b"))
    assert log.flushed == 1
    await c.stop()


@pytest.mark.parametrize("sizes", [[10, 10, 300, 10], [10, 300], [300, 10]])
async def test_a_batch_too_large_for_the_log_is_written_one_request_at_a_time(sizes: list[int]) -> None:
    log = MemoryLog(partition_count=1, limit=200)
    c = coordinator(log)
    await c.start()
    outcomes = await asyncio.gather(*(commit(c, f"s{i}", i, "m" * n) for i, n in enumerate(sizes)))
    assert outcomes == [[ErrorCode.UNKNOWN_SERVER_ERROR if n == 300 else 0] for n in sizes]
    assert len(log.batches[0]) == len(sizes) - 1
    await c.stop()
    again = coordinator(log)
    await again.start()
    for place, n in enumerate(sizes):
        found = [t.partitions[0] for t in (await fetch(again, f"s{place}")).groups[0].topics]
        assert [(p.committed_offset, p.metadata) for p in found] == ([] if n == 300 else [(place, "m" * n)])
    await again.stop()


@pytest.mark.parametrize(("room", "batches"), [(0, [2, 2, 1]), (-1, [1] * 5), (1, [2, 2, 1])])
async def test_a_batch_takes_as_many_requests_as_it_has_bytes_for(
    monkeypatch: pytest.MonkeyPatch, room: int, batches: list[int]
) -> None:
    records = [OffsetCommitted("s0", "t", 0, 1, -1, "", START_MS)]
    monkeypatch.setattr(runner, "_BATCH_BYTES", 2 * encode_all(records)[1] + room)
    log = MemoryLog(partition_count=1)
    c = coordinator(log, clock_ms=lambda: START_MS)
    await c.start()
    outcomes = await asyncio.gather(*(commit(c, f"s{number}", number) for number in range(5)))
    assert outcomes == [[0]] * 5
    assert [len(batch.records) for batch in log.batches[0]] == batches
    assert {timestamp for batch in log.batches[0] for _, timestamp, _, _ in batch.records} == {START_MS}
    for number in range(5):
        assert (await fetch(c, f"s{number}")).groups[0].topics[0].partitions[0].committed_offset == number
    await c.stop()


@pytest.mark.parametrize("what", ["the log fails", "the format cannot hold it"])
async def test_a_generation_that_cannot_be_written_starts_over(what: str) -> None:
    log = MemoryLog()
    c = coordinator(log)
    await c.start()
    client = RequestContext("x" * 40_000 if what == "the format cannot hold it" else "c")
    joined = await c.handle(ApiKey.JOIN_GROUP, 3, join(), client)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    if what == "the log fails":
        log.fail = OSError(28, "No space left on device")
    synced = await c.handle(ApiKey.SYNC_GROUP, 5, sync("g", joined.member_id, 1), client)
    assert synced.error_code != 0
    beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", joined.member_id, 1), client)
    assert beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    await c.stop()


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (OSError(28, "No space left on device"), ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_a_log_that_fails_is_told_and_the_next_write_may_succeed(
    failure: Exception, error: ErrorCode
) -> None:
    log = MemoryLog()
    c = coordinator(log)
    await c.start()
    log.fail = failure
    assert await commit(c, "s") == [error]
    log.fail = None
    assert await commit(c, "s", 7) == [0]
    assert (await fetch(c, "s")).groups[0].topics[0].partitions[0].committed_offset == 7
    await c.stop()


async def test_what_the_record_format_cannot_hold_is_refused_alone() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    c._settings.offset_metadata_max_bytes = 40_000
    await c.start()
    outcomes = await asyncio.gather(
        commit(c, "a", metadata="m" * 35_000), commit(c, "n", 2**63), commit(c, "b")
    )
    assert list(outcomes) == [[ErrorCode.UNKNOWN_SERVER_ERROR], [ErrorCode.UNKNOWN_SERVER_ERROR], [0]]
    await c.stop()


async def test_groups_are_counted_by_their_state_and_members_together() -> None:
    log = MemoryLog()
    first = coordinator(log)
    await first.start()
    assert first.group_counts() == ({}, 0)
    for group in ("g", "h"):
        await stable_member(first, group)
    joining = asyncio.create_task(first.handle(ApiKey.JOIN_GROUP, 3, join("g"), CONTEXT))
    for group in ("s1", "s2", "s3"):
        await commit(first, group)
    assert first.group_counts() == ({"Stable": 1, "PreparingRebalance": 1, "Empty": 3}, 3)
    await first.stop()
    await joining
    second = coordinator(log)
    await second.start()
    await fetch(second, "s1")
    assert second.group_counts() == ({"Stable": 2, "Empty": 3}, 2), "whether somebody asked for them or not"
    await second.stop()


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
    log, notes = MemoryLog(), list[Note]()
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


async def test_a_session_ends_in_real_time_and_a_heartbeat_prolongs_it() -> None:
    gone = asyncio.Event()
    c = coordinator(MemoryLog(), on_note=lambda note: gone.set() if isinstance(note, MemberGone) else None)
    await c.start()
    member = await stable_member(c, session_ms=400)
    for _ in range(5):
        await asyncio.sleep(0.1)
        assert (await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", member), CONTEXT)).error_code == 0
    assert not gone.is_set()
    await asyncio.wait_for(gone.wait(), 10)
    beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", member), CONTEXT)
    assert beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
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


async def test_offsets_of_a_deleted_topic_go() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    await commit(c, "s")
    c.topics_deleted(["t"])
    assert (await fetch(c, "s")).groups[0].topics == []
    await c.stop()


async def test_a_listener_that_fails_does_not_stop_the_coordinator() -> None:
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))

    def broken(note: Note) -> None:
        raise RuntimeError(f"cannot take {type(note).__name__}")

    c = coordinator(MemoryLog(), on_note=broken)
    await c.start()
    await stable_member(c)
    await c.stop()
    assert failures
    assert "on_note failed" in failures[0]["message"]


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
    fetching = SimpleNamespace(group_id="g", topics=topics, require_stable=False)
    fetching.groups = [
        SimpleNamespace(group_id="g", topics=topics),
        SimpleNamespace(group_id="s", topics=None),
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
        ApiKey.OFFSET_DELETE: SimpleNamespace(
            group_id="g",
            topics=[SimpleNamespace(name="t", partitions=[SimpleNamespace(partition_index=0)])],
        ),
        ApiKey.DESCRIBE_GROUPS: SimpleNamespace(groups=["g", "x"], include_authorized_operations=True),
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
