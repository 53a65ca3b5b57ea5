"""Records in the wire format of Confluent's schema registry: a zero byte, the id of a schema, the content.

The schemas are read, and the content is decoded, by confluent-kafka, which the extras "avro", "json-schema"
and "protobuf" install with what the format needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from .errors import ClientError, ConfigError

#: A zero byte and a schema id.
_HEAD_BYTES = 5
#: Schemas that are remembered as known; others are asked for again, in a thread.
_MOST_KNOWN = 1_000
Kind = Literal["avro", "json", "protobuf"]
_HOME = "confluent_kafka.schema_registry"


class RegistryError(ClientError, OSError):
    """The schema registry does not answer, or refuses this client. Not the record's fault: tried again."""


class SchemaRegistry:
    """A Confluent-compatible schema registry, as decoders of handlers, consumers and Spark.

    ``decode=registry.avro()`` gives dicts, ``registry.avro(Order)`` instances of a type that pydantic
    validates. Requests take up to ``timeout_ms`` each and are tried ``1 + max_retries`` times. ``properties``
    has more of Confluent's settings ("basic.auth.user.info", "ssl.ca.location"). May be sent to other
    processes. Raises ConfigError.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_ms: int = 10_000,
        max_retries: int = 2,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._url = url
        self._conf = {
            "url": url,
            "timeout": timeout_ms / 1000,
            "max.retries": max_retries,
            "retries.wait.ms": 100,
            "cache.capacity": _MOST_KNOWN,
            **(properties or {}),
        }
        self._client: Any = None
        self._made()

    def __repr__(self) -> str:
        return "SchemaRegistry(...)"  # its URL may have a password

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_client": None}

    def _made(self) -> Any:
        if self._client is None:
            home = _imported("", "avro")
            try:
                self._client = home.SchemaRegistryClient(self._conf)
            except (ValueError, TypeError) as error:
                raise ConfigError(f"SchemaRegistry: {error}") from None
        return self._client

    def avro(self, model: Any = None, *, schema: str | None = None) -> RegistryDecoder:
        """Decoder of Avro. ``schema``: the reader's; by default values are read as they were written."""
        return RegistryDecoder(self, "avro", schema, model)

    def json(self, model: Any = None, *, schema: str | None = None) -> RegistryDecoder:
        """Decoder of JSON, validated by the schema that it was written with, or by ``schema``."""
        return RegistryDecoder(self, "json", schema, model)

    def protobuf(self, message: Any) -> RegistryDecoder:
        """Decoder of Protobuf, to instances of a generated class. The registry is not asked."""
        return RegistryDecoder(self, "protobuf", message, None)

    def content_decoder(self, kind: Kind, what: Any) -> Callable[[bytes], Any]:
        """The library's decoder. Raises ConfigError if it, or what it needs, is not installed."""
        made: Callable[[bytes], Any]
        if kind == "avro":
            made = _imported("avro", "avro").AvroDeserializer(self._made(), what)
        elif kind == "json":
            deserializer = _imported("json_schema", "json-schema").JSONDeserializer
            conf = {"subject.name.strategy": _no_subject}
            made = deserializer(what, schema_registry_client=self._made(), conf=conf)
        else:
            deserializer = _imported("protobuf", "protobuf").ProtobufDeserializer
            made = deserializer(what, {"use.deprecated.format": False})
        return made

    def load(self, schema_id: int) -> None:
        """Have the schema and those that it refers to. Raises LookupError if there is none, RegistryError."""
        client = self._made()
        try:
            open_ones = [client.get_schema(schema_id)]
            while open_ones:
                references = open_ones.pop().references or ()
                # with the arguments of the library's own calls, which then find it in the cache
                found = [client.get_version(each.subject, each.version, True) for each in references]
                open_ones += [each.schema for each in found]
        except Exception as error:
            if getattr(error, "http_status_code", None) == 404:
                raise LookupError(f"the registry has no schema {schema_id}") from error
            raise RegistryError(f"schema {schema_id} cannot be read from the registry: {error!r}") from error


class RegistryDecoder:
    """Decodes what begins with a schema id, then validates it by ``model``, if there is one.

    ``what``: the reader's schema, or the class of Protobuf messages.
    """

    def __init__(self, registry: SchemaRegistry, kind: Kind, what: Any, model: Any) -> None:
        self._made_of = registry, kind, what, model
        self._registry = registry
        self._content = registry.content_decoder(kind, what)
        self._validate = _validator(model)
        self._asks = kind != "protobuf"
        self._known: set[int] = set()

    def __reduce__(self) -> Any:
        return RegistryDecoder, self._made_of

    def __call__(self, data: bytes) -> Any:
        if len(data) <= _HEAD_BYTES or data[0] != 0:
            raise ValueError("it does not begin with a zero byte and a schema id")
        if self.waits(data):
            schema_id = _schema_id(data)
            self._registry.load(schema_id)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known.add(schema_id)
        found = self._content(data)
        return found if self._validate is None else self._validate(found)

    def waits(self, data: bytes) -> bool:
        """Return whether the registry has to be asked."""
        return self._asks and _schema_id(data) not in self._known


def _no_subject(_: Any, __: Any) -> None:
    """Schemas are found by their ids alone."""


def _schema_id(data: bytes) -> int:
    return int.from_bytes(data[1:_HEAD_BYTES], "big")


def _validator(model: Any) -> Callable[[Any], Any] | None:
    if model is None:
        return None
    from pydantic import TypeAdapter

    return TypeAdapter(model).validate_python


def _imported(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(f"{_HOME}.{module}" if module else _HOME)
    except ImportError as error:
        raise ConfigError(
            f"this decoder needs confluent-kafka ({error}): pip install 'kohort[{extra}]'"
        ) from error
