"""Values that begin with the id of a schema, against a registry over HTTP.

Covers: client/schema_registry.py.
"""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from kohort.client.errors import ConfigError
from kohort.consumer import InvalidRecordError, RegistryError, SchemaRegistry
from kohort.consumer.reading.user_decoders import Decoder
from kohort.consumer.record import Record
from kohort.service import Retry
from kohort.service.run import engine
from tests.client.registry import FakeRegistry, framed
from tests.service.fakes import FakeConsumer, make_service, serving, until

fastavro = pytest.importorskip("fastavro", reason="the extra 'avro' is not installed")
pytest.importorskip("confluent_kafka.schema_registry", reason="the extra 'avro' is not installed")

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": "string", "default": "none"}],
}
FIRST = {**ORDER, "fields": ORDER["fields"][:1]}


class Order(BaseModel):
    id: int
    note: str = "none"


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    yield fake
    fake.close()


def registry(fake: FakeRegistry, **options: Any) -> SchemaRegistry:
    return SchemaRegistry(fake.url, **{"timeout_ms": 2_000, "max_retries": 0, **options})


def avro(schema_id: int, value: Any, schema: Any = ORDER) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return framed(schema_id, out.getvalue())


# --- formats ------------------------------------------------------------------------------------------------


def test_avro_gives_dicts_or_models_and_each_schema_is_read_once(fake: FakeRegistry) -> None:
    written = fake.add(json.dumps(ORDER))
    decode, to_model = registry(fake).avro(), registry(fake).avro(Order)
    data = avro(written, {"id": 7, "note": "x"})
    assert decode.waits(data)
    for _ in range(3):
        assert decode(data) == {"id": 7, "note": "x"}
    assert not decode.waits(data)
    assert len(fake.asked) == 1
    assert to_model(data) == Order(id=7, note="x")


def test_avro_of_an_earlier_schema_by_the_readers_schema(fake: FakeRegistry) -> None:
    earlier = fake.add(json.dumps(FIRST))
    decode = registry(fake).avro(schema=json.dumps(ORDER))
    assert decode(avro(earlier, {"id": 7}, FIRST)) == {"id": 7, "note": "none"}


def test_avro_whose_schema_refers_to_another(fake: FakeRegistry) -> None:
    fake.add(json.dumps(ORDER), subject="order")
    both = {"type": "record", "name": "Both", "fields": [{"name": "one", "type": "Order"}]}
    schema_id = fake.add(json.dumps(both), refers=[("Order", "order")])
    whole = {**both, "fields": [{"name": "one", "type": ORDER}]}
    decode = registry(fake).avro()
    data = avro(schema_id, {"one": {"id": 1, "note": ""}}, whole)
    for _ in range(2):
        assert decode(data) == {"one": {"id": 1, "note": ""}}
    assert fake.asked == [f"/schemas/ids/{schema_id}", "/subjects/order/versions/1"]


def test_json_is_validated_by_the_schema_that_it_was_written_with(fake: FakeRegistry) -> None:
    pytest.importorskip("jsonschema")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    schema_id = fake.add(json.dumps(schema), "JSON")
    decode = Decoder(registry(fake).json(Order), "value")
    assert decode(framed(schema_id, b'{"id": 3}')) == Order(id=3)
    with pytest.raises(InvalidRecordError, match="value cannot be decoded"):
        decode(framed(schema_id, b'{"id": "three"}'))


def test_protobuf_gives_messages_without_asking(fake: FakeRegistry) -> None:
    Money = pytest.importorskip("google.type.money_pb2").Money  # noqa: N806
    decode = Decoder(registry(fake).protobuf(Money), "value")
    message = Money(currency_code="EUR", units=5)
    data = framed(9, b"\0" + message.SerializeToString())
    assert not decode.must_wait(data)
    assert decode(data) == message
    assert fake.asked == []
    with pytest.raises(InvalidRecordError):
        decode(framed(9, b"\0\xff\xff"))


def test_it_goes_to_other_processes(fake: FakeRegistry) -> None:
    data = avro(fake.add(json.dumps(ORDER)), {"id": 7, "note": "x"})
    decode = registry(fake).avro(Order)
    assert decode(data) == pickle.loads(pickle.dumps(decode))(data) == Order(id=7, note="x")


# --- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0\7", b"\1\0\0\0\7abc", b'{"id": 1}'])
def test_what_is_not_in_the_wire_format_is_the_records_fault(fake: FakeRegistry, data: bytes) -> None:
    with pytest.raises(InvalidRecordError, match="zero byte and a schema id"):
        Decoder(registry(fake).avro(), "value")(data)
    assert fake.asked == []


def test_an_unknown_schema_is_the_records_fault_and_asked_for_again(fake: FakeRegistry) -> None:
    decode = Decoder(registry(fake).avro(), "key")
    data = avro(100, {"id": 1, "note": ""})
    with pytest.raises(InvalidRecordError, match=r"the key cannot be decoded: .* no schema 100"):
        decode(data)
    fake.add(json.dumps(ORDER))
    assert decode(data) == {"id": 1, "note": ""}


def test_content_that_does_not_fit_its_schema_or_model_is_the_records_fault(fake: FakeRegistry) -> None:
    schema_id = fake.add(json.dumps(ORDER))
    with pytest.raises(InvalidRecordError):
        Decoder(registry(fake).avro(), "value")(framed(schema_id, b"\xff"))
    with pytest.raises(InvalidRecordError):
        Decoder(registry(fake).avro(list[int]), "value")(avro(schema_id, {"id": 1, "note": ""}))


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_registry_that_refuses_or_fails_is_not_the_records_fault(fake: FakeRegistry, status: int) -> None:
    schema_id = fake.add(json.dumps(ORDER))
    fake.status = status
    with pytest.raises(RegistryError, match=f"schema {schema_id} cannot be read"):
        Decoder(registry(fake).avro(), "value")(avro(schema_id, {"id": 1, "note": ""}))


def test_a_registry_that_is_down_or_hangs_is_not_the_records_fault(fake: FakeRegistry) -> None:
    data = avro(fake.add(json.dumps(ORDER)), {"id": 1, "note": ""})
    fake.answers.clear()
    began = time.monotonic()
    with pytest.raises(RegistryError):
        Decoder(registry(fake, timeout_ms=50).avro(), "value")(data)
    assert time.monotonic() - began < 30
    with socket.socket() as listener:  # nobody accepts there
        listener.bind(("127.0.0.1", 0))
        away = SchemaRegistry(f"http://127.0.0.1:{listener.getsockname()[1]}", max_retries=0)
        with pytest.raises(RegistryError):
            Decoder(away.avro(), "value")(data)


def test_wrong_settings_are_refused_and_nothing_secret_is_shown() -> None:
    with pytest.raises(ConfigError, match="SchemaRegistry: "):
        SchemaRegistry("nowhere")
    with pytest.raises(ConfigError, match=r"Unrecognized.*no\.such"):
        SchemaRegistry("http://localhost:1", properties={"no.such": 1})
    assert "secret" not in repr(SchemaRegistry("http://me:secret@localhost:1"))


# --- in a service -------------------------------------------------------------------------------------------


async def test_a_service_asks_off_the_event_loop(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "AsyncGroupConsumer", FakeConsumer)
    data = avro(fake.add(json.dumps(ORDER)), {"id": 7, "note": "x"})
    service, seen = make_service(), list[Any]()
    decode = registry(fake, timeout_ms=30_000).avro(Order)

    @service.handler("orders", decode=decode, key_decode=bytes.decode)
    async def bill(key: str | None, order: Order, record: Record) -> None:
        seen.append((key, order.id, record.offset))

    @service.batch_handler("refunds", decode=registry(fake).avro())
    async def refund(orders: list[Any], records: list[Record]) -> None:
        seen.extend(zip(orders, [record.offset for record in records], strict=True))

    fake.answers.clear()
    async with serving(service) as consumer:
        consumer.give(0, value=data)
        await until(lambda: len(fake.asked) == 1)
        consumer.give(0, value=data, partition=1)
        fake.answers.set()
        await until(lambda: len(consumer.done_offsets) == 2)
        consumer.give(1, 2, value=data)
        await until(lambda: len(consumer.done_offsets) == 4)
        consumer.give(5, value=data, topic="refunds")
        await until(lambda: len(consumer.done_offsets) == 5)
        consumer.waiting.put_nowait([Record("refunds", 0, 6, 0, None, None)])
        await until(lambda: len(consumer.done_offsets) == 6)
    assert sorted(seen[:4], key=str) == [(None, 7, 0), (None, 7, 0), (None, 7, 1), (None, 7, 2)]
    assert seen[4:] == [({"id": 7, "note": "x"}, 5), (None, 6)]


async def test_while_the_registry_is_down_records_are_tried_again(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "AsyncGroupConsumer", FakeConsumer)
    data = avro(fake.add(json.dumps(ORDER)), {"id": 7, "note": "x"})
    service, seen = make_service(), list[int]()

    @service.handler("orders", decode=registry(fake).avro(Order), retry=Retry(attempts=99, backoff_ms=1))
    def bill(order: Order, _: Record) -> None:
        seen.append(order.id)

    fake.status = 503
    async with serving(service) as consumer:
        consumer.give(0, value=data)
        await until(lambda: len(fake.asked) >= 3)
        fake.status = 0
        await until(lambda: consumer.done_offsets == [("orders", 0, 0)])
    assert seen == [7]


async def test_a_hung_registry_does_not_keep_a_service_from_ending(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "AsyncGroupConsumer", FakeConsumer)
    data = avro(fake.add(json.dumps(ORDER)), {"id": 7, "note": "x"})
    service = make_service(drain_timeout_ms=10)

    @service.handler("orders", decode=registry(fake, timeout_ms=600_000).avro())
    async def bill(_: Any, __: Record) -> None: ...

    fake.answers.clear()
    async with asyncio.timeout(20):
        async with serving(service) as consumer:
            consumer.give(0, value=data)
            await until(lambda: len(fake.asked) == 1)
    assert consumer.done_offsets == []
