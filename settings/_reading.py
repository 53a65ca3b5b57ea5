"""Reading of the settings that a user gives. Errors name the setting, its value and the allowed values.

pydantic checks the values. Importing it takes longer than everything else a broker does until it serves, so
values that are obviously right, such as ``1000`` for a whole number, are read without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ..protocol import KohortError
from ..protocol.named_tuples import NamedTuple
from ._table import Scope, Setting, as_text, is_unchecked, settings_of

Table = TypeVar("Table")

_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_PLAIN_WHOLE: Final = re.compile(r"-?\d{1,19}", re.ASCII)
#: Converters of plain texts, by type.
_PLAIN: Final[dict[object, Callable[[str], object]]] = {int: int, bool: "true".__eq__, str: str}

_adapters: dict[type[Any], Any] = {}
_named: dict[type[object], dict[str, str]] = {}


class Fallback(NamedTuple):
    """Settings for fields that are not given: the values, and the source of each (a variable or a file)."""

    values: Mapping[str, object]
    origins: Mapping[str, str]


NO_FALLBACK: Final = Fallback({}, {})


class SettingsError(KohortError, ValueError):
    """A setting has an unknown name or a value that is not allowed."""


def read_settings(
    cls: type[Table],
    given: Mapping[str, object],
    error: type[KohortError] = SettingsError,
    fallback: Fallback = NO_FALLBACK,
) -> Table:
    """Create a ``cls`` from ``given``: names as its users write them, values as text or typed.

    ``fallback`` has values for settings that are not given. Raises ``error``, whose message has a clause for
    each wrong name or value.
    """
    if not given and not fallback.values and is_unchecked(cls):
        return cls()
    values, wrong = _by_field(cls, given)
    further = not_overridden(values, fallback.values)
    origins = sorted({fallback.origins[field] for field in further})
    values = {**further, **values}
    known = settings_of(cls)
    if (
        not wrong
        and is_unchecked(cls)
        and all(is_plain(known[name], value) for name, value in values.items())
    ):
        return cls(**{name: _PLAIN[known[name].type](value) for name, value in values.items()})
    made, refused = _validate_values(cls, values)
    if wrong or refused:
        words = "; ".join(dict.fromkeys(wrong + refused))
        raise error(f"{words} (settings also come from {', '.join(origins)})" if origins else words)
    return made


def not_overridden(given: Mapping[str, object], further: Mapping[str, object]) -> dict[str, object]:
    """Return those of the ``further`` settings that the ``given`` ones leave in force, by field.

    A given security protocol without SASL, or without TLS, drops ``further`` settings of that kind. A given
    TLS context or token function replaces all ``further`` TLS or OAUTHBEARER settings.
    """
    void: tuple[str, ...] = ()
    if isinstance(protocol := given.get("security_protocol"), str):
        void += () if protocol.startswith("SASL") else ("sasl_",)
        void += () if "SSL" in protocol else ("ssl_",)
    void += () if given.get("ssl_context") is None else ("ssl_",)
    void += () if given.get("sasl_oauth_token_provider") is None else ("sasl_oauth_",)
    return {name: value for name, value in further.items() if name not in given and not name.startswith(void)}


def is_plain(setting: Setting, value: object) -> bool:
    """Return whether ``value`` is a text that obviously is allowed. False if only pydantic can tell."""
    row = setting.row
    if not isinstance(value, str) or row.allowed or setting.type not in _PLAIN:
        return False
    if setting.choices:
        return value in setting.choices
    if setting.type is bool:
        return value in ("true", "false")
    if setting.type is str:
        return len(value) >= (row.shortest or 0) and (row.longest is None or len(value) <= row.longest)
    return (
        _PLAIN_WHOLE.fullmatch(value) is not None
        and (row.least is None or row.least <= int(value))
        and (row.most is None or int(value) <= row.most)
    )


def _by_field(cls: type[Any], given: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """Return values by field name, and a clause for each wrong name.

    If a setting is given by two of its names, the last one counts in files and on command lines; in Python it
    is an error.
    """
    scope: Scope = cls.SCOPE
    fields = _field_names(cls)
    values: dict[str, object] = {}
    given_as: dict[str, str] = {}
    wrong = []
    for name, value in given.items():
        field = fields.get(_key_of(scope, name))
        if field is None:
            wrong.append(_unknown_text(name, fields, cls))
        elif field in values and scope.names == "python":
            wrong.append(f"{given_as[field]} and {name} are the same setting: give one of them")
        else:
            values[field], given_as[field] = value, name
    return values, wrong


def _field_names(cls: type[Any]) -> dict[str, str]:
    """Field names by every name that users may write."""
    if cls not in _named:
        scope: Scope = cls.SCOPE
        every = settings_of(cls).values()
        _named[cls] = {_key_of(scope, name): one.name for one in every for name in one.names(scope)}
    return _named[cls]


def _key_of(scope: Scope, name: str) -> str:
    if scope.names == "spark":
        return name.lower()
    return name.replace(".", "_") if scope.names == "kafka" else name


def _unknown_text(name: str, fields: Mapping[str, str], cls: type[Any]) -> str:
    import difflib

    scope: Scope = cls.SCOPE
    near = difflib.get_close_matches(_key_of(scope, name), fields, n=1, cutoff=0.6)
    if near:
        hint = f"did you mean {settings_of(cls)[fields[near[0]]].shown_name(scope)}?"
    else:
        hint = f"{scope.page} lists them all"
    shown = name.replace("_", ".") if scope.names == "kafka" else name
    return f"{shown} is no {scope.noun}: {hint}"


def _validate_values(cls: type[Table], values: Mapping[str, object]) -> tuple[Table, list[str]]:
    """Return an instance of ``cls``, and a clause for each refused value."""
    from pydantic import TypeAdapter, ValidationError

    if cls not in _adapters:
        _adapters[cls] = TypeAdapter(cls)
    scope: Scope = cls.SCOPE  # type: ignore[attr-defined]
    known = settings_of(cls)
    refused = []
    if scope.names == "kafka":
        fractions = [name for name, value in values.items() if _is_fraction(known[name], value)]
        refused = [_not_allowed(known[name], values[name], scope) for name in fractions]
    try:
        made: Any = _adapters[cls].validate_python(dict(values))
    except ValidationError as error:
        made = None
        refused += [_refusal_clause(known, problem, scope) for problem in error.errors(include_url=False)]
    return made, refused


def _is_fraction(setting: Setting, value: object) -> bool:
    """Return whether a text is not a whole number for Kafka; pydantic would accept 1.0."""
    return setting.type is int and isinstance(value, str) and not _WHOLE.fullmatch(value.strip())


def _refusal_clause(known: Mapping[str, Setting], problem: Mapping[str, Any], scope: Scope) -> str:
    """Return the clause for one of pydantic's errors; an error of the table as a whole has no ``loc``."""
    text = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return text
    field, *inner = problem["loc"]
    setting = known[str(field)]
    if problem["type"] == "missing":
        instead = (
            f"give it, or set KOHORT_{setting.name.upper()}" if setting.row.client else "it has no default"
        )
        return f"{setting.shown_name(scope)} is missing: {instead}"
    own_words = problem["type"] in ("value_error", "assertion_error")
    if setting.allowed_values and not own_words and (not inner or setting.row.allowed):
        return _not_allowed(setting, problem["input"], scope)
    name = ".".join([setting.shown_name(scope), *map(str, inner)])
    return f"{name}={_show_value(setting, problem['input'], scope)}: {text}"


def _not_allowed(setting: Setting, value: object, scope: Scope) -> str:
    shown = _show_value(setting, value, scope)
    return f"{setting.shown_name(scope)}={shown} is not allowed: it must be {setting.allowed_values}"


def _show_value(setting: Setting, value: object, scope: Scope) -> str:
    if setting.row.sensitive:
        return "(hidden)"
    return str(as_text(value)) if scope.names == "kafka" else repr(value)
