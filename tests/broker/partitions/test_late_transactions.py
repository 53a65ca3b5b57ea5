"""What a broker says of transactions that are open for longer than any may be."""

from __future__ import annotations

import pytest

from kohort.broker import Broker
from kohort.broker.metrics._exposer import exposition
from kohort.broker.partitions.late_transactions import BUFFER_MS, LateTransactions
from kohort.producer import Producer
from kohort.testing import running_broker
from tests.waiting import until, wait_until

LATE = "kafka_server_replicamanager_partitionswithlatetransactionscount"


def producer_at(bootstrap: str) -> Producer:
    return Producer(bootstrap_servers=bootstrap, transactional_id="billing", linger_ms=0)


async def test_a_transaction_that_stays_open_is_counted_and_told_with_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kohort.broker.background.LOOK_S", 0.02)
    monkeypatch.setattr("kohort.broker.partitions.late_transactions.BUFFER_MS", -900_000)
    with running_broker(transaction_max_timeout_ms=900_000) as broker:
        broker.create_topic("bills", 2)
        async with Producer(
            bootstrap_servers=broker.bootstrap, transactional_id="billing", linger_ms=0
        ) as producer:
            producer.begin_transaction()
            await producer.send_and_wait("bills", b"1", partition=1)
            await until(lambda: "1 partitions have a transaction open for longer than" in caplog.text)
            assert "of committed records: bills-1; kohort transactions abort" in caplog.text
            assert f"{LATE} 1.0" in exposition(broker._broker.metrics())[0].decode()
            await producer.commit_transaction()
        wait_until(lambda: "no transaction is open for too long any more, after" in caplog.text)


async def test_a_young_transaction_a_follower_and_a_partition_without_records_are_not_late(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Broker() as broker:
        assert f"{LATE} 0.0" in exposition(broker.metrics())[0].decode()
    with running_broker() as running:
        running.create_topic("bills", 2)
        async with Producer(
            bootstrap_servers=running.bootstrap, transactional_id="billing", linger_ms=0
        ) as producer:
            producer.begin_transaction()
            await producer.send_and_wait("bills", b"1", partition=1)
            part = running._broker.topics.logs.topics
            partitions = [each for topic in part() for each in topic.partitions.values()]
            (written,) = (each for each in partitions if (each.topic.name, each.index) == ("bills", 1))
            assert written.log is not None
            oldest = written.log.producers.oldest_open
            assert oldest is not None
            watch, limit_ms = LateTransactions(), 60_000
            watch.look(partitions, limit_ms, oldest.seen_ms + limit_ms + BUFFER_MS)
            written.is_led = False
            watch.look(partitions, limit_ms, oldest.seen_ms + limit_ms + BUFFER_MS + 1)
            assert caplog.text == ""
            written.is_led = True
            watch.look(partitions, limit_ms, oldest.seen_ms + limit_ms + BUFFER_MS + 1)
            assert "bills-1" in caplog.text
            await producer.commit_transaction()
