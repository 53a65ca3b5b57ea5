"""Share partitions on a broker's own logs: loading, waiting, writes behind, locks, lost leadership, leaving
memory.

Covers: broker/share/led_partition.py, broker/share/persister.py, broker/metrics/_shares.py.
Covers: share_partitions/rules.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kohort.broker import Broker
from kohort.broker.event_loop import time_slices
from kohort.broker.metrics import ShareCounters, TallyFigures
from kohort.broker.partitions.partition import Partition, Waiter
from kohort.broker.share import share_leader
from kohort.broker.share.led_partition import Asking, LedPartition
from kohort.broker.share.persister import ShareKey, StateId, StoredPartition
from kohort.broker.share.share_events import ShareRecordsRejected
from kohort.broker.share.share_leader import FEW_BYTES, MOST_UNSENT_BYTES, ShareLeader, ShareLink
from kohort.broker.share.share_watch import ShareHistory
from kohort.coordinator import CoordinatorEvent
from kohort.protocol import ErrorCode, EventName, KafkaError
from kohort.share_partitions import (
    CLOSING_EPOCH,
    AcknowledgedRange,
    ShareLimits,
    SharePartition,
    ShareRules,
    StateBatch,
    StoredState,
    TopicPlace,
)
from tests.broker.share.memory_persister import MemoryPersister
from tests.broker.wire import batch

ACCEPT, RELEASE, REJECT = 1, 2, 3
EARLIEST = ShareRules(start="earliest")


class World:
    """A broker with the topic ``t``, of one partition in most tests, and its share partitions."""

    def __init__(self, broker: Broker) -> None:
        self.node = broker._require_running().node
        self.persister = MemoryPersister()
        self.rules = EARLIEST
        self.in_doubt = False
        self.told: list[CoordinatorEvent] = []
        self.leader = ShareLeader(
            self.persister,
            lambda _group: self.rules,
            self.node.long_work.run,
            self.node.now_ms,
            ShareCounters(),
            lambda _partition: self.in_doubt,
            ShareHistory(10, self.node.now_ms, self.told.append),
        )
        self.link = ShareLink(self.leader)

    @property
    def partition(self) -> Partition:
        return self.node.logs.partition("t", 0)

    @property
    def key(self) -> ShareKey:
        return ShareKey("g", self.partition.topic.id, 0)

    def write(self, *sizes: int) -> None:
        for size in sizes:
            self.partition.append(bytearray(batch(size)), now_ms=self.node.now_ms())

    async def load(self) -> LedPartition:
        """Open a session of the member ``m`` if there is none, and wait for the share partition."""
        if self.leader.sessions.find("g", "m") is None:
            self.open("m")
        led = self.leader.lead(self.key, self.partition)
        await until(lambda: led.records is not None or led.error is not None)
        return led

    def open(self, member: str, link: ShareLink | None = None) -> None:
        session = self.leader.open_session("g", member, 10, link or self.link)
        self.leader.sessions.update(session, [TopicPlace(self.partition.topic.id, 0)], ())


Body = Callable[[World], Awaitable[None]]


def on_broker(
    body: Body,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    *,
    partition_count: int = 1,
) -> None:
    """Run a test on a broker's loop."""

    async def run() -> None:
        async with Broker() as broker:
            await broker.topics.create("t", partition_count, {})
            world = World(broker)
            try:
                await body(world)
            finally:
                await world.leader.stop()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(run())


async def until(is_met: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_met():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def ask(member: str, most: int = 500, **more: object) -> Asking:
    fields = {"most_bytes": 1 << 20, "batch_size": 500, "strict": False, "at_least_one": True}
    return Asking(member, most, **fields | more)  # type: ignore[arg-type]


def test_a_leader_that_finds_all_done_stores_where_the_group_is_by_then() -> None:
    async def body(world: World) -> None:
        world.write(3)
        batches = [StateBatch(1, 2, StoredState.ACKNOWLEDGED, 1)]
        world.persister.states[world.key] = StoredPartition(StateId(1), 1, batches)
        led = await world.load()
        await until(lambda: bool(world.persister.writes))
        assert world.persister.writes == [(world.key, 3, 0, [])]
        assert led.records is not None
        assert led.records.start_offset == 3

    on_broker(body)


@pytest.mark.parametrize("stored", [StoredPartition(StateId(1), -1, ()), StoredPartition(StateId(1), 1, ())])
def test_a_leader_that_takes_over_has_nothing_else_to_store(stored: StoredPartition) -> None:
    async def body(world: World) -> None:
        world.write(3)
        world.persister.states[world.key] = stored
        led = await world.load()
        assert led.is_idle

    on_broker(body)


def take(led: LedPartition, member: str, most: int = 500, **more: object) -> list[tuple[int, int, int]]:
    """Have a member fetch; return what it was given."""
    given = led.acquire(ask(member, most, **more))
    return [] if given is None else [(first, last, count) for first, last, count in given.ranges]


async def say(led: LedPartition, member: str, first: int, last: int, kind: int) -> KafkaError | None:
    stored = await led.acknowledge(member, [AcknowledgedRange(first, last, [kind])])
    return None if stored is None else await stored


def test_what_is_stored_is_read_with_the_leader_epoch_and_goes_on() -> None:
    async def body(world: World) -> None:
        world.write(10, 10)
        done = StateBatch(6, 9, StoredState.ACKNOWLEDGED, 1)
        world.persister.states[world.key] = StoredPartition(StateId(7), 5, [done])
        led = await world.load()
        assert world.persister.leader_epochs[world.key] == world.partition.leader_epoch
        assert take(led, "m") == [(5, 5, 1), (10, 19, 1)]
        assert await say(led, "m", 5, 5, ACCEPT) is None
        assert world.persister.writes == [
            (world.key, 5, 5, [StateBatch(5, 5, StoredState.ACKNOWLEDGED, 1)])
        ], "the start offset as it was before, and what is done from there on"

    on_broker(body)


@pytest.mark.parametrize(
    ("start", "first"),
    [("latest", 6), ("earliest", 2), (0, 6), (1_000_000_000_000_000, 2)],
)
def test_a_share_partition_that_was_never_read_begins_by_the_groups_rule(start: object, first: int) -> None:
    async def body(world: World) -> None:
        world.write(2, 4)
        world.partition.delete_records(2, now_ms=world.node.now_ms())
        world.rules = ShareRules(start=start)  # type: ignore[arg-type]
        led = await world.load()
        assert led.records is not None
        assert led.records.start_offset == first

    on_broker(body)


@pytest.mark.parametrize("start", ["latest", 0])
def test_records_that_were_given_and_not_acknowledged_come_again_wherever_the_rule_begins_by_then(
    start: object,
) -> None:
    async def body(world: World) -> None:
        world.write(2)
        world.rules = ShareRules(start=start)  # type: ignore[arg-type]
        led = await world.load()
        world.write(4)
        assert take(led, "m") == [(2, 5, 1)]
        # its leader is killed
        led.give_up(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert take(await world.load(), "m") == [(2, 5, 1)]

    on_broker(body)


def test_a_share_partition_whose_beginning_cannot_be_stored_gives_nothing() -> None:
    async def body(world: World) -> None:
        world.rules = ShareRules(start="latest")
        world.persister.states[world.key] = StoredPartition(StateId(2), -1, ())
        world.persister.write_refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")
        led = await world.load()
        assert led.records is None
        with pytest.raises(KafkaError, match="full"):
            led.acquire(ask("m"))
        world.persister.write_refusal = None
        assert (await world.load()).records is not None

    on_broker(body)


def test_changes_made_during_a_write_go_together_in_the_next() -> None:
    async def body(world: World) -> None:
        world.write(10)
        led = await world.load()
        take(led, "m")
        world.persister.may_write.clear()
        said = [
            await led.acknowledge("m", [AcknowledgedRange(each, each, [ACCEPT])]) for each in (0, 5, 1, 2)
        ]
        await asyncio.sleep(0.02)
        world.persister.may_write.set()
        assert [await stored for stored in said if stored is not None] == [None] * 4
        assert [
            (start, done, [tuple(b)[:2] for b in rows]) for _, start, done, rows in world.persister.writes
        ] == [(0, 4, [(0, 0), (1, 1), (2, 2), (5, 5)])]
        assert led.records is not None
        assert led.records.start_offset == 3

    on_broker(body)


def test_other_work_runs_while_very_many_ranges_are_acknowledged_and_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time_slices, "SLICE_S", -1.0)
    types, turns = [ACCEPT, RELEASE] * 2_000, 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def body(world: World) -> None:
        world.write(len(types))
        led = await world.load()
        take(led, "m")
        counting = asyncio.create_task(count_turns())
        stored = await led.acknowledge("m", [AcknowledgedRange(0, len(types) - 1, types)])
        counting.cancel()
        assert turns >= 3
        assert stored is not None
        assert await stored is None
        assert [len(rows) for _, _, _, rows in world.persister.writes] == [1_000] * 4
        assert led.records is not None
        assert (led.records.start_offset, led.records.done_count) == (1, 1_999)

    on_broker(body)


def test_an_acknowledgement_that_is_given_up_halfway_leaves_the_member_what_it_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time_slices, "SLICE_S", 0.0)

    async def body(world: World) -> None:
        world.write(4_000)
        led = await world.load()
        take(led, "m")
        said = [AcknowledgedRange(0, 3_999, [ACCEPT, RELEASE] * 2_000)]
        saying = asyncio.create_task(led.acknowledge("m", said))
        await asyncio.sleep(0)
        assert led.records is not None
        assert led.records.acquired_by("m") < 4_000
        saying.cancel()
        await asyncio.wait([saying])
        assert led.records.acquired_by("m") == 4_000

    on_broker(body)


def test_a_write_that_fails_is_undone_and_told() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        world.persister.refusal = KafkaError(ErrorCode.NOT_COORDINATOR)
        failed = await say(led, "m", 0, 3, ACCEPT)
        assert failed is not None
        assert failed.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.persister.refusal = None
        assert await say(led, "m", 0, 3, ACCEPT) is None
        assert world.leader.find(world.key) is led

    on_broker(body)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        # its state was deleted, and may begin anew elsewhere
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_whoever_is_fenced_gives_the_share_partition_up_and_reads_it_anew(
    code: ErrorCode, told: ErrorCode
) -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        world.persister.refusal = KafkaError(code)
        failed = await say(led, "m", 0, 3, ACCEPT)
        assert failed is not None
        assert failed.code is told
        assert world.leader.find(world.key) is None
        world.persister.refusal = None
        with pytest.raises(KafkaError):
            led.acquire(ask("m"))
        assert take(await world.load(), "m") == [(0, 3, 1)]

    on_broker(body)


def test_a_write_whose_end_nobody_expected_keeps_nobody_waiting_and_the_share_partition_is_read_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("nobody expected it")

    async def body(world: World) -> None:
        world.write(4, 4)
        led = await world.load()
        take(led, "m", 4)
        take(led, "n", 4)
        world.persister.may_write.clear()
        first = await led.acknowledge("m", [AcknowledgedRange(0, 3, [ACCEPT])])
        await asyncio.sleep(0)
        # it waits behind the first
        second = await led.acknowledge("n", [AcknowledgedRange(4, 7, [ACCEPT])])
        assert first is not None
        assert second is not None
        with monkeypatch.context() as context:
            context.setattr(SharePartition, "complete", fail)
            world.persister.may_write.set()
            told = [await asyncio.wait_for(stored, 10) for stored in (first, second)]
        assert [each and each.code for each in told] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        assert "cannot go on, and is read anew" in caplog.text
        # what the first had said is stored
        assert take(await world.load(), "m") == [(4, 7, 1)]

    on_broker(body)


async def test_whoever_waits_for_a_write_is_told_when_the_broker_stops() -> None:
    async with Broker() as broker:
        await broker.topics.create("t", 1, {})
        world = World(broker)
        world.write(4)
        led = await world.load()
        take(led, "m")
        world.persister.may_write.clear()
        stored = await led.acknowledge("m", [AcknowledgedRange(0, 3, [ACCEPT])])
        await asyncio.sleep(0)
        await world.leader.stop()
        assert stored is not None
        failed = await asyncio.wait_for(stored, 10)
        assert failed is not None
        assert failed.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_state_that_cannot_be_read_is_an_error_until_it_can(code: ErrorCode, told: ErrorCode) -> None:
    async def body(world: World) -> None:
        world.persister.refusal = KafkaError(code)
        led = await world.load()
        with pytest.raises(KafkaError) as refused:
            led.has_news()
        assert refused.value.code is told
        assert world.leader.find(world.key) is None
        world.persister.refusal = None
        assert (await world.load()).records is not None

    on_broker(body)


def test_whoever_waits_is_told_of_records_releases_ends_of_locks_and_moved_starts() -> None:
    async def body(world: World) -> None:
        world.rules = ShareRules(ShareLimits(lock_ms=100), start="earliest")
        led = await world.load()
        for change in ("records", "release", "lock", "start", "taken back"):
            waiter: Waiter[LedPartition] = Waiter()
            led.watch(waiter)
            if change == "records":
                world.write(4)
            elif change == "release":
                take(led, "m")
                led.watch(waiter)
                await led.acknowledge("m", [AcknowledgedRange(0, 3, [RELEASE])])
            elif change == "lock":
                take(led, "m")
            elif change == "start":
                world.partition.delete_records(2, now_ms=world.node.now_ms())
            else:
                given = led.acquire(ask("m"))
                assert given is not None
                led.take_back("m", given.ranges)
            async with asyncio.timeout(5):
                assert await waiter.wait_changed() == [led], change
            assert led.has_news(), change
            led.leave(waiter)

    on_broker(body)


def test_a_change_wakes_the_longest_wait_only_and_the_next_when_that_left_something() -> None:
    async def body(world: World) -> None:
        led = await world.load()
        first, second, third = waiters = [Waiter[LedPartition]() for _ in range(3)]
        for waiter in waiters:
            led.watch(waiter)
        world.write(2, 2)
        world.write(2)
        assert told_of(waiters, led) == [first]
        led.watch(first)  # as it looks again, at its place
        assert take(led, "a", 2) == [(0, 1, 1)]
        led.leave(first)
        assert told_of(waiters, led) == [second]
        led.leave(second)
        assert told_of(waiters, led) == [third], "the second took nothing"
        assert take(led, "c") == [(2, 5, 1)]
        led.leave(third)
        assert await led.acknowledge("a", [AcknowledgedRange(0, 0, [RELEASE])]) is not None
        assert told_of(waiters, led) == []

    on_broker(body)


def test_who_waits_for_more_keeps_its_place_and_lets_others_take_what_is_there() -> None:
    async def body(world: World) -> None:
        led = await world.load()
        first, second, third = waiters = [Waiter[LedPartition]() for _ in range(3)]
        for waiter in waiters:
            led.watch(waiter)
        world.write(2)
        assert told_of(waiters, led) == [first]
        led.watch(first)
        led.offer(after=first)
        assert told_of(waiters, led) == [second]
        assert take(led, "b") == [(0, 1, 1)]
        led.leave(second)
        world.write(2)
        assert told_of(waiters, led) == [first]
        led.leave(first)
        assert told_of(waiters, led) == [third]

    on_broker(body)


def test_a_lock_that_has_ended_already_when_its_timer_is_set_ends() -> None:
    """uvloop calls at once then, and gives no timer."""
    uvloop = pytest.importorskip("uvloop")

    async def body(world: World) -> None:
        world.write(4)
        world.rules = ShareRules(ShareLimits(lock_ms=-10), start="earliest")
        led = await world.load()
        assert take(led, "m", 1, strict=True) == [(0, 0, 1)]
        assert take(led, "m", 1, strict=True) == [(1, 1, 1)]
        assert led.records is not None
        records = led.records
        await until(lambda: not records.has_acquired)

    on_broker(body, uvloop.new_event_loop)


def test_what_gives_nobody_anything_wakes_nobody() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        assert take(led, "m") == [(0, 3, 1)]
        waiter: Waiter[LedPartition] = Waiter()
        led.watch(waiter)
        assert await say(led, "m", 0, 2, ACCEPT) is None
        assert told_of([waiter], led) == []
        assert await say(led, "m", 3, 3, RELEASE) is None
        assert told_of([waiter], led) == [waiter]

    on_broker(body)


def told_of(waiters: list[Waiter[LedPartition]], led: LedPartition) -> list[Waiter[LedPartition]]:
    """Who has been told since the last look."""
    found = [(waiter, waiter.take_changed()) for waiter in waiters]
    assert all(changed in ([], [led]) for _, changed in found)
    return [waiter for waiter, changed in found if changed]


def test_what_is_given_is_counted_with_its_time() -> None:
    async def body(world: World) -> None:
        world.write(4, 6)
        led = await world.load()
        assert take(led, "m", 4) == [(0, 3, 1)]
        assert take(led, "m") == [(4, 9, 1)]
        assert take(led, "m") == []
        found = led.figures()
        assert (found.records, found.batch_sizes) == (10, TallyFigures(2, 10.0))
        assert found.lock_times_ms.count == found.lock_percents.count == 3
        assert 0 < found.lock_percents.total <= 300
        assert found.lock_times_ms.total > 0

    on_broker(body)


def test_a_lock_that_ends_frees_the_records_and_stores_their_count() -> None:
    async def body(world: World) -> None:
        world.rules = ShareRules(ShareLimits(lock_ms=50), start="earliest")
        world.write(4)
        led = await world.load()
        assert take(led, "m") == [(0, 3, 1)]
        await until(lambda: len(world.persister.writes) == 1)
        assert world.persister.writes[0][3] == [StateBatch(0, 3, StoredState.AVAILABLE, 1)]
        assert take(led, "n") == [(0, 3, 2)]
        assert led.counters.lock_timeouts == 4

    on_broker(body)


def test_a_lock_whose_end_cannot_be_stored_is_tried_again_after_a_while() -> None:
    async def body(world: World) -> None:
        world.rules = ShareRules(ShareLimits(lock_ms=30), start="earliest")
        world.write(4)
        led = await world.load()
        take(led, "m")
        world.persister.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await asyncio.sleep(0.3)
        assert led.counters.lock_timeouts == 4, "not again and again"
        world.persister.refusal = None
        await until(led.has_news)
        assert take(led, "m") == [(0, 3, 2)]

    on_broker(body)


def test_a_closed_connection_frees_what_its_members_have_and_an_answer_that_was_not_sent_is_no_delivery() -> (
    None
):
    async def body(world: World) -> None:
        world.write(4, 4)
        led = await world.load()
        world.open("n", ShareLink(world.leader))
        first, second = led.acquire(ask("m", 1)), led.acquire(ask("m", 1))
        assert first is not None
        assert second is not None
        world.link.gave(led, "m", first.ranges, 1_000)
        world.link.on_sent()
        world.link.gave(led, "m", second.ranges, 1_000)
        world.link.close()
        await until(lambda: bool(world.persister.writes))
        await until(led.has_news)
        assert world.persister.writes[0][3] == [StateBatch(0, 3, StoredState.AVAILABLE, 1)]
        assert take(led, "n", 4) == [(0, 3, 2)]
        assert take(led, "n", 4) == [(4, 7, 1)]

    on_broker(body)


def test_without_a_session_of_the_group_a_share_partition_leaves_memory_once_nobody_has_records() -> None:
    async def body(world: World) -> None:
        world.rules = ShareRules(ShareLimits(lock_ms=200), start="earliest")
        world.write(4, 4)
        led = await world.load()
        take(led, "m", 1)
        take(led, "stranger", 1)
        world.link.close()
        await asyncio.sleep(0.05)
        assert world.leader.find(world.key) is led, "a lock is a promise"
        await until(lambda: world.leader.find(world.key) is None)
        assert world.persister.reads == [world.key]
        again = await world.load()
        assert take(again, "m") == [(0, 7, 2)]

    on_broker(body)


def test_a_share_partition_that_was_being_written_when_the_last_session_ended_is_read_anew() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        world.persister.may_write.clear()
        stored = await led.acknowledge("m", [AcknowledgedRange(0, 3, [ACCEPT])])
        assert stored is not None
        world.link.close()
        # offsets are altered, and another member comes, before the write has ended
        world.open("n", ShareLink(world.leader))
        waiter: Waiter[LedPartition] = Waiter()
        led.watch(waiter)
        world.persister.may_write.set()
        await stored
        assert led in await asyncio.wait_for(waiter.wait_changed(), 10)
        world.persister.states[world.key] = StoredPartition(StateId(2), 0, ())
        assert world.leader.find(world.key) is None
        again = world.leader.lead(world.key, world.partition)
        await until(lambda: again.records is not None)
        assert take(again, "n") == [(0, 3, 1)]
        # it stays in memory from then on
        assert await say(again, "n", 0, 3, ACCEPT) is None
        assert world.leader.find(world.key) is again

    on_broker(body)


def test_share_partitions_that_the_last_session_left_are_each_looked_at_only_when_something_of_them_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count, looks = 50, 0
    is_idle = LedPartition.is_idle.fget  # type: ignore[attr-defined]

    def look(led: LedPartition) -> bool:
        nonlocal looks
        looks += 1
        return bool(is_idle(led))

    async def body(world: World) -> None:
        topic = world.partition.topic
        session = world.leader.open_session("g", "m", 10, world.link)
        world.leader.sessions.update(session, [TopicPlace(topic.id, each) for each in range(count)], ())
        for number in range(count):
            partition = world.node.logs.partition("t", number)
            partition.append(bytearray(batch(1)), now_ms=world.node.now_ms())
            led = world.leader.lead(ShareKey("g", topic.id, number), partition)
            await until(lambda led=led: led.records is not None)  # type: ignore[misc]
            take(led, "m")
        monkeypatch.setattr(LedPartition, "is_idle", property(look))
        world.link.close()
        await until(lambda: not world.leader.all_led())
        assert looks == 2 * count, "when the session ends, and when its release of the records is stored"

    on_broker(body, partition_count=count)


def test_a_session_that_is_opened_on_another_connection_does_not_end_with_the_first() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        other = ShareLink(world.leader)
        world.open("m", other)
        world.link.close()
        assert led.records is not None
        assert led.records.acquired_by("m") == 4
        assert (len(world.leader.sessions), list(other.sessions)) == (1, [("g", "m")])

    on_broker(body)


def test_a_session_ends_with_the_connection_that_it_was_continued_on() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        other = ShareLink(world.leader)
        session = world.leader.resume_session("g", "m", 1, other)
        # its client has noticed long ago that it broke
        world.link.close()
        assert led.records is not None
        assert led.records.acquired_by("m") == 4
        assert world.leader.sessions.find("g", "m") is session
        other.close()
        assert led.records.acquired_by("m") == 0
        assert len(world.leader.sessions) == 0

    on_broker(body)


@pytest.mark.parametrize("opens", [True, False])
def test_an_answer_that_was_not_sent_when_its_member_went_on_over_another_connection_is_no_delivery(
    opens: bool,
) -> None:
    async def body(world: World) -> None:
        world.write(4, 4)
        led = await world.load()
        world.open("n")
        given, others = led.acquire(ask("m", 1)), led.acquire(ask("n", 1))
        assert given is not None
        assert others is not None
        world.link.gave(led, "m", given.ranges, 1_000)
        world.link.gave(led, "n", others.ranges, 1_000)
        other = ShareLink(world.leader)
        if opens:
            world.open("m", other)
        else:
            world.leader.resume_session("g", "m", CLOSING_EPOCH, other)
        # what it had there must not count when its new session ends
        other.close()
        assert led.records is not None
        assert led.records.acquired_by("n") == 4
        assert take(led, "k") == [(0, 3, 1)]
        assert world.persister.writes == []

    on_broker(body)


def test_an_answer_counts_as_unsent_until_it_is_sent_also_when_its_member_has_gone_on_elsewhere() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        given = led.acquire(ask("m"))
        assert given is not None
        world.link.gave(led, "m", given.ranges, 1_000)
        world.leader.resume_session("g", "m", 1, ShareLink(world.leader))
        assert world.leader.unsent_bytes == 1_000, "it is in memory"
        world.link.on_sent()
        assert world.leader.unsent_bytes == 0

    on_broker(body)


def test_a_deleted_topic_ends_its_share_partitions() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        waiter: Waiter[LedPartition] = Waiter()
        led.watch(waiter)
        world.partition.delete()
        assert await waiter.wait_changed() == [led]
        with pytest.raises(KafkaError) as refused:
            led.has_news()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.leader.all_led() == []

    on_broker(body)


def test_another_leader_epoch_is_another_leader() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        world.partition._leader_epoch = world.partition.leader_epoch + 1
        with pytest.raises(KafkaError):
            await led.acknowledge("m", [AcknowledgedRange(0, 3, [ACCEPT])])
        again = await world.load()
        assert again is not led
        assert take(again, "n") == [(0, 3, 1)], "nothing was stored of the first delivery"

    on_broker(body)


def test_nothing_is_given_while_another_broker_may_lead() -> None:
    async def body(world: World) -> None:
        world.write(3)
        led = await world.load()
        world.in_doubt = True
        assert (led.has_news(), led.measure(1_000), take(led, "m")) == (False, 0, [])
        world.in_doubt = False
        assert take(led, "m") == [(0, 2, 1)]

    on_broker(body)


def test_members_share_what_max_bytes_allows() -> None:
    async def body(world: World) -> None:
        world.write(*[50] * 6)
        led, size = await world.load(), len(batch(50))
        assert take(led, "m", most_bytes=2 * size) == [(0, 99, 1)]
        assert take(led, "m", most_bytes=size - 1) == [(100, 149, 1)], "the first is given whatever its size"
        assert take(led, "m", most_bytes=size - 1, at_least_one=False) == []
        assert led.measure(1 << 20) >= 3 * size

    on_broker(body)


def test_record_batches_larger_than_one_read() -> None:
    async def body(world: World) -> None:
        for _ in range(3):
            records = bytearray(batch(1, key=b"x" * 200_000))
            world.partition.append(records, now_ms=world.node.now_ms())
        led = await world.load()
        given = led.acquire(ask("m", most_bytes=450_000, at_least_one=False))
        assert given is not None
        assert [tuple(each) for each in given.ranges] == [(0, 1, 1)]
        assert len(given.records) == 2 * len(records)

    on_broker(body)


def test_members_that_do_not_take_their_responses_leave_little_for_others() -> None:
    async def body(world: World) -> None:
        led, leader = await world.load(), world.leader
        slow, other = ShareLink(leader), ShareLink(leader)
        assert leader.room_bytes == MOST_UNSENT_BYTES
        slow.gave(led, "slow", (), 1_000)
        other.gave(led, "other", (), MOST_UNSENT_BYTES)
        assert leader.room_bytes == FEW_BYTES
        other.on_sent()
        assert leader.room_bytes == MOST_UNSENT_BYTES - 1_000
        slow.close()
        assert leader.room_bytes == MOST_UNSENT_BYTES

    on_broker(body)


def test_refused_acknowledgements_leave_nothing_behind() -> None:
    async def body(world: World) -> None:
        led = world.leader.lead(world.key, world.partition)
        refused = []
        for _ in range(2):
            with pytest.raises(KafkaError) as told:
                await led.acknowledge("m", [AcknowledgedRange(0, 0, [ACCEPT])])
            refused.append(told.value)
        assert refused[0] is not refused[1], "an error keeps the frames, and their requests, that raised it"

    on_broker(body)


def test_what_members_said_is_counted() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        stored = await led.acknowledge("m", [AcknowledgedRange(0, 1, [ACCEPT, REJECT])])
        assert stored is not None
        assert await stored is None
        await say(led, "m", 2, 3, RELEASE)
        assert world.leader.counters.acknowledged == {"Accept": 1, "Reject": 1, "Release": 2}
        figures = world.leader.figures()
        assert (figures.sessions, figures.session_partitions, figures.load_times.count) == (1, 1, 1)
        assert [tuple(each)[:6] for each in figures.partitions] == [("g", "t", 0, 1, 2, 0)]

    on_broker(body)


def test_what_happened_to_records_is_told_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_leader, "_LOOK_S", 0.01)

    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        assert await say(led, "m", 1, 1, REJECT) is None
        await until(lambda: bool(world.told))
        (told,) = world.told
        assert isinstance(told, ShareRecordsRejected)
        assert (told.group, told.topic, told.partition, told.member) == ("g", "t", 0, "m")
        assert await say(led, "m", 2, 2, REJECT) is None
        await until(lambda: len(world.told) == 2)

    on_broker(body)


def test_what_happened_to_records_is_told_when_a_share_partition_leaves_memory() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        take(led, "m")
        assert await say(led, "m", 0, 0, REJECT) is None
        world.link.close()
        await until(lambda: world.leader.find(world.key) is None)
        assert [event.name for event in world.told] == [EventName.SHARE_RECORDS_REJECTED]
        (kept,) = world.leader.history.of("g")
        assert kept.event is world.told[0]

    on_broker(body)


def test_events_of_share_partitions_reach_who_listens_to_the_group() -> None:
    async def run() -> None:
        async with Broker() as broker:
            listening = broker.events("g")
            event = ShareRecordsRejected(
                "g",
                topic="t",
                partition=0,
                records=1,
                first_offset=0,
                last_offset=0,
                offsets="0",
                delivery_count=1,
            )
            broker._require_running().node.shares.history.tell(event)
            assert await anext(listening) is event

    asyncio.run(run())
