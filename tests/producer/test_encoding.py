"""Values and keys that a producer encodes.

Covers: producer/encoding.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from kohort.client.errors import ConfigError
from kohort.consumer.reading.user_decoders import Decoder
from kohort.producer import (
    BlockingProducer,
    Producer,
    ProducerRecord,
    RegistryError,
    SchemaRegistry,
    SerializationError,
)
from kohort.producer.encoding import Encoders
from tests.client.registry import FakeRegistry
from tests.producer.reading import read
from tests.service.fakes import until

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]})


Topics = Callable[..., str]


class Order(BaseModel):
    id: int


@dataclass
class Plain:
    id: int


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    for module in ("fastavro", "confluent_kafka.schema_registry"):
        pytest.importorskip(module, reason="the extra 'avro' is not installed")
    fake = FakeRegistry()
    yield fake
    fake.close()


def registry(fake: FakeRegistry, **options: Any) -> SchemaRegistry:
    return SchemaRegistry(fake.url, **{"timeout_ms": 2_000, "max_retries": 0, **options})


def encoded(encode: Any, value: Any, topic: str = "orders") -> Any:
    return Encoders(encode, None).pair(topic, value, b"key")[0]


# --- without a registry ----------------------------------------------------------------------------------


def test_a_type_gives_json_that_decode_reads_again() -> None:
    for given in (Order(id=3), {"id": 3}, {"id": "3"}):
        data = encoded(Order, given)
        assert data == b'{"id":3}'
        assert Decoder(Order, "value")(data) == Order(id=3)
    assert encoded(list[int] | None, [1, 2]) == b"[1,2]"


def test_a_function_gives_bytes_and_none_stays_null() -> None:
    encoders = Encoders(str.encode, lambda key: b"%d" % key)
    assert encoders.pair("orders", "one", 7) == (b"one", b"7")
    assert encoders.pair("orders", None, None) == (None, None)
    assert Encoders(None, str.encode).pair("orders", b"raw", "key") == (b"raw", b"key")


@pytest.mark.parametrize(
    ("encode", "value", "told"),
    [
        (Order, {"id": "x"}, "the value cannot be encoded: ValidationError"),
        (str.encode, 7, "the value cannot be encoded: TypeError"),
        (json.dumps, 7, "the value was encoded to str: an encoder returns bytes"),
    ],
)
def test_what_cannot_be_encoded_is_a_serialization_error(encode: Any, value: Any, told: str) -> None:
    with pytest.raises(SerializationError, match=told):
        encoded(encode, value)


async def coroutine(_: Any) -> bytes:
    return b""


@pytest.mark.parametrize("wrong", ["json", 7, coroutine, Iterator])
def test_what_is_no_encoder_is_refused_when_the_producer_is_made(wrong: Any) -> None:
    for name in ("encode", "key_encode"):
        with pytest.raises(ConfigError, match=rf"^{name}="):
            Producer(bootstrap="localhost:1", **{name: wrong})


# --- with a registry -------------------------------------------------------------------------------------


def test_avro_registers_its_schema_once_and_decode_reads_it_again(fake: FakeRegistry) -> None:
    encode = registry(fake).avro_encoder(ORDER)
    assert encode.waits("orders", "value")
    for given in ({"id": 7}, Order(id=7), Plain(7)):
        assert registry(fake).avro(Order)(encoded(encode, given)) == Order(id=7)
    assert not encode.waits("orders", "value")
    assert [path for path in fake.asked if "subjects" in path] == ["/subjects/orders-value/versions"]


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("topic", "orders-key"),
        ("record", "Order"),
        ("topic_record", "orders-Order"),
        (lambda topic, field: f"{field} of {topic}", "key%20of%20orders"),
    ],
)
def test_subjects_are_named_by_a_strategy(fake: FakeRegistry, name: Any, subject: str) -> None:
    encode = registry(fake).avro_encoder(ORDER, subject_name=name)
    Encoders(None, encode).pair("orders", b"value", {"id": 1})
    assert fake.asked == [f"/subjects/{subject}/versions"]


def test_json_of_a_type_has_the_types_schema(fake: FakeRegistry) -> None:
    pytest.importorskip("jsonschema")
    encode = registry(fake).json_encoder(Order)
    data = encoded(encode, {"id": 3})
    assert registry(fake).json(Order)(data) == Order(id=3)
    assert json.loads(next(iter(fake.schemas.values()))["schema"])["title"] == "Order"
    with pytest.raises(SerializationError, match="ValidationError"):
        encoded(encode, {"id": "three"})


def test_json_of_a_schema_is_validated_by_it(fake: FakeRegistry) -> None:
    pytest.importorskip("jsonschema")
    schema = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    encode = registry(fake).json_encoder(json.dumps(schema))
    assert encoded(encode, Order(id=3)).endswith(b'{"id":3}') or encoded(encode, Order(id=3)).endswith(
        b'{"id": 3}'
    )
    with pytest.raises(SerializationError, match="three"):
        encoded(encode, {"id": "three"})


def test_protobuf_registers_its_file(fake: FakeRegistry) -> None:
    Money = pytest.importorskip("google.type.money_pb2").Money  # noqa: N806
    message = Money(currency_code="EUR", units=5)
    data = encoded(registry(fake).protobuf_encoder(Money), message)
    assert registry(fake).protobuf(Money)(data) == message
    assert fake.schemas[fake.subjects["orders-value"]]["schemaType"] == "PROTOBUF"


def test_without_registration_the_schema_must_be_there(fake: FakeRegistry) -> None:
    encode = registry(fake).avro_encoder(ORDER, auto_register=False)
    with pytest.raises(SerializationError, match=r"values of topic 'orders', it is not registered"):
        encoded(encode, {"id": 1})
    fake.add(ORDER, subject="orders-value")
    assert encoded(encode, {"id": 1})[5:] == b"\x02"


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_the_newest_schema_of_the_subject(fake: FakeRegistry, kind: str) -> None:
    pytest.importorskip("jsonschema")
    schema_id = fake.add(
        ORDER if kind == "avro" else '{"type": "object"}', kind.upper(), subject="orders-value"
    )
    encode = getattr(registry(fake), f"{kind}_encoder")(use_latest=True)
    for _ in range(2):
        assert encoded(encode, {"id": 1})[:5] == b"\0" + schema_id.to_bytes(4, "big")
    assert fake.asked.count("/subjects/orders-value/versions/latest") == 1
    assert not encode.waits("orders", "value")
    renewed = registry(fake, properties={"cache.latest.ttl.sec": 60})
    encode = getattr(renewed, f"{kind}_encoder")(use_latest=True)
    encoded(encode, {"id": 1})
    assert encode.waits("orders", "value")


def test_an_incompatible_schema_is_told_and_sent_nowhere(fake: FakeRegistry) -> None:
    fake.add('"string"', subject="orders-value")
    with pytest.raises(SerializationError, match="incompatible with an earlier one"):
        encoded(registry(fake).avro_encoder(ORDER), {"id": 1})


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_registry_that_fails_is_not_the_records_fault(fake: FakeRegistry, status: int) -> None:
    encode = registry(fake).avro_encoder(ORDER)
    fake.status = status
    with pytest.raises(
        RegistryError, match="cannot be asked about the schema of the values of topic 'orders'"
    ):
        encoded(encode, {"id": 1})
    fake.status = 0
    assert encoded(encode, {"id": 1})
    with pytest.raises(RegistryError):
        encoded(SchemaRegistry("http://127.0.0.1:1", max_retries=0).avro_encoder(ORDER), {"id": 1})


def test_a_value_that_does_not_fit_its_schema_is_its_own_fault(fake: FakeRegistry) -> None:
    with pytest.raises(SerializationError, match="the value cannot be encoded"):
        encoded(registry(fake).avro_encoder(ORDER), {"id": "x"})


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_schemas_that_cannot_be_used_are_refused_at_once(fake: FakeRegistry, kind: str) -> None:
    make = getattr(registry(fake), f"{kind}_encoder")
    with pytest.raises(ConfigError, match=rf"{kind}_encoder: give a schema, or use_latest=True"):
        make()
    with pytest.raises(ConfigError, match="this schema cannot be used"):
        make("{")
    with pytest.raises(ConfigError, match="subject_name='x'"):
        make(ORDER, subject_name="x")


# --- in producers ----------------------------------------------------------------------------------------


async def test_a_producer_asks_off_the_event_loop(
    bootstrap: str, new_topic: Topics, fake: FakeRegistry
) -> None:
    topic = new_topic("encoded", 1)
    encode = registry(fake, timeout_ms=30_000).avro_encoder(ORDER)
    fake.answers.clear()
    async with Producer(bootstrap=bootstrap, encode=encode, key_encode=str.encode) as producer:
        sending = asyncio.create_task(producer.send_and_wait(topic, Order(id=7), "alice"))
        await until(lambda: bool(fake.asked))
        fake.answers.set()
        await sending
        await producer.send_and_wait(topic, None, "bob")
        with pytest.raises(SerializationError):
            await producer.send(topic, {"id": "x"})
        found = await read(bootstrap, topic)
    assert [(record.key, record.value and record.value[5:]) for record in found] == [
        (b"alice", b"\x0e"),
        (b"bob", None),
    ]


def test_a_blocking_producer_encodes_and_its_future_tells(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("encoded", 1)
    with BlockingProducer(bootstrap=bootstrap, encode=Order) as producer:
        first = producer.send(topic, {"id": 1})
        wrong = producer.send(topic, {"id": "x"})
        assert producer.send_and_wait(topic, Order(id=2)).offset == 1
        assert first.result().offset == 0
        with pytest.raises(SerializationError):
            wrong.result()


def test_records_of_handlers_are_encoded_whole() -> None:
    record = ProducerRecord("orders", {"id": 1}, "alice", 3, headers=[("a", b"b")])
    assert Encoders(Order, str.encode).record(record) == record._replace(value=b'{"id":1}', key=b"alice")
