"""The parts of docs/events.md and docs/statemachine.md that are made from the code."""

from __future__ import annotations

from dataclasses import fields
from inspect import getdoc
from typing import get_type_hints

from ..protocol import APIS, ApiKey, ErrorCode
from . import events
from .engine import events as engine_events
from .engine.events import CoordinatorEvent
from .engine.readiness import APPEND_ERRORS, Unready
from .events import GroupEvent
from .shards import OFFSETS_TOPIC


def events_table() -> str:
    """Every kind of event, when it appears, and its own fields."""
    head = "| event | appears when | its own fields | level | share |"
    lines = [_row(kind) for kind in _kinds()]
    return "\n".join((head, "| --- | --- | --- | --- | --- |", *lines))


def fields_table() -> str:
    shared = [*_own(CoordinatorEvent, None), *_own(GroupEvent, CoordinatorEvent)]
    lines = [f"| `{name}` | {kind} |" for name, kind in shared]
    return "\n".join(("| field | type |", "| --- | --- |", *lines))


def unready_table() -> str:
    lines = [
        "| request | " + " | ".join(unready.value for unready in Unready) + " |",
        "| --- " * (1 + len(Unready)) + "|",
    ]
    for key in OFFSETS_TOPIC.apis:
        cells = (_told(key, unready) for unready in Unready)
        lines.append(f"| {APIS[key].name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def append_errors_table() -> str:
    lines = ["| the log says | the client is told |", "| --- | --- |"]
    lines += [f"| {ErrorCode(log).name} | {int(told)} {told.name} |" for log, told in APPEND_ERRORS.items()]
    return "\n".join(lines) + "\n"


def _told(api_key: int, unready: Unready) -> str:
    if api_key == ApiKey.LIST_GROUPS and unready is Unready.NOT_HERE:
        return "0, without its groups"
    error = OFFSETS_TOPIC.unready_error(api_key, unready)
    return f"{int(error)} {error.name}"


def _kinds() -> list[type[CoordinatorEvent]]:
    found = {**vars(events), **vars(engine_events)}.values()
    return [
        kind
        for kind in found
        if isinstance(kind, type) and issubclass(kind, CoordinatorEvent) and not kind.__subclasses__()
    ]


def _row(kind: type[CoordinatorEvent]) -> str:
    when = " ".join((getdoc(kind) or "").split("\n\n")[0].split()).replace("``", "`")
    own = ", ".join(f"`{name}` {type_}" for name, type_ in _own(kind, GroupEvent))
    share = kind.share if issubclass(kind, GroupEvent) else ""
    return f"| `{kind.__name__}` | {when} | {own} | {kind.level} | {share} |"


def _own(kind: type[CoordinatorEvent], base: type[CoordinatorEvent] | None) -> list[tuple[str, str]]:
    known = set() if base is None else {field.name for field in fields(base)}
    types = get_type_hints(kind)
    return [
        (field.name, _type(types[field.name]))
        for field in fields(kind)
        if field.name not in known and not field.name.startswith("_")
    ]


def _type(hint: object) -> str:
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    return name.replace(" | ", " or ")
