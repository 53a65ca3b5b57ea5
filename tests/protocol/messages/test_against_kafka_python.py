"""Every message in every version: the bytes are kafka-python's, and are read to what was written."""

from __future__ import annotations

import importlib
import random
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
schemas = importlib.import_module("generate_messages")
sys.path.pop(0)

PACKAGES = ["consumer", "metadata", "producer", "admin", "sasl"]
NUMBERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def kafka_class(name: str) -> Any:
    for package in PACKAGES:
        module = importlib.import_module(f"kafka.protocol.{package}")
        if hasattr(module, name):
            return getattr(module, name)
    return getattr(importlib.import_module("kohort.protocol._group_history"), name, None)


MESSAGES = {
    message.name: (api, message)
    for api, paths in schemas.schemas().items()
    for message in map(schemas.load, paths)
}
CASES = [
    pytest.param(name, version, id=f"{name}-v{version}")
    for name, (_, message) in sorted(MESSAGES.items())
    for version in range(message.versions.low, message.versions.high + 1)
]


class Draw:
    """Values by chance, of any message."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def struct(self, fields: list[Any], version: int) -> SimpleNamespace:
        return SimpleNamespace(
            **{each.name: self.field(each, version) for each in fields if version in each.versions}
        )

    def field(self, field: Any, version: int) -> Any:
        alone = field.is_struct and not field.array
        nullable = alone if field.tag is not None else version in field.nullable
        if nullable and self.rng.random() < 0.3:
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
        if field.kind in NUMBERS:
            bits = NUMBERS[field.kind]
            return rng.choice((0, -1, 1, 2**bits - 1, -(2**bits), rng.randrange(2**bits)))
        if field.kind == "string":
            return "".join(rng.choices("aZ-ä漢\U0001f600\0", k=rng.choice((0, 1, 5, 126, 127, 128, 300))))
        if field.kind in ("bytes", "records"):
            return rng.randbytes(rng.choice((0, 1, 126, 127, 128, 20_000)))
        if field.kind == "uuid":
            return rng.choice((None, uuid.UUID(int=rng.getrandbits(128))))
        return {
            "bool": rng.random() < 0.5,
            "uint16": rng.randrange(2**16),
            "float64": rng.uniform(-1e9, 1e9),
        }[field.kind]


def kafka_value(fields: list[Any], theirs: Any, made: Any) -> Any:
    """The same object as kafka-python takes it: some bit fields have other names there, and are sets."""
    copied = SimpleNamespace()
    for each, other in zip(fields, theirs, strict=True):
        if not hasattr(made, each.name):
            continue
        inner = getattr(made, each.name)
        if each.is_struct and inner is not None:
            below = list(other.fields.values())
            many = [kafka_value(each.fields, below, one) for one in (inner if each.array else [inner])]
            inner = many if each.array else many[0]
        elif other.type_str == "bitfield":
            inner = {bit for bit in range(32) if inner >> bit & 1}
        setattr(copied, other.name, inner)
    return copied


def same(fields: list[Any], version: int, ours: Any, given: Any) -> None:
    """What was read is what was written."""
    for each in fields:
        if version not in each.versions:
            continue
        read, wrote = getattr(ours, each.name), getattr(given, each.name)
        if each.is_struct and wrote is not None:
            pairs = zip(read, wrote, strict=True) if each.array else [(read, wrote)]
            for one, other in pairs:
                same(each.fields, version, one, other)
        else:
            assert (list(read) if isinstance(read, tuple) else read) == wrote, each.name


@pytest.mark.parametrize(("name", "version"), CASES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32))
def test_both_write_the_same_bytes_and_read_what_was_written(name: str, version: int, seed: int) -> None:
    api, message = MESSAGES[name]
    side = "request" if name.endswith("Request") else "response"
    module = importlib.import_module(f"kohort.protocol.messages.{schemas.snake(api)}")
    given_ = Draw(seed).struct(message.fields, version)
    out = bytearray()
    getattr(module, f"write_{side}")(version)(out, given_, version)
    theirs = kafka_class(name)
    if theirs is not None and version <= theirs.max_version:
        flexible = theirs.flexible_version_q(version)
        expected = theirs._struct.encode(
            kafka_value(message.fields, theirs._struct._fields, given_),
            version=version,
            compact=flexible,
            tagged=flexible,
        )
        assert bytes(out) == expected
    read = getattr(module, f"read_{side}")(version)
    body, at = read(bytes(out), 0, version, 1_000)
    assert at == len(out)
    assert type(body) is getattr(module, name)
    same(message.fields, version, body, given_)
    again = bytearray()
    getattr(module, f"write_{side}")(version)(again, body, version)
    assert again == out
