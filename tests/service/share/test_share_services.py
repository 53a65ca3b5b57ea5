"""Services of share groups on a broker: what is accepted, tried again, released and set aside, and the end.

Covers: service/share/share_source.py, service/share/share_group.py, service/share/deliveries.py.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from kohort.consumer import AsyncGroupConsumer, Record, ShareConsumer
from kohort.consumer.share.records import ShareRecord
from kohort.service import (
    ConsumerService,
    FailedRecordsError,
    LockedRecord,
    Retry,
    read_dead_letter,
)
from kohort.service.share import share_source as _share_source
from tests.group_configs import set_group_configs
from tests.waiting import until

pytestmark = pytest.mark.kafka

NewTopic = Callable[..., str]
Produce = Callable[..., None]
PATIENCE_S = 60.0


def number(record: Any) -> int:
    return int(record.value)


class Shop:
    """A share group and its topics. ``orders`` has the records 0 to 19 in one partition."""

    def __init__(self, bootstrap: str, group: str, new_topic: NewTopic, produce: Produce) -> None:
        self.bootstrap, self.group = bootstrap, group
        self.new_topic, self.produce = new_topic, produce

    @cached_property
    def orders(self) -> str:
        topic = self.new_topic("orders", partitions=1)
        self.produce(topic, range(20))
        return topic

    def configure(self, **configs: str) -> None:
        set_group_configs(self.bootstrap, self.group, **configs)

    def make(self, **settings: Any) -> ConsumerService:
        return ConsumerService(bootstrap=self.bootstrap, group=self.group, group_type="share", **settings)

    def consumer(self, topic: str, **settings: Any) -> ShareConsumer:
        return ShareConsumer(topic, bootstrap=self.bootstrap, group=self.group, **settings)

    async def give_rest(self, topic: str, count: int = 0) -> list[tuple[int, int]]:
        """Value and delivery count of the records that the group still gives; none comes after ``count``."""
        found: list[ShareRecord] = []
        async with self.consumer(topic) as consumer:
            async with asyncio.timeout(PATIENCE_S):
                while len(found) < count:
                    found += await consumer.getmany()
            found += await consumer.getmany(timeout_ms=500)
            consumer.accept(found)
            await consumer.flush()
        return sorted((number(record), record.delivery_count) for record in found)

    async def read_letters(self, topic: str, count: int) -> list[Record]:
        found: list[Record] = []
        async with AsyncGroupConsumer(
            topic, bootstrap=self.bootstrap, group=f"{self.group}-letters", auto_offset_reset="earliest"
        ) as consumer:
            async with asyncio.timeout(PATIENCE_S):
                while len(found) < count:
                    found += await consumer.getmany(timeout_ms=100)
            found += await consumer.getmany(timeout_ms=300)
        return found


@pytest.fixture
def shop(bootstrap: str, queue: str, new_topic: NewTopic, produce: Produce) -> Shop:
    return Shop(bootstrap, queue, new_topic, produce)


@asynccontextmanager
async def serving(service: ConsumerService) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(service.serve())
    try:
        yield task
    finally:
        service.stop()
        await asyncio.wait_for(task, PATIENCE_S)


@pytest.mark.slow(5)
async def test_each_record_of_several_topics_is_handled_once(shop: Shop) -> None:
    topics = shop.new_topic("orders", partitions=1), shop.new_topic("bills", partitions=3)
    for topic in topics:
        await asyncio.to_thread(shop.produce, topic, range(500))
    handled: Counter[tuple[str, int]] = Counter()
    service = shop.make()

    @service.handler(topics[0], concurrency=8)
    async def bill(record: Record) -> None:
        handled[record.topic, number(record)] += 1

    @service.batch_handler(topics[1], max_records=20)
    def book(records: list[Record]) -> None:
        handled.update((record.topic, number(record)) for record in records)

    async with serving(service):
        await until(lambda: service.finished == 1000)
    assert handled == Counter({(topic, nth): 1 for topic in topics for nth in range(500)})
    assert await shop.give_rest(topics[0]) == []
    assert await shop.give_rest(topics[1]) == []


async def test_members_work_on_one_partition_together(shop: Shop) -> None:
    topic = shop.new_topic("orders", partitions=1)
    handled: Counter[int] = Counter()
    by: Counter[int] = Counter()
    services = shop.make(), shop.make()
    for place, service in enumerate(services):

        @service.handler(topic, concurrency=4)
        async def bill(record: Record, place: int = place) -> None:
            await asyncio.sleep(0.01)
            handled[number(record)] += 1
            by[place] += 1

    async with serving(services[0]), serving(services[1]):
        await until(lambda: all(each._engine and each._engine.snapshot(True).assigned for each in services))
        await asyncio.to_thread(shop.produce, topic, range(200))
        await until(lambda: handled.total() == 200)
    assert handled == Counter(range(200))
    assert set(by) == {0, 1}
    assert await shop.give_rest(topic) == []


async def test_a_record_stays_locked_until_its_next_try_and_others_go_on(shop: Shop) -> None:
    tries: list[tuple[int, int]] = []
    service = shop.make()

    @service.handler(shop.orders, retry=Retry(attempts=3, backoff_ms=100), concurrency=2)
    async def bill(record: LockedRecord) -> None:
        tries.append((number(record), record.delivery_count))
        if number(record) == 3 and tries.count((3, 1)) < 3:
            raise ConnectionError("the bank is closed")

    async with serving(service):
        await until(lambda: service.finished == 20)
    assert Counter(tries) == Counter({(nth, 1): 3 if nth == 3 else 1 for nth in range(20)})
    assert tries[-1] == (3, 1)
    assert await shop.give_rest(shop.orders) == []


async def test_a_record_is_released_where_its_next_try_is_further_away_than_it_is_held(shop: Shop) -> None:
    tries: list[tuple[int, int]] = []
    service = shop.make(hold_retries_ms=0)

    @service.handler(shop.orders, retry=Retry(attempts=3, backoff_ms=10))
    async def bill(record: LockedRecord) -> None:
        tries.append((number(record), record.delivery_count))
        if number(record) == 3 and record.delivery_count < 3:
            raise ConnectionError("the bank is closed")

    async with serving(service):
        await until(lambda: (3, 3) in tries)
        await until(lambda: len(tries) == 22)
    assert Counter(tries) == Counter([(nth, 1) for nth in range(20)] + [(3, 2), (3, 3)])
    assert await shop.give_rest(shop.orders) == []


async def test_what_fails_goes_to_the_dead_letter_topic_and_is_delivered_no_more(shop: Shop) -> None:
    def even(data: bytes) -> int:
        if int(data) % 10 == 5:
            raise ValueError("no number of ours")
        return int(data)

    graves = shop.new_topic("graves", partitions=1)
    tries: Counter[int] = Counter()
    service = shop.make()

    @service.handler(shop.orders, decode=even, retry=Retry(attempts=2, backoff_ms=1), dead_letter=graves)
    def bill(value: int, record: Record) -> None:  # noqa: ARG001
        tries[value] += 1
        if value == 3:
            raise ConnectionError("the bank is closed")

    async with serving(service):
        await until(lambda: service.finished == 20)
    assert tries == Counter({nth: 2 if nth == 3 else 1 for nth in range(20) if nth % 10 != 5})
    said = {number(each): read_dead_letter(each) for each in await shop.read_letters(graves, 3)}
    assert {nth: letter and letter.attempts for nth, letter in said.items()} == {3: 2, 5: 1, 15: 1}
    assert await shop.give_rest(shop.orders) == []


async def test_without_a_dead_letter_topic_a_record_is_tried_in_every_delivery_and_its_end_is_in_the_log(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.configure(share_delivery_count_limit="3")
    counts: list[int] = []
    service = shop.make()

    @service.handler(shop.orders)
    async def bill(record: LockedRecord) -> None:
        if number(record) == 3:
            counts.append(record.delivery_count)
            raise ConnectionError("the bank is closed")

    with caplog.at_level(logging.ERROR, "kohort.service"):
        async with serving(service):
            await until(lambda: len(counts) == 3)
            await until(lambda: service.finished == 20)
    assert counts == [1, 2, 3]
    assert "bill failed" in caplog.text
    assert "in its last delivery, and it has no dead-letter topic" in caplog.text
    assert await shop.give_rest(shop.orders) == []


@pytest.mark.slow(8)
async def test_delays_that_are_too_long_for_a_lock_are_kept_by_retry_topics(shop: Shop) -> None:
    graves = shop.new_topic("graves", partitions=1)
    with KafkaAdminClient(bootstrap_servers=shop.bootstrap) as admin:
        retries = f"{shop.orders}.retry.1", f"{shop.orders}.retry.2"
        admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1} for name in retries})
    tries: list[tuple[str, int]] = []
    service = shop.make()

    @service.handler(shop.orders, retry_after_ms=[200, 100], dead_letter=graves)
    async def bill(record: Record) -> None:
        tries.append((record.topic, number(record)))
        if number(record) == 7 or (number(record) == 3 and tries.count((shop.orders, 3)) < 3):
            raise ConnectionError("the bank is closed")

    async with serving(service):
        await until(lambda: service.finished == 20)
        assert service._run is not None
        now = service._run.snapshot(True)
        assert {topic: now.consumed[topic] for topic in (shop.orders, *retries)} == {
            shop.orders: 20,
            retries[0]: 2,
            retries[1]: 2,
        }
        (counters,) = [each.handler.counters for each in now.handlers]
        assert (counters.postponed, counters.dead_letters, counters.handled) == (4, 1, 19)
    assert Counter(tries) == Counter({(shop.orders, nth): 3 if nth in (3, 7) else 1 for nth in range(20)})
    (letter,) = await shop.read_letters(graves, 1)
    said = read_dead_letter(letter)
    assert said is not None
    assert (said.topic, said.group, said.attempts) == (shop.orders, shop.group, 3)
    assert await shop.give_rest(shop.orders) == []


async def test_the_last_delivery_is_for_the_dead_letter_topic(shop: Shop) -> None:
    shop.configure(share_delivery_count_limit="3")
    async with shop.consumer(shop.orders) as killed:
        for delivery in (1, 2):  # as members that die with the record
            found: list[ShareRecord] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(found) < (20 if delivery == 1 else 1):
                    found += await killed.getmany()
            if delivery == 2:
                killed.stop_fetching()
            killed.release([record for record in found if number(record) == 3])
            killed.accept([record for record in found if number(record) != 3])
            await killed.flush()
    graves = shop.new_topic("graves", partitions=1)
    handled: list[int] = []
    service = shop.make()

    @service.handler(shop.orders, dead_letter=graves)
    async def bill(record: Record) -> None:
        handled.append(number(record))

    async with serving(service):
        (letter,) = await shop.read_letters(graves, 1)
    assert number(letter) == 3
    said = read_dead_letter(letter)
    assert said is not None
    assert said.error_class.endswith("LastDeliveryError")
    assert handled == []
    assert await shop.give_rest(shop.orders) == []


async def test_of_a_batch_only_the_records_that_failed_come_again(shop: Shop) -> None:
    seen: list[tuple[int, int]] = []
    service = shop.make()

    @service.batch_handler(shop.orders, max_records=10)
    async def book(records: list[LockedRecord]) -> None:
        seen.extend((number(record), record.delivery_count) for record in records)
        failed = {r: ValueError("not yet") for r in records if number(r) in (3, 14) and r.delivery_count == 1}
        if failed:
            raise FailedRecordsError(failed)

    async with serving(service):
        await until(lambda: len(seen) == 22)
    assert Counter(seen) == Counter([(nth, 1) for nth in range(20)] + [(3, 2), (14, 2)])
    assert await shop.give_rest(shop.orders) == []


async def test_a_stop_finishes_what_runs_and_gives_back_the_rest(shop: Shop) -> None:
    begun: list[int] = []
    go_on = asyncio.Event()
    service = shop.make()

    @service.handler(shop.orders, concurrency=2)
    async def bill(record: Record) -> None:
        begun.append(number(record))
        await go_on.wait()

    async with serving(service):
        await until(lambda: len(begun) == 2)
        service.stop()
        await until(lambda: service._engine is not None and service._engine.ending)
        given = asyncio.create_task(shop.give_rest(shop.orders, 18))  # before the two have ended
        done, _ = await asyncio.wait([given], timeout=PATIENCE_S)
        assert done
        go_on.set()
    assert [nth for nth, _ in await given] == [nth for nth in range(20) if nth not in begun]
    assert len(begun) == 2
    assert await shop.give_rest(shop.orders) == []


@pytest.mark.slow(17)
async def test_a_handler_that_hangs_loses_its_record_to_others_and_the_probes_say_so(shop: Shop) -> None:
    shop.configure(share_record_lock_duration_ms="15000")
    seen: list[tuple[int, int]] = []
    cancelled: list[int] = []
    service = shop.make(max_processing_ms=100)

    @service.handler(shop.orders)
    async def bill(record: LockedRecord) -> None:
        seen.append((number(record), record.delivery_count))
        if (number(record), record.delivery_count) == (3, 1):
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(number(record))

    async with serving(service):
        await until(lambda: (3, 2) in seen)
        assert cancelled == [3]
        assert service._engine is not None
        (remark,) = service._engine.remarks()
        assert "bill" in remark
        assert "at offset 3" in remark
        locks = service._engine.snapshot(True).locks
        assert locks is not None
        assert (locks.lost, locks.redelivered) == (1, 1)
    assert await shop.give_rest(shop.orders) == []


@pytest.mark.slow(17)
async def test_what_a_plain_function_hangs_at_is_handled_beside_it(shop: Shop) -> None:
    shop.configure(share_record_lock_duration_ms="15000")
    seen: list[tuple[int, int]] = []
    go_on = threading.Event()
    service = shop.make(max_processing_ms=100, stalled_after_ms=1_000)

    @service.handler(shop.orders, concurrency=4)
    def bill(record: LockedRecord) -> None:
        seen.append((number(record), record.delivery_count))
        if (number(record), record.delivery_count) == (3, 1):
            go_on.wait(PATIENCE_S)

    async with serving(service):
        await until(lambda: (3, 2) in seen)
        await until(lambda: service.complaint() is None)
        assert service._engine is not None
        assert any("has been handling" in remark for remark in service._engine.remarks())
        go_on.set()
        await until(
            lambda: service._engine is not None and service._engine.snapshot(True).handlers[0].backlog == 0
        )
    assert await shop.give_rest(shop.orders) == []


async def test_no_record_is_locked_for_a_handler_that_is_paused(shop: Shop) -> None:
    handled: list[int] = []
    service = shop.make()

    @service.handler(shop.orders)
    async def bill(record: Record) -> None:
        handled.append(number(record))

    @service.handler(shop.new_topic("others", partitions=1))
    async def other(_: Record) -> None: ...

    service.pause(bill)
    async with serving(service):
        await until(lambda: service._engine is not None and service._engine.snapshot(True).assigned == 2)
        async with shop.consumer(shop.orders, max_locked_records=5) as another:
            taken = await another.getmany(5, timeout_ms=PATIENCE_S * 1_000)
            assert [number(record) for record in taken] == list(range(5))
            another.accept(taken)
            await another.flush()
        service.resume(bill)
        await until(lambda: service.finished == 15)
    assert sorted(handled) == list(range(5, 20))


async def test_the_lag_of_the_group_falls(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_share_source, "LAG_S", 0.05)
    go_on = asyncio.Event()
    service = shop.make()

    @service.handler(shop.orders)
    async def bill(record: Record) -> None:
        if number(record) >= 15:
            await go_on.wait()

    def lag() -> list[int]:
        return [] if service._engine is None else list(service._engine.snapshot(True).lag.values())

    async with serving(service):
        await until(lambda: lag() == [5])
        go_on.set()
        await until(lambda: lag() == [0])


APP = """
import os
from kohort.service import ConsumerService, LockedRecord

service = ConsumerService(bootstrap={bootstrap!r}, group={group!r}, group_type="share", max_locked_records=2)

@service.handler({topic!r}, concurrency=1)
def handle(record: LockedRecord) -> None:
    with open("handled", "a") as file:
        file.write(f"{{record.value.decode()}} {{os.getpid()}}\\n")
"""


@pytest.mark.slow(8)
async def test_workers_share_one_partition_and_end_with_0(shop: Shop, tmp_path: Path) -> None:
    topic = shop.new_topic("orders", partitions=1)
    (tmp_path / "app.py").write_text(APP.format(bootstrap=shop.bootstrap, group=shop.group, topic=topic))
    command = [sys.executable, "-m", "kohort", "run", "app:service", "--workers", "2"]
    handled = tmp_path / "handled"

    def rows() -> list[list[str]]:
        return [line.split() for line in handled.read_text().splitlines()] if handled.exists() else []

    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path)
    try:
        sent = 0
        async with asyncio.timeout(PATIENCE_S):
            while len({pid for _, pid in rows()}) < 2:  # the second one may join late
                await asyncio.to_thread(shop.produce, topic, range(sent, sent + 50))
                sent += 50
        await until(lambda: len(rows()) == sent)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
    assert sorted(int(value) for value, _ in rows()) == list(range(sent))
    assert await shop.give_rest(topic) == []
