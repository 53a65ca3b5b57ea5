"""Error responses in the shape of their API: the error is at the top level, or else in each element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from ...protocol import ErrorCode, response_type, struct_arrays

#: First and last version: every one.
_ALWAYS: Final = (0, 32_767)


#: Makes fields of a response from a request's body, its version and an error.
MakeFields: TypeAlias = Callable[[Any, int, ErrorCode], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Level:
    """One array of the request and the array of the response that mirrors it.

    ``copied`` maps request fields to response fields; "" is the element itself. ``fixed`` are other fields of
    an element with an error, ``for_null`` replaces copied values that are null.
    """

    request: str
    response: str
    copied: Mapping[str, str]
    fixed: Mapping[str, object] = field(default_factory=dict)
    for_null: Mapping[str, object] = field(default_factory=dict)
    #: The field of an element that has the error.
    error: str = "error_code"


def same_fields(*names: str) -> dict[str, str]:
    """Fields with the same name in request and response."""
    return {name: name for name in names}


TOPICS_BY_NAME: Final = Level("topics", "topics", same_fields("name"))
PARTITIONS: Final = Level("partitions", "partitions", same_fields("partition_index"))


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """The places of an error in the responses of an API.

    ``top`` are the first and last version with an error at the top, None if no version has one; ``levels``
    the arrays that lead to the elements with an error, from the outermost one, by the first version that has
    them. ``fields`` makes further fields of the response from the request's body, its version and the error.
    """

    top: tuple[int, int] | None = None
    levels: Mapping[int, tuple[Level, ...]] = field(default_factory=dict)
    fields: MakeFields | None = None

    def arrays(self, version: int) -> tuple[str, str]:
        """The names of the outermost array of a request and of the one that answers it."""
        level = self._levels_of(version)[0]
        return level.request, level.response

    def elements(self, key: int, version: int, items: Iterable[object], code: ErrorCode) -> list[object]:
        """Elements for the outermost array of the answer, with ``code`` for these of the request."""
        levels = self._levels_of(version)
        source = SimpleNamespace(**{levels[0].request: items})
        return _mirror_fields(response_type(key), source, levels, code)[levels[0].response]

    def answer(self, key: int, version: int, body: object, code: ErrorCode) -> Any:
        """The response body with ``code`` for all of a request."""
        response = response_type(key)
        fields = {} if self.fields is None else self.fields(body, version, code)
        if self.top is not None and self.top[0] <= version <= self.top[1]:
            return response(error_code=code, **fields)
        if self.levels:
            return response(**_mirror_fields(response, body, self._levels_of(version), code))
        return response(**fields)

    def _levels_of(self, version: int) -> tuple[Level, ...]:
        return self.levels[max(first for first in self.levels if first <= version)]


#: One error, at the top of every version.
AT_TOP: Final = ErrorShape(top=_ALWAYS)


def at_top(fields: MakeFields, *levels: Level) -> ErrorShape:
    """An error at the top of every version, with further fields; its elements can carry one, too."""
    return ErrorShape(_ALWAYS, {0: levels} if levels else {}, fields)


def in_elements(*levels: Level) -> ErrorShape:
    """An error in each element; ``levels`` lead to them, from the outermost array."""
    return ErrorShape(levels={0: levels})


def _mirror_fields(
    message: type, source: object, levels: tuple[Level, ...], code: ErrorCode
) -> dict[str, list[Any]]:
    level, rest = levels[0], levels[1:]
    element_type = struct_arrays(message)[level.response]
    elements = []
    for item in getattr(source, level.request) or ():
        values = {to: getattr(item, name) if name else item for name, to in level.copied.items()}
        values |= {to: value for to, value in level.for_null.items() if values[to] is None}
        values |= level.fixed
        if rest:
            values |= _mirror_fields(element_type, item, rest, code)
        else:
            values[level.error] = code
        elements.append(element_type(**values))
    return {level.response: elements}
