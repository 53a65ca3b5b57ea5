"""Records and groups of a cluster outlive its brokers: killed leaders and coordinators, logs that part.

Covers: broker/replicas/replicas.py, broker/partitions/leadership.py, broker/replicas/fetcher.py.
Covers: broker/metadata/lost_replicas.py.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import threading
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from kohort.broker.coordinators.transactions import end_in, write_marker
from kohort.broker.event_loop.time_slices import Slices
from kohort.broker.partitions.flusher import Flusher
from kohort.broker.partitions.leadership import Leadership
from kohort.broker.partitions.partition import Partition
from kohort.client.connection import Connection
from kohort.client.metadata import Address
from kohort.cluster import ClusterImage
from kohort.cluster.controller import Controller
from kohort.log import decode_records
from kohort.log._files import OsFile
from kohort.offsets_topic import partition_for
from kohort.protocol import MAX_FRAME_BYTES, ApiKey, ErrorCode, KafkaError, build_batch, iter_batches
from kohort.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.transactions import TransactionMarker
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.broker.wire import Wire, offset_at


def producer(nodes: Nodes, **options: Any) -> AIOKafkaProducer:
    options = {"acks": "all", "retry_backoff_ms": 20, "request_timeout_ms": 5_000, **options}
    return AIOKafkaProducer(bootstrap_servers=nodes.bootstrap(), **options)


def replica(nodes: Nodes, node_id: int, topic: str = "orders", index: int = 0) -> Partition:
    return nodes.brokers[node_id].topics.logs.partition(topic, index)


def values(partition: Partition) -> list[bytes | None]:
    """Everything in a replica's log, committed or not."""
    return values_from(partition, 0)


def values_from(partition: Partition, offset: int) -> list[bytes | None]:
    """The batches in a replica's log from the one with an offset on, committed or not."""
    if partition.log is None:
        return []
    records = partition.log.read(offset, 1 << 30, to_log_end=True).records
    return [
        value
        for position, header in iter_batches(records)
        for _, _, _, value in decode_records(records, header, position)
    ]


def append_alone(partition: Partition, value: bytes) -> None:
    """Append a record that its followers do not get."""
    waiters, partition.waiters = partition.waiters, {}
    partition.append(bytes(build_batch([(None, value, ())], timestamp_ms=0)), now_ms=0)
    partition.waiters = waiters


def test_records_are_acknowledged_when_every_replica_has_them() -> None:
    async def run() -> None:
        async with cluster() as nodes, producer(nodes) as sender:
            await nodes.create("orders", 3)
            for number in range(60):
                partition = number % 3
                sent = await sender.send_and_wait("orders", b"%d" % number, partition=partition)
                ends = {replica(nodes, n, index=partition).log_end_offset for n in nodes.brokers}
                assert ends == {sent.offset + 1}
            async with AIOKafkaConsumer(
                "orders", bootstrap_servers=nodes.bootstrap(), auto_offset_reset="earliest"
            ) as consumer:
                got = [(await consumer.getone()).value for _ in range(60)]
            assert sorted(got) == sorted(b"%d" % number for number in range(60))

    asyncio.run(run())


def test_nothing_acknowledged_is_lost_when_leaders_are_killed(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders", 3, {"min_insync_replicas": 2})
            sender = producer(nodes)
            await sender.start()
            acknowledged: list[tuple[int, bytes]] = []
            done = asyncio.Event()

            async def send(partition: int) -> None:
                number = 0
                while not done.is_set():
                    value = b"%d-%d" % (partition, number)
                    await sender.send_and_wait("orders", value, partition=partition)
                    acknowledged.append((partition, value))
                    number += 1

            async def more(count: int) -> None:
                enough = len(acknowledged) + count
                await nodes.until(lambda: len(acknowledged) >= enough)

            sending = [asyncio.create_task(send(partition)) for partition in range(3)]
            for partition in (0, 1, 2, 0):
                await in_sync(nodes)
                await more(60)
                leader = nodes.state("orders", partition).leader
                await nodes.kill(leader)
                await more(60)
                await nodes.start(leader)
            done.set()
            await asyncio.gather(*sending)
            await sender.stop()
            await in_sync(nodes)
            await nodes.until(
                lambda: all(
                    len({replica(nodes, n, index=k).log_end_offset for n in nodes.brokers}) == 1
                    for k in range(3)
                )
            )
            for partition in range(3):
                logs = [values(replica(nodes, n, index=partition)) for n in nodes.brokers]
                assert logs[0] == logs[1] == logs[2]
                assert {v for p, v in acknowledged if p == partition} <= set(logs[0])

    asyncio.run(run())


def test_what_a_killed_leader_had_alone_is_cut_off_when_it_is_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders")
            async with producer(nodes) as sender:
                for number in range(5):
                    await sender.send_and_wait("orders", b"%d" % number, partition=0)
                leader = nodes.state("orders").leader
                append_alone(replica(nodes, leader), b"of nobody else")
                assert values(replica(nodes, leader))[-1] == b"of nobody else"
                await nodes.kill(leader)
                await nodes.until(lambda: nodes.state("orders").leader not in (leader, -1))
                # before it has written anything: those that follow look for it
                following = replica(nodes, nodes.state("orders").leader)
                await nodes.until(lambda: following.leadership is not None)
                assert following.log is not None
                assert following.log.leader_epoch == 1
                sent = await sender.send_and_wait("orders", b"of the next", partition=0)
            assert sent.offset == 5
            await nodes.start(leader)
            await in_sync(nodes)
            assert values(replica(nodes, leader)) == [b"0", b"1", b"2", b"3", b"4", b"of the next"]
            assert replica(nodes, leader).epoch_at(5) == nodes.state("orders").leader_epoch

    asyncio.run(run())


def test_what_a_killed_leader_had_alone_is_cut_off_where_the_next_log_begins_within_a_batch(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders")
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"0", partition=0)
            await in_sync(nodes)
            leader = nodes.state("orders").leader
            append_alone(replica(nodes, leader), b"of nobody else")
            await nodes.kill(leader)
            await nodes.until(lambda: nodes.state("orders").leader not in (leader, -1))
            following = replica(nodes, nodes.state("orders").leader)
            await nodes.until(lambda: following.leadership is not None)
            batch = build_batch([(None, b"1", ()), (None, b"2", ())], timestamp_ms=0)
            following.append(bytes(batch), now_ms=0)
            await nodes.until(lambda: following.high_watermark == 3)
            # the epoch of the former leader ends within the batch, as far as this log tells
            following.delete_records(2, now_ms=0)
            await nodes.start(leader)
            await in_sync(nodes)
            back = replica(nodes, leader)
            await nodes.until(lambda: back.log_start_offset == 2)
            assert values_from(back, 2) == values_from(following, 2) == [b"1", b"2"]

    asyncio.run(run())


def test_an_empty_log_that_begins_within_a_batch_copies_that_batch_whole(tmp_path: Path) -> None:
    """As a follower has it that began anew where a former leader's log did, whose successor has more."""

    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders")
            await in_sync(nodes)
            leader, follower, _ = nodes.state("orders").replicas
            leading = replica(nodes, leader)
            await nodes.until(lambda: leading.leadership is not None)
            batch = build_batch([(None, b"0", ()), (None, b"1", ())], timestamp_ms=0)
            leading.append(bytes(batch), now_ms=0)
            await nodes.until(lambda: leading.high_watermark == 2)
            replica(nodes, follower).truncate(1, now_ms=0, restart=True)
            await nodes.kill(follower)
            await nodes.until(lambda: follower not in nodes.state("orders").isr)
            await nodes.start(follower)
            await in_sync(nodes)
            assert values(replica(nodes, follower)) == [b"0", b"1"]

    asyncio.run(run())


def test_followers_stay_in_sync_with_a_leader_that_was_held_up() -> None:
    async def run() -> None:
        async with cluster(replica_lag_time_max_ms=700) as nodes:
            await nodes.create("orders")
            await in_sync(nodes)
            state = nodes.state("orders")
            partition = replica(nodes, state.leader)
            # they lack a record, and nobody gives it to them for longer than they may lack one
            append_alone(partition, b"a")
            time.sleep(1.2)  # noqa: ASYNC251 - this is what holds the process up
            ends: set[int] = set()
            while ends != {1}:
                await asyncio.sleep(0.005)
                ends = {replica(nodes, n).log_end_offset for n in nodes.brokers}
            assert nodes.state("orders").partition_epoch == state.partition_epoch
            assert partition.leadership is not None
            assert partition.leadership.replication.maximal_isr == {1, 2, 3}

    asyncio.run(run())


def test_why_a_partition_is_not_copied_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    def fails(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space")

    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders")
            await in_sync(nodes)
            with caplog.at_level(logging.INFO, "kohort.broker"), monkeypatch.context() as full:
                full.setattr(Partition, "append_copied", fails)
                append_alone(replica(nodes, nodes.state("orders").leader), b"a")
                told = "orders-0 is not copied"
                await nodes.until(lambda: tries > 8 and caplog.text.count(told) >= 2)
            assert caplog.text.count(told) == 2
            await nodes.until(lambda: {replica(nodes, n).log_end_offset for n in nodes.brokers} == {1})

    asyncio.run(run())


def test_a_batch_larger_than_clients_take_is_copied() -> None:
    """Leaders send the first batch whole, whatever the request's limits are."""

    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders", configs={"max_message_bytes": 2 * MAX_FRAME_BYTES})
            await in_sync(nodes)
            append_alone(replica(nodes, nodes.state("orders").leader), bytes(MAX_FRAME_BYTES))
            await nodes.until(lambda: {replica(nodes, n).log_end_offset for n in nodes.brokers} == {1})

    asyncio.run(run())


def test_a_replica_whose_disk_was_wiped_has_everything_again() -> None:
    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders")
            async with producer(nodes) as sender:
                for number in range(5):
                    await sender.send_and_wait("orders", b"%d" % number, partition=0)
                leader = nodes.state("orders").leader
                # without a folder of its own it begins with an empty one
                await nodes.kill(leader)
                await nodes.until(lambda: nodes.state("orders").leader not in (leader, -1))
                await sender.send_and_wait("orders", b"5", partition=0)
                await nodes.start(leader)
                await in_sync(nodes)
            assert values(replica(nodes, leader)) == [b"%d" % number for number in range(6)]

    asyncio.run(run())


def test_too_few_replicas_in_sync_take_no_records_with_acks_all(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders", 1, {"min_insync_replicas": 2})
            state = nodes.state("orders")
            for follower in state.replicas[1:]:
                await nodes.kill(follower)
            await in_sync(nodes, count=1)
            partition = replica(nodes, state.leader)
            assert partition.leadership is not None
            with pytest.raises(KafkaError) as caught:
                partition.leadership.replication.check_acks_all()
            assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
            async with producer(nodes, acks=1) as sender:
                sent = await sender.send_and_wait("orders", b"one", partition=0)
            assert (partition.log_end_offset, partition.high_watermark) == (sent.offset + 1, 0)
            for follower in state.replicas[1:]:
                await nodes.start(follower)
            await nodes.until(lambda: partition.high_watermark == 1)

    asyncio.run(run())


def test_a_leader_without_its_session_leads_nothing_until_it_has_another() -> None:
    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders")
            leader = nodes.state("orders").leader
            partition = replica(nodes, leader)
            nodes.stores[leader].expire()
            with pytest.raises(KafkaError) as caught:
                partition.append(b"", now_ms=0)
            assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            others = [n for n in nodes.brokers if n != leader]
            await nodes.until(lambda: all(replica(nodes, n).leader_epoch > 0 for n in others))
            nodes.stores[leader].resume()
            await nodes.until(lambda: sorted(nodes.state("orders", at=leader).isr) == [1, 2, 3])

    asyncio.run(run())


def test_who_has_lost_its_node_id_to_another_process_leads_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path / "a") as nodes, AsyncExitStack() as stack:
            await nodes.create("orders")
            leader = nodes.state("orders").leader
            former, session = nodes.brokers.pop(leader), nodes.stores[leader]
            stack.push_async_callback(former.kill)
            session.expire()
            await nodes.until(lambda: nodes.state("orders").leader != leader)
            another = Nodes(nodes.home, {}, tmp_path / "b")
            stack.push_async_callback(another.stop)
            await another.start(leader)
            await in_sync(nodes)
            session.resume()
            for broker in list(nodes.brokers.values()):
                await broker.stop()
            nodes.brokers.clear()
            await another.until(lambda: another.state("orders").leader == leader)
            await another.until(lambda: replica(another, leader).is_led)
            assert not former.topics.logs.partition("orders", 0).is_led

    asyncio.run(run())


def test_who_waits_is_told_when_a_leader_leads_on_under_another_epoch() -> None:
    async def run() -> None:
        async with cluster(1) as nodes:
            await nodes.create("orders")
            partition = replica(nodes, 1)
            leadership = partition.leadership
            assert leadership is not None
            told: list[KafkaError | None] = []
            assert not leadership.when_committed(partition.log_end_offset + 1, told.append)
            partition.lead(partition.leader_epoch + 1, lambda _log_end, _high_watermark: leadership)
            [error] = told
            assert error is not None
            assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(run())


def test_a_group_goes_on_where_its_coordinator_was_killed(tmp_path: Path) -> None:
    """With the same members, in the same generation, from the offsets that were committed."""

    async def run() -> None:
        async with cluster(data=tmp_path, group_initial_rebalance_delay_ms=0) as nodes:
            await nodes.create("orders")
            place = TopicPartition("orders", 0)
            options = {
                "bootstrap_servers": nodes.bootstrap(),
                "group_id": "g",
                "enable_auto_commit": False,
                "auto_offset_reset": "earliest",
                "retry_backoff_ms": 20,
                "heartbeat_interval_ms": 100,
                "request_timeout_ms": 11_000,
            }
            async with producer(nodes) as sender, AIOKafkaConsumer("orders", **options) as consumer:
                await sender.send_and_wait("orders", b"0", partition=0)
                await consumer.getone()
                await consumer.commit()
                coordination = consumer._coordinator
                before = coordination.member_id, coordination.generation
                partition = partition_for("g", 3)
                for number in range(1, 3):
                    coordinator = nodes.state("__consumer_offsets", partition).leader
                    await nodes.kill(coordinator)
                    await sender.send_and_wait("orders", b"%d" % number, partition=0)
                    assert (await consumer.getone()).value == b"%d" % number
                    await consumer.commit()
                    assert nodes.state("__consumer_offsets", partition).leader != coordinator
                    assert await consumer.committed(place) == number + 1
                    await nodes.start(coordinator)
                    await in_sync(nodes, "__consumer_offsets")
                assert (coordination.member_id, coordination.generation) == before

    asyncio.run(run())


def test_transactions_span_brokers_and_outlive_their_coordinator(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders", 3)
            source = TopicPartition("orders", 0)
            committed: list[bytes] = []
            async with producer(nodes, transactional_id="t") as sender:
                for number, commits in enumerate((True, False, True, True)):
                    await sender.begin_transaction()
                    sent = [b"%d-%d" % (number, partition) for partition in range(3)]
                    for partition, value in enumerate(sent):
                        await sender.send("orders", value, partition=partition)
                    await sender.send_offsets_to_transaction({source: number + 1}, "g")
                    if number == 2:
                        partition = partition_for("t", 3)
                        coordinator = nodes.state("__transaction_state", partition).leader
                        await nodes.kill(coordinator)
                    if commits:
                        await sender.commit_transaction()
                        committed += sent
                    else:
                        await sender.abort_transaction()
            options = {"bootstrap_servers": nodes.bootstrap(), "auto_offset_reset": "earliest"}
            async with AIOKafkaConsumer("orders", isolation_level="read_committed", **options) as consumer:
                got = [(await consumer.getone()).value for _ in committed]
                assert await consumer.getmany(timeout_ms=300) == {}
            assert sorted(got) == sorted(committed)
            async with AIOKafkaConsumer(group_id="g", **options) as consumer:
                assert await consumer.committed(source) == 4

    asyncio.run(run())


def test_a_leader_that_knows_of_no_topic_yet_gets_its_marker_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders")
            leader = nodes.state("orders").leader
            coordinator = nodes.brokers[leader % 3 + 1]._require_running().node
            place, marker = TopicPartition("orders", 0), TransactionMarker(1, 0, True, 0)
            with monkeypatch.context() as patched:
                patched.setattr(nodes.brokers[leader].topics, "image", ClusterImage("", -1, {}))
                assert not await end_in(coordinator, place, marker)
            assert await end_in(coordinator, place, marker)

    asyncio.run(run())


def test_a_marker_is_not_there_when_another_broker_leads_by_the_time_it_is_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders", 1, {"kohort_ack_flush": True})
            leader = nodes.state("orders").leader
            partition = replica(nodes, leader)

            async def flushed(_flusher: Flusher, _end_offset: int) -> None:
                partition.follow(1)

            monkeypatch.setattr(Flusher, "wait_flushed", flushed)
            marker = TransactionMarker(1, 0, False, 0)
            node = nodes.brokers[leader]._require_running().node
            error = await write_marker(node, TopicPartition("orders", 0), marker)
            assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(run())


def test_a_leader_that_leads_again_takes_nothing_committed_back_that_it_has_not_shown_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, led = threading.Event(), str(tmp_path)

    def sync(file: OsFile) -> None:
        if file.path.endswith(".log") and file.path.startswith(led):
            assert synced.wait(10)

    async def run() -> None:
        nonlocal led
        async with cluster(data=tmp_path) as nodes, producer(nodes) as sender:
            await nodes.create("orders", 1, {"kohort_visibility": "flushed"})
            state = nodes.state("orders")
            leader = replica(nodes, state.leader)
            led = str(tmp_path / str(state.leader))
            monkeypatch.setattr(OsFile, "sync", sync)
            sent = await sender.send("orders", b"one", partition=0)
            leadership = leader.leadership
            assert leadership is not None
            await nodes.until(lambda: leadership.replication.high_watermark == 1)
            assert leader.high_watermark == 0
            begun: list[tuple[int, int]] = []

            def lead_again(end: int, high_watermark: int) -> Leadership:
                begun.append((end, high_watermark))
                return leadership

            # as when its session was over, and nobody else has led meanwhile
            leader.follow(state.leader_epoch)
            leader.lead(state.leader_epoch, lead_again)
            assert begun == [(1, 1)]
            synced.set()
            await nodes.until(lambda: leader.high_watermark == 1)
            await sent

    try:
        asyncio.run(run())
    finally:
        synced.set()


def test_a_follower_shows_what_is_committed_when_its_own_disk_has_it_though_nothing_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, commit = threading.Event(), Partition.commit_up_to
    told, led = set[int](), ""

    def sync(file: OsFile) -> None:
        if file.path.endswith(".log") and not file.path.startswith(led):
            assert synced.wait(10)

    async def run() -> None:
        nonlocal led
        async with cluster(data=tmp_path) as nodes, producer(nodes) as sender:
            await nodes.create("orders", 1, {"kohort_visibility": "flushed"})
            leader, *followers = (replica(nodes, n) for n in nodes.state("orders").replicas)
            led = str(tmp_path / str(nodes.state("orders").leader))
            monkeypatch.setattr(OsFile, "sync", sync)
            await sender.send_and_wait("orders", b"one", partition=0)
            await nodes.until(lambda: leader.high_watermark == 1)
            # each follower has heard of it
            await nodes.until(lambda: told >= {id(each) for each in followers})
            assert [each.high_watermark for each in followers] == [0, 0]
            synced.set()
            await nodes.until(lambda: [each.high_watermark for each in followers] == [1, 1])

    def commit_told(partition: Partition, high_watermark: int) -> None:
        commit(partition, high_watermark)
        if high_watermark == 1:
            told.add(id(partition))

    monkeypatch.setattr(Partition, "commit_up_to", commit_told)
    try:
        asyncio.run(run())
    finally:
        synced.set()


def test_after_an_unclean_election_replicas_agree_again(tmp_path: Path) -> None:
    """Records that only the former leader had are gone: that is what the topic's config allows."""

    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders", 1, {"unclean_leader_election_enable": True})
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"of all", partition=0)
            leader, *followers = nodes.state("orders").replicas
            for follower in followers:
                await nodes.kill(follower)
            await in_sync(nodes, count=1)
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"of the leader alone", partition=0)
            assert replica(nodes, leader).high_watermark == 2
            await nodes.kill(leader)
            await nodes.start(followers[0])
            await nodes.until(lambda: replica(nodes, followers[0]).leadership is not None)
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"of the next", partition=0)
            for node_id in (leader, followers[1]):
                await nodes.start(node_id)
            await in_sync(nodes)
            await nodes.until(lambda: all(replica(nodes, n).log_end_offset == 2 for n in nodes.brokers))
            for node_id in nodes.brokers:
                assert values(replica(nodes, node_id)) == [b"of all", b"of the next"]

    asyncio.run(run())


def test_a_topic_that_was_made_anew_while_a_broker_was_away_begins_empty_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders")
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"of the former", partition=0)
            await nodes.kill(3)
            for broker in list(nodes.brokers.values()):
                if broker.cluster is not None and broker.cluster.control.is_active:
                    topic = broker.topics.get("orders")
                    assert topic is not None
                    await broker.topics.delete([topic])
            await nodes.until(
                lambda: all(each.topics.get("orders") is None for each in nodes.brokers.values())
            )
            assert all(each.topics.logs.topic("orders") is None for each in nodes.brokers.values())
            await nodes.start(3)
            await nodes.until(lambda: len(nodes.any().topics.image.brokers) == 3)
            await nodes.create("orders")
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"of this", partition=0)
            for node_id in nodes.brokers:
                assert values(replica(nodes, node_id)) == [b"of this"]

    asyncio.run(run())


def test_a_wiped_broker_that_is_back_before_it_was_missed_takes_nothing_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller dies with it: the next one has never seen it away."""
    stand = Controller._stand_for_control

    async def stand_late(self: Controller) -> None:
        await asyncio.sleep(0.05)
        await stand(self)

    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await nodes.create("orders", 3)
            await in_sync(nodes)
            node_id = nodes.any().topics.image.controller_id
            index = next(n for n in range(3) if nodes.state("orders", n).leader == node_id)
            async with producer(nodes) as sender:
                for number in range(5):
                    await sender.send_and_wait("orders", b"%d" % number, partition=index)
            monkeypatch.setattr(Controller, "_stand_for_control", stand_late)
            former = nodes.stores[node_id]
            await nodes.brokers.pop(node_id).kill()
            for folder in (tmp_path / str(node_id)).glob("*-*/"):
                shutil.rmtree(folder)
            starting = asyncio.create_task(nodes.start(node_id))
            await nodes.until(lambda: nodes.stores[node_id] is not former)
            await asyncio.sleep(0.1)
            former.expire()
            await starting
            await nodes.until(
                lambda: all(
                    values(replica(nodes, n, index=index)) == [b"%d" % number for number in range(5)]
                    for n in nodes.brokers
                )
            )
            assert nodes.state("orders", index).leader != node_id

    asyncio.run(run())


async def killed(nodes: Nodes, *node_ids: int) -> None:
    """All at once: no controller sees that one of them is away."""
    for node_id in node_ids:
        await nodes.brokers.pop(node_id).kill()
    for node_id in node_ids:
        nodes.stores[node_id].expire()


@pytest.mark.parametrize("killed_again", [False, True])
async def test_a_wiped_broker_that_comes_back_first_after_all_were_killed_leads_nothing(
    tmp_path: Path, killed_again: bool
) -> None:
    """It counts as in sync still."""
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await in_sync(nodes)
        async with producer(nodes) as sender:
            for number in range(5):
                await sender.send_and_wait("orders", b"%d" % number, partition=0)
        wiped, *others = nodes.state("orders").replicas
        await killed(nodes, wiped, *others)
        shutil.rmtree(tmp_path / str(wiped))
        await nodes.start(wiped)
        if killed_again:
            # its folder is not new any more
            await killed(nodes, wiped)
            await nodes.start(wiped)
        await nodes.until(lambda: nodes.state("orders").leader == -1)
        assert wiped in nodes.state("orders").isr
        for node_id in others:
            await nodes.start(node_id)
        await in_sync(nodes)
        for node_id in nodes.brokers:
            await nodes.until(
                lambda n=node_id: values(replica(nodes, n)) == [b"%d" % number for number in range(5)]  # type: ignore[misc]
            )
        assert nodes.brokers[wiped].topics.image.brokers[wiped].lost == frozenset()


async def test_where_every_disk_was_wiped_partitions_are_led_again(tmp_path: Path) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await in_sync(nodes)
        async with producer(nodes) as sender:
            await sender.send_and_wait("orders", b"a", partition=0)
        await killed(nodes, 1, 2, 3)
        for node_id in (1, 2, 3):
            shutil.rmtree(tmp_path / str(node_id))
            await nodes.start(node_id)
        await in_sync(nodes)
        async with producer(nodes) as sender:
            await sender.send_and_wait("orders", b"b", partition=0)
        assert values(replica(nodes, nodes.state("orders").leader)) == [b"b"]


def _listens(address: Address) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((address.host, address.port)) == 0


async def test_a_broker_that_is_coming_back_tells_nobody_that_there_are_no_topics() -> None:
    """librdkafka gives records up at once when a broker says so of a topic that was there."""
    async with cluster() as nodes:
        await nodes.create("orders", 3)
        former, port = nodes.stores[3], nodes.brokers[3].port
        await nodes.brokers.pop(3).kill()
        starting = asyncio.create_task(nodes.start(3))
        address = Address("127.0.0.1", port)
        await nodes.until(lambda: _listens(address))

        async def ask() -> Any:
            connection = await Connection.open(address, client_id="c", timeout_ms=30_000)
            request = MetadataRequest([MetadataRequestTopic(name="orders")])
            answer = await connection.request(request, timeout_ms=9_000)
            connection.close()
            return answer

        asking = asyncio.create_task(ask())
        # enough for an answer, if it gave one
        await asyncio.wait([asking], timeout=0.2)
        former.expire()
        await starting
        answer = await asking
        assert [(len(topic.partitions), topic.error_code) for topic in answer.topics] == [(3, 0)]


def test_a_new_leader_tells_no_end_before_it_knows_what_was_committed(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(1, data=tmp_path) as nodes, producer(nodes) as sender:
            await nodes.create("orders")
            await sender.send_and_wait("orders", b"x", timestamp_ms=5)
            leadership = replica(nodes, 1).leadership
            assert leadership is not None
            leadership.replication.start_offset = 2
            code = ErrorCode.OFFSET_NOT_AVAILABLE
            assert await asyncio.to_thread(ends, nodes, 7, -1) == (code, -1)
            assert await asyncio.to_thread(ends, nodes, 4, -1) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert await asyncio.to_thread(ends, nodes, 7, 6) == (code, -1)
            # what is certain is told: the start, and the offset of a time that is below the high watermark
            assert await asyncio.to_thread(ends, nodes, 7, -2) == (ErrorCode.NONE, 0)
            assert await asyncio.to_thread(ends, nodes, 7, 5) == (ErrorCode.NONE, 0)
            leadership.replication.start_offset = 1
            assert await asyncio.to_thread(ends, nodes, 7, -1) == (ErrorCode.NONE, 1)

    asyncio.run(run())


def ends(nodes: Nodes, version: int, timestamp: int) -> tuple[int, int]:
    """Error and offset of ListOffsets."""
    with Wire(nodes.bootstrap()) as wire:
        found = offset_at(wire, "orders", timestamp, version=version)
        return found.error_code, found.offset


async def test_after_all_brokers_were_gone_nobody_leads_on_in_the_former_epoch(tmp_path: Path) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        before = nodes.state("orders").leader_epoch
        for node_id in (1, 2, 3):
            await nodes.brokers.pop(node_id).kill()
        # nobody is left who could see that the leader is gone
        for store in nodes.stores.values():
            store.expire()
        await asyncio.gather(*(nodes.start(node_id) for node_id in (1, 2, 3)))
        await nodes.until(lambda: nodes.state("orders").leader > 0)
        assert nodes.state("orders").leader_epoch > before


async def test_offsets_are_read_without_zookeeper_but_not_without_followers_as_well() -> None:
    async with cluster(offsets_topic_num_partitions=1) as nodes:

        def find() -> int:
            with Wire(nodes.any().bootstrap) as wire:
                answer = wire.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g"])
                return int(answer.coordinators[0].node_id)

        async def until_read(code: ErrorCode) -> None:
            def read() -> int:
                with Wire(nodes.brokers[leader].bootstrap) as wire:
                    fields = {"group_id": "g", "topics": None, "require_stable": False}
                    return int(wire.call(ApiKey.OFFSET_FETCH, 7, **fields).error_code)

            async with asyncio.timeout(30):
                while await asyncio.to_thread(read) != code:
                    pass

        async with asyncio.timeout(30):
            while (leader := await asyncio.to_thread(find)) < 0:
                pass
        await until_read(ErrorCode.NONE)
        for store in nodes.stores.values():
            store.suspend()
        await until_read(ErrorCode.NONE)
        # any of them could lead now, and this broker would not hear of it
        for node_id in nodes.brokers.keys() - {leader}:
            await nodes.brokers.pop(node_id).kill()
        await until_read(ErrorCode.NOT_COORDINATOR)
        nodes.stores[leader].resume()
        await until_read(ErrorCode.NONE)


async def test_the_last_broker_serves_groups_though_too_few_replicas_are_in_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was committed last is in its log, and behind its high watermark: nothing moves that any more."""
    committed = Partition.commit_up_to

    def committed_by_a_leader(partition: Partition, high_watermark: int) -> None:
        if partition.leadership is not None:
            committed(partition, high_watermark)

    place = TopicPartition("orders", 0)
    async with cluster(offsets_topic_num_partitions=1, min_insync_replicas=2) as nodes:
        await nodes.create("orders")
        monkeypatch.setattr(Partition, "commit_up_to", committed_by_a_leader)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=nodes.bootstrap(), group_id="g", enable_auto_commit=False
        )
        consumer.assign([place])
        await consumer.start()
        await consumer.commit({place: 7})
        await consumer.stop()
        first = nodes.state("__consumer_offsets").leader
        second, last = nodes.brokers.keys() - {first}
        await nodes.kill(second)
        await nodes.until(lambda: len(nodes.state("__consumer_offsets", at=last).isr) == 2)
        await nodes.kill(first)
        await nodes.until(lambda: nodes.state("__consumer_offsets").leader == last)
        partition = replica(nodes, last, "__consumer_offsets")
        await nodes.until(lambda: partition.leadership is not None)
        assert partition.high_watermark < partition.log_end_offset

        def read() -> tuple[int, list[int]]:
            with Wire(nodes.brokers[last].bootstrap) as wire:
                topics = [{"name": "orders", "partition_indexes": [0]}]
                answer = wire.call(ApiKey.OFFSET_FETCH, 7, group_id="g", topics=topics, require_stable=False)
                rows = [row.committed_offset for topic in answer.topics for row in topic.partitions]
                return int(answer.error_code), rows

        async with asyncio.timeout(30):
            while (found := await asyncio.to_thread(read))[0]:
                pass
        assert found == (ErrorCode.NONE, [7])
        assert partition.high_watermark < partition.log_end_offset


async def test_an_image_of_many_topics_is_followed_in_slices_what_is_led_first_and_given_up_with_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as nodes:
        names = [f"topic-{number}" for number in range(6)]
        for name in names:
            await nodes.create(name)
        node = nodes.brokers[1].cluster
        assert node is not None
        partitions = {name: replica(nodes, 1, name) for name in names}
        own = {name for name in names if nodes.state(name).leader == 1}
        assert len(own) == len(names) / 3

        def led() -> set[str]:
            return {name for name, partition in partitions.items() if partition.is_led}

        # what others do between two topics
        meanwhile: list[set[str]] = []

        async def pause(_: Slices) -> None:
            meanwhile.append(led())

        async def lose_the_session(_: Slices) -> None:
            monkeypatch.setattr(Slices, "end_if_due", pause)
            assert led() < own
            node.follow(None)

        image = node.view.image
        monkeypatch.setattr(Slices, "end_if_due", pause)
        node.follow(None)
        await node.follow_in_slices(image)
        assert [len(each) for each in meanwhile] == [1, 2, 2, 2, 2, 2]
        assert led() == own
        monkeypatch.setattr(Slices, "end_if_due", lose_the_session)
        node.follow(None)
        await node.follow_in_slices(image)
        assert led() == set()
        monkeypatch.undo()
        await node.follow_in_slices(image)
        assert led() == own
