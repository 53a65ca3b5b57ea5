"""Records as Arrow batches: what comes, what counts as done, what is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kohort.consumer import AsyncGroupConsumer, GroupConsumer, StaleRecordError
from kohort.consumer.reading.arrow import SCHEMA, SCHEMA_WITH_HEADERS
from kohort.protocol import TopicPartition
from tests.consumer.conftest import QUICK
from tests.consumer.members import Maker, numbers, read
from tests.waiting import until

pytestmark = pytest.mark.kafka

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


async def _take(consumer: AsyncGroupConsumer, rows: int, **options: Any) -> list[pa.RecordBatch]:
    """Batches of so many rows in all."""
    taken: list[pa.RecordBatch] = []
    async with asyncio.timeout(20):
        async for batch in consumer.arrow_batches(**options):
            taken.append(batch)
            if sum(each.num_rows for each in taken) >= rows:
                break
    return taken


def _values(batches: list[pa.RecordBatch]) -> list[int]:
    return [int(value) for batch in batches for value in batch["value"].to_pylist()]


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_loop_that_is_left_and_begun_again_goes_on_where_it_was(
    bootstrap: str, member: Maker, new_topic: NewTopic, group: Name, produce: Produce, blocking: bool
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(50), linger_ms=60_000)

    def read_blocking() -> list[pa.RecordBatch]:
        with GroupConsumer(topic, bootstrap=bootstrap, group=name, **QUICK) as consumer:
            return [next(consumer.arrow_batches(max_rows=10)) for _ in range(5)]

    if blocking:
        batches = await asyncio.to_thread(read_blocking)
    else:
        consumer = await member(topic, group=name)
        batches = [batch for _ in range(4) for batch in await _take(consumer, 1, max_rows=10)]
        assert consumer.state.undone == 40
        assert numbers(await read(consumer, 10)) == list(range(40, 50)), "what was not given comes as records"
    assert _values(batches) == list(range(50 if blocking else 40))


async def test_batches_hold_what_was_produced_and_are_done_as_wholes(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    # one record batch, however slow the producer is: flushing ends the wait
    await asyncio.to_thread(produce, topic, range(50), compression_type="gzip", linger_ms=60_000)
    first = await member(topic, group=name)
    batches = await _take(first, 50, max_rows=20)
    assert [batch.num_rows for batch in batches] == [20, 20, 10]
    assert _values(batches) == list(range(50))
    assert batches[0].schema.equals(SCHEMA)
    first.done_batch(batches[0].select(["value"]).slice(5, 1))
    first.done_batch(batches[2])
    assert first.state.undone == 20
    await first.close()
    second = await member(topic, group=name)
    assert _values(await _take(second, 20)) == list(range(20, 40)), "the middle was not done"
    await second.close()
    third = await member(topic, group=name)
    assert numbers(await read(third, 20)) == list(range(20, 40))


async def test_what_an_earlier_member_had_done_beyond_the_gap_is_left_out(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(30))
    first = await member(topic, group=name)
    records = await read(first, 30)
    first.done_all(records[3:7] + records[10:12])
    await first.close()
    second = await member(topic, group=name)
    left = [n for n in range(30) if n not in {3, 4, 5, 6, 10, 11}]
    assert _values(await _take(second, len(left))) == left


async def test_records_and_batches_may_take_turns(
    member: Maker, filled_topic: Callable[..., str], group: Name, produce: Produce
) -> None:
    topic = filled_topic(20)
    consumer = await member(topic, group=group("billing"))
    assert numbers(await read(consumer, 4)) == [0, 1, 2, 3]
    batches = await _take(consumer, 16, include_headers=True)
    assert _values(batches) == list(range(4, 20))
    assert batches[0].schema.equals(SCHEMA_WITH_HEADERS)
    await asyncio.to_thread(produce, topic, [20])
    assert numbers(await read(consumer, 1)) == [20]


async def test_a_batch_of_a_partition_sought_elsewhere_is_stale_and_one_from_elsewhere_is_refused(
    member: Maker, filled_topic: Callable[..., str], group: Name
) -> None:
    topic = filled_topic(5)
    consumer = await member(topic, group=group("billing"))
    (batch,) = await _take(consumer, 5)
    consumer.seek(TopicPartition(topic, 0), 2)
    with pytest.raises(StaleRecordError, match="batch from offset 0"):
        consumer.done_batch(batch)
    with pytest.raises(ValueError, match="not from arrow_batches"):
        consumer.done_batch(batch.replace_schema_metadata(None))
    assert _values(await _take(consumer, 3)) == [2, 3, 4]


def test_the_blocking_face_commits_what_is_done(
    bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    produce(topic, range(40), partitions=2)
    rows = 0
    with GroupConsumer(topic, bootstrap=bootstrap, group=name, **QUICK) as consumer:
        for batch in consumer.arrow_batches():
            consumer.done_batch(batch)
            rows += batch.num_rows
            if rows == 40:
                break
        consumer.commit()
        assert {p.partition: row.offset for p, row in consumer.committed().items()} == {0: 20, 1: 20}


async def test_a_paused_partition_gives_no_batches(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic = new_topic("orders", partitions=2)
    consumer = await member(topic, group=group("billing"))
    await until(lambda: len(consumer.assignment()) == 2)
    consumer.pause(TopicPartition(topic, 0))
    await asyncio.to_thread(produce, topic, range(10), partitions=2)
    assert _values(await _take(consumer, 5)) == [1, 3, 5, 7, 9]
