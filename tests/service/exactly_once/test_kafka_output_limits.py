"""Results that wait for their transaction have a limit, and letters in transactions may be large.

Covers: service/exactly_once/kafka_output.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from kohort.consumer import Record
from kohort.producer import Producer, ProducerRecord
from kohort.service import ConsumerService, KafkaOutput, Retry
from kohort.service.exactly_once.kafka_output import KafkaTransactions
from tests.consumer.conftest import QUICK
from tests.producer.reading import read, read_values
from tests.service.exactly_once.test_kafka_output import run_until

Topics = Callable[..., str]
Group = Callable[[str], str]
Produce = Callable[..., None]

RESULT_BYTES = 20_000
MOST_BYTES = 100_000


@pytest.fixture
def make(bootstrap: str, group: Group) -> Callable[..., ConsumerService]:
    def service(**output: Any) -> ConsumerService:
        made = ConsumerService(**{**QUICK, "bootstrap": bootstrap, "group": group("billing")})
        made.exactly_once(KafkaOutput(**output))
        return made

    return service


@pytest.fixture
def waiting_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of results that wait, after each call of a handler."""
    add, seen = KafkaTransactions.add, []

    def watched(output: KafkaTransactions, *given: Any, **named: Any) -> None:
        add(output, *given, **named)
        seen.append(output._waiting_bytes)

    monkeypatch.setattr(KafkaTransactions, "add", watched)
    return seen


@pytest.mark.kafka
async def test_no_call_begins_while_the_results_that_wait_fill_the_buffer(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    waiting_bytes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders, bills = new_topic("orders", partitions=2), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(60), partitions=2)
    service = make(buffer_memory=MOST_BYTES, interval_ms=0)
    commit, answers = Producer.commit_transaction, asyncio.Event()

    async def committed_late(producer: Producer) -> None:
        await answers.wait()
        await commit(producer)

    monkeypatch.setattr(Producer, "commit_transaction", committed_late)

    @service.handler(orders)
    async def bill(record: Record) -> ProducerRecord:
        return ProducerRecord(bills, bytes(RESULT_BYTES), record.key)

    async def is_done() -> bool:
        if waiting_bytes and waiting_bytes[-1] > MOST_BYTES and not answers.is_set():
            calls = len(waiting_bytes)
            await asyncio.sleep(0.2)
            assert len(waiting_bytes) <= calls + 1, "only the call of the other partition ends"
            answers.set()
        return service.finished == 60

    await run_until(service, is_done)
    assert max(waiting_bytes) < MOST_BYTES + 3 * RESULT_BYTES
    assert len(await read_values(bootstrap, bills)) == 60


@pytest.mark.kafka
async def test_a_record_that_the_results_wait_for_is_handled_though_they_fill_the_buffer(
    bootstrap: str,
    new_topic: Topics,
    produce: Produce,
    make: Callable[..., ConsumerService],
    waiting_bytes: list[int],
) -> None:
    orders, bills = new_topic("orders", partitions=1), new_topic("bills", partitions=1)
    await asyncio.to_thread(produce, orders, range(40))
    service = make(buffer_memory=MOST_BYTES, interval_ms=0)

    @service.handler(orders, lanes="none", concurrency=2, retry=Retry(attempts=1_000_000, backoff_ms=1))
    async def bill(record: Record) -> ProducerRecord:
        if record.offset == 0 and max(waiting_bytes, default=0) <= MOST_BYTES:
            raise ConnectionError("not yet")
        return ProducerRecord(bills, bytes(RESULT_BYTES), record.key)

    await run_until(service, lambda: service.finished == 40)
    assert max(waiting_bytes) < MOST_BYTES + 3 * RESULT_BYTES
    assert len(await read_values(bootstrap, bills)) == 40


@pytest.mark.kafka
@pytest.mark.parametrize("retry_after_ms", [[], [1]])
async def test_a_record_that_came_compressed_can_be_set_aside_whatever_the_limits_of_results(
    bootstrap: str,
    new_topic: Topics,
    make: Callable[..., ConsumerService],
    retry_after_ms: list[int],
) -> None:
    orders, letters = (new_topic(name, 1, max_message_bytes="20000") for name in ("orders", "letters"))
    value = b'{"order": 5, "state": "new"}' * 20_000
    async with Producer(bootstrap=bootstrap, compression="gzip") as producer:
        await producer.send_and_wait(orders, value)
    service = make(interval_ms=1, max_request_size=10_000, buffer_memory=10_000)

    @service.handler(orders, retry_after_ms=retry_after_ms, dead_letter=letters)
    async def bill(record: Record) -> ProducerRecord:
        raise ValueError(record.offset)

    await run_until(service, lambda: service.finished == 1)
    assert await read_values(bootstrap, letters) == [value]


@pytest.mark.kafka
@pytest.mark.parametrize("exactly_once", [False, True])
async def test_a_letter_leaves_out_its_stack_where_the_record_just_fits(
    bootstrap: str, new_topic: Topics, group: Group, exactly_once: bool
) -> None:
    orders, letters = (new_topic(name, 1, max_message_bytes="10000") for name in ("orders", "letters"))
    value = random.Random(1).randbytes(9_500)
    async with Producer(bootstrap=bootstrap) as producer:
        await producer.send_and_wait(orders, value)
    service = ConsumerService(**{**QUICK, "bootstrap": bootstrap, "group": group("billing")})
    if exactly_once:
        service.exactly_once(KafkaOutput(interval_ms=1))

    @service.handler(orders, dead_letter=letters)
    async def bill(record: Record) -> None:
        raise ValueError("no " + record.value.hex())  # type: ignore[union-attr]

    await run_until(service, lambda: service.finished == 1)
    (letter,) = await read(bootstrap, letters)
    headers = dict(letter.headers)
    assert letter.value == value
    assert (headers["kohort.error.stack"], headers["kohort.error.class"]) == (b"", b"builtins.ValueError")
    assert (headers["kohort.error.message"] or b"").startswith(b"no ")
