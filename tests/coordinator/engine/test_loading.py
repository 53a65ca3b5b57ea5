"""Before a shard serves, and after: what is answered meanwhile, what is read back, what is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import CoordinatorEvent, GroupCoordinator, LoadError, OpenTransaction, RecordSkipped
from kohort.coordinator.engine import runtime
from kohort.offsets_topic import OffsetCommitted, encode, partition_for
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from tests.coordinator.bodies import START_MS, commit_body, delete_body
from tests.coordinator.memory_log import (
    CONTEXT,
    Batch,
    MemoryLog,
    commit,
    coordinator,
    fetch,
    heartbeat,
    join,
    stable_member,
    sync,
)


async def unready_answers(c: GroupCoordinator) -> dict[str, int]:
    """What each API answers, heartbeats first because they must not disturb."""
    body = commit_body("g", {("t", 0): 1}, "", -1, None, "", -1)
    delete = delete_body("g", ("t", 0))
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


@pytest.mark.row("3.0/loading", "3.0/fetch-parks", "3.0/list")
async def test_while_loading_each_api_says_what_its_clients_can_live_with() -> None:
    log = MemoryLog(partition_count=1)
    for _ in range(5):
        log.append(0, [encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))] * 2_000, START_MS)
    c = coordinator(log)
    starting = asyncio.create_task(c.start())
    await asyncio.sleep(0)
    fetching = asyncio.create_task(fetch(c, "g"))
    await asyncio.sleep(0)
    answers = await unready_answers(c)
    assert not fetching.done(), "it is parked, not refused"
    expected = dict.fromkeys(answers, 14) | {"Heartbeat": 0, "SyncGroup": 27}
    assert answers == expected
    await starting
    assert (await fetching).groups[0].topics[0].partitions[0].committed_offset == 5
    await c.stop()


async def test_a_topic_that_is_deleted_while_a_shard_loads_is_not_found_in_it_afterwards() -> None:
    log = MemoryLog(partition_count=1)
    for topic in ("t", "u"):
        log.append(0, [encode(OffsetCommitted("g", topic, 0, 5, -1, "", START_MS))] * 3_000, START_MS)
    c = coordinator(log)
    starting = asyncio.create_task(c.start())
    await asyncio.sleep(0)
    c.topics_deleted(["t"])
    c.topics_deleted(["nothing"])
    await starting
    assert [topic.name for topic in (await fetch(c, "g")).groups[0].topics] == ["u"]
    await c.stop()
    again = coordinator(log)
    await again.start()
    assert [topic.name for topic in (await fetch(again, "g")).groups[0].topics] == ["u"]
    await again.stop()


@pytest.mark.row("3.0/inactive")
async def test_when_not_running_nobody_is_served() -> None:
    c = coordinator(MemoryLog())
    assert set((await unready_answers(c)).values()) == {15}
    assert (await fetch(c, "g")).groups[0].error_code == 15
    await c.start()
    await c.stop()
    assert set((await unready_answers(c)).values()) == {15}


@pytest.mark.row("3.0/not-here", "3.0/list", "2.10/unload")
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


@pytest.mark.row("5.8/unload")
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


@pytest.mark.row("5.7/bad-record", "5.2/value")
async def test_a_bad_record_is_left_out_and_reported_and_the_rest_is_loaded() -> None:
    log, notes = MemoryLog(partition_count=1), list[CoordinatorEvent]()
    good = encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))
    log.append(0, [good, (good[0], b"\x00\x09"), (b"\x00", b""), good], START_MS)
    log.batches[0].append(Batch(4, [(4, 0, b"\x00", b"")], control=True))
    c = coordinator(log, notes)
    await c.start()
    skipped = [note for note in notes if isinstance(note, RecordSkipped)]
    assert [(note.group, note.partition, note.offset) for note in skipped] == [("", 0, n) for n in (1, 2, 4)]
    assert skipped[-1].reason == "a control record without its type"
    assert "version 9 is not known" in skipped[0].reason
    assert (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset == 5
    await c.stop()


@pytest.mark.row("5.5/pending", "5.5/commit", "5.5/abort", "10/control")
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


async def test_an_idempotent_producers_plain_batch_counts_at_once_in_an_open_transaction() -> None:
    log = MemoryLog(partition_count=1)
    pending, plain = (encode(OffsetCommitted(group, "t", 0, 9, -1, "", START_MS)) for group in "gh")
    log.batches[0] = [
        Batch(0, [(0, 0, *pending)], producer_id=7, transactional=True),
        Batch(1, [(1, 0, *plain)], producer_id=8),
    ]
    c = coordinator(log)
    await c.start()
    found = (await fetch(c, "g", "h")).groups
    assert [[p.committed_offset for t in g.topics for p in t.partitions] for g in found] == [[], [9]]
    await c.stop()


async def test_a_marker_behind_a_control_record_that_cannot_be_read_still_counts() -> None:
    log = MemoryLog(partition_count=1)
    pending = encode(OffsetCommitted("g", "t", 0, 9, -1, "", START_MS))
    value = bytes.fromhex("000000000009")
    controls = [
        (1, 0, key, value) for key in (None, b"\x00\x00\x00", b"\x00\x00\x00\x05", b"\x00\x00\x00\x01")
    ]
    log.batches[0] = [
        Batch(0, [(0, 0, *pending)], producer_id=7, transactional=True),
        Batch(1, list(controls), producer_id=7, transactional=True, control=True),
    ]
    c = coordinator(log)
    await c.start()
    assert (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset == 9
    await c.stop()


@pytest.mark.row("5.7/bad-batch")
async def test_a_damaged_batch_is_left_out_and_reported_and_the_rest_is_loaded() -> None:
    log, notes = MemoryLog(partition_count=1), list[CoordinatorEvent]()
    log.append(0, [encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))], START_MS)
    log.batches[0].append(Batch(1, [], damage="some.log, position 70: checksum is wrong"))
    log.batches[0].append(Batch(2, [(2, 0, *encode(OffsetCommitted("h", "t", 0, 7, -1, "", START_MS)))]))
    c = coordinator(log, notes)
    await c.start()
    (note,) = [note for note in notes if isinstance(note, RecordSkipped)]
    assert (note.offset, note.reason) == (1, "some.log, position 70: checksum is wrong")
    reply = await fetch(c, "g", "h")
    assert [g.topics[0].partitions[0].committed_offset for g in reply.groups] == [5, 7]
    await c.stop()


@pytest.mark.row("5.7/strict")
async def test_when_told_to_be_strict_it_does_not_start_without_a_record() -> None:
    log = MemoryLog(partition_count=3)
    good = encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))
    log.append(0, [(good[0], b"\x00\x09")] * 2, START_MS)
    log.append(2, [good, (good[0], b"\x00\x09")], START_MS)
    c = coordinator(log)
    c._settings.kohort_offsets_load_strict = True
    with pytest.raises(LoadError) as caught:
        await c.start()
    assert str(caught.value) == (
        "what cannot be read of __consumer_offsets: 2 in partition 0, 1 in partition 2. Restore the files "
        "from a copy, or set kohort.offsets.load.strict=false to leave it out"
    )
    assert caught.value.skipped == {0: 2, 2: 1}
    await c.stop()


@pytest.mark.row("5.7/unreadable")
async def test_a_partition_that_cannot_be_read_is_not_served_for_half_of_it_would_mislead() -> None:
    class Broken(MemoryLog):
        def load(self, partition: int, /) -> Iterator[Batch]:
            yield from super().load(partition)
            if partition == 0:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")

    log, notes = Broken(partition_count=2), list[CoordinatorEvent]()
    here, there = (next(f"g{n}" for n in range(99) if partition_for(f"g{n}", 2) == p) for p in (0, 1))
    for group in (here, there):
        record = encode(OffsetCommitted(group, "t", 0, 5, -1, "", START_MS))
        log.append(partition_for(group, 2), [record], START_MS)
    c = coordinator(log, notes)
    await c.start()
    (note,) = [note for note in notes if isinstance(note, RecordSkipped)]
    assert "the disk is gone" in note.reason
    reply = await fetch(c, here, there)
    assert [g.error_code for g in reply.groups] == [ErrorCode.NOT_COORDINATOR, 0]
    assert await commit(c, here) == [ErrorCode.NOT_COORDINATOR]
    assert await commit(c, there) == [0]
    listing = SimpleNamespace(states_filter=[], types_filter=[])
    listed = await c.handle(ApiKey.LIST_GROUPS, 5, listing, CONTEXT)
    assert [g.group_id for g in listed.groups] == [there]
    c.topics_deleted(["t"])
    await c.stop()


@pytest.mark.row("5.5/exposure", "9/46")
async def test_open_transactions_are_told_with_their_age() -> None:
    log, now = MemoryLog(partition_count=1), [START_MS]
    first, second = (encode(OffsetCommitted("g", "t", p, 9, -1, "", START_MS + p)) for p in (0, 1))
    late = encode(OffsetCommitted("h", "t", 0, 9, -1, "", START_MS + 500))
    log.batches[0] = [
        Batch(0, [(0, 0, *first), (1, 0, *second)], producer_id=7, transactional=True),
        Batch(2, [(2, 0, *late)], producer_id=8, transactional=True),
    ]
    c = coordinator(log, clock_ms=lambda: now[0])
    await c.start()
    oldest = OpenTransaction("g", 7, 60_000, (TopicPartition("t", 0), TopicPartition("t", 1)))
    youngest = OpenTransaction("h", 8, 59_500, (TopicPartition("t", 0),))
    assert c.open_transactions() == [oldest._replace(age_ms=0), youngest._replace(age_ms=0)]
    now[0] += 60_000
    assert c.open_transactions() == [oldest, youngest]
    await c.stop()


async def test_the_oldest_open_transaction_is_told_first_wherever_its_group_is() -> None:
    log, ages = MemoryLog(partition_count=4), {}
    for number, group in enumerate(
        next(f"g{n}" for n in range(99) if partition_for(f"g{n}", 4) == p) for p in range(4)
    ):
        ages[group] = number * 1_000
        record = encode(OffsetCommitted(group, "t", 0, 9, -1, "", START_MS - ages[group]))
        log.batches[number] = [Batch(0, [(0, 0, *record)], producer_id=number, transactional=True)]
    c = coordinator(log, clock_ms=lambda: START_MS)
    await c.start()
    told = [(transaction.group_id, transaction.age_ms) for transaction in c.open_transactions()]
    assert told == sorted(ages.items(), key=lambda item: -item[1])
    await c.stop()


async def test_where_a_group_lives_is_remembered_within_bounds_and_until_a_partition_comes_or_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "_MAX_REMEMBERED", 3)
    c = coordinator(MemoryLog(partition_count=1))
    await c.start()
    for name in ("a", "b", "c", "a", "d", "x" * 101, "a"):
        assert await commit(c, name) == [0]
        assert len(c._shards._by_key) <= 3
        assert all(len(key) <= 100 for key in c._shards._by_key)
    c.unload(0)
    assert await commit(c, "a") == [ErrorCode.NOT_COORDINATOR]
    await c.load(0)
    assert await commit(c, "a") == [0]
    await c.stop()
