"""ApiVersions (18), v0-4: what this broker offers.

Written without the message classes: it is the first question of every client, and importing those takes
longer than everything else a broker does before it can answer. The header of the answer is always the old
one (KIP-511). Of the tagged fields only the supported features are there (KIP-584): kohort's own APIs are
features, because clients may stumble over API numbers that no Kafka has.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterable

from ...protocol import (
    APIS,
    GROUP_HISTORY_FEATURE,
    ApiKey,
    ErrorCode,
    MalformedMessageError,
    RequestHeader,
)

_FLEXIBLE_FROM = 3
_HIGHEST = APIS[ApiKey.API_VERSIONS].max_version
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_ROW = struct.Struct(">hhh")
_NO_TAGS = b"\x00"
_SOFTWARE = re.compile(rb"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def answer(header: RequestHeader, frame: bytes, offered: Collection[int], throttle_time_ms: int = 0) -> bytes:
    """A whole response frame. A version we do not know is answered in v0: error 35, our range (KIP-511).

    Raises MalformedMessageError if the request is cut short.
    """
    version = header.api_version
    throttle = _INT.pack(throttle_time_ms)
    if not 0 <= version <= _HIGHEST:
        return _framed(header, _fixed(ErrorCode.UNSUPPORTED_VERSION, ranges([ApiKey.API_VERSIONS])))
    if version < _FLEXIBLE_FROM:
        body = _fixed(ErrorCode.NONE, ranges(offered))
        return _framed(header, body + throttle if version else body)
    if not all(_SOFTWARE.fullmatch(text) for text in _software(header, frame)):
        return _framed(header, _flexible(ErrorCode.INVALID_REQUEST, [], throttle))
    features = _FEATURES if ApiKey.DESCRIBE_GROUP_HISTORY in offered else _NO_TAGS
    return _framed(header, _flexible(ErrorCode.NONE, ranges(offered), throttle, features))


def ranges(keys: Iterable[int]) -> list[tuple[int, int, int]]:
    """Key, lowest and highest version of each API as clients are told; Produce from 0, as in Kafka. Without
    kohort's own.
    """
    lowest = {ApiKey.PRODUCE: 0}
    return [
        (key, lowest.get(ApiKey(key), APIS[key].min_version), APIS[key].max_version)
        for key in sorted(keys)
        if not APIS[key].private
    ]


def _software(header: RequestHeader, frame: bytes) -> list[bytes]:
    """Name and version of the client's software: the two compact strings of a request from v3 on."""
    position, texts = header.size, []
    try:
        for _ in range(2):
            size, position = _varint(frame, position)
            end = position + size - 1
            texts.append(frame[position:end])
            position = end
        _ = frame[position]  # the tags
    except IndexError:
        raise MalformedMessageError(f"ApiVersions v{header.api_version} is cut short") from None
    return texts


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[position]) & 0x80:
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if shift > 28:
            raise IndexError("a varint of more than five bytes")
    return value | byte << shift, position + 1


def _fixed(error: int, rows: list[tuple[int, int, int]]) -> bytes:
    return _SHORT.pack(error) + _INT.pack(len(rows)) + b"".join(_ROW.pack(*row) for row in rows)


def _flexible(error: int, rows: list[tuple[int, int, int]], throttle: bytes, tags: bytes = _NO_TAGS) -> bytes:
    count = bytes([len(rows) + 1])  # one byte holds it: there are fewer than 127 APIs
    table = b"".join(_ROW.pack(*row) + _NO_TAGS for row in rows)
    return _SHORT.pack(error) + count + table + throttle + tags


def _supported_features() -> bytes:
    """The tagged fields of a whole offer: field 0, an array of one feature."""
    name, low, high = GROUP_HISTORY_FEATURE
    text = name.encode()
    feature = bytes([len(text) + 1]) + text + _SHORT.pack(low) + _SHORT.pack(high) + _NO_TAGS
    field = b"\x02" + feature
    return bytes([1, 0, len(field)]) + field


def _framed(header: RequestHeader, body: bytes) -> bytes:
    return _INT.pack(_INT.size + len(body)) + _INT.pack(header.correlation_id) + body


_FEATURES = _supported_features()
