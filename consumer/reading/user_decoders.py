"""Decoding of keys and values by the users' ``decode`` and ``key_decode``, and the meaning of its errors."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, get_origin

from ...client.errors import ConfigError
from ..errors import ConsumerError

#: Decodes a key or value that is not null.
Decode = Callable[[bytes], object]


class InvalidRecordError(ConsumerError):
    """A record's key or value cannot be decoded, or does not fit the model. Its cause is the decoder's error.

    It never will, so it is not tried again.
    """


class Decoder:
    """Decodes the ``what`` ("key" or "value") of records; a null is None.

    Raises InvalidRecordError for everything that ``decode`` raises, except OSError: that comes from a service
    that the decoder calls, such as a schema registry, and a retry may succeed.
    """

    def __init__(self, decode: object, what: str) -> None:
        self._what = what
        self._decode = _make_decoder(decode, what)
        #: Returns whether decoding may have to wait, and so must not be done on an event loop.
        self.waits: Callable[[bytes], bool] | None = getattr(decode, "waits", None)

    def __call__(self, data: bytes | None) -> object:
        if data is None:
            return None
        try:
            return self._decode(data)
        except (OSError, InvalidRecordError):
            raise
        except Exception as error:
            text = f"the {self._what} cannot be decoded: {type(error).__name__}: {error}"
            raise InvalidRecordError(text) from error

    def must_wait(self, data: bytes | None) -> bool:
        """Return whether decoding these bytes may block, as for a schema that is not known yet."""
        return self.waits is not None and data is not None and self.waits(data)


def make_decoder(decode: object, what: str) -> Decoder | None:
    """The decoder for an argument ``decode`` or ``key_decode``; None for none. Raises ConfigError."""
    return None if decode is None else Decoder(decode, what)


async def decode_data(decoder: Decoder, data: bytes | None) -> Any:
    """Decode; in a thread if that may have to wait, for a schema registry for example."""
    if decoder.must_wait(data):
        return await asyncio.to_thread(decoder, data)
    return decoder(data)


def _make_decoder(decode: object, what: str) -> Decode:
    if isinstance(decode, type | UnionType) or get_origin(decode) is not None:
        return json_validator(decode)
    if not callable(decode) or inspect.iscoroutinefunction(decode):
        name = "decode" if what == "value" else "key_decode"
        raise ConfigError(
            f"{name}={decode!r}, but it must be a type that pydantic reads from JSON, or a plain function "
            "that takes bytes"
        )
    checked: Decode = decode
    return checked


def json_validator(model: Any) -> Decode:
    """Function from JSON to a pydantic model, or to any type that pydantic can read. Raises ConfigError."""
    validate = getattr(model, "model_validate_json", None)
    if validate is None:
        # imported here so that services without models do not pay for it
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError

        try:
            validate = TypeAdapter(model).validate_json
        except PydanticSchemaGenerationError as error:
            first = str(error).splitlines()[0]
            raise ConfigError(
                f"model={model!r} is nothing that pydantic can read JSON into: {first}"
            ) from None
    checked: Decode = validate
    return checked
