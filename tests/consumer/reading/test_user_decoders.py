"""What may be given as ``decode``, and what its errors mean.

Covers: consumer/reading/user_decoders.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from kohort.client.errors import ConfigError
from kohort.consumer import AsyncGroupConsumer, GroupConsumer, InvalidRecordError, SchemaRegistry
from kohort.consumer.reading.user_decoders import Decoder, make_decoder
from kohort.consumer.record import Record
from kohort.service import SignatureError
from kohort.service.letters import deadletter
from kohort.service.run import engine
from tests.consumer.conftest import QUICK
from tests.service.fakes import FakeConsumer, make_service, serving, until


class Order(BaseModel):
    id: int


@pytest.mark.parametrize(
    ("decode", "data", "found"),
    [
        (Order, b'{"id": 1}', Order(id=1)),
        (Order | None, b"null", None),
        (list[int], b"[1, 2]", [1, 2]),
        (int, b"7", 7),
        (json.loads, b"[1]", [1]),
        (bytes.decode, b"text", "text"),
        (Order, None, None),
        (json.loads, None, None),
    ],
)
def test_types_are_read_from_json_and_functions_are_called_and_nulls_are_none(
    decode: Any, data: bytes | None, found: Any
) -> None:
    assert Decoder(decode, "value")(data) == found


@pytest.mark.parametrize(("decode", "data"), [(Order, b"{}"), (json.loads, b"{"), (bytes.decode, b"\xff")])
def test_what_a_decoder_raises_is_the_records_fault(decode: Any, data: bytes) -> None:
    with pytest.raises(InvalidRecordError, match="the key cannot be decoded: ") as found:
        Decoder(decode, "key")(data)
    assert found.value.__cause__ is not None


def test_an_error_of_the_system_is_not() -> None:
    def decode(_: bytes) -> None:
        raise ConnectionRefusedError("no key server")

    with pytest.raises(ConnectionRefusedError):
        Decoder(decode, "value")(b"x")


def test_other_things_are_refused() -> None:
    assert make_decoder(None, "value") is None
    with pytest.raises(ConfigError, match="key_decode='json', but it must be a type"):
        make_decoder("json", "key")

    async def ask(data: bytes) -> bytes:
        return data

    with pytest.raises(ConfigError, match="a plain function that takes bytes"):
        make_decoder(ask, "value")
    with pytest.raises(ConfigError, match="nothing that pydantic can read"):
        make_decoder(Decoder, "value")


def test_a_handler_takes_what_it_is_called_with() -> None:
    def bill(order: Order, record: Record) -> None: ...

    service = make_service()
    with pytest.raises(SignatureError, match="called with the key and the value and the record"):
        service.handler("orders", decode=Order, key_decode=bytes.decode)(bill)
    with pytest.raises(ConfigError, match="give one of them"):
        service.handler("orders", decode=Order, model=Order)(bill)
    service.handler("orders", key_decode=bytes.decode)(bill)


@pytest.mark.parametrize("kind", ["async", "thread", "async batch", "thread batch"])
async def test_what_cannot_be_decoded_goes_to_the_dead_letters_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "AsyncGroupConsumer", FakeConsumer)
    letters: list[tuple[int, BaseException]] = []

    async def send(_: Any, __: str, record: Record, error: BaseException, ___: int, ____: Any) -> None:
        letters.append((record.offset, error))

    monkeypatch.setattr(deadletter.DeadLetters, "send", send)
    service, seen = make_service(), list[tuple[Any, Any]]()

    def handle(key: Any, order: Any, _: Any) -> None:
        seen.extend(zip(key, order, strict=True) if isinstance(key, list) else [(key, order)])

    async def handle_async(key: Any, order: Any, _: Any) -> None:
        handle(key, order, _)

    register = service.batch_handler if "batch" in kind else service.handler
    options: Any = {"decode": Order, "key_decode": int, "dead_letter": "orders.dlt", "retry_after_ms": [1]}
    register("orders", **options)(handle if "thread" in kind else handle_async)
    rows = [(b"1", b'{"id": 1}'), (b"x", b'{"id": 2}'), (b"3", b"{"), (None, None), (b"5", None)]
    async with serving(service) as consumer:
        records = [Record("orders", 0, n, 0, key, value) for n, (key, value) in enumerate(rows)]
        consumer.waiting.put_nowait(records)
        await until(lambda: len(consumer.done_offsets) == len(rows))
    assert seen == [(1, Order(id=1)), (None, None), (5, None)]
    assert [offset for offset, _ in letters] == [1, 2]
    assert all(isinstance(error, InvalidRecordError) for _, error in letters)


@pytest.mark.kafka
def test_consumers_decode_records_in_hand(
    bootstrap: str, filled_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = filled_topic(3)
    with GroupConsumer(
        topic, bootstrap=bootstrap, group=group("g"), decode=int, key_decode=bytes.decode, **QUICK
    ) as consumer:
        found = []
        for record in consumer:
            found.append((consumer.decode_key(record), consumer.decode(record)))
            if len(found) == 3:
                break
    assert found == [("0", 0), ("1", 1), ("2", 2)]


async def test_the_async_consumer_decodes_and_one_without_a_decoder_says_so() -> None:
    consumer = AsyncGroupConsumer("orders", bootstrap="localhost:1", group="g", decode=Order)
    record = Record("orders", 0, 0, 0, b"k", b'{"id": 1}')
    assert await consumer.decode(record) == Order(id=1)
    assert await consumer.decode(record._replace(value=None)) is None
    with pytest.raises(InvalidRecordError):
        await consumer.decode(record._replace(value=b"{"))
    with pytest.raises(ConfigError, match="no key_decode"):
        await consumer.decode_key(record)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    with pytest.raises(ConfigError, match=r"pip install 'kohort\[avro\]'"):
        SchemaRegistry("http://localhost:8081")
