"""Produce: every version, acks, and what is refused with which code.

Covers: broker/clients/retriable_batches.py.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from kohort.broker.event_loop import time_slices as _turns
from kohort.broker.partitions.partition import Partition
from kohort.protocol import ApiKey, Codec, ErrorCode, parse_batch_header
from kohort.protocol._batch import _write_crc
from kohort.testing import RunningBroker, running_cluster
from tests.broker.metadata.topic_requests import delete_topics
from tests.broker.wire import (
    Wire,
    batch,
    create_topic,
    fetch,
    offset_at,
    part,
    produce,
    produce_fields,
)

LATEST = -1


def flipped(position: int, mask: int) -> bytes:
    data = bytearray(batch())
    data[position] ^= mask
    return bytes(data)


@pytest.mark.parametrize("version", range(3, 13))
def test_a_batch_is_appended_and_its_offset_told(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name)
    for base_offset in (0, 2):
        answer = produce(wire, name, batch(2), version=version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, base_offset, -1)


def by_id(wire: Wire, topic_id: UUID | None) -> Any:
    data = part(ApiKey.PRODUCE, 13, "TopicProduceData", "PartitionProduceData", index=0, records=batch())
    topic = part(ApiKey.PRODUCE, 13, "TopicProduceData", topic_id=topic_id, partition_data=[data])
    answer = wire.call(
        ApiKey.PRODUCE, 13, transactional_id=None, acks=-1, timeout_ms=1_000, topic_data=[topic]
    )
    return answer.responses[0]


def test_v13_names_topics_by_id(wire: Wire, name: str) -> None:
    topic_id = create_topic(wire, name).topic_id
    answer = by_id(wire, topic_id)
    assert answer.topic_id == topic_id
    assert answer.partition_responses[0].error_code == 0
    assert by_id(wire, uuid4()).partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_batch_is_stored_as_it_was_sent(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    sent = batch(3)
    produce(wire, name, sent)
    (read,) = fetch(wire, name, 0)
    # the broker writes base offset and leader epoch, nothing else
    assert read.records[:12] + b"\xff" * 4 + read.records[16:] == sent


@pytest.mark.parametrize("acks", [1, -1])
def test_acks_of_one_and_all_are_answered(wire: Wire, name: str, acks: int) -> None:
    create_topic(wire, name)
    assert produce(wire, name, batch(), acks=acks).error_code == 0


@pytest.mark.parametrize("made_anew", [True, False])
def test_what_the_topic_asks_for_when_the_check_is_over_counts(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch, made_anew: bool
) -> None:
    begun, changed = threading.Event(), threading.Event()

    async def give_way(begun_s: float, _clock: Callable[[], float]) -> float:
        begun.set()
        while not changed.is_set():  # noqa: ASYNC110 - another thread does it
            await asyncio.sleep(0.001)
        return begun_s

    create_topic(wire, name)
    monkeypatch.setattr(_turns, "_give_way", give_way)
    with Wire(broker.bootstrap) as producer:
        number = producer.send(ApiKey.PRODUCE, 9, **produce_fields(name, batch(5_000, key=None)))
        assert begun.wait(10)
        if made_anew:
            assert delete_topics(wire, name) == [0]
            create_topic(wire, name, cleanup_policy="compact")
        else:
            path = "AlterConfigsResource", "AlterableConfig"
            row = part(ApiKey.ALTER_CONFIGS, 1, *path, name="cleanup.policy", value="compact")
            wanted = part(
                ApiKey.ALTER_CONFIGS, 1, path[0], resource_type=2, resource_name=name, configs=[row]
            )
            wire.call(ApiKey.ALTER_CONFIGS, 1, resources=[wanted], validate_only=False)
        changed.set()
        answer = producer.receive(ApiKey.PRODUCE, 9, number).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert offset_at(wire, name, LATEST).offset == 0


def test_others_have_their_turn_between_two_partitions(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(wire, name, partitions=5)
    seen: list[str] = []
    append = Partition.append

    def noted(partition: Partition, *args: Any, **options: Any) -> Any:
        seen.append("append")
        asyncio.get_running_loop().call_soon(seen.append, "turn")
        return append(partition, *args, **options)

    monkeypatch.setattr(Partition, "append", noted)
    monkeypatch.setattr(_turns, "SLICE_S", -1.0)
    path = ApiKey.PRODUCE, 9, "TopicProduceData"
    each = [part(*path, "PartitionProduceData", index=index, records=batch()) for index in range(5)]
    fields = produce_fields(name, None) | {"topic_data": [part(*path, name=name, partition_data=each)]}
    answer = wire.call(ApiKey.PRODUCE, 9, **fields).responses[0]
    assert [(one.index, one.error_code) for one in answer.partition_responses] == [(n, 0) for n in range(5)]
    assert seen == ["append", "turn"] * 5


def test_acks_of_zero_are_not_answered(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(), acks=0)
    assert offset_at(wire, name, LATEST).offset == 1


def test_a_failed_produce_with_acks_of_zero_ends_the_connection(wire: Wire, name: str) -> None:
    produce(wire, name, batch(), acks=0)
    assert wire.closed_by_broker()


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, id="null"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="empty"),
        pytest.param(batch()[:40], ErrorCode.INVALID_RECORD, id="less than a header"),
        pytest.param(batch() + batch(), ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(flipped(16, 3), ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(flipped(16, 1), ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(flipped(-1, 1), ErrorCode.CORRUPT_MESSAGE, id="checksum"),
        pytest.param(batch()[:-3], ErrorCode.INVALID_RECORD, id="cut short"),
        pytest.param(batch(control=True), ErrorCode.INVALID_RECORD, id="control batch"),
        pytest.param(
            batch(transactional=True), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, id="transactional"
        ),
        pytest.param(batch(timestamp_ms=9_999_999_999_999), ErrorCode.INVALID_TIMESTAMP, id="far future"),
        pytest.param(batch(key=bytes(1 << 21)), ErrorCode.MESSAGE_TOO_LARGE, id="too large"),
    ],
)
def test_what_is_refused(wire: Wire, name: str, records: bytes | None, code: ErrorCode) -> None:
    create_topic(wire, name)
    answer = produce(wire, name, records)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert answer.error_message
    assert code.name not in answer.error_message, "clients put the code in front themselves"
    assert offset_at(wire, name, LATEST).offset == 0


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused(wire: Wire, name: str, acks: int) -> None:
    create_topic(wire, name)
    assert produce(wire, name, batch(), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert produce(wire, name, batch()[:-3], acks=acks).error_code == ErrorCode.INVALID_RECORD
    assert (
        produce(wire, "no-such-topic", batch(), acks=acks).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


@pytest.mark.parametrize("partition", [1, -1])
def test_unknown_partitions_and_topics(wire: Wire, name: str, partition: int) -> None:
    assert produce(wire, name, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create_topic(wire, name)
    answer = produce(wire, name, batch(), partition=partition)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_clients_may_not_write_internal_topics(wire: Wire) -> None:
    answer = produce(wire, "__consumer_offsets", batch())
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_bad_partition_does_not_spoil_the_others(wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)
    fields = produce_fields(name, batch(), partition=1)
    fields["topic_data"] += produce_fields(name, flipped(-1, 1), partition=0)["topic_data"]
    answer = wire.call(ApiKey.PRODUCE, 9, **fields)
    assert [topic.partition_responses[0].error_code for topic in answer.responses] == [0, 2]


def test_zstd_needs_v7(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    data = bytearray(batch())
    data[22] |= Codec.ZSTD
    assert produce(wire, name, bytes(data), version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_log_append_time_is_told_and_written(wire: Wire, name: str) -> None:
    create_topic(wire, name, message_timestamp_type="LogAppendTime")
    answer = produce(wire, name, batch())
    assert answer.log_append_time_ms > 1_700_000_000_000
    assert offset_at(wire, name, answer.log_append_time_ms).offset == 0


def numbered(sequence: int, *, epoch: int = 0, records: int = 1) -> bytes:
    return batch(records, producer_id=4_242, producer_epoch=epoch, base_sequence=sequence)


def test_a_batch_sent_twice_is_stored_once(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    first = produce(wire, name, numbered(0, records=2))
    again = produce(wire, name, numbered(0, records=2))
    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert offset_at(wire, name, LATEST).offset == 2


def test_a_gap_and_an_old_epoch_are_refused(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, numbered(0))
    assert produce(wire, name, numbered(5)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(wire, name, numbered(0, epoch=1)).error_code == 0
    assert produce(wire, name, numbered(1, epoch=0)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", [7, 8, 9, 12])
def test_the_records_that_a_batch_is_refused_for_are_named(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, cleanup_policy="compact")
    refused = produce(wire, name, batch(3, key=None), version=version)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    named = [error.batch_index for error in refused.record_errors or ()]
    assert named == ([0, 1, 2] if version >= 8 else [])
    if version >= 8:
        assert "without a key" in refused.record_errors[0].batch_index_error_message


def test_garbage_is_refused_and_what_comes_before_and_after_is_read(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert produce(wire, name, batch(2)).base_offset == 0
    garbage = bytearray(batch(3))
    garbage[61:] = b"\xff" * (len(garbage) - 61)
    _write_crc(garbage, 0)
    assert produce(wire, name, bytes(garbage)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert produce(wire, name, batch(2)).base_offset == 2


def test_the_beginning_of_another_batch_is_left_out(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    for tail in (b"\0", batch(1)[:-1], batch(1)[:14]):
        assert produce(wire, name, batch(1) + tail).error_code == ErrorCode.NONE
    assert produce(wire, name, batch(1) + bytes(20)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert produce(wire, name, batch(1) + batch(1)).error_code == ErrorCode.INVALID_RECORD
    assert produce(wire, name, batch(1)).base_offset == 3


def test_followers_have_what_the_leader_has_compressed() -> None:
    with running_cluster(2) as cluster:
        cluster.create_topic("orders", compression_type="gzip")
        leader = cluster.leader_of("orders", 0)
        with Wire(cluster.brokers[leader].bootstrap) as wire:
            assert [produce(wire, "orders", numbered(n)).base_offset for n in (0, 1, 1)] == [0, 1, 1]
            before = bytes(fetch(wire, "orders", 0)[0].records)
        assert parse_batch_header(before).codec == Codec.GZIP
        cluster.kill(leader)
        with Wire(cluster.brokers[3 - leader].bootstrap) as wire:
            cluster.leader_of("orders", 0)
            assert bytes(fetch(wire, "orders", 0)[0].records) == before


def test_what_is_on_its_way_behind_a_refused_batch_is_refused_with_it_once() -> None:
    """Were it out of order, librdkafka would take another epoch, and send the first one again under it."""
    with running_cluster(2, min_insync_replicas=2) as cluster:
        cluster.create_topic("orders")
        leader = cluster.leader_of("orders", 0)
        follower = 3 - leader
        with Wire(cluster.brokers[leader].bootstrap) as wire:
            assert produce(wire, "orders", numbered(0)).base_offset == 0
            cluster.kill(follower)
            # its answer was lost, say; the next two are new
            for sequence in range(3):
                refused = produce(wire, "orders", numbered(sequence))
                assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            cluster.restart(follower)
            cluster.wait_in_sync("orders")
            for sequence in (3, 4):
                refused = produce(wire, "orders", numbered(sequence))
                assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            # without the ones before it would be out of order for ever
            assert produce(wire, "orders", numbered(4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert [produce(wire, "orders", numbered(n)).base_offset for n in range(5)] == [0, 1, 2, 3, 4]
            assert produce(wire, "orders", numbered(5)).base_offset == 5
