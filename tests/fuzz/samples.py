"""Requests and answers of every API and version, filled by a seed: right bytes, to be damaged."""

from __future__ import annotations

import random
import struct
import uuid
from types import SimpleNamespace
from typing import Any

from kohort.protocol import APIS, ApiKey, encode_request, encode_response
from tests.messages import MESSAGES, Draw

_TEXTS = ("", "orders", "billing", "range", "a-member-0e1f", "ä" * 3)


def request(key: ApiKey, version: int, rng: random.Random) -> bytes:
    """A request frame without its length."""
    body = _Sampled(rng).struct(MESSAGES[f"{APIS[key].name}Request"][1].fields, version)
    body.API_KEY = key
    return bytes(encode_request(version, 7, "fuzz", body)[4:])


def response(key: ApiKey, version: int, rng: random.Random) -> bytes:
    """A response frame without its length."""
    body = _Sampled(rng).struct(MESSAGES[f"{APIS[key].name}Response"][1].fields, version)
    return bytes(encode_response(key, version, 7, body)[4:])


def versions() -> list[tuple[ApiKey, int]]:
    """Every API with each of its versions."""
    return [
        (ApiKey(key), version)
        for key, api in APIS.items()
        for version in range(api.min_version, api.max_version + 1)
    ]


class _Sampled(Draw):
    """What clients may send: short, and often the same."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def struct(self, fields: list[Any], version: int) -> SimpleNamespace:
        return super().struct([each for each in fields if each.tag is None], version)

    def field(self, field: Any, version: int) -> Any:
        if field.array:
            return [self.one(field, version) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        return self.one(field, version)

    def one(self, field: Any, version: int) -> Any:
        rng = self.rng
        if field.is_struct:
            return self.struct(field.fields, version)
        if field.kind == "string":
            return rng.choice(_TEXTS)
        if field.kind in ("bytes", "records"):
            return rng.choice((b"", b"\0\0\0\1\0\6orders\0\0\0\0", rng.randbytes(9)))
        if field.kind == "uuid":
            return uuid.UUID(int=rng.getrandbits(128))
        if field.kind == "bool":
            return rng.random() < 0.5
        if field.kind == "float64":
            return rng.random()
        return rng.choice((0, 1, 2 if field.kind.startswith("u") else -1, rng.randrange(100)))


def framed(body: bytes) -> bytes:
    """With its length in front."""
    return struct.pack(">i", len(body)) + body
