"""Reading settings that a user gives: an error names the setting, its value and what is allowed.

pydantic decides what is allowed. Its import takes longer than all else a broker does before it serves, so
texts that are plainly right are read without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ..protocol import KohortError
from ._table import Scope, Setting, as_text, is_unchecked, settings_of

Table = TypeVar("Table")

_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_PLAIN_WHOLE: Final = re.compile(r"-?\d{1,19}", re.ASCII)
#: Functions that make a value of a plain text.
_PLAIN: Final[dict[Any, Callable[[str], Any]]] = {int: int, bool: "true".__eq__, str: str}

_adapters: dict[type[Any], Any] = {}
_named: dict[type[Any], dict[str, str]] = {}


class Around(NamedTuple):
    """Settings that are not given but set elsewhere, by field, and where each is from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]


NOTHING_AROUND: Final = Around({}, {})


class SettingsError(KohortError, ValueError):
    """A setting with an unknown name or a value that is not allowed."""


def read_settings(
    cls: type[Table],
    given: Mapping[str, Any],
    error: type[KohortError] = SettingsError,
    around: Around = NOTHING_AROUND,
) -> Table:
    """Create a ``cls`` from names, as its users write them, and values, as text or typed.

    ``around`` has what is not given. Raises ``error`` with one clause for each name or value that is wrong.
    """
    if not given and not around.values and is_unchecked(cls):
        return cls()
    values, wrong = _by_field(cls, given)
    further = beside(values, around.values)
    origins = sorted({around.origins[field] for field in further})
    values = {**further, **values}
    known = settings_of(cls)
    if (
        not wrong
        and is_unchecked(cls)
        and all(is_plain(known[name], value) for name, value in values.items())
    ):
        return cls(**{name: _PLAIN[known[name].type](value) for name, value in values.items()})
    made, refused = _validated(cls, values)
    if wrong or refused:
        words = "; ".join(dict.fromkeys(wrong + refused))
        raise error(f"{words} (settings also come from {', '.join(origins)})" if origins else words)
    return made


def beside(given: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``further`` settings that still count beside the ones that are ``given``, by field.

    A given security protocol without SASL, or without TLS, drops ``further`` settings of that kind; a TLS
    context, or a function that returns tokens, replaces all settings of its kind.
    """
    void: tuple[str, ...] = ()
    if isinstance(protocol := given.get("security_protocol"), str):
        void += () if protocol.startswith("SASL") else ("sasl_",)
        void += () if "SSL" in protocol else ("ssl_",)
    void += () if given.get("ssl_context") is None else ("ssl_",)
    void += () if given.get("sasl_oauth_token_provider") is None else ("sasl_oauth_",)
    return {name: value for name, value in further.items() if name not in given and not name.startswith(void)}


def is_plain(setting: Setting, value: object) -> bool:
    """Return whether ``value`` is text that is allowed at first sight, as it is by pydantic."""
    row = setting.row
    if not isinstance(value, str) or row.allowed or setting.type not in _PLAIN:
        return False
    if setting.choices:
        return value in setting.choices
    if setting.type is bool:
        return value in ("true", "false")
    if setting.type is str:
        return True
    return (
        _PLAIN_WHOLE.fullmatch(value) is not None
        and (row.least is None or row.least <= int(value))
        and (row.most is None or int(value) <= row.most)
    )


def _by_field(cls: type[Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values by field name, and a clause for each name that is unknown.

    A file and a command line may spell a name in two ways, and the last one counts; two arguments in Python
    are a mistake.
    """
    scope: Scope = cls.SCOPE
    fields = _fields(cls)
    values: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    wrong = []
    for name, value in given.items():
        field = fields.get(_key(scope, name))
        if field is None:
            wrong.append(_unknown(name, fields, cls))
        elif field in values and scope.names == "python":
            wrong.append(f"{given_as[field]} and {name} are the same setting: give one of them")
        else:
            values[field], given_as[field] = value, name
    return values, wrong


def _fields(cls: type[Any]) -> dict[str, str]:
    """Field names, by all names that they may be given by."""
    if cls not in _named:
        scope: Scope = cls.SCOPE
        every = settings_of(cls).values()
        _named[cls] = {_key(scope, name): one.name for one in every for name in one.names(scope)}
    return _named[cls]


def _key(scope: Scope, name: str) -> str:
    if scope.names == "spark":
        return name.lower()
    return name.replace(".", "_") if scope.names == "kafka" else name


def _unknown(name: str, fields: Mapping[str, str], cls: type[Any]) -> str:
    import difflib

    scope: Scope = cls.SCOPE
    near = difflib.get_close_matches(_key(scope, name), fields, n=1, cutoff=0.6)
    if near:
        hint = f"did you mean {settings_of(cls)[fields[near[0]]].shown_name(scope)}?"
    else:
        hint = f"{scope.page} lists them all"
    shown = name.replace("_", ".") if scope.names == "kafka" else name
    return f"{shown} is no {scope.noun}: {hint}"


def _validated(cls: type[Table], values: Mapping[str, Any]) -> tuple[Table, list[str]]:
    """An instance and no clause, or a clause for each value that is refused."""
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
        refused += [_refused(known, problem, scope) for problem in error.errors(include_url=False)]
    return made, refused


def _is_fraction(setting: Setting, value: object) -> bool:
    """pydantic takes 1.0 for a whole number, Kafka does not."""
    return setting.type is int and isinstance(value, str) and not _WHOLE.fullmatch(value.strip())


def _refused(known: Mapping[str, Setting], problem: Mapping[str, Any], scope: Scope) -> str:
    """Clause of one of pydantic's errors; those of a table as a whole have no place."""
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
    if setting.allowed and not own_words and (not inner or setting.row.allowed):
        return _not_allowed(setting, problem["input"], scope)
    name = ".".join([setting.shown_name(scope), *map(str, inner)])
    return f"{name}={_shown(setting, problem['input'], scope)}: {text}"


def _not_allowed(setting: Setting, value: object, scope: Scope) -> str:
    shown = _shown(setting, value, scope)
    return f"{setting.shown_name(scope)}={shown} is not allowed: it must be {setting.allowed}"


def _shown(setting: Setting, value: object, scope: Scope) -> str:
    if setting.row.sensitive:
        return "(hidden)"
    return str(as_text(value)) if scope.names == "kafka" else repr(value)
