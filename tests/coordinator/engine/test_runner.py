"""A shard at work: what is written together, what a failed write becomes, and when timers fire.

Covers: coordinator/engine/shard.py.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import (
    CoordinatorEvent,
    MemberGone,
    RebalanceCompleted,
)
from kohort.coordinator.engine import runner
from kohort.coordinator.engine.runner import Call
from kohort.offsets_topic import (
    OffsetCommitted,
    encode_all,
)
from kohort.protocol import ApiKey, ErrorCode, KafkaError, RequestContext, TopicPartition
from tests.coordinator.bodies import START_MS
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


async def test_requests_that_come_together_share_one_write() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    await c.start()
    outcomes = await asyncio.gather(*(commit(c, f"s{number}") for number in range(50)))
    assert outcomes == [[0]] * 50
    assert [len(batch.records) for batch in log.batches[0]] == [50]
    assert log.flushed == 0
    await c.stop()


async def test_what_follows_from_a_timer_before_the_write_is_part_of_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    await c.start()
    shard, key = next(iter(c._shards)).shard, ("test", "s1")
    record = OffsetCommitted("s1", "t", 0, 5, -1, "", START_MS)
    step = lambda shard, key, _now_ms: shard.append(key[1], (record,))  # noqa: E731
    for fires, sizes in ((step, [2]), (lambda *_: 1 / 0, [2, 1])):
        monkeypatch.setitem(shard.topic.timers, "test", fires)
        shard.timers.start(key, START_MS)
        shard.before_write[key] = "s1"
        assert await commit(c, "s0") == [0]
        assert [len(batch.records) for batch in log.batches[0]] == sizes
    await c.stop()


async def test_a_read_that_came_after_a_rest_is_written_at_its_end_and_others_in_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(runner, "_clock", lambda: now[0])
    writes, written = runner.Writes(), ""

    def read(name: str) -> None:
        def write() -> None:
            nonlocal written
            written += name

        writes.begin_read()
        writes.add(write)
        assert name not in written, "a read may ask for more"
        writes.end_read()

    read("a")
    assert written == "a"
    read("b")
    assert written == "a", "it was one of many that are ready"
    now[0] += 1
    read("c")
    assert written == "a", "it shares the write that waits"
    await asyncio.sleep(0)
    assert written == "abc"
    now[0] += 1
    read("d")
    assert written == "abcd"


async def test_a_write_that_breaks_holds_up_no_other() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    writes = runner.Writes()
    written: list[str] = []

    def broken() -> None:
        raise RuntimeError("it breaks")

    writes.add(broken)
    writes.add(lambda: written.append("b"))
    await asyncio.sleep(0)
    assert written == ["b"]
    assert [str(context["exception"]) for context in reported] == ["it breaks"]
    writes.add(lambda: written.append("c"))
    await asyncio.sleep(0)
    assert written == ["b", "c"]


async def test_with_a_linger_writes_wait_for_those_that_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    c._shards._linger_ms = 100
    await c.start()
    timers: list[tuple[Any, ...]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda *timer: timers.append(timer))
    commits = []
    for group in ("a", "b"):
        commits.append(asyncio.create_task(commit(c, group)))
        await asyncio.sleep(0)
    assert log.batches == {}
    [(seconds, write)] = timers
    assert seconds == 0.1
    write()
    assert await asyncio.gather(*commits) == [[0], [0]]
    assert [len(batch.records) for batch in log.batches[0]] == [2]
    await c.stop()


@pytest.mark.parametrize("ends", ["next write", "moment later", "stop"])
async def test_the_first_record_of_a_group_for_which_nobody_waits_goes_out_with_the_next(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    await c.start()
    timers: list[tuple[float, Any]] = []
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "call_later", lambda *timer: timers.append(timer[:2]))
        named = await c.handle(ApiKey.JOIN_GROUP, 9, join(), CONTEXT)
        await asyncio.sleep(0)
    assert log.batches == {}
    [write] = [write for seconds, write in timers if seconds == runner._LAZY_S]
    if ends == "next write":
        joined = await c.handle(ApiKey.JOIN_GROUP, 9, join("g", named.member_id), CONTEXT)
        synced = await c.handle(
            ApiKey.SYNC_GROUP, 5, sync("g", named.member_id, joined.generation_id), CONTEXT
        )
        assert synced.assignment == b"share"
    elif ends == "moment later":
        write()
    else:
        await c.stop()
    assert [len(batch.records) for batch in log.batches[0]] == [2 if ends == "next write" else 1]
    write()
    assert len(log.batches[0]) == 1
    await c.stop()


@pytest.mark.row("4/offsets.commit.timeout.ms")
async def test_a_slow_write_is_answered_as_what_it_became() -> None:
    class Slow(MemoryLog):
        def flush(self, _partition: int, /) -> None:
            now[0] += 60_000

    now = [0]
    c = coordinator(Slow(), clock_ms=lambda: now[0], fsync=True)
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
async def test_a_batch_too_large_for_the_log_is_halved_until_it_fits(sizes: list[int]) -> None:
    log = MemoryLog(partition_count=1, limit=200)
    c = coordinator(log)
    await c.start()
    outcomes = await asyncio.gather(*(commit(c, f"s{i}", i, "m" * n) for i, n in enumerate(sizes)))
    assert outcomes == [[ErrorCode.UNKNOWN_SERVER_ERROR if n == 300 else 0] for n in sizes]
    assert sum(len(batch.records) for batch in log.batches[0]) == len(sizes) - 1
    await c.stop()
    again = coordinator(log)
    await again.start()
    for place, n in enumerate(sizes):
        found = [t.partitions[0] for t in (await fetch(again, f"s{place}")).groups[0].topics]
        assert [(p.committed_offset, p.metadata) for p in found] == ([] if n == 300 else [(place, "m" * n)])
    await again.stop()


async def test_what_builds_on_a_write_that_is_too_large_is_not_written() -> None:
    log = MemoryLog(partition_count=1, limit=200)
    c = coordinator(log)
    await c.start()
    told: list[tuple[int, int]] = []

    undone: list[int] = []

    def append(shard: Any, size: int, *, undo: bool) -> None:
        record = OffsetCommitted("g", "t", 0, size, -1, "m" * size, START_MS)
        then = undone.append if undo else None
        shard.append("g", (record,), lambda e, _: told.append((size, int(e))), undo=then)

    def step(shard: Any, _now_ms: int) -> None:
        append(shard, 1, undo=True)
        append(shard, 300, undo=True)
        append(shard, 2, undo=False)

    c.steer("g", step)
    await asyncio.sleep(0.05)
    assert told == [(1, 0), (300, ErrorCode.MESSAGE_TOO_LARGE), (2, ErrorCode.MESSAGE_TOO_LARGE)]
    assert len(undone) == 1
    assert sum(len(batch.records) for batch in log.batches[0]) == 1
    await c.stop()


@pytest.mark.parametrize(("room", "batches"), [(0, [2, 1, 2]), (-1, [1] * 5), (1, [2, 1, 2])])
async def test_a_batch_has_no_more_requests_than_it_has_bytes_for(
    monkeypatch: pytest.MonkeyPatch, room: int, batches: list[int]
) -> None:
    records = [OffsetCommitted("s0", "t", 0, 1, -1, "", START_MS, -1, bytes(range(16)))]
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
        entry = next(iter(c._shards)).shard.state.durable.offset(f"s{number}", TopicPartition("t", 0))
        assert entry is not None
        assert entry.record_offset == number, "where its record lies in the log"
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


async def test_a_session_ends_in_real_time_and_a_heartbeat_prolongs_it() -> None:
    gone = asyncio.Event()
    c = coordinator(MemoryLog(), on_event=lambda note: gone.set() if isinstance(note, MemberGone) else None)
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


async def test_when_the_clock_has_jumped_what_became_due_is_done_at_once_and_once() -> None:
    now = [START_MS]
    c = coordinator(MemoryLog(), clock_ms=lambda: now[0])
    c.open()
    c.time_moved()
    await c.load_all()
    member = await stable_member(c)
    c.time_moved()
    assert (await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", member), CONTEXT)).error_code == 0
    now[0] += 10_000
    c.time_moved()
    assert [type(entry.event) for entry in c.history("g")][-2:] == [MemberGone, RebalanceCompleted]
    beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("g", member), CONTEXT)
    assert beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    await c.stop()


async def test_a_timer_fires_when_all_is_handled_that_had_arrived_when_it_was_due() -> None:
    """A process that was held up finds what was in time in its sockets, some turns of the loop later."""
    now, loop = [START_MS], asyncio.get_running_loop()
    c = coordinator(MemoryLog(partition_count=1), clock_ms=lambda: now[0])
    await c.start()
    early, late, silent = [await stable_member(c, group) for group in ("early", "late", "silent")]
    now[0] += 1
    beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat("late", late), CONTEXT)
    assert beat.error_code == 0
    (shard,) = c._shards
    now[0] += 9_999
    shard._wake_up()

    def read(group: str, member: str) -> None:
        c.submit(ApiKey.HEARTBEAT, 4, heartbeat(group, member), CONTEXT, Call())

    loop.call_soon(loop.call_soon, read, "early", early)
    await asyncio.sleep(0)
    # it is held up once more, beyond what was due in the first place
    now[0] += 5_000
    for _ in range(runner.READ_TURNS):
        await asyncio.sleep(0)
    read("late", late)
    for group, member, error in (("early", early, 0), ("late", late, 0), ("silent", silent, 25)):
        beat = await c.handle(ApiKey.HEARTBEAT, 4, heartbeat(group, member), CONTEXT)
        assert beat.error_code == error, group
    await c.stop()


async def test_what_a_request_sets_for_now_is_done_in_the_next_turn() -> None:
    c = coordinator(MemoryLog(partition_count=1), clock_ms=lambda: START_MS)
    await c.start()
    first = await c.handle(ApiKey.JOIN_GROUP, 9, join(), CONTEXT)
    joined = Call()
    c.submit(ApiKey.JOIN_GROUP, 9, join(member=first.member_id), CONTEXT, joined)
    await asyncio.sleep(0)
    assert joined.body.generation_id == 1, "the initial delay is 0"
    await c.stop()


async def test_between_many_timers_that_are_due_at_once_others_have_their_turn() -> None:
    now, step = [START_MS], [0]

    def clock_ms() -> int:
        now[0] += step[0]
        return now[0]

    c = coordinator(MemoryLog(partition_count=1), clock_ms=clock_ms)
    await c.start()
    groups = [f"g{number}" for number in range(9)]
    for group in groups:
        await stable_member(c, group)
    now[0] += 10_000
    # each timer takes so long
    step[0] = runner._TIMERS_MS // 2
    c.time_moved()
    assert 0 < c.group_counts()[1] < len(groups)
    for _ in groups:
        await asyncio.sleep(0.001)
    assert c.group_counts()[1] == 0
    await c.stop()


async def test_a_listener_that_fails_does_not_stop_the_coordinator() -> None:
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))

    def broken(note: CoordinatorEvent) -> None:
        raise RuntimeError(f"cannot take {type(note).__name__}")

    c = coordinator(MemoryLog(), on_event=broken)
    await c.start()
    await stable_member(c)
    await c.stop()
    assert failures
    assert "on_event failed" in failures[0]["message"]


@pytest.mark.parametrize("linger_ms", [-1, 10_000])
async def test_what_goes_with_a_deleted_topic_is_on_the_disk_before_anybody_can_forget_it(
    linger_ms: int,
) -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    await c.start()
    await commit(c, "g", 7)
    next(iter(c._shards)).linger_ms = linger_ms
    c.topics_deleted(["nothing"])
    assert log.flushed == 0
    c.topics_deleted(["t"])
    assert log.flushed == 1
    assert [value for *_, value in log.batches[0][-1].records] == [None]
    await c.stop()


async def test_so_it_is_when_the_deletion_is_finished_after_a_restart() -> None:
    log = MemoryLog(partition_count=1)
    before = coordinator(log)
    await before.start()
    await commit(before, "g", 7)
    await before.stop()
    c = coordinator(log)
    c.open()
    c.topics_deleted(["t"])
    await c.load_all()
    assert log.flushed == 1
    assert [value for *_, value in log.batches[0][-1].records] == [None]
    await c.stop()


async def test_what_waited_for_the_last_write_of_a_partition_is_refused_and_not_written() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log)
    await c.start()
    committing = asyncio.create_task(commit(c, "s", 7))
    deletion = SimpleNamespace(groups_names=["s"])
    deleting = asyncio.create_task(c.handle(ApiKey.DELETE_GROUPS, 2, deletion, CONTEXT))
    shard = next(iter(c._shards)).shard
    await asyncio.sleep(0)
    assert shard.deferred()
    await c.load(0)
    assert await committing == [0]
    assert (await deleting).results[0].error_code == ErrorCode.NOT_COORDINATOR
    assert [len(batch.records) for batch in log.batches[0]] == [1]
    await c.stop()
