"""Settings that a user gives, checked: an error names the key, the value and what is allowed.

The settings are slots dataclasses whose fields are Kafka's config names with underscores for dots and whose
bounds are ``annotated_types`` metadata. pydantic reads both; it is imported when a value is not plainly
right, since its import takes longer than all else a broker does before it serves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le

from ..protocol import KohortError

SettingsT = TypeVar("SettingsT")

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_PLAIN_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)

#: What makes a plain text a value.
_PLAIN: dict[Any, Callable[[str], Any]] = {int: int, bool: "true".__eq__, str: str}

_KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}


_read_off: dict[type[Any], dict[str, Setting]] = {}
_adapters: dict[type[Any], Any] = {}


class SettingsError(KohortError, ValueError):
    """A setting with an unknown name or a value that is not allowed."""


class Doc(NamedTuple):
    """What a setting is for; metadata of its annotation."""

    text: str


class Allowed(NamedTuple):
    """The allowed values in words, where a bound or a choice does not say it; metadata beside a Predicate."""

    text: str


class Secret(NamedTuple):
    """The value is shown to nobody: not in errors, not by DescribeConfigs."""


class Setting(NamedTuple):
    """One field of a settings class, read off its annotation."""

    # tuples: such classes are quicker made than frozen dataclasses, and a start makes these
    name: str
    type: Any
    default: Any
    least: float | None
    most: float | None
    choices: tuple[str, ...]
    optional: bool
    words: str
    doc: str
    secret: bool = False

    @property
    def kafka_name(self) -> str:
        return self.name.replace("_", ".")

    @property
    def allowed(self) -> str:
        """The allowed values in words: ``a whole number from 1 to 2147483647``."""
        if self.words:
            return self.words
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = _KINDS[self.type]
        if self.least is not None and self.most is not None:
            return f"{words} from {self.least} to {self.most}" if self.least != self.most else str(self.least)
        if self.least is not None:
            return f"{words}, at least {self.least}"
        return words if self.most is None else f"{words}, at most {self.most}"


def settings_of(cls: type[Any]) -> dict[str, Setting]:
    """The settings of a class by field name."""
    if cls not in _read_off:
        _read_off[cls] = _settings(cls)
    return _read_off[cls]


def _settings(cls: type[Any]) -> dict[str, Setting]:
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: _setting(field.name, hints[field.name], _default(field)) for field in fields(cls)}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def read_settings(cls: type[SettingsT], given: Mapping[str, Any], what: str = "setting") -> SettingsT:
    """An instance of ``cls`` from names (with dots or underscores) and values (text, or typed).

    Raises SettingsError with one clause for each name or value that is wrong.
    """
    if not given:
        return cls()
    known = settings_of(cls)
    values = {name.replace(".", "_"): value for name, value in given.items()}
    wrong = [_unknown(name, known, what) for name in values if name not in known]
    if not wrong and all(is_plain(known[name], value) for name, value in values.items()):
        return cls(**{name: _PLAIN[known[name].type](value) for name, value in values.items()})
    if not wrong:
        wrong = _wrong_values(cls, values)
    if wrong:
        raise SettingsError("; ".join(wrong))
    return cls(**_validated(cls, values))


def is_plain(setting: Setting, value: object) -> bool:
    """Whether a value is text that is allowed at first sight, as pydantic would say; it decides else."""
    if not isinstance(value, str) or setting.words or setting.type not in _PLAIN:
        return False
    if setting.choices:
        return value in setting.choices
    if setting.type is bool:
        return value in ("true", "false")
    if setting.type is str:
        return True
    return (
        _PLAIN_WHOLE.fullmatch(value) is not None
        and (setting.least is None or setting.least <= int(value))
        and (setting.most is None or int(value) <= setting.most)
    )


def as_text(value: object) -> str | None:
    """A value as Kafka writes it in configs: ``true``, ``0.5``, ``delete,compact``; None for none."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _adapter(cls: type[Any]) -> Any:
    from pydantic import TypeAdapter

    if cls not in _adapters:
        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def _validated(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    instance = _adapter(cls).validate_python(dict(values))
    return {name: getattr(instance, name) for name in values}


def _wrong_values(cls: type[Any], values: Mapping[str, Any]) -> list[str]:
    from pydantic import ValidationError

    known = settings_of(cls)
    wrong = [name for name, value in values.items() if _is_fraction(known[name], value)]
    try:
        _adapter(cls).validate_python(dict(values))
    except ValidationError as error:
        wrong += [str(detail["loc"][0]) for detail in error.errors(include_url=False)]
    return [_not_allowed(known[name], values[name]) for name in dict.fromkeys(wrong)]


def _is_fraction(setting: Setting, value: object) -> bool:
    """pydantic takes 1.0 for a whole number, Kafka does not."""
    return setting.type is int and isinstance(value, str) and not _WHOLE.fullmatch(value.strip())


def _not_allowed(setting: Setting, value: object) -> str:
    shown = "(hidden)" if setting.secret else as_text(value)
    return f"{setting.kafka_name}={shown!s} is not allowed: it must be {setting.allowed}"


def _unknown(name: str, known: Mapping[str, Setting], what: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {known[near[0]].kafka_name}?" if near else "docs/broker.md lists them all"
    return f"{name.replace('_', '.')} is no {what}: {hint}"


def _setting(name: str, hint: Any, default: Any) -> Setting:
    optional = False
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, *rest = get_args(hint)
            metadata += tuple(rest)
        elif get_origin(hint) in (Union, UnionType):
            optional = True
            (hint,) = (part for part in get_args(hint) if part is not NoneType)
        else:
            break
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    return Setting(
        name=name,
        type=str if choices else hint,
        default=default,
        least=next((item.ge for item in metadata if isinstance(item, Ge)), None),  # type: ignore[arg-type]
        most=next((item.le for item in metadata if isinstance(item, Le)), None),  # type: ignore[arg-type]
        choices=choices,
        optional=optional,
        words=next((item.text for item in metadata if isinstance(item, Allowed)), ""),
        doc=next((item.text for item in metadata if isinstance(item, Doc)), ""),
        secret=any(isinstance(item, Secret) for item in metadata),
    )
