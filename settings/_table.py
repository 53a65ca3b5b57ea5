"""Table format of all settings: a class whose annotated fields are the rows.

    class Shop:
        SCOPE: ClassVar[Scope] = SHOP
        max_size: Annotated[int, Row("largest parcel", 1, 10)] = 5

The class holds the values; a type checker knows their types, pydantic checks them by the same annotations,
and :func:`settings_of` returns the rows to code that reads, shows or documents settings. Classes are slots
dataclasses where startup time counts, and :class:`~.model.SettingsModel` elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints

from ..protocol.named_tuples import NamedTuple

#: Largest values of Java's types int and long.
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1

#: Units by the ending of a setting's name.
_UNITS: Final = {
    "_ms": "ms",
    "_seconds": "s",
    "_minutes": "min",
    "_hours": "h",
    "_bytes": "bytes",
}
_KINDS: Final[dict[object, str]] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}


class Scope(NamedTuple):
    """The part of kohort that settings belong to.

    ``noun``: what errors call one of them. ``page``: the documentation that lists them. ``names``: how users
    write them: as Kafka does (``num.partitions``), as keyword arguments of Python, or as options of Spark,
    whose case does not matter.
    """

    name: str
    noun: str
    page: str
    names: Literal["kafka", "python", "spark"] = "python"


BROKER: Final = Scope("broker", "setting", "docs/broker.md", "kafka")
LISTENER: Final = Scope("listener", "setting", "docs/broker.md", "kafka")
TOPIC: Final = Scope("topic", "topic config", "docs/broker.md", "kafka")
CONSUMER: Final = Scope("consumer", "setting of a consumer", "docs/consumer.md")
SHARE_CONSUMER: Final = Scope("share consumer", "setting of a share consumer", "docs/queues.md")
PRODUCER: Final = Scope("producer", "setting of a producer", "docs/producer.md")
SERVICE: Final = Scope("service", "setting of a service", "docs/service.md")
SPARK_LOOP: Final = Scope("spark loop", "option of a driver loop", "docs/spark.md")
SPARK_SOURCE: Final = Scope("spark source", "option of the source", "docs/spark.md", "spark")
SPARK_BATCH: Final = Scope("spark batch", "option of spark.read", "docs/spark.md", "spark")
SPARK_STREAM: Final = Scope("spark stream", "option of spark.readStream", "docs/spark.md", "spark")
SPARK_SINK: Final = Scope("spark sink", "option of the sink", "docs/spark.md", "spark")


@dataclass(frozen=True, slots=True)
class Row:
    """Metadata in the annotation of a setting's field. pydantic takes the bounds from it.

    * ``doc``: what the setting does, for the documentation.
    * ``least``, ``most``: bounds of a number, inclusive. ``shortest``, ``longest``: bounds of a text's
      length.
    * ``check``: a further test of the value; then ``allowed`` describes the allowed values in words.
    * ``kafka``: Kafka's or Spark's name, if it is not the field's name with dots for underscores.
    * ``also``: other names that are accepted.
    * ``unit``: the unit, if the ending of the field's name does not tell it.
    * ``scope``: the scope, if it is not that of the class.
    * ``dynamic``: whether the value may change while the broker runs: for the broker only ("broker"), or for
      one listener too ("listener").
    * ``sensitive``: the value is never shown.
    * ``client``: a setting of connections. Spark's options have it with the prefix ``kafka.``, and it may be
      set by an environment variable.
    * ``commas``: the value is a list, separated by commas.
    * ``default_from``: for a topic config, the broker setting that is its default.
    """

    doc: str
    least: float | None = None
    most: float | None = None
    _: KW_ONLY
    shortest: int | None = None
    longest: int | None = None
    check: Callable[[Any], bool] | None = None
    allowed: str = ""
    kafka: str = ""
    also: tuple[str, ...] = ()
    unit: str = ""
    scope: Scope | None = None
    dynamic: Literal["", "broker", "listener"] = ""
    sensitive: bool = False
    client: bool = False
    commas: bool = False
    default_from: str = ""

    #: By this attribute pydantic (annotated-types) recognizes metadata that consist of several bounds.
    __is_annotated_types_grouped_metadata__: ClassVar[Literal[True]] = True

    def __iter__(self) -> Iterator[object]:
        # imported here because a broker starts without pydantic; the import is a twentieth of its start time
        from annotated_types import Ge, Le, MaxLen, MinLen, Predicate

        if self.least is not None:
            yield Ge(self.least)
        if self.most is not None:
            yield Le(self.most)
        if self.shortest is not None:
            yield MinLen(self.shortest)
        if self.longest is not None:
            yield MaxLen(self.longest)
        if self.check is not None:
            yield Predicate(self.check)


class Setting(NamedTuple):
    """A setting of a table: the :class:`Row` of a field with the field's name, type, default and scope.

    ``optional``: the value may be None. ``choices``: the allowed texts, if they are listed.
    """

    name: str
    type: Any
    default: object
    required: bool
    optional: bool
    choices: tuple[str, ...]
    scope: Scope
    row: Row

    @property
    def kafka_name(self) -> str:
        """Name with dots, as Apache Kafka writes it."""
        return self.row.kafka or self.name.replace("_", ".")

    @property
    def unit(self) -> str:
        """Unit of the value: the row's, else what the name ends in ("ms", "bytes"); "" without one."""
        return self.row.unit or next((unit for end, unit in _UNITS.items() if self.name.endswith(end)), "")

    @property
    def allowed_values(self) -> str:
        """Allowed values in words, such as ``a whole number from 1 to 10``; "" if pydantic alone knows."""
        row = self.row
        if row.allowed:
            return row.allowed
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = _KINDS.get(self.type, "")
        if row.least is not None and row.most is not None:
            return f"{words} from {row.least} to {row.most}" if row.least != row.most else str(row.least)
        if row.least is not None:
            return f"{words}, at least {row.least}"
        if row.shortest is not None or row.longest is not None:
            most = "" if row.longest is None else f", at most {row.longest} characters"
            return f"{words}{', not empty' * bool(row.shortest)}{most}"
        return words if row.most is None else f"{words}, at most {row.most}"

    def takes(self, value: object) -> bool:
        """Return whether a value has the setting's type and is within its bounds. Does what pydantic does."""
        kinds: Any = {int: int, float: (int, float)}.get(self.type, object)
        row = self.row
        return (
            isinstance(value, kinds)
            and (kinds is object or not isinstance(value, bool))
            and (row.least is None or value >= row.least)
            and (row.most is None or value <= row.most)
            and (row.check is None or row.check(value))
        )

    def shown_name(self, scope: Scope) -> str:
        """Return the name that users of a table of ``scope`` write."""
        if scope.names == "kafka":
            return self.kafka_name
        if scope.names == "spark":
            return f"kafka.{self.kafka_name}" if self.row.client else self.row.kafka or self.name
        return self.name

    def names(self, scope: Scope) -> tuple[str, ...]:
        """Return all names that are accepted from users of a table of ``scope``."""
        names = (self.shown_name(scope), *self.row.also)
        if scope.names == "spark" and self.row.client:
            names += (self.name, *(f"kafka.{name}" for name in self.row.also if "." in name))
        return names


_read_off: dict[type[object], dict[str, Setting]] = {}


def settings_of(cls: type[object]) -> dict[str, Setting]:
    """Return the settings of a table by field name. Raises TypeError for a field without a Row."""
    if cls not in _read_off:
        hints, scopes = get_type_hints(cls, include_extras=True), _scopes_of(cls)
        _read_off[cls] = {
            name: _make_setting(name, hints[name], default, scopes[name])
            for name, default in _field_defaults(cls)
        }
    return _read_off[cls]


def is_unchecked(cls: type[object]) -> bool:
    """Return whether a ``cls`` does not check its values: a dataclass that is not a pydantic model."""
    return is_dataclass(cls) and not hasattr(cls, "model_fields")


def _field_defaults(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    if is_unchecked(cls):
        for field in fields(cls):
            made = field.default if field.default_factory is MISSING else field.default_factory()
            yield field.name, made
    else:
        for name, info in cls.model_fields.items():
            yield name, MISSING if info.is_required() else info.get_default(call_default_factory=True)


def _scopes_of(cls: type[Any]) -> dict[str, Scope]:
    """The scope of each field: that of the class that annotates it; one that several parts share has none."""
    return {
        name: getattr(base, "SCOPE", None) or cls.SCOPE
        for base in reversed(cls.__mro__)
        for name in inspect.get_annotations(base)
    }


def _make_setting(name: str, hint: object, default: object, scope: Scope) -> Setting:
    optional, row = False, None
    while True:
        if get_origin(hint) is Annotated:
            hint, *metadata = get_args(hint)
            row = next((item for item in metadata if isinstance(item, Row)), row)
            continue
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        if get_origin(hint) not in (Union, UnionType) or len(kinds) > 1:
            break
        optional, hint = True, kinds[0]
    if row is None:
        raise TypeError(f"{name} has no Row: annotate it as Annotated[..., Row(...)]")
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    return Setting(
        name=name,
        type=str if choices else hint,
        default=None if default is MISSING else default,
        required=default is MISSING,
        optional=optional,
        choices=choices,
        scope=row.scope or scope,
        row=row,
    )


def as_text(value: object) -> str | None:
    """Return a value as Kafka writes it in configs, such as ``true`` or ``0.5``; None for None."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
