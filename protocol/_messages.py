"""Messages: request and response headers, and bodies by the modules of ``messages/``.

A body that is read is a named tuple of its API's module, such as ``messages.heartbeat.HeartbeatRequest``; one
that is written may be any object with the fields of its version. An API's module is imported at its first
message. Layouts: KIP-482 (flexible versions), KIP-511 (ApiVersions answers always carry the old header).
"""

from __future__ import annotations

import importlib
import re
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from ._apis import APIS, Api, api_for
from ._errors import MalformedFrameError, MalformedMessageError
from .messages._apis import ApiKey
from .messages._wire import Pieces, Sendable, skip_tags

_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
#: Length and correlation id in front of a response, and no tagged fields.
_HEAD, _HEAD_WITH_TAGS = struct.Struct(">ii"), struct.Struct(">iix")
_LENGTH_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">I")
_NO_TAGS = b"\x00"

#: Most array elements of a request, nested ones included: more than the largest clusters have partitions to
#: name. Each becomes an object that takes far more than its bytes.
MAX_REQUEST_ELEMENTS = 100_000

#: A response is bounded by its own bytes alone.
_UNLIMITED: Final = 1 << 62

#: A piece of a response frame.
Part: TypeAlias = bytes | bytearray | Sendable

_Read: TypeAlias = Callable[[Any, int, int, int], tuple[Any, int]]
_Write: TypeAlias = Callable[[bytearray, Any, int], None]


class RequestHeader(NamedTuple):
    """Header of a request; ``size`` is its length in bytes, so that the body starts there."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int


class MessageCodec(NamedTuple):
    """One version of an API: how its headers and bodies are read and written."""

    api: Api
    key: ApiKey
    version: int
    flexible: bool
    response_head: struct.Struct
    #: ``(correlation_id, body)``: a whole response frame, length included.
    response_frame: Callable[[int, Any], bytes | bytearray]
    read_request: _Read
    write_request: _Write
    read_response: _Read
    write_response: _Write
    #: Writes a response that may be very large; yields where a broker may do other work. None: none is.
    write_response_steps: Callable[[bytearray, Any, int], Iterator[None]] | None

    def request(self, frame: bytes, at: int) -> Any:
        """The body that starts at ``at``. Raises MalformedMessageError."""
        try:
            body, end = self.read_request(frame, at, self.version, MAX_REQUEST_ELEMENTS)
        except Exception as error:
            raise _unreadable(self, "Request", error) from error
        if end > len(frame):
            raise _cut_short(self, "Request", end - len(frame))
        return body

    def response(self, frame: bytes | memoryview, at: int) -> Any:
        """The body of a response that starts at ``at``. Raises MalformedMessageError."""
        try:
            body, end = self.read_response(frame, at, self.version, _UNLIMITED)
        except Exception as error:
            raise _unreadable(self, "Response", error) from error
        if end > len(frame):
            raise _cut_short(self, "Response", end - len(frame))
        return body


@cache
def codec_of(api_key: int, version: int) -> MessageCodec:
    """The codec of a version that is spoken here. Raises UnsupportedVersionError for any other."""
    api = api_for(api_key)
    api.require(version)
    module = messages_of(api_key)
    flexible = api.flexible(version)
    head = _HEAD_WITH_TAGS if flexible and api.key is not ApiKey.API_VERSIONS else _HEAD
    write_response = module.write_response(version)

    def response_frame(correlation_id: int, body: Any) -> bytearray:
        out = bytearray(head.pack(0, correlation_id))
        write_response(out, body, version)
        _LENGTH.pack_into(out, 0, len(out) - _LENGTH_BYTES)
        return out

    return MessageCodec(
        api,
        api.key,
        version,
        flexible,
        head,
        # one of numbers alone has a shorter way
        module.frame_response(version) if hasattr(module, "frame_response") else response_frame,
        module.read_request(version),
        module.write_request(version),
        module.read_response(version),
        write_response,
        module.write_response_steps(version) if hasattr(module, "write_response_steps") else None,
    )


@cache
def messages_of(api_key: int) -> ModuleType:
    """The module with the messages of an API."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", api_for(api_key).name).lower()
    return importlib.import_module(f".messages.{name}", __package__)


def request_type(api_key: int) -> Any:
    """The class of the requests of an API."""
    return getattr(messages_of(api_key), f"{api_for(api_key).name}Request")


def response_type(api_key: int) -> Any:
    """The class of the responses of an API."""
    return getattr(messages_of(api_key), f"{api_for(api_key).name}Response")


@cache
def struct_arrays(message: type) -> dict[str, type]:
    """The fields of a message or struct that are arrays of structs, with the type of their elements."""
    found = {}
    for name, hint in get_type_hints(message).items():
        array = next((each for each in (hint, *get_args(hint)) if get_origin(each) is Sequence), None)
        if array is not None and hasattr(get_args(array)[0], "_fields"):
            (found[name],) = get_args(array)
    return found


def operation_bits(operations: Iterable[int]) -> int:
    """Numbers of Kafka's AclOperation as the bit field that answers have (KIP-430)."""
    return sum(1 << each for each in operations)


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
            end = skip_tags(frame, end)
    except (struct.error, IndexError, UnicodeDecodeError, MalformedMessageError) as error:
        raise MalformedFrameError(f"unreadable request header in a frame of {len(frame)} bytes") from error
    return RequestHeader(key, version, correlation_id, client_id, end)


def decode_request(frame: bytes, header: RequestHeader) -> Any:
    """The body after a header whose API and version are offered. Raises MalformedMessageError."""
    return codec_of(header.api_key, header.api_version).request(frame, header.size)


def encode_response(api_key: int, version: int, correlation_id: int, body: Any) -> bytes | bytearray:
    """A whole response frame, length included."""
    return codec_of(api_key, version).response_frame(correlation_id, body)


def encode_response_steps(
    api_key: int, version: int, correlation_id: int, body: Any
) -> Generator[None, None, bytearray]:
    """As ``encode_response``, of an API with ``write_response_steps``: yields where other work may run."""
    found = codec_of(api_key, version)
    assert found.write_response_steps is not None, f"{found.api.name} is written at once"
    out = bytearray(found.response_head.pack(0, correlation_id))
    yield from found.write_response_steps(out, body, version)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH_BYTES)
    return out


def encode_response_parts(api_key: int, version: int, correlation_id: int, body: Any) -> Sequence[Part]:
    """The parts of a response frame: records that are long or lie in a file are passed on as they are."""
    found = codec_of(api_key, version)
    out = Pieces(found.response_head.pack(0, correlation_id))
    found.write_response(out, body, version)
    size = len(out) + sum(len(records) for _, records in out.apart) - _LENGTH_BYTES
    _LENGTH.pack_into(out, 0, size)
    parts: list[Part] = []
    start = 0
    for end, records in out.apart:
        parts += (out[start:end], records)
        start = end
    parts.append(out[start:])
    return parts


def encode_request(version: int, correlation_id: int, client_id: str, body: Any) -> bytearray:
    """A whole request frame, length included. ``body.API_KEY`` says of which API."""
    found = codec_of(body.API_KEY, version)
    name = client_id.encode()
    head = _REQUEST_HEADER.pack(found.api.key, version, correlation_id, len(name))
    out = bytearray(_LENGTH_BYTES) + head + name
    if found.flexible:
        out += _NO_TAGS
    found.write_request(out, body, version)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH_BYTES)
    return out


def decode_response(api_key: int, version: int, frame: bytes | memoryview) -> tuple[int, Any]:
    """Correlation id and body of a frame; records are a part of ``frame``. Raises MalformedMessageError."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        start = _CORRELATION_ID.size
        if api_key != ApiKey.API_VERSIONS and _has_tags(api_key, version):
            start = skip_tags(frame, start)
    except (struct.error, IndexError, MalformedMessageError) as error:
        raise MalformedMessageError(f"unreadable response header in a frame of {len(frame)} bytes") from error
    try:
        return correlation_id, codec_of(api_key, version).response(frame, start)
    except MalformedMessageError:
        # who does not know the version that was asked for answers in version 0
        if api_key != ApiKey.API_VERSIONS or not version:
            raise
        return correlation_id, codec_of(api_key, 0).response(frame, start)


def _unreadable(of: MessageCodec, side: str, error: Exception) -> MalformedMessageError:
    # whatever the reader trips over in these bytes is the fault of the bytes
    why = str(error) if isinstance(error, MalformedMessageError) else repr(error)
    return MalformedMessageError(f"{of.api.name}{side} v{of.version} cannot be decoded: {why}")


def _cut_short(of: MessageCodec, side: str, missing: int) -> MalformedMessageError:
    return MalformedMessageError(f"{of.api.name}{side} v{of.version} is cut short by {missing} bytes")


def _has_tags(api_key: int, version: int) -> bool:
    api = APIS.get(api_key)
    return api is not None and api.flexible(version)
