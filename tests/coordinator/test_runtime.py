"""The coordinator as a broker runs it: batching, timers in real time, loading, stopping, many groups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import (
    GroupCoordinator,
    GroupSettings,
    MemberGone,
    Note,
    RecordSkipped,
    ShardLoaded,
)
from kohort.offsets_topic import GroupStored, OffsetCommitted, StoredMember, encode, partition_for
from kohort.protocol import ApiKey, ErrorCode, KafkaError, RequestContext, encode_response
from tests.coordinator.driver import DIRECTORY, RANGE_T, START_MS, commit_body

CONTEXT = RequestContext("c")


@dataclass
class Batch:
    base_offset: int
    records: list[tuple[int, int, bytes | None, bytes | None]]
    producer_id: int = -1
    transactional: bool = False
    control: bool = False


@dataclass
class MemoryLog:
    """The offsets topic in memory; ``limit`` is the most bytes a batch may have."""

    partition_count: int = 4
    limit: int = 1 << 20
    fail: Exception | None = None
    batches: dict[int, list[Batch]] = field(default_factory=dict)
    flushed: int = 0

    def append(self, partition: int, records: list[tuple[bytes, bytes | None]], now_ms: int, /) -> int:
        if self.fail is not None:
            raise self.fail
        if sum(len(key) + len(value or b"") for key, value in records) > self.limit:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "the batch is too large")
        batches = self.batches.setdefault(partition, [])
        base = batches[-1].base_offset + len(batches[-1].records) if batches else 0
        rows = [(base + i, now_ms, key, value) for i, (key, value) in enumerate(records)]
        batches.append(Batch(base, list(rows)))
        return base

    def load(self, partition: int, /) -> Iterator[Batch]:
        yield from list(self.batches.get(partition, []))

    def flush(self, partition: int, /) -> None:
        assert self.batches[partition]
        self.flushed += 1


def coordinator(log: MemoryLog, notes: list[Note] | None = None, **options: Any) -> GroupCoordinator:
    if notes is not None:
        options["on_note"] = notes.append
    return GroupCoordinator(
        settings=GroupSettings(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=1),
        store=log,
        partition_count_of=DIRECTORY.partition_count_of,
        topic_of_id=DIRECTORY.topic_of_id,
        id_of_topic=DIRECTORY.id_of_topic,
        **options,
    )


def join(group: str = "g", member: str = "", session_ms: int = 10_000) -> SimpleNamespace:
    return SimpleNamespace(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=RANGE_T,
        reason=None,
    )


def sync(group: str, member: str, generation: int) -> SimpleNamespace:
    return SimpleNamespace(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SimpleNamespace(member_id=member, assignment=b"share")],
    )


def heartbeat(group: str = "g", member: str = "m", generation: int = 1) -> SimpleNamespace:
    return SimpleNamespace(group_id=group, generation_id=generation, member_id=member, group_instance_id=None)


async def commit(c: GroupCoordinator, group: str, offset: int = 1, metadata: str = "") -> list[int]:
    body = commit_body(group, {("t", 0): offset}, "", -1, None, metadata, -1)
    reply = await c.handle(ApiKey.OFFSET_COMMIT, 9, body, CONTEXT)
    return [int(p.error_code) for topic in reply.topics for p in topic.partitions]


async def fetch(c: GroupCoordinator, *groups: str, version: int = 9) -> Any:
    body = SimpleNamespace(
        groups=[SimpleNamespace(group_id=group, topics=None) for group in groups], require_stable=False
    )
    return await c.handle(ApiKey.OFFSET_FETCH, version, body, CONTEXT)


async def stable_member(c: GroupCoordinator, group: str = "g", session_ms: int = 10_000) -> str:
    first = await c.handle(ApiKey.JOIN_GROUP, 9, join(group, session_ms=session_ms), CONTEXT)
    member: str = first.member_id
    joined = await c.handle(ApiKey.JOIN_GROUP, 9, join(group, member, session_ms), CONTEXT)
    synced = await c.handle(ApiKey.SYNC_GROUP, 5, sync(group, member, joined.generation_id), CONTEXT)
    assert (joined.error_code, synced.error_code, synced.assignment) == (0, 0, b"share")
    return member


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


async def test_with_fsync_each_write_is_flushed_before_it_is_acknowledged() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log, fsync=True)
    await c.start()
    await asyncio.gather(commit(c, "a"), commit(c, "b"))
    assert log.flushed == 1
    await c.stop()


async def test_a_batch_too_large_for_the_log_is_written_one_request_at_a_time() -> None:
    log = MemoryLog(partition_count=1, limit=200)
    c = coordinator(log)
    await c.start()
    sizes = [10, 10, 300, 10]
    outcomes = await asyncio.gather(*(commit(c, f"s{i}", metadata="m" * n) for i, n in enumerate(sizes)))
    assert outcomes == [[0], [0], [ErrorCode.UNKNOWN_SERVER_ERROR], [0]]
    assert len(log.batches[0]) == 3
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
    outcomes = await asyncio.gather(commit(c, "a", metadata="m" * 35_000), commit(c, "b"))
    assert list(outcomes) == [[ErrorCode.UNKNOWN_SERVER_ERROR], [0]]
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


async def unready_answers(c: GroupCoordinator) -> dict[str, int]:
    """What each API answers, heartbeats first because they must not disturb."""
    body = commit_body("g", {("t", 0): 1}, "", -1, None, "", -1)
    delete = SimpleNamespace(
        group_id="g",
        topics=[SimpleNamespace(name="t", partitions=[SimpleNamespace(partition_index=0)])],
    )
    leaving = SimpleNamespace(group_id="g", members=[])
    described = SimpleNamespace(groups=["g"], include_authorized_operations=False)
    names = SimpleNamespace(groups_names=["g"])
    listing = SimpleNamespace(states_filter=[], types_filter=[])

    async def ask(key: ApiKey, version: int, asked: Any) -> Any:
        return await c.handle(key, version, asked, CONTEXT)

    return {
        "Heartbeat": (await ask(ApiKey.HEARTBEAT, 4, heartbeat())).error_code,
        "JoinGroup": (await ask(ApiKey.JOIN_GROUP, 9, join())).error_code,
        "SyncGroup": (await ask(ApiKey.SYNC_GROUP, 5, sync("g", "m", 1))).error_code,
        "LeaveGroup": (await ask(ApiKey.LEAVE_GROUP, 5, leaving)).error_code,
        "OffsetCommit": (await ask(ApiKey.OFFSET_COMMIT, 9, body)).topics[0].partitions[0].error_code,
        "OffsetDelete": (await ask(ApiKey.OFFSET_DELETE, 0, delete)).error_code,
        "DescribeGroups": (await ask(ApiKey.DESCRIBE_GROUPS, 5, described)).groups[0].error_code,
        "DeleteGroups": (await ask(ApiKey.DELETE_GROUPS, 2, names)).results[0].error_code,
        "ListGroups": (await ask(ApiKey.LIST_GROUPS, 5, listing)).error_code,
    }


async def test_while_loading_each_api_says_what_its_clients_can_live_with() -> None:
    log = MemoryLog(partition_count=1)
    log.append(0, [encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))] * 3_000, START_MS)
    c = coordinator(log)
    starting = asyncio.create_task(c.start())
    await asyncio.sleep(0)
    fetching = asyncio.create_task(fetch(c, "g"))
    answers = await unready_answers(c)
    assert not fetching.done(), "it is parked, not refused"
    expected = dict.fromkeys(answers, 14) | {"Heartbeat": 0, "SyncGroup": 27}
    assert answers == expected
    await starting
    assert (await fetching).groups[0].topics[0].partitions[0].committed_offset == 5
    await c.stop()


async def test_when_not_running_nobody_is_served() -> None:
    c = coordinator(MemoryLog())
    assert set((await unready_answers(c)).values()) == {15}
    assert (await fetch(c, "g")).groups[0].error_code == 15
    await c.start()
    await c.stop()
    assert set((await unready_answers(c)).values()) == {15}


async def test_a_partition_given_up_is_not_ours_until_it_is_loaded_again() -> None:
    c = coordinator(MemoryLog(partition_count=1))
    await c.start()
    await commit(c, "g", 9)
    joining = asyncio.create_task(c.handle(ApiKey.JOIN_GROUP, 3, join(), CONTEXT))
    await asyncio.sleep(0)
    c.unload(0)
    assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
    answers = await unready_answers(c)
    assert answers.pop("ListGroups") == 0
    assert set(answers.values()) == {16}
    await c.load(0)
    assert (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset == 9
    await c.stop()


async def test_stopping_writes_what_is_pending_and_answers_who_waits() -> None:
    log = MemoryLog()
    c = coordinator(log)
    await c.start()
    member = await stable_member(c)
    committing = asyncio.create_task(commit(c, "s", 3))
    joining = asyncio.create_task(c.handle(ApiKey.JOIN_GROUP, 3, join(), CONTEXT))
    await asyncio.sleep(0)
    await c.stop()
    assert await committing == [0]
    assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
    assert sum(len(batch.records) for batches in log.batches.values() for batch in batches) == 3
    assert member


async def test_a_bad_record_is_left_out_and_reported_and_the_rest_is_loaded() -> None:
    log, notes = MemoryLog(partition_count=1), list[Note]()
    good = encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))
    log.append(0, [good, (good[0], b"\x00\x09"), (b"\x00", b""), good], START_MS)
    log.batches[0].append(Batch(4, [(4, 0, b"\x00", b"")], control=True))
    c = coordinator(log, notes)
    await c.start()
    skipped = [note for note in notes if isinstance(note, RecordSkipped)]
    assert [(note.partition, note.offset) for note in skipped] == [(0, 1), (0, 2), (0, 4)]
    assert "version 9 is not known" in skipped[0].reason
    assert (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset == 5
    await c.stop()


async def test_transactions_in_the_log_count_from_their_marker_on() -> None:
    log = MemoryLog(partition_count=1)

    def pending(group: str, base: int, producer: int) -> Batch:
        key, value = encode(OffsetCommitted(group, "t", 0, 9, -1, "", START_MS))
        return Batch(base, [(base, 0, key, value)], producer_id=producer, transactional=True)

    def marker(kind: int, base: int, producer: int) -> Batch:
        key = b"\x00\x00" + kind.to_bytes(2, "big")
        record = (base, 0, key, bytes.fromhex("000000000009"))
        return Batch(base, [record], producer, transactional=True, control=True)

    log.batches[0] = [
        pending("committed", 0, 1),
        pending("aborted", 1, 2),
        pending("open", 2, 3),
        marker(1, 3, 1),
        marker(0, 4, 2),
    ]
    c = coordinator(log)
    await c.start()
    reply = await fetch(c, "committed", "aborted", "open")
    found = [[p.committed_offset for t in g.topics for p in t.partitions] for g in reply.groups]
    assert found == [[9], [], []]
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
        (ApiKey.JOIN_GROUP, range(10)),
        (ApiKey.SYNC_GROUP, range(6)),
        (ApiKey.HEARTBEAT, range(5)),
        (ApiKey.LEAVE_GROUP, range(6)),
        (ApiKey.OFFSET_COMMIT, range(2, 11)),
        (ApiKey.OFFSET_FETCH, range(1, 11)),
        (ApiKey.OFFSET_DELETE, range(1)),
        (ApiKey.DESCRIBE_GROUPS, range(7)),
        (ApiKey.LIST_GROUPS, range(6)),
        (ApiKey.DELETE_GROUPS, range(3)),
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
