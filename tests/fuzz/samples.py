"""Requests and answers of every API and version, filled by a seed: right bytes, to be damaged."""

from __future__ import annotations

import random
import struct
import uuid
from typing import Any

from kohort.protocol import APIS, ApiKey, encode_request, encode_response, request_class, response_class

_TEXTS = ("", "orders", "billing", "range", "a-member-0e1f", "ä" * 3)


def request(key: ApiKey, version: int, rng: random.Random) -> bytes:
    """A request frame without its length."""
    made = request_class(key)
    body = _filled(made._struct, version, rng, made)
    return bytes(encode_request(version, 7, "fuzz", body)[4:])


def response(key: ApiKey, version: int, rng: random.Random) -> bytes:
    """A response frame without its length."""
    made = response_class(key)
    body = _filled(made._struct, version, rng, made)
    return bytes(encode_response(key, version, 7, body)[4:])


def versions() -> list[tuple[ApiKey, int]]:
    """Every API with each of its versions."""
    return [
        (ApiKey(key), version)
        for key, api in APIS.items()
        for version in range(api.min_version, api.max_version + 1)
    ]


def _filled(field: Any, version: int, rng: random.Random, made: Any = None) -> Any:
    values = {
        inner.name: _value(inner, version, rng) for inner in field._fields if inner.for_version_q(version)
    }
    return (made or field)(version=version, **values)


def _value(field: Any, version: int, rng: random.Random) -> Any:
    if field.is_array():
        return [_value(field.array_of, version, rng) for _ in range(rng.choice((0, 1, 1, 2)))]
    if field.is_struct():
        return _filled(field, version, rng)
    kind = field._type_str
    if kind == "string":
        return rng.choice(_TEXTS)
    if kind in ("bytes", "records"):
        return rng.choice((b"", b"\0\0\0\1\0\6orders\0\0\0\0", rng.randbytes(9)))
    if kind == "uuid":
        return uuid.UUID(int=rng.getrandbits(128))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "float64":
        return rng.random()
    if kind == "bitfield":
        return {rng.randrange(8)}
    return rng.choice((0, 1, -1, rng.randrange(100)))


def framed(body: bytes) -> bytes:
    """With its length in front."""
    return struct.pack(">i", len(body)) + body
