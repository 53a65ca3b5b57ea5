"""Dead letters: what is written where, and what happens when it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import kohort.service
from kohort.client import Channel
from kohort.client import config as client_config
from kohort.consumer import Cluster
from kohort.consumer.config import consumer_config
from kohort.consumer.record import Record
from kohort.consumer.run import assembly
from kohort.protocol import (
    BATCH_OVERHEAD,
    Codec,
    ErrorCode,
    KafkaError,
    TopicPartition,
    decompress,
    parse_batch_header,
    verify_batch,
)
from kohort.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kohort.service.letters import deadletter
from kohort.service.letters.deadletter import DeadLetterError, DeadLetters, error_headers

RECORD = Record("orders", 7, 42, 1_000, b"key", b"value", [("trace", b"abc")])


class FakeCluster(Cluster):
    """Answers Produce with the error codes it was given, then with success."""

    def __init__(self, *codes: int, partitions: int = 3, topic_error: int = 0) -> None:
        super().__init__("localhost:9092", retry_backoff_ms=1, retry_backoff_max_ms=1)
        self.codes = list(codes)
        self.partitions = partitions
        self.topic_error = topic_error
        self.produced: list[Any] = []
        self.asked: list[str] = []
        self.may_create = False

    def topic(self, name: str) -> Any:
        if name not in self.asked or self.topic_error:
            return None
        numbers = range(self.partitions)
        return SimpleNamespace(topic_id=name, partitions=dict.fromkeys(numbers, SimpleNamespace(leader=1)))

    def leader(self, partition: TopicPartition) -> int | None:
        return 1 if partition.partition < self.partitions else None

    async def metadata(self, topics: Any, *, create: bool = False) -> Any:
        self.asked += list(topics)
        self.may_create |= create
        errors = {name: self.topic_error for name in topics if self.topic_error}
        return SimpleNamespace(errors=errors, topics={name: self.topic(name) for name in topics})

    def open_connection(self, node_id: int, _: Channel) -> Any:
        assert node_id == 1
        return SimpleNamespace(ask=self._take)

    def _take(self, body: Any, **_: Any) -> asyncio.Future[Any]:
        self.produced.append(body)
        code = self.codes.pop(0) if self.codes else 0
        (topic,) = body.topic_data
        row = PartitionProduceResponse(topic.partition_data[0].index, code, base_offset=5)
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(ProduceResponse([TopicProduceResponse(topic.name, None, [row])]))
        return answer


Letters = Callable[[FakeCluster], DeadLetters]


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    """``letters(cluster)`` are the dead letters of a service that reads this cluster."""

    def make(cluster: FakeCluster) -> DeadLetters:
        monkeypatch.setattr(deadletter, "make_cluster", lambda _: cluster)
        config = consumer_config(bootstrap="localhost:9092", group="billing")
        return DeadLetters(lambda: config, "billing")

    return make


async def test_a_letter_is_acknowledged_by_all_and_goes_to_its_origins_number(letters: Letters) -> None:
    cluster = FakeCluster()
    await letters(cluster).send("orders.dlt", RECORD, ValueError("poison"), 3)

    (body,) = cluster.produced
    assert cluster.may_create
    assert body.acks == -1
    (topic,) = body.topic_data
    (data,) = topic.partition_data
    assert (topic.name, data.index) == ("orders.dlt", 7 % 3)
    header = parse_batch_header(data.records)
    verify_batch(data.records, header)
    assert header.record_count == 1
    written = bytes(decompress(header.codec, bytes(data.records[BATCH_OVERHEAD:])))
    for text in (b"key", b"value", b"trace", b"abc", b"kohort.origin.offset", b"42", b"poison"):
        assert text in written


async def test_a_large_letter_is_compressed_as_its_record_may_have_been(letters: Letters) -> None:
    cluster = FakeCluster()
    value = b'{"order": 5, "state": "new"}' * 100_000
    await letters(cluster).send("orders.dlt", RECORD._replace(value=value), ValueError("poison"), 3)

    batch = cluster.produced[0].topic_data[0].partition_data[0].records
    header = parse_batch_header(batch)
    verify_batch(batch, header)
    assert (header.codec, header.record_count) == (Codec.GZIP, 1)
    assert len(batch) < len(value) / 10
    assert value in bytes(decompress(header.codec, bytes(batch[BATCH_OVERHEAD:])))


async def test_errors_whose_text_is_no_unicode_can_be_written(letters: Letters) -> None:
    cluster = FakeCluster()
    await letters(cluster).send("orders.dlt", RECORD, ValueError("\udcff"), 3)
    assert len(cluster.produced) == 1


def test_the_error_can_be_caught_by_its_public_name() -> None:
    assert kohort.service.DeadLetterError is DeadLetterError


async def test_it_is_sent_again_after_an_error_that_passes(letters: Letters) -> None:
    cluster = FakeCluster(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS)
    await letters(cluster).send("orders.dlt", RECORD, ValueError("poison"), 1)

    assert len(cluster.produced) == 3


@pytest.mark.parametrize(
    "made",
    [
        lambda: FakeCluster(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        lambda: FakeCluster(topic_error=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        lambda: FakeCluster(topic_error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_one_that_cannot_be_written_is_an_error_that_names_record_and_topic(
    made: Callable[[], FakeCluster], letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadletter, "SEND_TIMEOUT_MS", 20)
    with pytest.raises(
        DeadLetterError, match=r"orders-7 at offset 42 .* 'orders.dlt'.* topic exists"
    ) as caught:
        await letters(made()).send("orders.dlt", RECORD, ValueError("poison"), 1)
    assert isinstance(caught.value.__cause__, KafkaError)


def test_headers_tell_origin_group_and_error() -> None:
    try:
        try:
            raise KeyError("amount")
        except KeyError as cause:
            raise ValueError("no order") from cause
    except ValueError as error:
        headers = dict(error_headers(RECORD, error, 3, "billing"))

    stack = headers.pop("kohort.error.stack")
    assert stack is not None
    assert b"KeyError: 'amount'" in stack
    assert headers == {
        "kohort.origin.topic": b"orders",
        "kohort.origin.partition": b"7",
        "kohort.origin.offset": b"42",
        "kohort.origin.timestamp_ms": b"1000",
        "kohort.group": b"billing",
        "kohort.attempts": b"3",
        "kohort.error.class": b"builtins.KeyError",
        "kohort.error.message": b"no order",
    }


def test_long_errors_are_cut_so_that_the_letter_still_fits() -> None:
    headers = dict(error_headers(RECORD, ValueError("ä" * 1_000_000), 1, "billing"))
    sizes = {name: len(value or b"") for name, value in headers.items()}

    assert sizes["kohort.error.message"] == deadletter.MAX_ERROR_BYTES
    assert 0 < sizes["kohort.error.stack"] <= deadletter.MAX_STACK_BYTES
    assert sum(sizes.values()) < 10_000


def test_letters_go_over_connections_with_the_consumers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[tuple[object, ...], dict[str, object]]] = []
    monkeypatch.setattr(client_config, "Cluster", lambda *given, **named: made.append((given, named)))
    numbers = {
        "request_timeout_ms": 501,
        "default_api_timeout_ms": 2,
        "retry_backoff_ms": 3,
        "retry_backoff_max_ms": 4,
        "reconnect_backoff_ms": 5,
        "reconnect_backoff_max_ms": 6,
    }
    config = consumer_config(
        bootstrap="broker:9092", client_id="me", receive_message_max_bytes=7 * 10**8, **numbers
    )
    assembly.make_cluster(config)
    others = {"ssl_context": None, "sasl": None, "max_frame_bytes": config.max_response_bytes}
    assert made == [(("broker:9092", "me"), {**numbers, **others})]
