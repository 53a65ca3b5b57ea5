"""What handlers give out and the offsets of their records are written in one transaction."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.client import Cluster
from kohort.client.errors import BrokerConnectionError
from kohort.client.transactions import init_producer_id
from kohort.consumer import AsyncGroupConsumer, ConfigError, Record
from kohort.producer import GroupMetadata, Producer, ProducerRecord
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from kohort.service import (
    ConsumerService,
    HandlerFailedError,
    KafkaOutput,
    OutputError,
    Retry,
    SignatureError,
)
from kohort.service.exactly_once import kafka_output
from kohort.service.letters.deadletter import make_letter
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import shorten_sessions
from tests.producer.reading import read, read_values
from tests.service.processes import processes

PARTITIONS = 3
Topics = Callable[..., str]
Group = Callable[[str], str]
Produce = Callable[..., None]


@pytest.fixture
def make(bootstrap: str, group: Group) -> Callable[..., ConsumerService]:
    def service(name: str = "", **output: Any) -> ConsumerService:
        made = ConsumerService(**{**QUICK, "bootstrap": bootstrap, "group": name or group("billing")})
        made.exactly_once(KafkaOutput(**output))
        return made

    return service


async def run_until(service: ConsumerService, reached: Callable[[], Any]) -> None:
    """Serve until ``reached`` is true, or gives an awaitable of that."""
    serving = asyncio.create_task(service.serve())
    try:
        async with asyncio.timeout(60):
            while not serving.done():
                found = reached()
                if await found if asyncio.iscoroutine(found) else found:
                    break
                await asyncio.sleep(0.05)
    finally:
        service.stop()
        await serving


def plain(out: str) -> Callable[..., Any]:
    def handle(record: Record) -> ProducerRecord:
        return ProducerRecord(out, record.value, record.key)

    return handle


def plain_generator(out: str) -> Callable[..., Any]:
    def handle(record: Record) -> Iterator[ProducerRecord]:
        yield ProducerRecord(out, record.value, record.key)

    return handle


def coroutine(out: str) -> Callable[..., Any]:
    async def handle(record: Record) -> list[ProducerRecord]:
        await asyncio.sleep(0)
        return [ProducerRecord(out, record.value, record.key)]

    return handle


def async_generator(out: str) -> Callable[..., Any]:
    async def handle(record: Record) -> AsyncIterator[ProducerRecord]:
        await asyncio.sleep(random.random() / 100)
        yield ProducerRecord(out, record.value, record.key)

    return handle


def with_model(out: str) -> Callable[..., Any]:
    async def handle(number: int, record: Record) -> AsyncIterator[ProducerRecord]:
        yield ProducerRecord(out, b"%d" % number, record.key)

    return handle


@pytest.mark.kafka
@pytest.mark.parametrize("lanes", ["partition", "key", "none"])
@pytest.mark.parametrize("kind", [plain, plain_generator, coroutine, async_generator, with_model])
async def test_every_kind_of_handler_gives_out_records(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    kind: Callable[[str], Callable[..., Any]],
    lanes: Any,
) -> None:
    orders, bills = new_topic("orders", partitions=PARTITIONS), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(60), partitions=PARTITIONS)
    service = make(interval_ms=20)
    service.handler(orders, lanes=lanes, model=int if kind is with_model else None)(kind(bills))
    await run_until(service, lambda: service.finished == 60)
    values = [int(value or b"") for value in await read_values(bootstrap, bills)]
    assert sorted(values) == list(range(60))
    if lanes == "partition":
        assert [[v for v in values if v % PARTITIONS == p] for p in range(PARTITIONS)] == [
            list(range(p, 60, PARTITIONS)) for p in range(PARTITIONS)
        ]
    async with Cluster(bootstrap) as cluster:
        places = [TopicPartition(orders, number) for number in range(PARTITIONS)]
        committed = await cluster.committed(service.group, places)
    assert [committed[place].offset for place in places] == [20] * PARTITIONS


@pytest.mark.kafka
@pytest.mark.parametrize("is_async", [False, True])
async def test_results_are_encoded_and_one_that_cannot_be_is_its_records_failure(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    is_async: bool,
) -> None:
    orders, bills, failed = (new_topic(name, partitions=1) for name in ("orders", "bills", "failed"))
    await asyncio.to_thread(produce, orders, range(4))
    service = make(interval_ms=20, encode=dict[str, int], key_encode=str.encode)

    def bill(record: Record) -> Iterator[ProducerRecord]:
        number = int(record.value or b"")
        yield ProducerRecord(bills, {"amount": number if number != 2 else "two"}, f"key {number}")
        yield ProducerRecord(bills, None, "deleted")

    async def bill_async(record: Record) -> list[ProducerRecord]:
        return list(bill(record))

    service.handler(orders, dead_letter=failed)(bill_async if is_async else bill)
    await run_until(service, lambda: service.finished == 4)
    assert [(record.key, record.value) for record in await read(bootstrap, bills) if record.value] == [
        (b"key %d" % number, b'{"amount":%d}' % number) for number in (0, 1, 3)
    ]
    (letter_,) = await read(bootstrap, failed)
    assert letter_.value == b"2"  # as it was read
    assert b"the value cannot be encoded" in (dict(letter_.headers)["kohort.error.message"] or b"")


async def test_a_middleware_that_forgets_to_return_loses_no_results(
    bootstrap: str, new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(2))
    service = make(interval_ms=20)

    @service.middleware
    async def drop_first(record: Record, call_next: Any) -> Any:
        result = await call_next(record)
        return [] if record.offset == 0 else result

    @service.middleware
    async def forgetful(record: Record, call_next: Any) -> Any:
        result = await call_next(record)
        if record.offset == 0:
            return result
        return None

    service.handler(orders)(plain(bills))
    with pytest.raises(HandlerFailedError, match=r"offset 1 .*middleware .*forgetful returned None"):
        await run_until(service, lambda: False)
    assert await read_values(bootstrap, bills) == []


@pytest.mark.kafka
@both_protocols
async def test_a_batch_handler_gives_out_records(
    bootstrap: str, new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders, sums = new_topic("orders", partitions=1), new_topic("sums", partitions=1)
    await asyncio.to_thread(produce, orders, range(100))
    service = make(max_records=3)

    @service.batch_handler(orders, max_records=10)
    def add(records: list[Record]) -> list[ProducerRecord]:
        return [ProducerRecord(sums, b"%d" % sum(int(record.value or b"") for record in records))]

    await run_until(service, lambda: service.finished == 100)
    assert sum(int(value or b"") for value in await read_values(bootstrap, sums)) == sum(range(100))


@pytest.mark.kafka
async def test_a_call_that_fails_writes_nothing_and_its_dead_letter_is_in_the_transaction(
    bootstrap: str, new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders, bills, letters = (new_topic(name, partitions=1) for name in ("orders", "bills", "letters"))
    await asyncio.to_thread(produce, orders, range(20))
    service = make(interval_ms=10)
    tries: Counter[bytes | None] = Counter()

    @service.handler(orders, retry=Retry(attempts=3, backoff_ms=1), dead_letter=letters)
    def bill(record: Record) -> Iterator[ProducerRecord]:
        tries[record.value] += 1
        yield ProducerRecord(bills, record.value)
        if record.value == b"7" or tries[record.value] < 2:
            raise ValueError(record.value)

    await run_until(service, lambda: service.finished == 20)
    assert await read_values(bootstrap, bills) == [b"%d" % n for n in range(20) if n != 7]
    (found,) = await read(bootstrap, letters)
    assert (found.value, dict(found.headers)["kohort.origin.offset"]) == (b"7", b"7")


@pytest.mark.kafka
async def test_letters_of_other_groups_hold_no_dead_letter_up(
    bootstrap: str,
    new_topic: Topics,
    make: Callable[..., ConsumerService],
    group: Group,
) -> None:
    orders, letters = new_topic("orders", partitions=1), new_topic("letters", partitions=1)
    name, retries = group("billing"), f"{orders}.retry.1"
    async with Producer(bootstrap=bootstrap) as sender:
        first = Record(orders, 0, 0, 1_000, b"key", b"value")
        for whose in ("shipping", name, "shipping"):
            sent = make_letter(retries, 1, first, ValueError("bad"), 1, whose, 0)
            await sender.send_and_wait(*sent)
    service = make(name, interval_ms=1)

    @service.batch_handler(orders, retry_after_ms=[1], dead_letter=letters)
    async def bill(records: list[Record]) -> None:
        raise ValueError(len(records))

    await run_until(service, lambda: service.finished == 3)
    assert await read_values(bootstrap, letters) == [b"value"]


@pytest.mark.kafka
async def test_what_ended_out_of_order_waits_for_what_is_in_front_of_it(
    bootstrap: str, new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(10))
    service = make(interval_ms=0)
    free, others = asyncio.Event(), 0

    @service.handler(orders, lanes="none")
    async def bill(record: Record) -> ProducerRecord:
        nonlocal others
        if record.value == b"3":
            await free.wait()
        else:
            others += 1
        return ProducerRecord(bills, record.value)

    async def is_seen() -> bool:
        values = await read_values(bootstrap, bills)
        assert free.is_set() or sorted(map(bytes, filter(None, values))) <= [b"0", b"1", b"2"]
        if others == 9 and len(values) == 3:
            free.set()
        return len(values) == 10

    await run_until(service, is_seen)
    assert len(await read_values(bootstrap, bills)) == 10


@pytest.mark.kafka
async def test_what_cannot_be_written_stops_the_service_and_nothing_is_committed(
    bootstrap: str, new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", 1, max_message_bytes="1000")
    await asyncio.to_thread(produce, orders, range(3))
    service = make()
    service.handler(orders)(lambda record: ProducerRecord(bills, record.value * 5_000))
    with pytest.raises(OutputError, match="MESSAGE_TOO_LARGE"):
        await run_until(service, lambda: False)
    assert await read_values(bootstrap, bills) == []
    async with Cluster(bootstrap) as cluster:
        assert await cluster.committed(service.group) == {}


@pytest.mark.kafka
@pytest.mark.parametrize("before", ["send_offsets", "commit_transaction"])
@pytest.mark.parametrize("given", [False, True])
async def test_a_transaction_that_was_open_for_too_long_is_begun_anew_by_a_new_producer(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    given: bool,
) -> None:
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(20))
    service = make(interval_ms=0, transactional_id=bills if given else None)
    service.handler(orders)(plain(bills))
    original, fenced = getattr(Producer, before), False

    async def fence_first(producer: Producer, *arguments: Any) -> None:
        nonlocal fenced
        if not fenced:
            fenced = True
            await producer.flush()
            # as the coordinator does it when the time is over
            async with Cluster(bootstrap) as cluster:
                await cluster.retrying(
                    lambda: init_producer_id(cluster, producer.config.transactional_id, timeout_ms=5_000)
                )
        await original(producer, *arguments)

    monkeypatch.setattr(Producer, before, fence_first)
    if given:  # it may have been another process
        with pytest.raises(OutputError, match="Another producer of the name"):
            await run_until(service, lambda: False)
        assert await read_values(bootstrap, bills) == []
        return
    await run_until(service, lambda: service.finished == 20)
    assert await read_values(bootstrap, bills) == [b"%d" % number for number in range(20)]


@pytest.mark.kafka
@both_protocols
async def test_a_handler_may_take_longer_than_a_transaction_may_stay_open(
    bootstrap: str, new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders, bills = new_topic("orders", partitions=2), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(6), partitions=2)
    service = make(interval_ms=0, transaction_timeout_ms=1_000)
    calls: list[bytes | None] = []

    @service.handler(orders)
    async def bill(record: Record) -> AsyncIterator[ProducerRecord]:
        calls.append(record.value)
        yield ProducerRecord(bills, record.value)
        if record.value in (b"0", b"3"):
            await asyncio.sleep(2.5)
        yield ProducerRecord(bills, record.value)

    await run_until(service, lambda: service.finished == 6)
    wanted = [b"%d" % number for number in range(6)]
    assert Counter(await read_values(bootstrap, bills)) == Counter(2 * wanted)
    assert sorted(map(bytes, filter(None, calls))) == wanted, "no call was made again"


@pytest.mark.kafka
@both_protocols
@pytest.mark.parametrize("lanes", ["partition", "key"])
async def test_while_members_come_and_go_each_record_is_handled_and_written_once(
    bootstrap: str,
    new_topic: Topics,
    group: Group,
    produce: Produce,
    make: Callable[..., ConsumerService],
    lanes: Any,
) -> None:
    orders, bills = new_topic("orders", partitions=6), new_topic("bills", partitions=1)
    calls: Counter[bytes | None] = Counter()
    name = group("billing")
    services = [make(name, interval_ms=10) for _ in range(3)]

    async def bill(record: Record) -> AsyncIterator[ProducerRecord]:
        calls[record.value] += 1
        await asyncio.sleep(random.random() / 50)
        yield ProducerRecord(bills, record.value)

    for service in services:
        service.handler(orders, lanes=lanes)(bill)

    async def work(service: ConsumerService, share: int) -> None:
        """Until so many records have been handled by all."""
        await run_until(service, lambda: calls.total() >= share)

    async def feed() -> None:
        for turn in range(10):
            await asyncio.to_thread(produce, orders, range(turn * 60, turn * 60 + 60), partitions=6)

    feeding = asyncio.create_task(feed())
    first = asyncio.create_task(work(services[0], 600))
    for service, share in zip(services[1:], (300, 450), strict=True):
        await work(service, share)
    await asyncio.gather(feeding, first)
    wanted = [b"%d" % number for number in range(600)]
    assert Counter(await read_values(bootstrap, bills)) == Counter(wanted)
    assert calls == Counter(wanted), "finished calls are committed before their partitions go"


@pytest.mark.kafka
@both_protocols
@pytest.mark.parametrize("former", ["generation", "member"])
async def test_a_member_that_does_not_know_yet_that_it_was_replaced_writes_nothing(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    monkeypatch: pytest.MonkeyPatch,
    former: str,
) -> None:
    orders, bills = new_topic("orders", partitions=2), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(10), partitions=2)
    service = make(interval_ms=0)
    service.handler(orders)(plain(bills))
    abort, known, aborted = Producer.abort_transaction, AsyncGroupConsumer.group_metadata, 0

    def replaced(consumer: AsyncGroupConsumer) -> GroupMetadata:
        group, generation, member, instance = known(consumer)
        if former == "generation":
            return GroupMetadata(group, generation - 1, member, instance)
        return GroupMetadata(group, generation, f"{member}-gone", instance)

    async def counted(producer: Producer) -> None:
        nonlocal aborted
        await abort(producer)
        aborted += 1

    async def is_seen() -> bool:
        if aborted < 2:
            assert await read_values(bootstrap, bills) == []
            return False
        monkeypatch.setattr(AsyncGroupConsumer, "group_metadata", known)
        return service.finished == 10

    monkeypatch.setattr(AsyncGroupConsumer, "group_metadata", replaced)
    monkeypatch.setattr(Producer, "abort_transaction", counted)
    await run_until(service, is_seen)
    found = await read_values(bootstrap, bills)
    assert Counter(found) == Counter(b"%d" % number for number in range(10))


@pytest.mark.kafka
@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
async def test_the_end_of_a_transaction_is_asked_for_until_its_outcome_is_known(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    monkeypatch: pytest.MonkeyPatch,
    end: str,
) -> None:
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(20))
    service = make(interval_ms=0)
    service.handler(orders)(plain(bills))
    original, send_offsets = getattr(Producer, end), Producer.send_offsets
    failures: list[Exception] = [
        BrokerConnectionError(bootstrap, "connection reset by peer"),
        KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "ending it"),
    ]

    async def fails_twice(producer: Producer) -> None:
        if failures:
            raise failures.pop()
        await original(producer)

    async def refused_once(producer: Producer, *arguments: Any) -> None:
        monkeypatch.setattr(Producer, "send_offsets", send_offsets)
        former = GroupMetadata(service.group, 999, "gone")
        await send_offsets(producer, arguments[0], former)

    if end == "abort_transaction":
        monkeypatch.setattr(Producer, "send_offsets", refused_once)
    monkeypatch.setattr(Producer, end, fails_twice)
    await run_until(service, lambda: service.finished == 20)
    assert not failures
    assert await read_values(bootstrap, bills) == [b"%d" % number for number in range(20)]


@pytest.mark.kafka
async def test_what_is_no_record_is_the_handlers_error(
    new_topic: Topics, produce: Produce, make: Callable[..., ConsumerService]
) -> None:
    orders = new_topic("orders", partitions=1)
    await asyncio.to_thread(produce, orders, range(1))
    service = make()
    service.handler(orders)(lambda _: "a bill")
    with pytest.raises(HandlerFailedError, match=r"gave out str: with exactly_once\(KafkaOutput"):
        await run_until(service, lambda: False)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"max_records": 0}, "max_records=0"),
        ({"interval_ms": -1}, "interval_ms=-1"),
        ({"bootstrap": "a:1"}, "bootstrap is a setting of the service"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism is a setting of the service"),
        ({"compression": "brotli"}, "compression='brotli'"),
        ({"acks": 1}, "transactional_id needs acks='all'"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        KafkaOutput(**settings)


def test_a_generator_needs_a_place_for_what_it_gives_out() -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    with pytest.raises(SignatureError, match=r"exactly_once\(KafkaOutput\(\)\) before it"):
        service.handler("orders")(plain_generator("bills"))


def test_there_is_one_sink() -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    service.exactly_once(KafkaOutput())
    with pytest.raises(ConfigError, match="there is a sink already"):
        service.exactly_once(KafkaOutput())


#: Members that are killed or stopped are missed after this time.
SESSION_MS = 1_000

MEMBER = f"""
import sys
from kohort.service import ConsumerService, KafkaOutput
from kohort.producer import Producer, ProducerRecord

bootstrap, group, orders, bills, lanes, protocol = sys.argv[1:]
service = ConsumerService(
    bootstrap=bootstrap, group=group, auto_offset_reset="earliest", session_timeout_ms={SESSION_MS},
    heartbeat_interval_ms=200, protocol=protocol,
)
service.exactly_once(KafkaOutput(interval_ms=20, transaction_timeout_ms=3_000))

@service.handler(orders, lanes=lanes)
async def bill(record):
    yield ProducerRecord(bills, record.value, record.key)
    yield ProducerRecord(bills, b"again " + record.value, record.key)

service.run()
"""


@pytest.mark.slow(20)
@pytest.mark.kafka
@pytest.mark.parametrize(("lanes", "protocol"), [("key", "classic"), ("partition", "consumer")])
async def test_through_kills_and_hangs_each_record_is_in_the_output_exactly_once(
    bootstrap: str,
    new_topic: Topics,
    group: Group,
    produce: Produce,
    tmp_path: Path,
    lanes: str,
    protocol: str,
) -> None:
    records, kills = 1_200, 8
    orders, bills, name = new_topic("orders", partitions=6), new_topic("bills"), group("billing")
    await asyncio.to_thread(shorten_sessions, bootstrap, name, SESSION_MS)

    def send(round_: int) -> None:
        produce(orders, range(round_ * records // kills, (round_ + 1) * records // kills), partitions=6)

    with processes(tmp_path, MEMBER, bootstrap, name, orders, bills, lanes, protocol) as members:
        await asyncio.to_thread(members.disturb, kills, send)
        found: list[bytes] = []
        async with asyncio.timeout(120):
            while len(found) < 2 * records:
                await asyncio.sleep(0.2)
                found = [bytes(value) for value in await read_values(bootstrap, bills) if value]
        await asyncio.to_thread(members.end)
        found = [bytes(value) for value in await read_values(bootstrap, bills) if value]
    wanted = [b"%d" % number for number in range(records)]
    assert Counter(found) == Counter([*wanted, *(b"again " + value for value in wanted)])


@pytest.mark.kafka
async def test_offsets_behind_records_that_were_aborted_are_committed_without_a_call(
    bootstrap: str,
    new_topic: Topics,
    group: Group,
    make: Callable[..., ConsumerService],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_output, "PASSED_S", 0.1)
    attempt, attempts = kafka_output.KafkaTransactions._attempt_commit, list[int]()

    async def count_attempt(self: kafka_output.KafkaTransactions, *given: Any) -> None:
        attempts.append(len(given[0]))
        await attempt(self, *given)

    monkeypatch.setattr(kafka_output.KafkaTransactions, "_attempt_commit", count_attempt)
    orders, bills, name = (
        new_topic("orders", partitions=1),
        new_topic("bills", partitions=1),
        group("billing"),
    )
    service = make(name)
    service.handler(orders)(plain(bills))
    place = TopicPartition(orders, 0)
    async with (
        Cluster(bootstrap) as cluster,
        Producer(bootstrap=bootstrap, transactional_id=group("orders")) as producer,
    ):
        aborted = False

        async def caught_up() -> bool:
            nonlocal aborted
            committed = (await cluster.committed(name)).get(place)
            if committed is not None and committed.offset == 2 and not aborted:
                producer.begin_transaction()
                await producer.send_and_wait(orders, b"never")
                await producer.abort_transaction()
                aborted = True
            if committed is None or committed.offset < 4:
                return False
            # what is committed is not committed again
            before = len(attempts)
            await asyncio.sleep(0.5)
            assert len(attempts) == before
            return True

        async with producer.transaction():
            await producer.send(orders, b"first")
        await run_until(service, caught_up)
    assert await read_values(bootstrap, bills) == [b"first"]


@pytest.mark.kafka
async def test_offsets_are_committed_again_now_and_then_so_that_they_do_not_expire(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_output, "PASSED_S", 0.05)
    monkeypatch.setattr(kafka_output, "MEMBER_REPEAT_MS", 300)
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", partitions=1)
    produce(orders, range(2))
    sent: list[int] = []
    send_offsets = Producer.send_offsets

    async def noted(producer: Producer, offsets: Any, member: Any) -> None:
        sent.append(offsets[TopicPartition(orders, 0)].offset)
        await send_offsets(producer, offsets, member)

    monkeypatch.setattr(Producer, "send_offsets", noted)
    service = make()
    service.handler(orders)(plain(bills))
    await run_until(service, lambda: sent.count(2) == 3)
    assert sorted(sent) == sent
    assert len(await read_values(bootstrap, bills)) == 2
