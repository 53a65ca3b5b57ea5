"""Exactly once, when it cannot be known where to go on: nothing is handled, and nothing passed over."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from kohort.client.offsets import CommittedOffset
from kohort.consumer import Cluster, Record
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService, DbApiSink
from kohort.service.exactly_once.sinks import StoredOffset
from kohort.service.exactly_once.stored_offsets import Once, StoredOffsets
from kohort.testing import RunningBroker, running_broker

ORDERS = TopicPartition("orders", 0)


class UnknownOffsets(DbApiSink):
    """``positions`` raises; or it hangs, until ``go_on`` is set."""

    def __init__(self, path: Path, *, hangs: bool) -> None:
        super().__init__(lambda: sqlite3.connect(path, timeout=30))
        self.hangs = hangs
        self.go_on = threading.Event()

    def positions(
        self,
        group: str,  # noqa: ARG002
        partitions: Iterable[TopicPartition],  # noqa: ARG002
    ) -> dict[TopicPartition, StoredOffset]:
        if self.hangs:
            self.go_on.wait()
        raise OSError("the database is away")


@pytest.mark.parametrize("hangs", [False, True])
async def test_while_stored_offsets_cannot_be_read_no_record_is_handled(
    kohort_broker: RunningBroker, tmp_path: Path, hangs: bool
) -> None:
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", range(20))
    sink = UnknownOffsets(tmp_path / "results.db", hangs=hangs)
    once = Once(sink, "billing")
    sink.prepare()
    # the database is older than what the group has committed: it was restored
    once.run([Record("orders", 0, 4, 0, None, b"4")], lambda *_: None)
    async with Cluster(kohort_broker.bootstrap) as cluster:
        await cluster.commit("billing", {ORDERS: 10})
    service = ConsumerService(
        bootstrap=kohort_broker.bootstrap,
        group="billing",
        rebalance_timeout_ms=500,
        heartbeat_interval_ms=100,
    )
    service.exactly_once(sink)
    handled: list[int] = []

    @service.handler("orders")
    def handle(record: Record, connection: sqlite3.Connection) -> None:  # noqa: ARG001
        handled.append(record.offset)

    try:
        with pytest.raises(TimeoutError if hangs else OSError):
            await asyncio.wait_for(service.serve(), 60)
    finally:
        sink.go_on.set()
    assert handled == []
    with sink.transaction() as connection:
        row = sink.lock(connection, "billing", ORDERS)
    assert row is not None
    assert row.next_offset == 5


@pytest.mark.parametrize("unknown_to", ["the service before", "the next one"])
async def test_a_stored_offset_is_none_for_the_next_topic_of_the_name_though_brokers_do_not_tell_its_id(
    kohort_broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown_to: str
) -> None:
    async def unknown(self: StoredOffsets, topics: set[str]) -> dict[str, str]:
        del self, topics
        return {}

    sink = DbApiSink(lambda: sqlite3.connect(tmp_path / "results.db", timeout=30))
    handled: list[int] = []

    async def serve_until(count: int) -> None:
        service = ConsumerService(
            bootstrap=kohort_broker.bootstrap, group="billing", auto_offset_reset="earliest"
        )
        service.exactly_once(sink)

        @service.handler("orders")
        def handle(record: Record, connection: sqlite3.Connection) -> None:  # noqa: ARG001
            handled.append(int(record.value or b""))
            if len(handled) == count:
                service.stop()

        await asyncio.wait_for(service.serve(), 60)

    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", range(5))
    # the topic is gone just when it handles the first record, or no broker can be asked
    with monkeypatch.context() as patched:
        if unknown_to == "the service before":
            patched.setattr(StoredOffsets, "_topic_ids", unknown)
        await serve_until(5)
    async with Cluster(kohort_broker.bootstrap) as cluster:
        await cluster.delete_topics(["orders"])
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", range(100, 120))
    # or when it starts
    if unknown_to == "the next one":
        monkeypatch.setattr(StoredOffsets, "_topic_ids", unknown)
    await serve_until(25)
    assert sorted(handled) == [*range(5), *range(100, 120)]


async def test_a_row_without_a_leader_epoch_skips_nothing_of_a_log_that_was_cut(tmp_path: Path) -> None:
    """As a table of an earlier version has them; the group's commit still says what was read."""
    sink = DbApiSink(lambda: sqlite3.connect(tmp_path / "results.db", timeout=30))
    sink.prepare()
    handled: list[int] = []

    async def serve_until(bootstrap: str, count: int) -> None:
        service = ConsumerService(bootstrap=bootstrap, group="billing", auto_offset_reset="earliest")
        service.exactly_once(sink)

        @service.handler("orders")
        def handle(record: Record, connection: sqlite3.Connection) -> None:  # noqa: ARG001
            handled.append(record.offset)
            if len(handled) == count:
                service.stop()

        await asyncio.wait_for(service.serve(), 60)

    with running_broker(data=tmp_path / "data") as broker:
        broker.create_topic("orders", 1)
        broker.produce("orders", range(12))
        await serve_until(broker.bootstrap, 12)
    with running_broker(data=tmp_path / "data") as broker:
        # records 12 to 17 of the first epoch were handled, and are gone
        broker.produce("orders", range(100, 120))
        with sink.transaction() as connection:
            sink.execute(connection, "UPDATE kohort_offsets SET next_offset = 18, leader_epoch = NULL", {})
        async with Cluster(broker.bootstrap) as cluster:
            (before,) = (await cluster.committed("billing", [ORDERS])).values()
            await cluster.commit("billing", {ORDERS: CommittedOffset(18, before.leader_epoch)})
        await serve_until(broker.bootstrap, 32)
    assert handled == list(range(32))
