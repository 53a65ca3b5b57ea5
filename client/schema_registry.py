"""Records in the wire format of Confluent's schema registry.

======  ======  ==================================
offset  type    field
======  ======  ==================================
0       int8    0
1       uint32  id of the schema, big-endian
5               content, in Avro, JSON or Protobuf
======  ======  ==================================

confluent-kafka reads and registers schemas, and decodes and encodes content. The extras "avro", "json-schema"
and "protobuf" install it with the packages that the format needs.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from .errors import ClientError, ConfigError

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

#: Length of the zero byte and the schema id (uint32).
_HEAD_BYTES = 5
#: Most schemas that are remembered as loaded.
_MOST_KNOWN = 1_000
Kind = Literal["avro", "json", "protobuf"]
#: How the subject of a schema is named: one of Confluent's strategies, or a function of the topic and of
#: "key" or "value".
SubjectName = Literal["topic", "record", "topic_record"] | Callable[[str, str], str]
#: HTTP status codes that refuse a schema, for which a retry does not help.
_REFUSALS = {404: "it is not registered", 409: "it is incompatible with an earlier one", 422: "it is invalid"}
_HOME = "confluent_kafka.schema_registry"
_MODULES = {"avro": "avro", "json": "json_schema", "protobuf": "protobuf"}
_EXTRAS = {"avro": "avro", "json": "json-schema", "protobuf": "protobuf"}


class RegistryError(ClientError, OSError):
    """The schema registry does not answer, or refuses this client. The record is not at fault: retried."""


class SchemaRegistry:
    """A Confluent-compatible schema registry: decoders for handlers, consumers and Spark, encoders for
    producers.

    ``decode=registry.avro()`` returns dicts, ``decode=registry.avro(Order)`` instances of a type that
    pydantic validates; ``encode=registry.avro_encoder(schema)`` takes both. A request takes up to
    ``timeout_ms`` milliseconds and is sent at most ``1 + max_retries`` times. ``properties``: more of
    Confluent's settings ("basic.auth.user.info", "ssl.ca.location"). Can be pickled, for other processes.
    Raises ConfigError.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_ms: int = 10_000,
        max_retries: int = 2,
        properties: Mapping[str, object] | None = None,
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
        self._client: SchemaRegistryClient | None = None
        self._make_client()

    def __repr__(self) -> str:
        return "SchemaRegistry(...)"  # its URL may have a password

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_client": None}

    def _make_client(self) -> SchemaRegistryClient:
        if self._client is None:
            home = _import_extra("", "avro")
            try:
                self._client = home.SchemaRegistryClient(self._conf)
            except (ValueError, TypeError) as error:
                raise ConfigError(f"SchemaRegistry: {error}") from None
        return self._client

    def avro(self, model: object = None, *, schema: str | None = None) -> RegistryDecoder:
        """Return a decoder of Avro. ``schema``: the reader's schema; by default the one of the writer."""
        return RegistryDecoder(self, "avro", schema, model)

    def json(self, model: object = None, *, schema: str | None = None) -> RegistryDecoder:
        """Return a decoder of JSON, which validates by ``schema`` or, by default, the writer's schema."""
        return RegistryDecoder(self, "json", schema, model)

    def protobuf(self, message: object) -> RegistryDecoder:
        """Return a decoder of Protobuf to instances of ``message``, a generated class; sends no requests."""
        return RegistryDecoder(self, "protobuf", message, None)

    def avro_encoder(
        self,
        schema: object = None,
        *,
        subject_name: SubjectName = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> RegistryEncoder:
        """Return an encoder of dicts, pydantic models and dataclasses to Avro.

        ``schema``: text, or Confluent's Schema. It is registered if it is not yet; with
        ``auto_register=False`` it must be. With ``use_latest`` values are written with the newest schema of
        their subject, and ``schema`` may be omitted. Raises ConfigError for a schema that cannot be used.
        """
        return RegistryEncoder(self, "avro", schema, subject_name, auto_register, use_latest)

    def json_encoder(
        self,
        schema: object = None,
        *,
        subject_name: SubjectName = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> RegistryEncoder:
        """Return an encoder to JSON. ``schema``: text, Confluent's Schema, or a type that pydantic knows
        schema for.

        Otherwise as ``avro_encoder``.
        """
        return RegistryEncoder(self, "json", schema, subject_name, auto_register, use_latest)

    def protobuf_encoder(
        self,
        message: object,
        *,
        subject_name: SubjectName = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> RegistryEncoder:
        """Return an encoder of Protobuf messages of a generated class. Otherwise as ``avro_encoder``."""
        return RegistryEncoder(self, "protobuf", message, subject_name, auto_register, use_latest)

    @property
    def forgets(self) -> bool:
        """Return whether the newest schema of a subject is requested again after some time."""
        return self._conf.get("cache.latest.ttl.sec") is not None

    def content_encoder(
        self, kind: Kind, what: object, conf: dict[str, object]
    ) -> Callable[[object, str, str], bytes | None]:
        """Return confluent-kafka's encoder as a function of a value, a topic, and "key" or "value".

        Raises ConfigError, RegistryError.
        """
        home, client = _import_extra(_MODULES[kind], _EXTRAS[kind]), self._make_client()
        context = importlib.import_module("confluent_kafka.serialization").SerializationContext
        try:
            if kind == "avro":
                made = home.AvroSerializer(client, what, _as_dict, conf)
            elif kind == "json":
                schema, to_plain = _json_schema(what)
                made = home.JSONSerializer(schema, client, to_plain, conf)
            else:
                made = home.ProtobufSerializer(what, client, conf)
        except Exception as error:
            _raise_registrys(error, "a schema that it refers to")
            raise ConfigError(f"this schema cannot be used: {type(error).__name__}: {error}") from error
        return lambda value, topic, field: made(value, context(topic, field))

    def content_decoder(self, kind: Kind, what: object) -> Callable[[bytes], object]:
        """Return confluent-kafka's decoder. Raises ConfigError if the packages that it needs are missing."""
        made: Callable[[bytes], object]
        home = _import_extra(_MODULES[kind], _EXTRAS[kind])
        if kind == "avro":
            made = home.AvroDeserializer(self._make_client(), what)
        elif kind == "json":
            conf = {"subject.name.strategy": _no_subject}
            made = home.JSONDeserializer(what, schema_registry_client=self._make_client(), conf=conf)
        else:
            made = home.ProtobufDeserializer(what, {"use.deprecated.format": False})
        return made

    def load(self, schema_id: int) -> None:
        """Load a schema and those that it refers to. Raises LookupError if there is none, RegistryError."""
        client = self._make_client()
        with _translate_errors(schema_id):
            open_ones = [client.get_schema(schema_id)]
            while open_ones:
                references = open_ones.pop().references or ()
                # the same arguments as in the library's own calls, which then find the schema in the cache
                found = [client.get_version(each.subject, each.version, True) for each in references]
                open_ones += [each.schema for each in found]

    def kind_of(self, schema_id: int) -> str:
        """The format of a schema: "avro", "json" or "protobuf". Raises LookupError if there is none of this
        id, RegistryError.
        """
        client = self._make_client()
        with _translate_errors(schema_id):
            return str(client.get_schema(schema_id).schema_type or "avro").lower()


@contextmanager
def _translate_errors(schema_id: int) -> Iterator[None]:
    """Raise LookupError or RegistryError for errors of the library that reads a schema."""
    try:
        yield
    except Exception as error:
        if getattr(error, "http_status_code", None) == 404:
            raise LookupError(f"the registry has no schema {schema_id}") from error
        raise RegistryError(f"schema {schema_id} cannot be read from the registry: {error!r}") from error


class RegistryDecoder:
    """Decodes data that begins with a schema id, then validates it by ``model``, if given.

    ``what``: the reader's schema, or the class of Protobuf messages. A call raises ValueError for data in
    another format, LookupError for an unknown schema, RegistryError, and the library's errors.
    """

    def __init__(self, registry: SchemaRegistry, kind: Kind, what: object, model: object) -> None:
        self._made_of = registry, kind, what, model
        self._registry = registry
        self._content = registry.content_decoder(kind, what)
        self._validate = _make_validator(model)
        self._asks = kind != "protobuf"
        self._known: set[int] = set()

    def __reduce__(self) -> tuple[object, ...]:
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
        """Return whether decoding sends a request to the registry."""
        return self._asks and _schema_id(data) not in self._known


class RegistryEncoder:
    """Encodes values, preceded by the id of their schema: ``encode(value, topic, "value")``.

    ``what``: the schema, or the class of Protobuf messages. A call raises ValueError if the registry refuses
    the schema, RegistryError, and the library's errors.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        kind: Kind,
        what: object,
        subject_name: SubjectName,
        auto_register: bool,
        use_latest: bool,
    ) -> None:
        self._made_of = registry, kind, what, subject_name, auto_register, use_latest
        if what is None and not use_latest:
            raise ConfigError(f"{kind}_encoder: give a schema, or use_latest=True")
        conf = {
            "auto.register.schemas": auto_register and not use_latest,
            "use.latest.version": use_latest,
            "subject.name.strategy": _subject_strategy(subject_name),
        }
        self._content = registry.content_encoder(kind, what, conf)
        self._forgets = use_latest and registry.forgets
        self._known: set[tuple[str, str]] = set()

    def __reduce__(self) -> tuple[object, ...]:
        return RegistryEncoder, self._made_of

    def __call__(self, value: object, topic: str, field: str) -> bytes | None:
        try:
            data = self._content(value, topic, field)
        except Exception as error:
            _raise_registrys(error, f"the schema of the {field}s of topic {topic!r}")
            raise
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add((topic, field))
        return data

    def waits(self, topic: str, field: str) -> bool:
        """Return whether encoding sends a request to the registry."""
        return self._forgets or (topic, field) not in self._known


def _subject_strategy(subject_name: SubjectName) -> Callable[..., str | None]:
    """Return confluent-kafka's function for the name of a subject. Raises ConfigError."""
    if callable(subject_name):
        return lambda context, _: subject_name(context.topic, context.field)
    if subject_name not in ("topic", "record", "topic_record"):
        raise ConfigError(
            f"subject_name={subject_name!r}, but it must be 'topic', 'record', 'topic_record' or a function"
        )
    name = f"{subject_name}_subject_name_strategy"
    found: Callable[..., str | None] = getattr(_import_extra("", "avro"), name)
    return found


def _raise_registrys(error: Exception, what: str) -> None:
    """Raise ValueError or RegistryError if the registry, and not the value, caused the library's error."""
    status = getattr(error, "http_status_code", None)
    if status in _REFUSALS:
        raise ValueError(f"the registry refuses {what}, {_REFUSALS[status]}: {error}") from error
    # versions of the library use different HTTP clients
    is_http = any(
        base.__module__.startswith(("httpx", "httpcore", "authlib")) for base in type(error).__mro__
    )
    if status is not None or is_http or isinstance(error, OSError):
        raise RegistryError(f"the registry cannot be asked about {what}: {error!r}") from error


def _as_dict(value: object, _: object) -> object:
    """Convert pydantic models and dataclasses to dicts; return other values unchanged."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _json_schema(what: Any) -> tuple[object, Callable[[object, object], object]]:
    """Return the schema, made from ``what`` if that is a type, and a function from values to JSON types."""
    from pydantic import TypeAdapter

    if what is None or isinstance(what, str) or hasattr(what, "schema_str"):
        anything = TypeAdapter(object)
        return what, lambda value, _: anything.dump_python(value, mode="json", by_alias=True)
    adapter = TypeAdapter[object](what)
    schema = json.dumps(adapter.json_schema(mode="serialization"))
    return schema, lambda value, _: adapter.dump_python(
        adapter.validate_python(value), mode="json", by_alias=True
    )


def _no_subject(_: object, __: object) -> None:
    """Subject name strategy for decoders, which find schemas by id only."""


def _schema_id(data: bytes) -> int:
    return int.from_bytes(data[1:_HEAD_BYTES], "big")


def _make_validator(model: Any) -> Callable[[object], object] | None:
    if model is None:
        return None
    from pydantic import TypeAdapter

    return TypeAdapter(model).validate_python


def _import_extra(module: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(f"{_HOME}.{module}" if module else _HOME)
    except ImportError as error:
        raise ConfigError(
            f"a schema registry's values need confluent-kafka ({error}): pip install 'kohort[{extra}]'"
        ) from error
