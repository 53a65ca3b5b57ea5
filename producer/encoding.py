"""Encoding of keys and values by the arguments ``encode`` and ``key_encode`` of producers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, Self, get_origin

from ..client.errors import ConfigError
from ..client.schema_registry import RegistryEncoder
from .accumulator import ProducerRecord
from .errors import SerializationError


class Encoders:
    """Optional encoders of record values and keys. None is not encoded: it stays null.

    Raises SerializationError for any error of an encoder except OSError, which is passed on: it comes from a
    service such as a schema registry, and a retry may succeed.
    """

    def __init__(self, encode: object, key_encode: object) -> None:
        self._value = None if encode is None else _Encoder(encode, "value")
        self._key = None if key_encode is None else _Encoder(key_encode, "key")

    @classmethod
    def of(cls, encode: object, key_encode: object) -> Self | None:
        """Return encoders for these arguments; None if both are None. Raises ConfigError."""
        return None if encode is None and key_encode is None else cls(encode, key_encode)

    def pair(self, topic: str, value: object, key: object) -> tuple[object, object]:
        """Return value and key as bytes."""
        if self._value is not None:
            value = self._value(topic, value)
        return value, key if self._key is None else self._key(topic, key)

    def record(self, given: ProducerRecord) -> ProducerRecord:
        """Return the record with key and value as bytes."""
        value, key = self.pair(given.topic, given.value, given.key)
        return given._replace(value=value, key=key)

    @property
    def may_wait(self) -> bool:
        """Return whether encoding may send requests to a schema registry."""
        return any(each is not None and each.registry is not None for each in (self._value, self._key))

    def must_wait(self, topic: str) -> bool:
        """Return whether encoding for this topic sends a request to a schema registry.

        It must then not run on an event loop.
        """
        return any(
            each is not None and each.registry is not None and each.registry.waits(topic, each.what)
            for each in (self._value, self._key)
        )


class _Encoder:
    """Encodes the ``what`` ("key" or "value") of records."""

    def __init__(self, encode: Any, what: str) -> None:
        self.what = what
        self.registry = encode if isinstance(encode, RegistryEncoder) else None
        self._encode = encode if self.registry is not None else _make_encoder(encode, what)

    def __call__(self, topic: str, given: object) -> bytes | None:
        if given is None:
            return None
        try:
            found: object
            if self.registry is not None:
                found = self.registry(given, topic, self.what)
            else:
                found = self._encode(given)
        except (OSError, SerializationError):
            raise
        except Exception as error:
            text = f"the {self.what} cannot be encoded: {type(error).__name__}: {error}"
            raise SerializationError(text) from error
        if not isinstance(found, bytes):
            raise SerializationError(
                f"the {self.what} was encoded to {type(found).__name__}: an encoder returns bytes"
            )
        return found


def _make_encoder(encode: Any, what: str) -> Callable[[object], object]:
    """Return the encoding function for an argument ``encode`` or ``key_encode``. Raises ConfigError."""
    name = "encode" if what == "value" else "key_encode"
    if isinstance(encode, type | UnionType) or get_origin(encode) is not None:
        # imported here so that producers without it start faster
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError

        try:
            adapter = TypeAdapter[object](encode)
        except PydanticSchemaGenerationError as error:
            first = str(error).splitlines()[0]
            raise ConfigError(
                f"{name}={encode!r} is nothing that pydantic can write as JSON: {first}"
            ) from None
        return lambda given: adapter.dump_json(adapter.validate_python(given), by_alias=True)
    if not callable(encode) or inspect.iscoroutinefunction(encode):
        raise ConfigError(
            f"{name}={encode!r}, but it must be a type that pydantic writes as JSON, a plain function that "
            "returns bytes, or an encoder of a SchemaRegistry"
        )
    checked: Callable[[object], object] = encode
    return checked
