"""Dependency injection by type, for parameters of handlers and lifespans.

All signatures are checked before the service connects: a missing value is one clear SignatureError.
"""

from __future__ import annotations

import inspect
import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from ...client.errors import ConfigError


class SignatureError(ConfigError, TypeError):
    """A handler's or lifespan's signature does not fit the service; raised before it connects."""


_YIELDS = (abc.AsyncIterator, abc.AsyncGenerator, abc.Iterator, abc.Generator)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A parameter to be filled by type; ``optional`` when it has a default."""

    parameter: str
    type: type
    optional: bool


def wanted_parameters(name: str, function: Callable[..., object], given: int) -> tuple[Wanted, ...]:
    """The parameters after the ``given`` first ones. Raises SignatureError for one without a usable type."""
    found = []
    for parameter in _further_parameters(name, function, given):
        optional = parameter.default is not parameter.empty
        annotation = parameter.annotation
        if isinstance(annotation, type) and annotation is not parameter.empty:
            found.append(Wanted(parameter.name, annotation, optional))
        elif not optional:
            raise SignatureError(
                f"{name}: its parameter {parameter.name!r} is filled by type, so annotate it with the "
                "class of a value that service.provide() or a lifespan gives"
            )
    return tuple(found)


def _further_parameters(
    name: str, function: Callable[..., object], given: int
) -> Iterable[inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        if len(inspect.signature(function).parameters) <= given:
            return
        raise SignatureError(f"{name}: an annotation cannot be resolved: {error}") from None
    for index, parameter in enumerate(signature.parameters.values()):
        if index >= given and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield parameter


@dataclass(frozen=True, slots=True)
class Lifespan:
    """A generator around the service's life; ``gives`` is the type of what it yields, None for nothing."""

    name: str
    function: Callable[..., Any]
    gives: type | None
    wants: tuple[Wanted, ...]


def make_lifespan(function: Callable[..., object]) -> Lifespan:
    """Check a lifespan function. Raises SignatureError."""
    name = f"lifespan {getattr(function, '__qualname__', repr(function))}"
    if not inspect.isasyncgenfunction(function) and not inspect.isgeneratorfunction(function):
        raise SignatureError(f"{name} is no generator: yield once, between what opens and what closes")
    return Lifespan(name, function, _yielded_type(name, function), wanted_parameters(name, function, 0))


def _yielded_type(name: str, function: Callable[..., object]) -> type | None:
    try:
        annotation = typing.get_type_hints(function).get("return")
    except NameError as error:
        raise SignatureError(f"{name}: an annotation cannot be resolved: {error}") from None
    if annotation is None or typing.get_origin(annotation) not in _YIELDS:
        raise SignatureError(
            f"{name} does not say what it yields: annotate it, '-> AsyncIterator[Database]', or "
            "'-> AsyncIterator[None]' for nothing"
        )
    given = typing.get_args(annotation)[0]
    if given is None or given is type(None):
        return None
    if not isinstance(given, type):
        raise SignatureError(f"{name} yields {given!r}, which is no class that a handler could ask for")
    return given


def choose_type(name: str, want: Wanted, provided: Iterable[type]) -> type | None:
    """The provided type that fills a parameter; None leaves it to its default. Raises SignatureError."""
    fits = [each for each in dict.fromkeys(provided) if issubclass(each, want.type)]
    if want.type in fits:
        return want.type
    if len(fits) == 1:
        return fits[0]
    if fits:
        names = ", ".join(sorted(each.__name__ for each in fits))
        raise SignatureError(f"{name}: {want.parameter} may be any of {names}: annotate it with one of them")
    if want.optional:
        return None
    raise SignatureError(
        f"{name} asks for {want.parameter}: {want.type.__name__}, which nobody provides: "
        f"service.provide(value), or a lifespan '-> AsyncIterator[{want.type.__name__}]'"
    )


def fill_arguments(name: str, wants: Iterable[Wanted], values: Mapping[type, Any]) -> dict[str, Any]:
    """Arguments by name, from values by type."""
    chosen = {want.parameter: choose_type(name, want, values) for want in wants}
    return {parameter: values[each] for parameter, each in chosen.items() if each is not None}


def check_lifespans(lifespans: Iterable[Lifespan], provided: Iterable[type]) -> set[type]:
    """All provided types. Raises SignatureError for a lifespan that needs a value of a later one."""
    known = set(provided)
    for lifespan in lifespans:
        for want in lifespan.wants:
            choose_type(lifespan.name, want, known)
        if lifespan.gives is not None:
            if lifespan.gives in known:
                raise SignatureError(f"{lifespan.name}: a {lifespan.gives.__name__} is provided already")
            known.add(lifespan.gives)
    return known


async def enter_lifespans(
    stack: AsyncExitStack, lifespans: Iterable[Lifespan], provided: Mapping[type, Any]
) -> dict[type, Any]:
    """Run each up to its yield, in order; the stack runs the rest in reverse order."""
    values = dict(provided)
    for lifespan in lifespans:
        arguments = fill_arguments(lifespan.name, lifespan.wants, values)
        if inspect.isasyncgenfunction(lifespan.function):
            value = await stack.enter_async_context(asynccontextmanager(lifespan.function)(**arguments))
        else:
            value = stack.enter_context(contextmanager(lifespan.function)(**arguments))
        if lifespan.gives is not None:
            values[lifespan.gives] = value
    return values
