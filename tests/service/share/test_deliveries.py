"""What becomes of records of a share group that a handler failed with: held, released, rejected, archived."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from kohort.client.errors import ConfigError
from kohort.consumer.share.records import RecordLock
from kohort.protocol import AcknowledgeType
from kohort.service import (
    ConsumerService,
    DbApiSink,
    InvalidRecordError,
    KafkaOutput,
    LastDeliveryError,
    Retry,
)
from kohort.service.handlers import handler as handlers
from kohort.service.handlers.handler import Handler
from kohort.service.handlers.registration import make_handler
from kohort.service.letters.deadletter import DeadLetterError
from kohort.service.run.queues import Outcome
from kohort.service.run.running_handler import RunningHandler
from kohort.service.share.deliveries import Deliveries, LockedRecord
from tests.consumer.share.records import Desk
from tests.service.handlers.test_handler import Post

RETRIES = Retry(attempts=4, backoff_ms=1_000, jitter=0.0)


def locked(*counts: int) -> list[LockedRecord]:
    """Records at these deliveries, acquired now."""
    desk = Desk()
    now = asyncio.get_running_loop().time() * 1000
    records = []
    for offset, count in enumerate(counts):
        (share,) = desk.take(offset, delivery_count=count)
        share.lock = RecordLock(now, now + 30_000)
        records.append(LockedRecord.of(share))
    return records


def shared(function: Callable[..., Any], **options: Any) -> Handler:
    handler = make_handler(function, ("orders",), in_share=True, **options)
    handler.deliveries = Deliveries(hold_ms=60_000, max_processing_ms=300_000)
    return handler


async def fail(_: LockedRecord) -> None:
    raise ConnectionError("the bank is closed")


async def outcome_of(handler: Handler, records: list[LockedRecord], post: Post, attempt: int = 1) -> Outcome:
    return await handler.run(list(records), attempt, None, post)


def verdicts(records: list[LockedRecord]) -> list[AcknowledgeType | None]:
    return [record.share.verdict for record in records]


async def test_a_record_is_held_until_its_next_try_and_each_delivery_counts_as_one() -> None:
    records, post = locked(3), Post()
    assert await outcome_of(shared(fail, retry=RETRIES, dead_letter="graves"), records, post) == 4.0
    assert verdicts(records) == [None]
    assert post.letters == []


async def test_what_has_no_try_left_is_rejected_once_its_letter_is_written() -> None:
    records, post = locked(1), Post()
    handler = shared(fail, retry=RETRIES, dead_letter="graves")

    async def look(*_: object, **__: object) -> None:
        assert verdicts(records) == [None]

    assert await handler.run(list(records), 4, None, look) is None
    assert verdicts(records) == [AcknowledgeType.REJECT]
    assert await outcome_of(handler, locked(4), post) is None
    assert [(topic, attempts) for topic, _, _, attempts in post.letters] == [("graves", 4)]


@pytest.mark.parametrize(("hold_ms", "lock_ms"), [(500, 300_000), (60_000, 500)])
async def test_where_the_wait_is_too_long_for_the_lock_the_record_is_released(
    hold_ms: float, lock_ms: float
) -> None:
    retry = Retry(attempts=10, backoff_ms=1_000, jitter=0.0)
    handler, post = shared(fail, retry=retry, dead_letter="graves"), Post()
    handler.deliveries = Deliveries(hold_ms=hold_ms, max_processing_ms=lock_ms)
    for record in (records := locked(1, 2, 3, 4)):
        record.share.lock = RecordLock(0.0, 0.0) if lock_ms == 500 else record.share.lock
    for record in records:
        assert await outcome_of(handler, [record], post) is None
    # the fifth delivery would be for the letter alone, so the fourth writes it, with the handler's error
    assert verdicts(records) == [AcknowledgeType.RELEASE] * 3 + [AcknowledgeType.REJECT]
    assert handler.counters.released == 3


async def test_the_last_delivery_is_for_the_letter_where_it_has_a_topic() -> None:
    records, post = locked(4, 5), Post()
    handler = shared(fail, dead_letter={LastDeliveryError: "killed"})
    assert [handler.is_for_letter(record) for record in records] == [False, True]
    await handler.bury(records[1], post)
    assert verdicts(records) == [None, AcknowledgeType.REJECT]
    ((topic, offset, error, tries),) = post.letters
    assert (topic, offset, tries) == ("killed", 1, 4)
    assert isinstance(error, LastDeliveryError)
    assert not shared(fail, dead_letter={ValueError: "graves"}).is_for_letter(records[1])
    assert not shared(fail).is_for_letter(records[1])


async def test_a_letter_that_cannot_be_written_is_tried_again_with_the_lock_renewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "LETTER_PAUSE_S", 0.0)
    handler, refusals = shared(fail, dead_letter="graves"), [DeadLetterError("no such topic")] * 2
    records = locked(5)
    begun: list[float] = []

    async def send(*_: object, **__: object) -> None:
        assert records[0].share.lock is not None
        begun.append(records[0].share.lock.acquired_ms)
        if refusals:
            raise refusals.pop()

    await handler.bury(records[0], send)
    assert begun == sorted(set(begun))
    assert len(begun) == 3
    assert verdicts(records) == [AcknowledgeType.REJECT]


async def test_a_letter_is_not_tried_again_once_others_have_the_record() -> None:
    handler, records = shared(fail, dead_letter="graves"), locked(5)

    async def send(*_: object, **__: object) -> None:
        records[0].share.lock = None
        raise DeadLetterError("no such topic")

    await handler.bury(records[0], send)
    assert verdicts(records) == [None]


async def test_without_a_dead_letter_topic_the_last_delivery_is_handled_and_its_end_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = shared(fail)
    records = locked(4, 5)
    for record in records:
        assert await outcome_of(handler, [record], Post()) is None
    assert verdicts(records) == [AcknowledgeType.RELEASE] * 2
    assert (handler.counters.released, handler.counters.archived) == (1, 1)
    (line,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "orders-0 at offset 1" in line.getMessage()
    assert "dead_letter='TOPIC'" in line.getMessage()


async def test_a_record_that_cannot_be_decoded_is_set_aside_at_once() -> None:
    handler, post = shared(lambda *_: None, decode=int, retry=RETRIES, dead_letter="graves"), Post()

    async def decode(*_: object) -> None:
        raise InvalidRecordError("no number")

    handler.function, handler.is_async = decode, True
    records = locked(1)
    assert await outcome_of(handler, records, post) is None
    assert verdicts(records) == [AcknowledgeType.REJECT]
    assert handler.counters.invalid == 1


async def test_of_a_record_that_others_have_nothing_is_said_any_more() -> None:
    handler, post = shared(fail, dead_letter="graves"), Post()
    records = locked(1)
    records[0].share.lock = None
    assert await outcome_of(handler, records, post) is None
    assert verdicts(records) == [None]
    assert post.letters == []


async def test_a_changed_copy_knows_its_delivery() -> None:
    (record,) = locked(3)
    changed = record._replace(value=b"plain")
    assert (changed.value, changed.delivery_count, changed.lost) == (b"plain", 3, False)
    record.share.lock = None
    assert changed.lost


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lanes": "key"}, "records of one partition, and of one key, go to several members"),
        ({"lanes": "partition"}, "records of one partition, and of one key, go to several members"),
        ({"retry_after_ms": [100]}, "retry_after_ms needs a dead_letter in a share group"),
    ],
)
def test_what_a_share_group_cannot_do_is_refused_with_the_reason(
    options: dict[str, Any], reason: str
) -> None:
    service = ConsumerService(bootstrap="localhost:9092", group="queue", group_type="share")
    with pytest.raises(ConfigError, match=reason):
        service.handler("orders", **options)(fail)


@pytest.mark.parametrize("sink", [KafkaOutput(), DbApiSink(lambda: sqlite3.connect(":memory:"))])
def test_exactly_once_is_refused_with_the_reason(sink: Any) -> None:
    service = ConsumerService(bootstrap="localhost:9092", group="queue", group_type="share")
    with pytest.raises(ConfigError, match="has no offsets to store with the results"):
        service.exactly_once(sink)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"auto_offset_reset": "earliest"}, "no setting of a share consumer"),
        ({"group_instance_id": "a"}, "no static members"),
        ({"max_locked_records": 0}, "max_locked_records=0"),
        ({"group_type": "queue"}, "one of consumer, share"),
    ],
)
def test_a_service_of_a_share_group_refuses(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ConsumerService(**{"bootstrap": "localhost:9092", "group": "q", "group_type": "share", **settings})


def test_workers_of_a_share_group_have_no_instance_ids() -> None:
    service = ConsumerService(bootstrap="localhost:9092", group="queue", group_type="share")
    service.as_worker(1)
    with pytest.raises(ConfigError, match="no static members"):
        service.as_worker(1, instance_id="queue-1")


class Desks:
    """A running handler whose letters are written when the test says so."""

    def __init__(self) -> None:
        self.written = asyncio.Event()
        self.done: list[int] = []
        self.dropped: list[int] = []
        self.called: list[int] = []
        self.paused: list[bool] = []
        handler = shared(self.handle, dead_letter="graves")
        self.running = RunningHandler(
            handler,
            done=lambda record: self.done.append(record.offset),
            send=self.send,
            on_failure=lambda error: pytest.fail(repr(error)),
            pause=lambda _: self.paused.append(True),
            resume=lambda _: self.paused.append(False),
            give_back=lambda _: None,
            dropped=lambda record: self.dropped.append(record.offset),
        )

    async def handle(self, record: LockedRecord) -> None:
        self.called.append(record.offset)

    async def send(self, *_: object, **__: object) -> None:
        await self.written.wait()


async def test_letters_are_written_ahead_of_what_waits_and_a_stop_waits_for_them() -> None:
    desks, records = Desks(), locked(1, 5)
    desks.running.queues.hold(True)
    desks.running.hand_over(records[0].topic_partition, list(records), 1 << 20)
    release = asyncio.create_task(desks.running.release(None, 30_000))
    await asyncio.sleep(0.01)
    assert not release.done()
    desks.written.set()
    await release
    assert (desks.called, desks.dropped, desks.done) == ([], [0], [1])
    assert verdicts(records) == [None, AcknowledgeType.REJECT]


async def test_letters_that_are_not_written_in_time_are_given_up() -> None:
    desks, records = Desks(), locked(5)
    desks.running.hand_over(records[0].topic_partition, list(records), 1 << 20)
    await desks.running.release(None, 0)
    assert (desks.dropped, desks.done) == ([0], [])
    assert verdicts(records) == [None]


async def test_no_handler_begins_a_record_whose_lock_has_ended_while_it_waited() -> None:
    desks, records = Desks(), locked(1, 1, 1)
    desks.running.queues.hold(True)
    desks.running.hand_over(records[0].topic_partition, list(records), 1 << 20)
    records[1].share.lock = RecordLock(0.0, asyncio.get_running_loop().time() * 1000)
    desks.running.queues.hold(False)
    await asyncio.sleep(0)
    await desks.running.release(None, 30_000)
    assert (sorted(desks.called), sorted(desks.done), desks.dropped) == ([0, 2], [0, 2], [1])


async def test_a_partition_with_too_much_waiting_is_fetched_again_once_others_have_it() -> None:
    desks, records = Desks(), locked(1, 1)
    desks.running.queues.hold(True)
    desks.running.hand_over(records[0].topic_partition, list(records), most_bytes=1)
    assert desks.paused == [True]
    for record in records:
        assert not desks.running.drop(record)
    assert desks.paused == [True, False]
