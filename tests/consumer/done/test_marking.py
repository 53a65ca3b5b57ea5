"""Records marked done, by both faces of the consumer."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, GroupConsumer, Record, StaleRecordError
from kohort.consumer.done.tracker import NEVER_MARKED, Tracker
from kohort.protocol import TopicPartition
from kohort.testing import RunningBroker
from tests.waiting import until

KEPT, GONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


def _unstarted(**config: Any) -> AsyncGroupConsumer:
    """A consumer whose records the test delivers itself."""
    consumer = AsyncGroupConsumer("orders", bootstrap="127.0.0.1:1", group="billing", **config)
    consumer._parts = consumer.parts
    return consumer


def _deliver(consumer: AsyncGroupConsumer, partition: TopicPartition, count: int) -> list[Record]:
    session = consumer.parts.tracker.get(partition) or consumer.parts.tracker.begin_session(partition, 0)
    first = session.position
    session.delivered_all(range(first, first + count))
    return [
        Record(*partition, offset, 0, None, None, session_id=session.session_id)
        for offset in range(first, first + count)
    ]


@pytest.mark.parametrize("order", ["in order", "backwards", "shuffled"])
async def test_a_batch_of_several_partitions_may_be_done_in_any_order(order: str) -> None:
    consumer = _unstarted()
    records = [
        each
        for pair in zip(_deliver(consumer, KEPT, 50), _deliver(consumer, GONE, 50), strict=True)
        for each in pair
    ]
    if order == "backwards":
        records.reverse()
    elif order == "shuffled":
        random.Random(3).shuffle(records)
    half = len(records) // 2
    consumer.done_all(iter(records[:half]))
    for record in records[half:]:
        consumer.done(record)
    assert consumer.state.undone == 0
    assert {p: row.offset for p, row in consumer.parts.tracker.committable().items()} == {KEPT: 50, GONE: 50}


async def test_nothing_is_done_by_an_empty_batch() -> None:
    consumer = _unstarted()
    _deliver(consumer, KEPT, 3)
    consumer.done_all([])
    assert consumer.state.undone == 3


async def test_a_batch_of_which_a_partition_was_lost_is_done_for_the_others() -> None:
    consumer = _unstarted()
    records = _deliver(consumer, GONE, 5) + _deliver(consumer, KEPT, 5)
    consumer.parts.tracker.end_session(GONE)
    with pytest.raises(StaleRecordError, match="orders-1 offset 0"):
        consumer.done_all(records)
    assert consumer.state.undone == 0


async def test_a_record_of_another_consumer_in_the_process_is_refused_wherever_it_comes() -> None:
    orders, payments = _unstarted(), _unstarted()
    foreign, ours = _deliver(payments, KEPT, 3), _deliver(orders, KEPT, 3)
    for record in foreign:
        with pytest.raises(StaleRecordError, match="another consumer"):
            orders.done(record)
    with pytest.raises(StaleRecordError):
        orders.done_all([*foreign, *ours[:2]])
    assert (orders.state.undone, payments.state.undone) == (1, 3)


def test_the_batch_that_was_given_last_is_done_for_what_is_kept_when_a_partition_was_given_up(
    kohort_broker: RunningBroker,
) -> None:
    kohort_broker.create_topic("orders", 2)
    for partition in range(2):
        kohort_broker.produce("orders", ["x"] * 10, partition=partition)
    settings: dict[str, Any] = {
        "bootstrap": kohort_broker.bootstrap,
        "group": "billing",
        "drain_timeout_ms": 0,
    }

    async def by_loop() -> int:
        async with AsyncGroupConsumer(
            partitions=[KEPT, GONE], auto_offset_reset="earliest", **settings
        ) as consumer:
            while len(batch := await consumer.getmany(20, 100)) < 20:
                # both at once, as one batch
                for partition in {record.topic_partition for record in batch}:
                    consumer.seek(partition, 0)
            consumer.assign(KEPT)
            await until(lambda: consumer.parts.tracker.get(GONE) is None)
            with pytest.raises(StaleRecordError):
                consumer.done_all(batch)
            return consumer.state.undone

    assert asyncio.run(by_loop()) == 0
    with GroupConsumer(
        partitions=[KEPT, GONE], auto_offset_reset="earliest", **{**settings, "group": "again"}
    ) as consumer:
        records: list[Record] = []
        while len(records) < 20:
            records += consumer.getmany(20)
        consumer.assign(KEPT)
        deadline = time.monotonic() + 20
        while any(session.partition == GONE for session in consumer._sessions.values()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(StaleRecordError):
            consumer.done_all(records)
        consumer.commit()
        assert consumer.state.undone == 0
        assert consumer.committed(KEPT)[KEPT].offset == 10


def test_who_keeps_offsets_elsewhere_and_never_marks_a_record_is_not_waited_for() -> None:
    tracker = Tracker(commits=False)
    session = tracker.begin_session(KEPT, 0)
    for _ in range(NEVER_MARKED):
        assert tracker.first_undone([KEPT]) == ({KEPT: 0} if session.undone else {})
        session.delivered_all([session.position])
        tracker.given_out += 1
    assert tracker.first_undone([KEPT]) == {}


@pytest.mark.parametrize("marked", ["in this session", "in one before"])
def test_who_has_marked_a_record_is_waited_for(marked: str) -> None:
    tracker = Tracker(commits=False)
    session = tracker.begin_session(KEPT, 0)
    session.delivered_all(range(4))
    session.done(2)
    tracker.given_out = 10 * NEVER_MARKED
    if marked == "in one before":
        tracker.end_session(KEPT)
        tracker.begin_session(KEPT, 0).delivered_all(range(4))
    assert tracker.first_undone([KEPT]) == {KEPT: 0}


def test_a_consumer_that_commits_by_itself_is_always_waited_for() -> None:
    tracker = Tracker()
    tracker.begin_session(KEPT, 0).delivered_all([0])
    tracker.given_out = 10 * NEVER_MARKED
    assert tracker.first_undone([KEPT]) == {KEPT: 0}
