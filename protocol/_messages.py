"""Messages: request and response headers, and bodies through kafka-python's schema classes.

A body is any object with the schema's field names in snake case: kafka-python's own classes when decoded, and
they or plain objects with those attributes when encoded. Layouts: KIP-482 (flexible versions), KIP-511
(ApiVersions answers always carry the old header).
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, NamedTuple

from ._apis import APIS, ApiKey, api_for
from ._bounds import allow_elements, bound_decoders, unsigned_varint
from ._errors import MalformedFrameError, MalformedMessageError
from ._kafka_python import kafka_module

_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_NO_TAGS = b"\x00"

#: Most array elements of a request, nested ones included: more than the largest clusters have partitions to
#: name. Each becomes an object that takes far more than its bytes.
MAX_REQUEST_ELEMENTS = 100_000

#: Most tagged fields of a header; KIPs define one so far.
_MAX_HEADER_TAGS = 1_000


class RequestHeader(NamedTuple):
    """Header of a request; ``size`` is its length in bytes, so that the body starts there."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int


def decode_request_header(frame: bytes) -> RequestHeader:
    """Read the header of a request frame.

    An API number or version we do not know is no error here (the tagged fields of such a header are left
    unread): ApiVersions has an answer for it. Raises MalformedFrameError if the frame is too short.
    """
    try:
        key, version, correlation_id, length = _REQUEST_HEADER.unpack_from(frame)
        end = _REQUEST_HEADER.size + max(length, 0)
        if end > len(frame):
            raise MalformedFrameError(f"client id of {length} bytes in a frame of {len(frame)}")
        client_id = None if length < 0 else str(frame[_REQUEST_HEADER.size : end], "utf-8")
        if _has_tags(key, version):
            end = _skip_tags(frame, end)
    except (struct.error, IndexError, UnicodeDecodeError, MalformedMessageError) as error:
        raise MalformedFrameError(f"unreadable request header in a frame of {len(frame)} bytes") from error
    return RequestHeader(key, version, correlation_id, client_id, end)


def decode_request(frame: bytes, header: RequestHeader) -> Any:
    """The body behind a header whose API and version are offered. Raises MalformedMessageError."""
    api = api_for(header.api_key)
    api.require(header.api_version)
    allow_elements(MAX_REQUEST_ELEMENTS)
    try:
        return _decode(request_class(api.key), frame, header.size, header.api_version)
    finally:
        allow_elements(None)


def encode_response(api_key: int, version: int, correlation_id: int, body: Any) -> bytearray:
    """A whole response frame, length included."""
    head = _CORRELATION_ID.pack(correlation_id)
    if _has_tags(api_key, version) and api_key != ApiKey.API_VERSIONS:
        head += _NO_TAGS
    return _framed(head, response_class(api_key), version, body)


def encode_request(version: int, correlation_id: int, client_id: str, body: Any) -> bytearray:
    """A whole request frame, length included. ``body`` is an instance of kafka-python's request class."""
    key = body.API_KEY
    name = client_id.encode()
    head = _REQUEST_HEADER.pack(key, version, correlation_id, len(name)) + name
    if _has_tags(key, version):
        head += _NO_TAGS
    return _framed(head, request_class(key), version, body)


def decode_response(api_key: int, version: int, frame: bytes | memoryview) -> tuple[int, Any]:
    """Correlation id and body of a response frame. Raises MalformedMessageError."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        start = _CORRELATION_ID.size
        if api_key == ApiKey.API_VERSIONS:
            # an error is always written as v0, whatever version was asked for
            version = version if frame[start : start + 2] == b"\x00\x00" else 0
        elif _has_tags(api_key, version):
            start = _skip_tags(frame, start)
    except (struct.error, IndexError, MalformedMessageError) as error:
        raise MalformedMessageError(f"unreadable response header in a frame of {len(frame)} bytes") from error
    return correlation_id, _decode(response_class(api_key), frame, start, version)


@cache
def request_class(api_key: int) -> Any:
    """kafka-python's class for the requests of an API."""
    api = api_for(api_key)
    return getattr(_module(api.module), f"{api.name}Request")


@cache
def response_class(api_key: int) -> Any:
    """kafka-python's class for the responses of an API."""
    api = api_for(api_key)
    return getattr(_module(api.module), f"{api.name}Response")


def _module(name: str) -> Any:
    bound_decoders()
    return kafka_module(name)


def _has_tags(api_key: int, version: int) -> bool:
    api = APIS.get(api_key)
    return api is not None and api.flexible(version)


def _skip_tags(data: bytes | memoryview, position: int) -> int:
    count, position = unsigned_varint(data, position)
    if count > _MAX_HEADER_TAGS:
        raise IndexError(f"{count} tagged fields in a header")
    for _ in range(count):
        _, position = unsigned_varint(data, position)
        size, position = unsigned_varint(data, position)
        position += size
        if position > len(data):
            raise IndexError("a tagged field is longer than its frame")
    return position


def _decode(message: Any, frame: bytes | memoryview, start: int, version: int) -> Any:
    try:
        body, end = _decoder(message, version)(memoryview(frame), start)
    except Exception as error:
        # whatever the decoder trips over in these bytes is the fault of the bytes
        raise MalformedMessageError(f"{message.name} v{version} cannot be decoded: {error!r}") from error
    if end > len(frame):
        raise MalformedMessageError(f"{message.name} v{version} is cut short by {end - len(frame)} bytes")
    return body


def _framed(head: bytes, message: Any, version: int, body: Any) -> bytearray:
    encode, buffers = _encoder(message, version)
    with buffers.acquire() as out:
        out.ensure(len(head) + 4)
        out.pos = 4 + len(head)
        out.buf[4 : out.pos] = head
        encode(body, out)
        out.buf[0:4] = (out.pos - 4).to_bytes(4, "big")
        framed: bytearray = out.result()
        return framed


@cache
def _decoder(message: Any, version: int) -> Any:
    """The function that kafka-python generates for a version's bodies: bytes and position to body and end."""
    flexible = message.flexible_version_q(version)
    return message._struct.compiled_decode_from(
        version, compact=flexible, tagged=flexible, data_class=message
    )


@cache
def _encoder(message: Any, version: int) -> tuple[Any, Any]:
    """The function that writes a version's bodies into a buffer, and the pool the buffer comes from."""
    codecs = kafka_module("kafka.protocol.schemas.fields.codecs")
    flexible = message.flexible_version_q(version)
    return message._struct.compiled_encode_into(
        version, compact=flexible, tagged=flexible
    ), codecs.EncodeBufferPool
