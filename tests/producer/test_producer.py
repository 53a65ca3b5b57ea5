"""Records to topics, end to end: on kohort, and with ``--bootstrap`` on an Apache Kafka.

Covers: producer/sender.py, producer/errors.py, client/config.py.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from kohort.client import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import BrokerConnectionError
from kohort.client.surroundings import Surroundings
from kohort.producer import (
    BufferFullError,
    DeliveryTimeoutError,
    Producer,
    ProducerClosedError,
    ProducerRecord,
    RecordTooLargeError,
    TransactionStateError,
    partition_of_key,
)
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TimedRecord
from tests.broker.apis.test_client_quotas import alter
from tests.broker.wire import Wire
from tests.broker_process import BrokerProcess
from tests.producer.reading import read, read_values
from tests.producer.test_disturbed import surrounded

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]


@pytest.fixture
def topic(new_topic: Topics) -> str:
    return new_topic("one", partitions=1)


async def test_a_record_is_written_as_it_was_sent(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    headers = [("name", b"content"), ("none", None), ("naïve", b"")]
    async with Producer(bootstrap_servers=bootstrap) as producer:
        sent = await producer.send_and_wait(topic, b"value", b"key", 2, 1_234_567, headers)
        await producer.send_and_wait(topic, None, partition=2)
    first, second = await read(bootstrap, topic)
    assert (sent.topic_partition, sent.offset, sent.timestamp_ms) == ((topic, 2), 0, 1_234_567)
    assert (first.partition, first.offset, first.timestamp_ms) == (2, 0, 1_234_567)
    assert (first.key, first.value, list(first.headers)) == (b"key", b"value", headers)
    assert (second.key, second.value) == (None, None)
    assert abs(second.timestamp_ms - time.time() * 1_000) < 60_000


async def test_records_without_a_time_get_that_of_the_surroundings(bootstrap: str, topic: str) -> None:
    with surrounded(Surroundings(time_ms=lambda: 1_234_567)):
        async with Producer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, b"sent")
            await (await producer.forward(ProducerRecord(topic, b"forwarded", partition=0)))
    assert [(r.value, r.timestamp_ms) for r in await read(bootstrap, topic)] == [
        (b"sent", 1_234_567),
        (b"forwarded", 1_234_567),
    ]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_compression(bootstrap: str, topic: str, compression: str) -> None:
    wanted = [b"again and again %d" % number * 20 for number in range(500)]
    async with Producer(bootstrap_servers=bootstrap, compression=compression) as producer:
        for value in wanted:
            await producer.send(topic, value)
    assert await read_values(bootstrap, topic) == wanted


async def test_large_batches_are_compressed_in_a_thread(bootstrap: str, topic: str) -> None:
    wanted = [b"%d" % number * 1_000 for number in range(300)]
    settings: dict[str, Any] = {"compression": "gzip", "batch_size": 400_000, "linger_ms": 50}
    async with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        for value in wanted:
            await producer.send(topic, value)
    assert await read_values(bootstrap, topic) == wanted


async def test_keys_go_where_javas_producers_put_them(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=5)
    keys = [b"key-%d" % number for number in range(50)]
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for key in keys:
            await producer.send(topic, b"", key)
    found = {record.key: record.partition for record in await read(bootstrap, topic)}
    assert found == {key: partition_of_key(key, 5) for key in keys}


async def test_records_without_a_key_reach_all_partitions_in_batches(
    bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("prod", partitions=3)
    async with Producer(bootstrap_servers=bootstrap, batch_size=1_000) as producer:
        partitions = [
            (await future).partition for future in [await producer.send(topic, b"x" * 80) for _ in range(600)]
        ]
    assert set(partitions) == {0, 1, 2}
    changes = sum(one != other for one, other in pairwise(partitions))
    assert changes <= 600 / (1_000 // (80 + 21))


async def test_order_is_kept_with_many_batches_under_way(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=2)
    async with Producer(bootstrap_servers=bootstrap, batch_size=200, linger_ms=0) as producer:
        for number in range(3_000):
            await producer.send(topic, b"%05d" % number, partition=number % 2)
    for partition in (0, 1):
        values = [r.value for r in await read(bootstrap, topic) if r.partition == partition]
        assert values == [b"%05d" % number for number in range(partition, 3_000, 2)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_every_acks(bootstrap: str, topic: str, acks: Any) -> None:
    async with Producer(bootstrap_servers=bootstrap, acks=acks, linger_ms=0) as producer:
        for number in range(5):
            found = await producer.send_and_wait(topic, b"%d" % number)
            assert found.offset == (-1 if acks == 0 else number)
        await producer.send_and_wait(topic, b"5")  # without acks, it says nothing about being there
        values: list[bytes | None] = []
        async with asyncio.timeout(30):
            while len(values) < 6:
                values = await read_values(bootstrap, topic)
    assert values[:5] == [b"0", b"1", b"2", b"3", b"4"]


async def test_flush_waits_for_what_was_sent_and_does_not_linger(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    async with Producer(
        bootstrap_servers=bootstrap, linger_ms=3_600_000, delivery_timeout_ms=7_200_000
    ) as producer:
        futures = [await producer.send(topic, b"x") for _ in range(10)]
        assert not any(future.done() for future in futures)
        await producer.flush()
        assert all(future.done() for future in futures)


async def test_send_waits_for_room(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=20_000, linger_ms=100) as producer:
        for _ in range(200):
            await producer.send(topic, b"x" * 1_000)
            assert producer._accumulator.used <= 20_000 + 61
    assert len(await read(bootstrap, topic)) == 200


async def test_a_full_buffer_is_an_error_in_the_end(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    settings: dict[str, Any] = {"buffer_memory": 5_000, "max_block_ms": 100}
    async with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        await producer.send_and_wait(topic, b"x")
        producer._sender._closed = True  # type: ignore[union-attr]  # nothing leaves any more
        with pytest.raises(BufferFullError, match="full for max_block_ms"):
            await asyncio.gather(*(producer.send(topic, b"x" * 1_000) for _ in range(5)))
        producer._sender._closed = False  # type: ignore[union-attr]


async def test_a_record_that_is_too_large_is_not_sent(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    async with Producer(bootstrap_servers=bootstrap, max_request_size=1_000) as producer:
        with pytest.raises(RecordTooLargeError, match=r"max_request_size \(1000\)"):
            await producer.send(topic, b"x" * 1_000)


async def test_a_batch_larger_than_its_topic_takes_is_split(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=1, max_message_bytes="2000")
    async with Producer(bootstrap_servers=bootstrap, batch_size=100_000) as producer:
        futures = [await producer.send(topic, b"%03d" % number * 100) for number in range(40)]
        large = await producer.send(topic, b"x" * 5_000)
        futures += [await producer.send(topic, b"%03d" % number * 100) for number in range(40, 50)]
        assert [(await future).offset for future in futures] == list(range(50))
        with pytest.raises(KafkaError, match=r"MESSAGE_TOO_LARGE.*1 record was"):
            await large
    assert await read_values(bootstrap, topic) == [b"%03d" % number * 100 for number in range(50)]


async def test_a_topic_that_does_not_exist_is_told(bootstrap: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, max_block_ms=1_000) as producer:
        with pytest.raises(KafkaError) as caught:
            await producer.send("no such topic!", b"x")
        assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_partition_that_does_not_exist_is_told(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=2)
    async with Producer(bootstrap_servers=bootstrap, max_block_ms=200) as producer:
        with pytest.raises(KafkaError, match="has 2 partitions, not number 2"):
            await producer.send(topic, b"x", partition=2)
        with pytest.raises(KafkaError, match="partition=-1"):
            await producer.send(topic, b"x", partition=-1)


def _grow(bootstrap: str, topic: str, count: int) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import NewPartitions

    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_partitions({topic: NewPartitions(total_count=count)})


async def test_partitions_that_are_added_are_found_when_they_are_asked_for(
    bootstrap: str, topic: str
) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"x", partition=0)
        await asyncio.to_thread(_grow, bootstrap, topic, 3)
        assert (await producer.send_and_wait(topic, b"y", partition=2)).partition == 2
        assert await producer.partitions_for(topic) == 3


async def test_a_topic_made_anew_with_fewer_partitions_gets_its_keys_there(
    bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("prod", partitions=4)
    keys = [b"%d" % number for number in range(20)]
    settings: dict[str, Any] = {"request_timeout_ms": 1_000, "delivery_timeout_ms": 2_000}
    async with Cluster(bootstrap) as cluster, Producer(bootstrap_servers=bootstrap, **settings) as producer:
        await asyncio.gather(*[await producer.send(topic, b"", key) for key in keys])
        await cluster.delete_topics([topic])
        await cluster.retrying(lambda: cluster.create_topics({topic: 2}))
        # the first ones are for partitions that are gone
        await asyncio.gather(*[await producer.send(topic, b"", key) for key in keys], return_exceptions=True)
        sent = await asyncio.gather(*[await producer.send(topic, b"", key) for key in keys])
        assert [row.partition for row in sent] == [partition_of_key(key, 2) for key in keys]
        await producer.send_and_wait(topic, b"without a key")


async def test_records_for_a_topic_that_was_deleted_say_so(bootstrap: str, topic: str) -> None:
    settings: dict[str, Any] = {"request_timeout_ms": 900, "delivery_timeout_ms": 1_000}
    async with Cluster(bootstrap) as cluster, Producer(bootstrap_servers=bootstrap, **settings) as producer:
        await producer.send_and_wait(topic, b"x")
        await cluster.delete_topics([topic])
        with pytest.raises(
            KafkaError, match=rf"{topic}-0 were not acknowledged .* partition is gone"
        ) as caught:
            await producer.send_and_wait(topic, b"x")
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # looked up anew, the topic is made by brokers that do so
        assert (await producer.send_and_wait(topic, b"x")).offset == 0


async def test_a_topic_that_was_deleted_does_not_keep_others_from_being_looked_up(
    bootstrap: str, new_topic: Topics
) -> None:
    gone, topic = new_topic("gone", partitions=1), new_topic("prod", partitions=1)
    key = next(key for key in map(str.encode, "abcdefgh") if partition_of_key(key, 2) == 1)
    async with (
        Cluster(bootstrap) as cluster,
        Producer(bootstrap_servers=bootstrap, metadata_max_age_ms=100) as producer,
    ):
        for name in (gone, topic):
            await producer.send_and_wait(name, b"x")
        await cluster.delete_topics([gone])
        await asyncio.sleep(0.5)
        await asyncio.to_thread(_grow, bootstrap, topic, 2)
        written = [await producer.send_and_wait(topic, b"x", key)]
        async with asyncio.timeout(30):
            while not written[-1].partition:
                written.append(await producer.send_and_wait(topic, b"x", key))


async def test_many_first_sends_share_one_question(
    bootstrap: str, new_topic: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [new_topic("prod", partitions=1) for _ in range(3)]
    asked: list[list[str]] = []
    original = Cluster.metadata

    async def metadata(cluster: Cluster, names: Any, *, create: bool = False) -> Any:
        asked.append(sorted(names))
        return await original(cluster, names, create=create)

    async with Producer(bootstrap_servers=bootstrap) as producer:
        monkeypatch.setattr(Cluster, "metadata", metadata)
        values = [b"%d" % number for number in range(300)]
        await asyncio.gather(*(producer.send(topics[int(value) % 3], value) for value in values))
    assert asked == [sorted(topics)]
    for number, topic in enumerate(topics):
        assert await read_values(bootstrap, topic) == values[number::3]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (b"orders", "topic is bytes"),
        ("\ud800", "surrogates not allowed"),
        ("x" * 40_000, "INVALID_TOPIC_EXCEPTION"),
        ("no such topic!", "INVALID_TOPIC_EXCEPTION"),
    ],
)
async def test_a_name_that_no_topic_can_have_does_not_hold_up_others(
    bootstrap: str, topic: str, wrong: Any, error: str
) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        sends = [producer.send(wrong, b"x"), producer.send(topic, b"x")]
        refused, good = await asyncio.gather(*sends, return_exceptions=True)
        assert error in str(refused)
        assert (await good).offset == 0  # type: ignore[misc]


async def test_a_topic_that_nobody_tells_of_is_waited_for_so_long(
    bootstrap: str, new_topic: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, told, original = new_topic("prod", partitions=1), asyncio.Event(), Cluster.metadata

    async def metadata(*arguments: Any, **named: Any) -> Any:
        await told.wait()
        return await original(*arguments, **named)

    async with Producer(bootstrap_servers=bootstrap, max_block_ms=200) as producer:
        monkeypatch.setattr(Cluster, "metadata", metadata)
        for _ in range(2):  # the second waits behind the question of the first
            with pytest.raises(KafkaError, match=r"not looked up within max_block_ms \(200\)"):
                await producer.send(topic, b"x")
        told.set()
        assert (await producer.send_and_wait(topic, b"x")).offset == 0


async def test_one_who_gives_up_waiting_for_a_topic_does_not_end_the_wait_of_others(
    bootstrap: str, topic: str
) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        first = asyncio.create_task(producer.send(topic, b"first"))
        second = asyncio.create_task(producer.send(topic, b"second"))
        await asyncio.sleep(0)
        first.cancel()
        assert (await (await second)).offset == 0


async def test_text_is_no_record(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(TypeError, match="value is str: records are bytes"):
            await producer.send(topic, "text")
        await producer.send_and_wait(topic, bytearray(b"ok"))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"headers": [("name", "text")]}, "a header's value is str"),
        ({"headers": [(b"name", b"")]}, "a header's name is bytes"),
        ({"headers": [("\ud800", b"")]}, "surrogates not allowed"),
        ({"timestamp_ms": 1.5}, "timestamp_ms=1.5"),
        ({"timestamp_ms": 2**63}, "whole milliseconds"),
    ],
)
async def test_what_cannot_be_encoded_is_refused_and_takes_nothing_with_it(
    bootstrap: str, topic: str, wrong: dict[str, Any], error: str
) -> None:
    async with Producer(bootstrap_servers=bootstrap, linger_ms=50) as producer:
        before = await producer.send(topic, b"before")
        with pytest.raises((TypeError, ValueError), match=error):
            await producer.send(topic, b"x", **wrong)
        after = await producer.send(topic, b"after")
    assert ((await before).offset, (await after).offset) == (0, 1)


async def test_headers_are_those_of_the_call(bootstrap: str, topic: str) -> None:
    headers: list[tuple[str, bytes | None]] = [("number", b"0")]
    async with Producer(bootstrap_servers=bootstrap, linger_ms=50) as producer:
        await producer.send(topic, b"x", headers=headers)
        headers[0] = ("number", b"1")
        await producer.send(topic, b"y", headers=iter(headers))  # type: ignore[arg-type]
    assert [list(record.headers) for record in await read(bootstrap, topic)] == [
        [("number", b"0")],
        [("number", b"1")],
    ]


async def test_records_that_wait_for_room_keep_their_order(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=10_000) as producer:
        await producer.partitions_for(topic)
        values = [b"%d" % number * (1 + number % 7 * 100) for number in range(300)]
        # a small one has room where the large one before it has none
        await asyncio.gather(*(producer.send(topic, value) for value in values))
    assert await read_values(bootstrap, topic) == values


async def test_calls_that_wait_for_room_end_with_the_producer(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=bootstrap, buffer_memory=5_000)
    await producer.start()
    await producer.send_and_wait(topic, b"x")
    producer._sender._closed = True  # type: ignore[union-attr]  # nothing leaves any more
    sends = [asyncio.create_task(producer.send(topic, b"x" * 1_000)) for _ in range(8)]
    await asyncio.sleep(0)
    assert producer._in_line == 5
    await producer.close(timeout_ms=0)
    ends = await asyncio.gather(*sends, return_exceptions=True)
    assert [type(end) for end in ends[3:]] == [ProducerClosedError] * 5


async def test_records_that_are_out_of_time_make_room(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"request_timeout_ms": 400, "delivery_timeout_ms": 500}
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=3_000, **settings) as producer:
        await producer.send_and_wait(topic, b"x")
        with monkeypatch.context() as patch:
            patch.setattr(producer._cluster, "leader", lambda _: None)
            lost = [await producer.send(topic, b"x" * 1_000) for _ in range(2)]
            async with asyncio.timeout(30):  # max_block_ms is a minute
                await producer.send(topic, b"x" * 1_000)
            assert [type(future.exception()) for future in lost] == [DeliveryTimeoutError] * 2


@pytest.mark.slow(2)
async def test_without_acks_a_broker_that_reads_nothing_fills_the_buffer(
    broker_process: BrokerProcess,
) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 1})
    settings: dict[str, Any] = {"acks": 0, "buffer_memory": 8_000_000, "max_block_ms": 1_000}
    async with Producer(bootstrap_servers=broker_process.bootstrap, **settings) as producer:
        await producer.send_and_wait("orders", b"x")
        assert broker_process.process is not None
        broker_process.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(BufferFullError):
                await asyncio.gather(*(producer.send("orders", b"x" * 1_000_000) for _ in range(100)))
        finally:
            broker_process.process.send_signal(signal.SIGCONT)


async def test_close_sends_what_was_accepted(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    producer = Producer(bootstrap_servers=bootstrap, linger_ms=60_000)
    await producer.start()
    future = await producer.send(topic, b"x")
    await producer.close()
    assert future.result().offset == 0
    with pytest.raises(ProducerClosedError, match="has been closed"):
        await producer.send(topic, b"y")
    await producer.close()


async def test_a_close_in_a_hurry_gives_up_what_is_left(bootstrap: str, new_topic: Topics) -> None:
    producer = Producer(bootstrap_servers=bootstrap)
    await producer.start()
    topic = new_topic("prod")
    await producer.partitions_for(topic)
    future = await producer.send(topic, b"x")
    await producer.close(timeout_ms=0)
    assert future.done()


async def test_before_the_start_nothing_is_sent() -> None:
    with pytest.raises(ProducerClosedError, match="was not started"):
        await Producer(bootstrap_servers="localhost:1").send("orders", b"x")


async def test_a_broker_that_is_not_there_is_told() -> None:
    with pytest.raises(BrokerConnectionError):
        await Producer(bootstrap_servers="localhost:1", max_block_ms=100).start()


async def test_transactions_need_an_id(bootstrap: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(TransactionStateError, match="give it a transactional_id"):
            producer.begin_transaction()


async def test_a_batch_of_records_is_sent_as_one(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=2)
    async with Cluster(bootstrap) as cluster, Producer.on_cluster(cluster, linger_ms=0) as producer:
        records: list[TimedRecord] = [(b"k", b"%d" % number, [], 1_000 + number) for number in range(10)]
        sent = await (await producer.send_batch(topic, 1, records))
        assert (sent.partition, sent.offset) == (1, 0)
    assert [record.timestamp_ms for record in await read(bootstrap, topic)] == list(range(1_000, 1_010))


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ((b"k", "text", [], 0), "value is str"),
        (("text", b"v", [], 0), "key is str"),
        ((b"k", b"v", [("name", "text")], 0), "a header's value is str"),
        ((b"k", b"v", [(b"name", b"")], 0), "a header's name is bytes"),
        ((b"k", b"v", [], None), "timestamp_ms=None"),
    ],
)
async def test_a_batch_with_what_cannot_be_encoded_is_refused_and_takes_nothing_with_it(
    bootstrap: str, topic: str, record: Any, error: str
) -> None:
    async with Producer(bootstrap_servers=bootstrap, linger_ms=50) as producer:
        before = await producer.send(topic, b"before")
        with pytest.raises((TypeError, ValueError), match=error):
            await producer.send_batch(topic, 0, [(None, b"good", [], 0), record])
        with pytest.raises(ValueError, match="no records"):
            await producer.send_batch(topic, 0, [])
        after = await producer.send_batch(topic, 0, [(None, b"after", [("name", None)], 1)])
    assert ((await before).offset, (await after).offset) == (0, 1)


async def test_a_producer_over_its_quota_waits_as_long_as_it_is_told(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[float, float]] = []  # when an answer came, and how long to wait
    sent: list[float] = []
    original, now = Connection.ask, asyncio.get_running_loop().time

    def ask(connection: Connection, body: Any, **settings: Any) -> asyncio.Future[Any]:
        answer = original(connection, body, **settings)
        if body.API_KEY == ApiKey.PRODUCE:
            sent.append(now())
            answer.add_done_callback(
                lambda done: told.append((now(), done.result().throttle_time_ms / 1_000))
            )
        return answer

    monkeypatch.setattr(Connection, "ask", ask)
    with Wire(bootstrap) as wire:
        alter(wire, ([("client-id", topic)], {"producer_byte_rate": 40_000.0}))
    settings: dict[str, Any] = {"client_id": topic, "linger_ms": 0, "batch_size": 1}
    async with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        async with asyncio.timeout(60):
            while not any(wait > 0.1 for _, wait in told):
                await producer.send_and_wait(topic, b"x" * 80_000)
        await asyncio.gather(*[await producer.send(topic, b"x") for _ in range(5)])
    waits = [(at, at + wait) for at, wait in told if wait]
    for began, end in waits:
        assert not [at for at in sent if began < at < end - 0.01]


@pytest.mark.slow(3)
@pytest.mark.parametrize("acks", ["all", 1])
async def test_a_leader_that_hangs_does_not_delay_the_end_of_delivery_timeout(
    broker_process: BrokerProcess, acks: Any
) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 1})
    settings: dict[str, Any] = {"request_timeout_ms": 500, "delivery_timeout_ms": 1_500, "batch_size": 1}
    async with Producer(bootstrap_servers=broker_process.bootstrap, acks=acks, **settings) as producer:
        await producer.send_and_wait("orders", b"x")
        broker_process.send(signal.SIGSTOP)
        try:
            # a connection is only found to be dead after ten seconds
            async with asyncio.timeout(8):
                futures = [await producer.send("orders", b"x" * 500) for _ in range(6)]
                ends = await asyncio.gather(*futures, return_exceptions=True)
        finally:
            broker_process.send(signal.SIGCONT)
        assert [type(end) for end in ends] == [DeliveryTimeoutError] * 6
        assert "not answered within 500 ms" in str(ends[0])
        await producer.send_and_wait("orders", b"y")


@pytest.mark.slow(2)
async def test_records_under_way_at_the_end_of_delivery_timeout_fail_then(
    broker_process: BrokerProcess,
) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 1})
    async with Producer(bootstrap_servers=broker_process.bootstrap) as producer:
        await producer.send_and_wait("orders", b"x")
        producer._accumulator.delivery_timeout_ms = 200  # less than request_timeout_ms
        broker_process.send(signal.SIGSTOP)
        try:
            async with asyncio.timeout(15):
                with pytest.raises(DeliveryTimeoutError):
                    await producer.send_and_wait("orders", b"late")
                await producer.flush()
        finally:
            broker_process.send(signal.SIGCONT)
        producer._accumulator.delivery_timeout_ms = 120_000
        assert (await producer.send_and_wait("orders", b"y")).offset == 2, "it was written all the same"


@pytest.mark.slow(4)
async def test_a_broker_killed_under_load_has_every_record_once_and_in_order(
    broker_process: BrokerProcess,
) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 3})
    async with Producer(
        bootstrap_servers=broker_process.bootstrap, linger_ms=0, request_timeout_ms=5_000, batch_size=500
    ) as producer:

        async def send() -> list[Any]:
            futures = []
            for number in range(6_000):
                futures.append(await producer.send("orders", b"%05d" % number, partition=number % 3))
                if number % 20 == 0:
                    await asyncio.sleep(0.002)
            return await asyncio.gather(*futures)

        sending = asyncio.create_task(send())
        for _ in range(3):
            await asyncio.sleep(0.15)
            broker_process.kill()
            await asyncio.to_thread(broker_process.start)
        sent = await sending
    records = await read(broker_process.bootstrap, "orders")
    for partition in range(3):
        values = [record.value for record in records if record.partition == partition]
        assert values == [b"%05d" % number for number in range(partition, 6_000, 3)]
    offsets = {record.value: (record.partition, record.offset) for record in records}
    told = {b"%05d" % n: (row.partition, row.offset) for n, row in enumerate(sent) if row.offset >= 0}
    assert told.items() <= offsets.items()
