"""Messages for tests: the generated types, made from what a test finds easiest to write.

``request_of(key)`` and ``response_of(key)`` make a message of an API: fields by name, elements of arrays as
structs, tuples, mappings or, where a struct begins with what is meant, as that alone (``topics=["orders"]``).
Structs inside are attributes, as are those inside them: ``request_of(ApiKey.FETCH).FetchTopic(topic="t")``.
"""

from __future__ import annotations

import importlib
import random
import types
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from kohort.protocol import kafka_module, messages_of, request_type, response_type, struct_arrays
from tests.scripts import script


class Maker:
    """Makes messages of one type. ``version`` is taken and means nothing: a message is of all versions."""

    def __init__(self, module: Any, made: Any, side: str) -> None:
        self._module, self._made, self._side = module, made, side

    def __call__(self, *values: Any, version: Any = 0, **fields: Any) -> Any:
        del version
        arrays = struct_arrays(self._made)
        given = dict(zip(self._made._fields, values, strict=False)) | fields
        return self._made(**{name: self._elements(arrays.get(name), value) for name, value in given.items()})

    def __getattr__(self, name: str) -> Maker:
        made = getattr(self._module, f"{self._side}{name}", None) or getattr(self._module, name, None)
        if made is None:
            raise AttributeError(name)
        return Maker(self._module, made, self._side)

    def _elements(self, made: Any, value: Any) -> Any:
        if made is None or not isinstance(value, (Sequence, set, frozenset)) or isinstance(value, str):
            return value
        maker = Maker(self._module, made, self._side)
        return [maker._element(one) for one in value]

    def _element(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self(**value)
        if type(value) is tuple:
            return self(*value)
        return self(value) if isinstance(value, (str, int)) else value


def request_of(key: int) -> Maker:
    """Makes requests of an API."""
    return Maker(messages_of(key), request_type(key), "Request")


def response_of(key: int) -> Maker:
    """Makes responses of an API."""
    return Maker(messages_of(key), response_type(key), "Response")


# --- schemas, and the reference --------------------------------------------------------------------------

#: The script that writes the modules of messages from their schemas.
schemas = script("generate_messages")

#: API and schema of every message, by its name.
MESSAGES: dict[str, tuple[str, Any]] = {
    message.name: (api, message)
    for api, paths in schemas.schemas().items()
    for message in map(schemas.load, paths)
}

_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def versions_of_message(name: str) -> range:
    """The versions that there are of a message such as ``HeartbeatRequest``."""
    _, message = MESSAGES[name]
    return range(message.versions.low, message.versions.high + 1)


def codec_of_message(name: str, version: int) -> tuple[Any, Any, Any, list[Any]]:
    """Reader, writer, type and fields of a message such as ``HeartbeatRequest``."""
    api, message = MESSAGES[name]
    side = "request" if name.endswith("Request") else "response"
    module = importlib.import_module(f"kohort.protocol.messages.{schemas.snake(api)}")
    read, write = getattr(module, f"read_{side}"), getattr(module, f"write_{side}")
    return read(version), write(version), getattr(module, name), message.fields


@cache
def kafka_class(name: str) -> Any:
    """kafka-python's class for a message, such as ``HeartbeatRequest``; of our own, by our schema."""
    for package in ("consumer", "metadata", "producer", "admin", "sasl"):
        module = kafka_module(f"kafka.protocol.{package}")
        if hasattr(module, name):
            return getattr(module, name)
    if name.startswith(("DescribeGroupHistory", "ConsumerGroup")) or "ShareGroup" in name:
        base = kafka_module("kafka.protocol.api_message").ApiMessage
        return types.new_class(name, (base,), {"load_json": "kohort.protocol"})
    return None


class Draw:
    """Values by chance, of any message; some messages have no text, as those that are read at once."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._plain = self.rng.random() < 0.3

    def struct(self, fields: list[Any], version: int) -> SimpleNamespace:
        return SimpleNamespace(
            **{each.name: self.field(each, version) for each in fields if version in each.versions}
        )

    def field(self, field: Any, version: int) -> Any:
        alone = field.is_struct and not field.array
        nullable = alone if field.tag is not None else version in field.nullable
        if nullable and (field.default == "None" if self._plain else self.rng.random() < 0.3):
            return None
        if field.array:
            return [
                self.one(field, version)
                for _ in range(self.rng.choice((0, 1, 2, 2, 130)) % (4 if field.is_struct else 131))
            ]
        return self.one(field, version)

    def one(self, field: Any, version: int) -> Any:
        rng = self.rng
        if field.is_struct:
            return self.struct(field.fields, version)
        if field.kind in _BITS:
            bits = _BITS[field.kind]
            return rng.choice((0, -1, 1, 2**bits - 1, -(2**bits), rng.randrange(2**bits)))
        if field.kind == "string":
            length = 0 if self._plain else rng.choice((0, 1, 5, 126, 127, 128, 300))
            return "".join(rng.choices("aZ-ä漢\U0001f600\0", k=length))
        if field.kind in ("bytes", "records"):
            return rng.randbytes(rng.choice((0, 1, 126, 127, 128, 20_000)))
        if field.kind == "uuid":
            return rng.choice((None, uuid.UUID(int=rng.getrandbits(128))))
        return {
            "bool": rng.random() < 0.5,
            "uint16": rng.randrange(2**16),
            "float64": rng.uniform(-1e9, 1e9),
        }[field.kind]
