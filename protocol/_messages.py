"""Reading and writing of whole messages: headers here, bodies by the generated modules of ``messages/``.

A decoded body is a named tuple, such as ``messages.heartbeat.HeartbeatRequest``. A body to encode may be any
object with the fields of its version. An API's module is imported when its first message is read or written.

A frame is what follows its length. Numbers are big-endian:

========  ===============  =======================================================================
part      type             field
========  ===============  =======================================================================
length    int32            bytes of the frame
request   int16            number of the API
          int16            version
          int32            correlation id
          nullable string  client id: int16 length, -1 for null, then the text
          tagged fields    only in flexible versions (KIP-482)
          body             as the version has it
response  int32            correlation id of the request
          tagged fields    only in flexible versions; never of ApiVersions, whose client does not know
                           the broker's versions yet (KIP-511)
          body             as the request's version has it
========  ===============  =======================================================================
"""

from __future__ import annotations

import importlib
import re
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from types import ModuleType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from ._apis import APIS, Api, api_for
from ._errors import ErrorCode, KafkaError, MalformedFrameError, MalformedMessageError
from .messages._apis import ApiKey
from .messages.wire import MAX_STRING, Pieces, Sendable, skip_tags
from .named_tuples import NamedTuple

_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
#: Length and correlation id in front of a response; in flexible versions with empty tagged fields.
_HEAD, _HEAD_WITH_TAGS = struct.Struct(">ii"), struct.Struct(">iix")
_LENGTH_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">I")

#: Characters of a string that is too long that its error shows.
_MOST_SHOWN: Final = 40
_NO_TAGS = b"\x00"

#: Most array elements of a request, nested ones included: more than the partitions of the largest clusters.
#: A decoded element takes far more memory than its bytes in the request.
MAX_REQUEST_ELEMENTS = 100_000

#: Responses may have any number of array elements that fits their size.
_UNLIMITED: Final = 1 << 62

#: A part of a response frame: bytes, or records in a file.
Part: TypeAlias = bytes | bytearray | Sendable

ResponseT_co = TypeVar("ResponseT_co", covariant=True)

_Read: TypeAlias = Callable[[Any, int, int, int], tuple[Any, int]]
_Write: TypeAlias = Callable[[bytearray, object, int], None]

#: Returns the number of a request's API.
api_key_of: Final[Callable[[object], int]] = attrgetter("API_KEY")


class RequestBody(Protocol[ResponseT_co]):
    """A request of ``messages/``: its class knows the class of its response."""

    @staticmethod
    def response_type() -> type[ResponseT_co]: ...


class RequestHeader(NamedTuple):
    """Header of a request; ``size`` is its length in bytes, which is where the body starts."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int


class MessageCodec(NamedTuple):
    """Readers and writers for one version of an API."""

    api: Api
    key: ApiKey
    version: int
    flexible: bool
    response_head: struct.Struct
    #: Takes a correlation id and a body; returns a whole response frame, length included.
    response_frame: Callable[[int, object], bytes | bytearray]
    read_request: _Read
    write_request: _Write
    read_response: _Read
    write_response: _Write
    #: Writes a response that may be very large; yields where a broker may do other work. None: none is.
    write_response_steps: Callable[[bytearray, object, int], Iterator[None]] | None

    def request(self, frame: bytes, at: int) -> Any:
        """Return the body of a request that starts at ``at`` in a frame. Raises MalformedMessageError."""
        try:
            body, end = self.read_request(frame, at, self.version, MAX_REQUEST_ELEMENTS)
        except Exception as error:
            raise _unreadable_error(self, "Request", error) from error
        if end > len(frame):
            raise _cut_short(self, "Request", end - len(frame))
        return body

    def response(self, frame: bytes | memoryview, at: int) -> Any:
        """Return the body of a response that starts at ``at`` in a frame. Raises MalformedMessageError."""
        try:
            body, end = self.read_response(frame, at, self.version, _UNLIMITED)
        except Exception as error:
            raise _unreadable_error(self, "Response", error) from error
        if end > len(frame):
            raise _cut_short(self, "Response", end - len(frame))
        return body


@cache
def codec_of(api_key: int, version: int) -> MessageCodec:
    """Return the codec for a version of an API. Raises UnsupportedVersionError."""
    api = api_for(api_key)
    api.require(version)
    module = messages_of(api_key)
    flexible = api.flexible(version)
    head = _HEAD_WITH_TAGS if flexible and api.key is not ApiKey.API_VERSIONS else _HEAD
    write_response = module.write_response(version)

    def response_frame(correlation_id: int, body: object) -> bytearray:
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
        # responses of numbers only are packed in one call
        module.frame_response(version) if hasattr(module, "frame_response") else response_frame,
        module.read_request(version),
        module.write_request(version),
        module.read_response(version),
        write_response,
        module.write_response_steps(version) if hasattr(module, "write_response_steps") else None,
    )


@cache
def messages_of(api_key: int) -> ModuleType:
    """Return the module of an API's messages; imports it at the first call."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", api_for(api_key).name).lower()
    return importlib.import_module(f".messages.{name}", __package__)


def request_type(api_key: int) -> Any:
    """Return the class of an API's requests."""
    return getattr(messages_of(api_key), f"{api_for(api_key).name}Request")


def response_type(api_key: int) -> Any:
    """Return the class of an API's responses."""
    return getattr(messages_of(api_key), f"{api_for(api_key).name}Response")


def prepare_request(api_key: int) -> None:
    """Import an API's messages, and make the constructors of its request and of the structs in it: the first
    request would take half a millisecond for that.
    """
    messages = [request_type(api_key)]
    for message in messages:
        message()
        messages += struct_arrays(message).values()


@cache
def struct_arrays(message: type) -> dict[str, type]:
    """Return the fields of a message or struct that are arrays of structs, each with its elements' class."""
    found = {}
    for name, hint in get_type_hints(message).items():
        array = next((each for each in (hint, *get_args(hint)) if get_origin(each) is Sequence), None)
        if array is not None and hasattr(get_args(array)[0], "_fields"):
            (found[name],) = get_args(array)
    return found


def operation_bits(operations: Iterable[int]) -> int:
    """Return numbers of Kafka's AclOperation as a bit field, as responses have it (KIP-430)."""
    return sum(1 << each for each in operations)


def decode_request_header(frame: bytes) -> RequestHeader:
    """Read the header of a request frame. Raises MalformedFrameError if the frame is too short for it.

    An unknown API number or version is not an error here, since ApiVersions must be answered in any version.
    The tagged fields of such a header are not read.
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
    """Return the body after a request's header. Raises UnsupportedVersionError, MalformedMessageError."""
    return codec_of(header.api_key, header.api_version).request(frame, header.size)


def encode_response(api_key: int, version: int, correlation_id: int, body: object) -> bytes | bytearray:
    """Return a whole response frame, length included."""
    return codec_of(api_key, version).response_frame(correlation_id, body)


def encode_response_steps(
    api_key: int, version: int, correlation_id: int, body: object
) -> Generator[None, None, bytearray]:
    """As ``encode_response``, of an API with ``write_response_steps``: yields where other work may run."""
    found = codec_of(api_key, version)
    assert found.write_response_steps is not None, f"{found.api.name} is written at once"
    out = bytearray(found.response_head.pack(0, correlation_id))
    yield from found.write_response_steps(out, body, version)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH_BYTES)
    return out


def encode_response_parts(api_key: int, version: int, correlation_id: int, body: object) -> Sequence[Part]:
    """Return a response frame in parts: long records, and records in a file, are parts of their own."""
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


def encode_request(version: int, correlation_id: int, client_id: str, body: object) -> bytearray:
    """Return a whole request frame, length included."""
    found = codec_of(api_key_of(body), version)
    name = client_id.encode()
    head = _REQUEST_HEADER.pack(found.api.key, version, correlation_id, len(name))
    out = bytearray(_LENGTH_BYTES) + head + name
    if found.flexible:
        out += _NO_TAGS
    found.write_request(out, body, version)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH_BYTES)
    return out


def check_strings(body: object) -> None:
    """Refuse a message with a string that is too long for Kafka's protocol: a broker would close the
    connection. Raises KafkaError INVALID_REQUEST.
    """
    if isinstance(body, str):
        size = len(body.encode())
        if size > MAX_STRING:
            words = (
                f"{body[:_MOST_SHOWN]!r}... has {size:,} bytes: names and values have {MAX_STRING:,} at most"
            )
            raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    elif isinstance(body, (tuple, list)):
        for part in body:
            check_strings(part)


def decode_response(api_key: int, version: int, frame: bytes | memoryview) -> tuple[int, Any]:
    """Return correlation id and body of a response frame; records are views of ``frame``.

    Raises UnsupportedVersionError, MalformedMessageError.
    """
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
        # a broker that does not support the requested version answers ApiVersions in version 0
        if api_key != ApiKey.API_VERSIONS or not version:
            raise
        return correlation_id, codec_of(api_key, 0).response(frame, start)


def _unreadable_error(of: MessageCodec, side: str, error: Exception) -> MalformedMessageError:
    # any exception of a generated reader means that the bytes are wrong
    why = str(error) if isinstance(error, MalformedMessageError) else repr(error)
    return MalformedMessageError(f"{of.api.name}{side} v{of.version} cannot be decoded: {why}")


def _cut_short(of: MessageCodec, side: str, missing: int) -> MalformedMessageError:
    return MalformedMessageError(f"{of.api.name}{side} v{of.version} is cut short by {missing} bytes")


def _has_tags(api_key: int, version: int) -> bool:
    api = APIS.get(api_key)
    return api is not None and api.flexible(version)
