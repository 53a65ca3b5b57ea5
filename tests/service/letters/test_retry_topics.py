"""Retry topics: a record that fails waits in another topic, and the records behind it go on.

Covers: service/letters/failed_records.py, service/letters/deadletter.py, service/run/running_handler.py.
Covers: service/handlers/handler.py, service/letters/left_letters.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kafka import KafkaProducer

from kohort.admin.topics.requests import create_partitions
from kohort.client.errors import ConfigError
from kohort.client.offsets import CommittedOffset, commit_once
from kohort.consumer import Cluster
from kohort.consumer.reading.positions import Phase
from kohort.consumer.record import Record
from kohort.producer import Producer
from kohort.protocol import ErrorCode, TopicPartition
from kohort.service import ConsumerService, DeadLetterError, Retry, read_dead_letter
from kohort.service.letters import deadletter as _deadletter
from kohort.service.letters.deadletter import DeadLetters, make_letter, wall_ms
from kohort.service.letters.failed_records import DEAD_LETTER_HEADERS, read_retry
from kohort.testing import ServiceRun
from tests.service.fakes import FakeConsumer, make_service, serving, until
from tests.service.letters.test_deadletter import FakeCluster
from tests.waiting import until as until_in_time

RETRY = TopicPartition("orders.retry.1", 0)
FIRST = Record("orders", 7, 42, 1_000, b"key", b"value", (("trace", b"abc"),), session_id=5)


def as_read(
    origin: Record = FIRST,
    *,
    due_ms: int | None = 123,
    topic: str = "orders.retry.1",
    offset: int = 0,
    group: str = "billing",
) -> Record:
    """The letter about a record, as it comes from its topic."""
    sent = make_letter(topic, 1, origin, ValueError("bad"), 2, group, due_ms)
    return Record(topic, 0, offset, 99, sent.key, sent.value, tuple(sent.headers), session_id=6)


# --- letters ------------------------------------------------------------------------------------------------


def test_a_retry_letter_has_the_record_as_it_was() -> None:
    found = read_retry(as_read())
    assert found is not None
    assert (found.due_ms, found.letter.attempts, found.letter.error_message) == (123, 2, "bad")
    assert tuple(found.record) == tuple(FIRST._replace(session_id=6))


def test_the_letter_about_a_letter_replaces_it_and_adds_up_the_tries() -> None:
    again = as_read(as_read(as_read()), due_ms=None, topic="orders.dlt")
    dead = read_dead_letter(again)
    assert dead is not None
    assert (dead.topic, dead.partition, dead.offset, dead.attempts) == ("orders", 7, 42, 6)
    assert [name for name, _ in again.headers] == ["trace", *DEAD_LETTER_HEADERS]


@pytest.mark.parametrize(
    "headers",
    [
        (),
        FIRST.headers,
        as_read().headers[:-1],
        (*as_read().headers[:-1], ("kohort.retry.due_ms", b"soon")),
        tuple((name, b"x") for name, _ in as_read().headers),
        (*as_read().headers, ("more", b"")),
    ],
)
def test_what_is_no_retry_letter_is_read_as_it_is(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    assert read_retry(FIRST._replace(headers=headers)) is None


# --- waiting ------------------------------------------------------------------------------------------------


faked = pytest.mark.usefixtures("fake_consumer")


class Clock:
    """The wall clock of the service."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 1_000_000
        for module in ("letters.deadletter", "handlers.handler", "run.running_handler"):
            monkeypatch.setattr(f"kohort.service.{module}.wall_ms", lambda: self.now_ms)


def orders(seen: list[Any], **options: Any) -> ConsumerService:
    service = make_service(drain_timeout_ms=5_000)

    @service.handler("orders", retry_after_ms=[3_600_000, 3_600_000], **options)
    async def bill(record: Record) -> None:
        seen.append((record.topic, record.offset))

    return service


@faked
async def test_a_letter_waits_until_it_is_due_with_its_partition_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, seen = Clock(monkeypatch), list[Any]()
    service = orders(seen)
    async with serving(service) as consumer:
        assert set(consumer.topics) == {"orders", "orders.retry.1", "orders.retry.2"}
        dues = (clock.now_ms, clock.now_ms + 50, clock.now_ms + 60, clock.now_ms + 90)
        consumer.waiting.put_nowait(
            [as_read(FIRST._replace(offset=n), due_ms=due, offset=n) for n, due in enumerate(dues)]
        )
        await until(lambda: seen == [("orders", 0)])
        assert consumer.now_paused == {RETRY}
        consumer.give(100)
        await until(lambda: ("orders", 100) in seen)
        clock.now_ms += 70
        await until(lambda: seen[2:] == [("orders", 1), ("orders", 2)])
        assert consumer.now_paused == {RETRY}
        clock.now_ms += 70
        await until(lambda: seen[4:] == [("orders", 3)])
        await until(lambda: not consumer.now_paused)
        done = [offset for topic, _, offset in consumer.done_offsets if topic == RETRY.topic]
        assert done == [0, 1, 2, 3]


@faked
async def test_one_that_is_not_due_is_dropped_at_a_revocation_and_at_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, seen = Clock(monkeypatch), list[Any]()
    service = orders(seen)
    async with asyncio.timeout(20):
        async with serving(service) as consumer:
            later = as_read(due_ms=clock.now_ms + 3_600_000)
            consumer.waiting.put_nowait([later])
            await until(lambda: consumer.now_paused == {RETRY})
            await consumer.revoking([RETRY])
            # it comes back in another session
            consumer.waiting.put_nowait([later._replace(session_id=7), as_read(offset=1, due_ms=0)])
            await until(lambda: consumer.waiting.empty())
    assert seen == []
    assert consumer.done_offsets == []


@faked
async def test_letters_of_another_session_replace_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, seen = Clock(monkeypatch), list[Any]()
    service = orders(seen)
    async with serving(service) as consumer:
        consumer.waiting.put_nowait([as_read(due_ms=clock.now_ms + 60_000)])
        await until(lambda: consumer.now_paused == {RETRY})
        consumer.waiting.put_nowait([as_read(due_ms=0)._replace(session_id=7)])
        await until(lambda: seen == [("orders", 42)])
        await until(lambda: not consumer.now_paused)


@faked
async def test_letters_of_other_groups_are_passed_over() -> None:
    seen: list[Any] = []
    service = make_service()

    @service.batch_handler("orders", retry_after_ms=[5_000])
    async def bill(records: list[Record]) -> None:
        seen.append([record.offset for record in records])

    async with serving(service) as consumer:
        others = [as_read(offset=n, due_ms=0, group="shipping") for n in range(2)]
        own = as_read(offset=2, due_ms=0)
        foreign = Record(RETRY.topic, 0, 3, 0, None, b"not ours", session_id=6)
        consumer.waiting.put_nowait([*others, own, foreign])
        await until(lambda: len(consumer.done_offsets) == 4)
        consumer.waiting.put_nowait([foreign._replace(offset=4)])
        await until(lambda: len(consumer.done_offsets) == 5)
    assert seen == [[42]]


@faked
async def test_waiting_for_a_due_time_is_no_standstill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    service = orders([])
    async with serving(service) as consumer:
        consumer.lag = lambda: {RETRY: 5}  # type: ignore[method-assign]
        consumer.waiting.put_nowait([as_read(due_ms=clock.now_ms + 60_000)])
        await until(lambda: consumer.now_paused == {RETRY})
        engine = service._engine
        assert engine is not None
        engine._observe_progress(1.0, idle=True)
        assert engine._progress.waiting == 0


# --- where records go ---------------------------------------------------------------------------------------


@faked
async def test_from_one_retry_topic_to_the_next_and_then_to_the_dead_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, sent = Clock(monkeypatch), list[tuple[str, int, int | None]]()

    async def send(
        _: Any, topic: str, __: Record, ___: BaseException, attempts: int, due_ms: int | None
    ) -> None:
        sent.append((topic, attempts, None if due_ms is None else due_ms - clock.now_ms))

    monkeypatch.setattr(DeadLetters, "send", send)
    service = make_service()

    @service.handler(
        "orders",
        model=list[int],
        retry=Retry(attempts=2, backoff_ms=0, retry_on=(OSError, TypeError)),
        retry_after_ms=[5_000, 60_000],
        dead_letter="orders.dlt",
    )
    async def bill(model: list[int], _: Record) -> None:
        raise OSError("full") if model else KeyError("never tried again")

    async with serving(service) as consumer:

        async def done(count: int) -> None:
            await until(lambda: len(consumer.done_offsets) == count)

        consumer.give(0, value=b"[1]")
        await done(1)
        for nth in (1, 2):
            retried = as_read(FIRST._replace(value=b"[1]"), topic=f"orders.retry.{nth}", due_ms=0)
            consumer.waiting.put_nowait([retried])
            await done(1 + nth)
        consumer.give(1, value=b"no list")
        await done(4)
        consumer.give(2, value=b"[]")
        await done(5)
    assert sent == [
        ("orders.retry.1", 2, 5_000),
        ("orders.retry.2", 2, 60_000),
        ("orders.dlt", 2, None),
        ("orders.dlt", 1, None),
        ("orders.dlt", 1, None),
    ]


@pytest.mark.parametrize("wrong", [5_000, [0], [True], ["5s"], [-1], None, [2**31]])
def test_delays_are_whole_numbers(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="retry_after_ms"):
        make_service().handler("orders", retry_after_ms=wrong)(print)


def test_topics_of_handlers_and_retries_do_not_overlap() -> None:
    service = make_service()
    service.handler("orders", retry_after_ms=[1])(print)
    with pytest.raises(ConfigError, match=r"'orders\.retry\.1' has a handler already"):
        service.handler("orders.retry.1")(print)
    with pytest.raises(ConfigError, match="name of one of its retry topics"):
        service.handler("a", "a.retry.1", retry_after_ms=[1])(print)
    with pytest.raises(ConfigError, match="a loop"):
        service.handler("b", retry_after_ms=[1], dead_letter="b.retry.1")(print)


# --- on a broker --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["async", "thread", "batch"])
def test_a_failed_record_comes_back_and_others_go_on(
    kohort_service: Callable[..., ServiceRun], kind: str
) -> None:
    service = ConsumerService(bootstrap="nowhere.example:9092", group="billing")
    seen: list[bytes] = []
    options: Any = {"retry_after_ms": [40, 20], "dead_letter": "orders.dlt"}

    def work(record: Record) -> None:
        assert record.topic == "orders"
        assert [name for name, _ in record.headers] == []
        seen.append(record.value or b"")
        if record.value == b"bad" or (record.value == b"late" and seen.count(b"late") < 3):
            raise OSError("no route")

    if kind == "async":

        @service.handler("orders", **options)
        async def bill(record: Record) -> None:
            work(record)

    elif kind == "thread":
        service.handler("orders", **options)(work)
    else:

        @service.batch_handler("orders", **options)
        def bill_all(records: list[Record]) -> None:
            for record in records:
                work(record)

    run = kohort_service(service, {"orders": ["late", "bad", "fine"]})
    (dead,) = run.dead_letters["orders.dlt"]
    found = read_dead_letter(dead)
    assert found is not None
    assert (dead.value, found.topic, found.offset, found.attempts) == (b"bad", "orders", 1, 3)
    assert seen.count(b"late") >= 3


@pytest.mark.kafka
async def test_letters_that_are_not_due_take_no_more_memory_than_the_backlog_may(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, partitions, most_bytes, value = new_topic("orders", partitions=1), 4, 100_000, bytes(6_000)
    name, retries = group("billing"), f"{topic}.retry.1"
    due_ms = wall_ms() + 2_000
    origins = [Record(topic, n % partitions, n, 1_000, None, value) for n in range(40)]
    async with Cluster(bootstrap) as cluster, Producer(bootstrap=bootstrap) as producer:
        await cluster.create_topics({retries: partitions})
        for origin in origins:
            await producer.send(*make_letter(retries, partitions, origin, ValueError("bad"), 1, name, due_ms))
    service = ConsumerService(
        bootstrap=bootstrap, group=name, auto_offset_reset="earliest", backlog_max_bytes=most_bytes
    )
    handled: list[int] = []
    held: list[int] = []

    @service.handler(topic, retry_after_ms=[3_000])
    async def bill(record: Record) -> None:
        assert wall_ms() >= due_ms
        handled.append(record.offset)

    def held_bytes() -> int:
        engine = service._engine
        assert engine is not None
        waiting = [each for running in engine._running for each in running._postponed.values()]
        return sum(len(record.value or b"") for each in waiting for record in each.records)

    task = asyncio.create_task(service.serve())
    async with asyncio.timeout(60):
        while len(handled) < len(origins):
            await asyncio.sleep(0.01)
            held.append(held_bytes())
    service.stop()
    await task
    assert 0 < max(held) <= most_bytes
    assert sorted(handled) == [origin.offset for origin in origins], "each came again, once"
    for partition in range(partitions):
        assert [n for n in handled if n % partitions == partition] == list(range(partition, 40, partitions))


@faked
async def test_a_letter_that_did_not_fit_is_due_when_it_comes_again_though_clocks_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, seen = Clock(monkeypatch), list[Any]()
    service = make_service(backlog_max_bytes=10_000)

    @service.handler("orders", retry_after_ms=[30])
    async def bill(record: Record) -> None:
        seen.append(record.offset)

    async with serving(service) as consumer:
        given_back: list[Record] = []
        consumer.parts.delivery.give_back = given_back.append
        ahead = as_read(FIRST._replace(value=bytes(20_000)), due_ms=clock.now_ms + 3_600_000)
        consumer.waiting.put_nowait([ahead])
        await until(lambda: consumer.now_paused == {RETRY})
        await until(lambda: given_back == [ahead] and not consumer.now_paused)
        consumer.waiting.put_nowait([ahead])
        await until(lambda: seen == [42])


@faked
async def test_letters_of_a_member_whose_clock_is_ahead_wait_for_the_delay_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, seen, pauses = Clock(monkeypatch), list[Any](), list[TopicPartition]()
    service = make_service()

    @service.handler("orders", retry_after_ms=[100])
    async def bill(record: Record) -> None:
        seen.append(record.offset)

    async with serving(service) as consumer:
        pause = consumer.pause

        def counted(*found: TopicPartition) -> None:
            pauses.extend(found)
            pause(*found)

        monkeypatch.setattr(consumer, "pause", counted)
        due_ms = clock.now_ms + 3_600_000
        letters = [as_read(FIRST._replace(offset=n), due_ms=due_ms, offset=n) for n in range(12)]
        consumer.waiting.put_nowait(letters)
        await until(lambda: seen == [*range(12)])
        await until(lambda: not consumer.now_paused)
    assert pauses == [RETRY], "one wait for all"


@faked
async def test_of_records_that_are_no_letters_each_retry_topic_has_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = make_service()

    @service.handler("orders", retry_after_ms=[5_000, 6_000])
    async def bill(record: Record) -> None:
        raise AssertionError(record)

    cut = as_read().headers[:-1]
    async with serving(service) as consumer:
        for topic, headers in (("orders.retry.1", ()), ("orders.retry.1", cut), ("orders.retry.2", cut)):
            consumer.waiting.put_nowait([Record(topic, 0, 0, 0, None, b"", headers, session_id=6)])
        consumer.waiting.put_nowait([as_read(offset=1, due_ms=0, group="shipping")])
        await until(lambda: len(consumer.done_offsets) == 4)
    first, second = (line for line in caplog.messages if "is no letter" in line)
    assert "orders.retry.1-0 at offset 0 is no letter of a service (it has none of a letter's" in first
    assert "orders.retry.2-0 at offset 0 is no letter of a service (it has no header kohort.retry" in second


@pytest.mark.kafka
async def test_letters_of_a_stage_that_a_handler_had_are_told_of_at_the_start(
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    left = f"{topic}.retry.2"
    due_ms = wall_ms() + 3_600_000
    async with Cluster(bootstrap) as cluster, Producer(bootstrap=bootstrap) as producer:
        await cluster.create_topics({f"{topic}.retry.{nth}": 2 for nth in (1, 2, 3)})
        for n in range(3):
            origin = Record(topic, n, n, 1_000, None, b"value")
            for retries in (f"{topic}.retry.1", left):
                await producer.send(*make_letter(retries, 2, origin, ValueError("bad"), 1, name, due_ms))
        await commit_once(cluster, name, {TopicPartition(left, 0): CommittedOffset(1)}, -1, "", None)
    service = ConsumerService(bootstrap=bootstrap, group=name, auto_offset_reset="earliest")
    service.handler(topic, retry_after_ms=[3_600_000])(print)
    task = asyncio.create_task(service.serve())
    await until_in_time(lambda: service._engine is not None and service._engine._looking is not None)
    assert service._engine is not None
    assert service._engine._looking is not None
    await service._engine._looking
    service.stop()
    await task
    (line,) = (line for line in caplog.messages if "are not read" in line)
    assert f"2 records of {left} are not read: letters of a retry stage that the handler of {topic}" in line


class Killed:
    """One service after the other; a kill ends all connections, and then what runs."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.handled: list[bytes] = []
        self.failed = False
        self._where = bootstrap, topic, group

    def _make(self) -> ConsumerService:
        bootstrap, topic, group = self._where
        service = ConsumerService(
            bootstrap=bootstrap,
            group=group,
            group_instance_id="one",
            auto_offset_reset="earliest",
            drain_timeout_ms=0,
        )

        @service.handler(topic, retry_after_ms=[300])
        async def bill(record: Record) -> None:
            if record.value == b"bad" and not self.failed:
                self.failed = True
                raise OSError("no route")
            self.handled.append(record.value or b"")

        return service

    async def run(self, holds: Callable[[ConsumerService], bool], *, kill: bool = True) -> None:
        service = self._make()
        task = asyncio.create_task(service.serve())
        async with asyncio.timeout(60):
            while not holds(service):
                await asyncio.sleep(0.002)
                if task.done():
                    task.result()
        if kill:
            engine = service._engine
            assert engine is not None
            assert engine._consumer is not None
            await engine._consumer.parts.cluster.close()
            task.cancel()
        else:
            service.stop()
        await asyncio.wait({task})


@pytest.mark.parametrize("step", ["acknowledged", "not due", "handled"])
async def test_killed_between_two_steps_it_loses_nothing(
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    retry = TopicPartition(f"{topic}.retry.1", 0)
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({retry.topic: 1})
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in (b"bad", b"fine"):
            producer.send(topic, value)
    killed = Killed(bootstrap, topic, name)
    if step == "acknowledged":
        acknowledged, send = asyncio.Event(), DeadLetters.send

        async def send_and_hang(*arguments: Any) -> None:
            await send(*arguments)
            acknowledged.set()
            await asyncio.sleep(600)

        with monkeypatch.context() as hanging:
            hanging.setattr(DeadLetters, "send", send_and_hang)
            await killed.run(lambda _: acknowledged.is_set())
    elif step == "not due":

        def is_postponed(service: ConsumerService) -> bool:
            waits = service._engine is not None and bool(service._engine._running[0]._postponed)
            # on a machine that is too busy to see it wait
            return waits or b"bad" in killed.handled

        await killed.run(is_postponed)
    else:
        await killed.run(lambda _: b"bad" in killed.handled)
    await killed.run(lambda _: {b"bad", b"fine"} <= {*killed.handled}, kill=False)
    assert killed.failed
    assert killed.handled.count(b"bad") <= 2, "the record, and its letter"


class Retried:
    """A service that leaves settings at their defaults, and fails each record at its first try."""

    def __init__(self, bootstrap: str, topic: str, group: str, **options: Any) -> None:
        self.tries: Counter[bytes] = Counter()
        self.service = service = ConsumerService(bootstrap=bootstrap, group=group, **options)

        @service.handler(topic, retry_after_ms=[20])
        async def bill(record: Record) -> None:
            value = record.value or b""
            self.tries[value] += 1
            if self.tries[value] == 1:
                raise OSError("no route")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The service runs, and knows where all partitions that it has begin."""
        task = asyncio.create_task(self.service.serve())
        try:
            async with asyncio.timeout(60):
                await until_reading(self.service)
                yield
                self.service.stop()
        finally:
            self.service.stop()
            await asyncio.wait({task})
        await task

    async def until_handled(self, *values: bytes) -> None:
        while any(self.tries[value] < 2 for value in values):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)


async def until_reading(service: ConsumerService) -> None:
    """Return when the service has partitions, and knows where to begin in each."""
    while not is_reading(service):  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.005)


def is_reading(service: ConsumerService) -> bool:
    if not service.ready or service._engine is None:
        return False
    assert service._engine._consumer is not None
    positions = list(service._engine._consumer.parts.positions)
    return bool(positions) and all(position.phase is Phase.READING for position in positions)


def write(bootstrap: str, topic: str, *values: bytes) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value)


def write_letter(bootstrap: str, topic: str, partition: int, origin: Record, group: str) -> None:
    sent = make_letter(topic, 1, origin, ValueError("bad"), 1, group, due_ms=1)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, sent.value, partition=partition, headers=list(sent.headers))


@pytest.mark.kafka
async def test_letters_of_a_retry_topic_that_the_first_of_them_makes_are_handled(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic("orders", partitions=1)
    retried = Retried(bootstrap, topic, group("billing"))
    values = [b"%d" % number for number in range(5)]
    async with retried.running():
        await asyncio.to_thread(write, bootstrap, topic, *values)
        await retried.until_handled(*values)


@pytest.mark.kafka
@pytest.mark.parametrize("policy", [None, "fail", 4_000_000_000_000])
async def test_a_letter_that_came_before_the_first_commit_is_handled_by_any_reset_policy(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str], policy: Any
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    options = {} if policy is None else {"auto_offset_reset": policy}
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({f"{topic}.retry.1": 1})
        await commit_once(cluster, name, {TopicPartition(topic, 0): CommittedOffset(0)}, -1, "", None)
    write_letter(bootstrap, f"{topic}.retry.1", 0, FIRST._replace(topic=topic), name)
    retried = Retried(bootstrap, topic, name, **options)
    retried.tries[b"value"] = 1
    async with retried.running():
        await retried.until_handled(b"value")


@pytest.mark.kafka
async def test_letters_in_a_new_partition_of_a_retry_topic_are_handled(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({f"{topic}.retry.1": 1})
        retried = Retried(bootstrap, topic, name, metadata_max_age_ms=500)
        retried.tries[b"value"] = 1
        async with retried.running():
            await create_partitions(cluster, f"{topic}.retry.1", 2)
            await asyncio.to_thread(
                write_letter, bootstrap, f"{topic}.retry.1", 1, FIRST._replace(topic=topic), name
            )
            await retried.until_handled(b"value")


@faked
async def test_without_its_retry_topic_it_stops_and_the_record_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster(topic_error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    monkeypatch.setattr(_deadletter, "make_cluster", lambda _: cluster)
    monkeypatch.setattr(_deadletter, "SEND_TIMEOUT_MS", 50)
    service = make_service()

    @service.handler("orders", retry_after_ms=[1_000], dead_letter="orders.dlt")
    async def bill(_: Record) -> None:
        raise OSError("no route")

    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made"))
    consumer = FakeConsumer.made
    consumer.give(0)
    with pytest.raises(DeadLetterError, match=r"to its retry topic 'orders\.retry\.1'.*may write to it"):
        await asyncio.wait_for(task, 30)
    assert consumer.done_offsets == []
    assert cluster.asked[0] == "orders.retry.1"
