"""The small producer: batches with times of their own, sequence numbers, keys, answers that were lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from kohort.client.producer import Producer, ProducerId, RecordBuffer, partition_of_key
from kohort.client.requests import Requests
from kohort.consumer.decode import ChunkReader
from kohort.protocol import Codec, ErrorCode, KafkaError, TopicPartition, parse_batch_header, verify_batch

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
ME = ProducerId(7, 3)


def _buffer(*values: bytes, first_ms: int = 1_000) -> RecordBuffer:
    records = RecordBuffer()
    for number, value in enumerate(values):
        records.add(b"k", value, [("name", b"x"), ("null", None)], first_ms + number)
    return records


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_has_the_records_as_they_were_added(codec: Codec) -> None:
    records = RecordBuffer()
    records.add(b"k", b"v" * 300, [("a", b"1"), ("b", None)], 2_000)
    records.add(None, None, [], 1_000)
    records.add(b"", b"", [], 3_000)
    batch = records.batch(ME, 5, codec, transactional=False)
    header = parse_batch_header(batch, 0)
    verify_batch(batch, header, 0)
    assert (header.record_count, header.codec, header.size) == (3, codec, len(batch))
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (2_000, 3_000)
    found = ChunkReader(A, batch, 0).read()
    assert [(r.offset, r.timestamp_ms, r.key, r.value, list(r.headers)) for r in found] == [
        (0, 2_000, b"k", b"v" * 300, [("a", b"1"), ("b", None)]),
        (1, 1_000, None, None, []),
        (2, 3_000, b"", b"", []),
    ]


def test_sequence_numbers_rise_by_partition_and_begin_again_after_the_last() -> None:
    producer = Producer(ME)

    def sequence(partition: TopicPartition, *values: bytes) -> int:
        header = parse_batch_header(producer.batch(partition, _buffer(*values)), 0)
        assert (header.producer_id, header.producer_epoch) == ME
        return header.base_sequence

    assert [sequence(A, b"1", b"2"), sequence(B, b"1"), sequence(A, b"3"), sequence(A, b"4")] == [0, 0, 2, 3]
    producer._sequences[B] = 2**31 - 1
    assert [sequence(B, b"2", b"3"), sequence(B, b"4")] == [2**31 - 1, 1]


@pytest.mark.parametrize("transactional_id", [None, "etl-1"])
def test_batches_of_a_transaction_say_so(transactional_id: str | None) -> None:
    producer = Producer(ME, transactional_id=transactional_id)
    header = parse_batch_header(producer.batch(A, _buffer(b"v")), 0)
    assert header.transactional is (transactional_id is not None)


class _Answering:
    """A cluster in which each call ends with this error."""

    def __init__(self, code: ErrorCode) -> None:
        self._error = KafkaError(code, "said by the test")

    async def retrying(self, _: Callable[[], Awaitable[Any]]) -> Any:
        raise self._error


async def test_a_batch_whose_first_try_was_written_is_no_error() -> None:
    cluster = cast(Requests, _Answering(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    assert await Producer(ME).send(cluster, A, b"") == -1


async def test_any_other_refusal_is_raised() -> None:
    cluster = cast(Requests, _Answering(ErrorCode.MESSAGE_TOO_LARGE))
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        await Producer(ME).send(cluster, A, b"")


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_javas_producers_put_it(key: bytes, murmur2: int) -> None:
    assert [partition_of_key(key, count) for count in (1, 7, 12)] == [
        (murmur2 & 0x7FFFFFFF) % count for count in (1, 7, 12)
    ]
