"""Values by type: who gets what, in which order, and what is said when nobody provides it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kohort.consumer import Record
from kohort.service import ConsumerService
from kohort.service.handlers.dependencies import (
    check_lifespans,
    choose_type,
    enter_lifespans,
    fill_arguments,
    make_lifespan,
    wanted_parameters,
)


class Database:
    def __init__(self, name: str) -> None:
        self.name = name


class Postgres(Database):
    pass


class Cache:
    pass


def handler(record: Record, db: Database, cache: Cache | None = None, *, limit: int = 3) -> None: ...


def test_parameters_behind_the_record_are_wanted_by_their_types() -> None:
    wants = [(want.parameter, want.type, want.optional) for want in wanted_parameters("handler", handler, 1)]
    assert wants == [("db", Database, False), ("limit", int, True)]


def test_a_subclass_fills_a_parameter_and_what_nobody_gives_keeps_its_default() -> None:
    value = Postgres("orders")
    assert fill_arguments("handler", wanted_parameters("handler", handler, 1), {Postgres: value}) == {
        "db": value
    }


@pytest.mark.parametrize(
    ("provided", "text"),
    [
        ([], "asks for db: Database, which nobody provides: service.provide"),
        ([Postgres, type("Sqlite", (Database,), {})], "may be any of Postgres, Sqlite"),
    ],
)
def test_what_cannot_be_filled_is_said_with_the_way_out(provided: list[type], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        choose_type("handler", wanted_parameters("handler", handler, 1)[0], provided)


def _unannotated(record: Record, db) -> None: ...  # type: ignore[no-untyped-def]


def _unresolvable(record: Record, db: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "text"),
    [(_unannotated, "'db' is filled by type"), (_unresolvable, "an annotation cannot be resolved")],
)
def test_a_handler_that_cannot_be_filled_by_type_is_refused_when_registered(
    function: Callable[..., Any], text: str
) -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    with pytest.raises(TypeError, match=text):
        service.handler("orders")(function)


async def test_what_is_missing_is_said_before_anything_connects() -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    service.handler("orders")(handler)
    with pytest.raises(TypeError, match="asks for db: Database, which nobody provides"):
        await service.serve()


def _no_generator() -> AsyncIterator[Database]:
    raise AssertionError("never called")


async def _says_nothing():  # type: ignore[no-untyped-def]
    yield Database("x")


async def _yields_a_union() -> AsyncIterator[Database | None]:
    yield None


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_no_generator, "is no generator"),
        (_says_nothing, "does not say what it yields"),
        (_yields_a_union, "is no class that a handler could ask for"),
    ],
)
def test_a_lifespan_that_cannot_be_used_is_refused(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make_lifespan(function)


async def test_lifespans_open_in_order_and_close_in_reverse_and_know_each_other() -> None:
    log: list[str] = []

    async def database() -> AsyncIterator[Database]:
        log.append("open db")
        yield Database("orders")
        log.append("close db")

    def cache(db: Database) -> Iterator[Cache]:
        log.append(f"open cache over {db.name}")
        yield Cache()
        log.append("close cache")

    lifespans = [make_lifespan(database), make_lifespan(cache)]
    assert check_lifespans(lifespans, []) == {Database, Cache}
    async with AsyncExitStack() as stack:
        values = await enter_lifespans(stack, lifespans, {})
        assert {kind.__name__ for kind in values} == {"Database", "Cache"}
    assert log == ["open db", "open cache over orders", "close cache", "close db"]
    with pytest.raises(TypeError, match="asks for db"):
        check_lifespans(reversed(lifespans), [])
    with pytest.raises(TypeError, match="a Database is provided already"):
        check_lifespans(lifespans, [Database])


def test_a_type_is_provided_once() -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    service.provide(Postgres("orders"), as_type=Database)
    with pytest.raises(ValueError, match="there is a Database already"):
        service.provide(Database("other"))
    with pytest.raises(TypeError, match="is no Cache"):
        service.provide(Database("other"), as_type=Cache)
