"""Assignors by name: kohort's own, and those that installed distributions register as entry points.

A distribution registers an assignor in its pyproject.toml, under the name that goes over the wire:

    [project.entry-points."kohort.assignors"]
    tenants = "mypackage.assignors:TenantAssignor"

Options of its constructor may follow the name: ``cooperative-sticky?slack=2``. Entry points are read only
when a name is asked for that is not kohort's own.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ..protocol import KohortError
from ._range_and_roundrobin import RangeAssignor, RoundRobinAssignor
from ._sticky import CooperativeStickyAssignor, StickyAssignor
from ._weighted import BalancedByWeightAssignor
from .base import Assignor, RebalanceProtocol

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "kohort.assignors"

_KINDS: tuple[type[Assignor], ...] = (
    *(RangeAssignor, RoundRobinAssignor, StickyAssignor),
    *(CooperativeStickyAssignor, BalancedByWeightAssignor),
)
_OWN: dict[str, type[Assignor]] = {assignor.name: assignor for assignor in _KINDS}

#: A name travels as a string with an int16 length.
_MAX_NAME_BYTES = 0x7FFF


class AssignorError(KohortError):
    """An assignor cannot be found or used. The text says which one, where it came from and what to do."""


def load_assignor(spec: str | type[Assignor] | Assignor) -> Assignor:
    """Return an assignor for one consumer.

    ``spec``: a name (kohort's own or of an entry point), a dotted name (``package.module.Class`` or
    ``package.module:Class``), a class, or an instance. An instance is returned as it is; everything else
    makes a new instance, since assignors keep state that two consumers must not share. Options of the
    constructor may follow a name or a dotted name: ``NAME?option=value,option=value``, with values in JSON or
    as plain text. Raises AssignorError.
    """
    if not isinstance(spec, str):
        return _check_candidate(spec, _Origin("", spec), {})
    name, _, text = spec.partition("?")
    options = _parse_options(spec, text)
    if name in _OWN:
        return _check_candidate(_OWN[name], "", options)
    points = [point for point in _foreign_points() if point.name == name]
    if not points and (":" in name or "." in name):
        candidate = _import_spec(name)
        return _check_candidate(candidate, _Origin(name, candidate), options)
    return _from_entry_point(name, points, options)


def _parse_options(spec: str, text: str) -> dict[str, object]:
    """Parse ``slack=2,weights=lag``: a value that is not JSON is text."""
    options: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        option, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not option.isidentifier() or option in options:
            raise AssignorError(f"assignor {spec!r}: write its options as NAME?option=value,option=value")
        try:
            options[option] = json.loads(value)
        except (ValueError, RecursionError):
            options[option] = value
    return options


def available_assignors() -> dict[str, str]:
    """Return the names that :func:`load_assignor` finds and the distribution of each, sorted by name."""
    found = {point.name: _origin_of(point) for point in _foreign_points()}
    found.update(dict.fromkeys(_OWN, "kohort"))
    return dict(sorted(found.items()))


def _from_entry_point(name: str, points: list[EntryPoint], options: Mapping[str, object]) -> Assignor:
    if not points:
        known = ", ".join(available_assignors())
        raise AssignorError(
            f"no assignor is named {name!r}. Available: {known}. Install the distribution that has it, "
            "or give 'package.module.Class', a class or an instance"
        )
    if len(points) > 1:
        origins = " and ".join(sorted(_origin_of(point) for point in points))
        raise AssignorError(
            f"assignor {name!r} comes from {origins}: uninstall one, or give the class itself"
        )
    [point] = points
    origin = f" ({point.value}, from {_origin_of(point)})"
    try:
        loaded = point.load()
    except Exception as error:
        raise AssignorError(f"assignor {name!r}{origin} cannot be imported: {error!r}") from error
    assignor = _check_candidate(loaded, origin, options)
    if assignor.name != name:
        raise AssignorError(
            f"assignor {name!r}{origin} calls itself {assignor.name!r}: give the entry point and the class "
            "the same name, for that is what the group's members compare"
        )
    return assignor


def _foreign_points() -> list[EntryPoint]:
    # imported late: it takes a tenth of kohort's start, and most consumers use one of kohort's assignors
    from importlib.metadata import entry_points

    # other distributions cannot replace kohort's own assignors
    return [point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name not in _OWN]


def _origin_of(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


def _import_spec(spec: str) -> object:
    module, _, attribute = spec.partition(":") if ":" in spec else spec.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # importing runs foreign code, which may raise anything
        reason = error if isinstance(error, ImportError | AttributeError) else repr(error)
        raise AssignorError(f"assignor {spec!r} cannot be imported: {reason}") from error


@cache
def _top_level_packages(_: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Distributions by top-level package. Reading them all takes a second, so it is cached by search path."""
    from importlib.metadata import packages_distributions

    return packages_distributions()


class _Origin:
    """Origin of a candidate as the text of an error; looked up only when the text is needed."""

    def __init__(self, spec: str, candidate: object) -> None:
        self._spec = spec
        self._class = candidate if isinstance(candidate, type) else type(candidate)

    def __str__(self) -> str:
        from importlib.metadata import version

        package = self._class.__module__.partition(".")[0]
        found = [f"{name} {version(name)}" for name in _top_level_packages(tuple(sys.path)).get(package, ())]
        words = [self._spec] * bool(self._spec) + [f"from {name}" for name in sorted(set(found))]
        return f" ({', '.join(words)})" if words else ""


def _check_candidate(candidate: object, origin: str | _Origin, options: Mapping[str, object]) -> Assignor:
    """Return ``candidate``, or a new instance of it, after checking that a consumer can use it."""
    if isinstance(candidate, type) and issubclass(candidate, Assignor):
        assignor = _make_assignor(candidate, origin, options)
    elif isinstance(candidate, Assignor):
        if options:
            raise AssignorError(f"{candidate!r}{origin} is made already: options are for names of classes")
        assignor = candidate
    else:
        raise AssignorError(
            f"{candidate!r}{origin} is no assignor: derive a class from kohort.assignors.Assignor "
            "and give that class, its name or an instance"
        )
    if (wrong := _wrong_with(assignor)) is not None:
        raise AssignorError(f"{type(assignor).__name__}{origin}{wrong}")
    return assignor


def _make_assignor(cls: type[Assignor], origin: str | _Origin, options: Mapping[str, object]) -> Assignor:
    try:
        return cls(**options)
    except Exception as error:
        if options:
            given = ", ".join(f"{option}={value!r}" for option, value in options.items())
            raise AssignorError(f"{cls.__name__}{origin} cannot be made with {given}: {error}") from error
        raise AssignorError(
            f"{cls.__name__}{origin} cannot be made without arguments: {error}. "
            "Implement assign(), give the arguments defaults, or pass an instance"
        ) from error


def _wrong_with(assignor: Assignor) -> str | None:
    """Return why a consumer cannot use the assignor, with advice; None if it can."""
    name, version, protocols = getattr(assignor, "name", None), assignor.version, assignor.rebalance_protocols
    if not isinstance(name, str) or not 0 < _size_on_the_wire(name) <= _MAX_NAME_BYTES:
        return f" has name = {name!r}: set it to the text that goes over the wire"
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        return f" has version = {version!r}: set it to a whole number"
    usable = isinstance(protocols, frozenset | set) and protocols
    if not usable or not all(isinstance(protocol, RebalanceProtocol) for protocol in protocols):
        return (
            f" has rebalance_protocols = {protocols!r}: set it to a frozenset of RebalanceProtocol.EAGER, "
            "RebalanceProtocol.COOPERATIVE or both"
        )
    for method, arguments in (("assign", 2), ("user_data", 1), ("on_assignment", 2)):
        function = getattr(assignor, method)
        try:
            inspect.signature(function).bind(*range(arguments))
        except TypeError as error:
            words = f"is called with {arguments} arguments, which its signature does not allow ({error})"
            return f": {method}() {words}"
        if inspect.iscoroutinefunction(function):
            words = "is asynchronous: make it a plain function, the leader calls it without awaiting"
            return f": {method}() {words}"
    return None


def _size_on_the_wire(name: str) -> int:
    """Bytes of the name in UTF-8; 0 if it cannot be encoded, such as a lone surrogate."""
    try:
        return len(name.encode())
    except UnicodeEncodeError:
        return 0
