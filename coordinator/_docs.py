"""The parts of docs/events.md that are made from the code."""

from __future__ import annotations

from dataclasses import fields
from inspect import getdoc
from typing import get_type_hints

from . import events
from .engine.effects import Note
from .events import GroupEvent


def events_table() -> str:
    """Every kind of event, when it appears, and its own fields."""
    head = "| event | appears when | its own fields | level | share |"
    lines = [_row(kind) for kind in _kinds()]
    return "\n".join((head, "| --- | --- | --- | --- | --- |", *lines))


def fields_table() -> str:
    """The fields that events have in common."""
    shared = [*_own(Note, None), *_own(GroupEvent, Note)]
    lines = [f"| `{name}` | {kind} |" for name, kind in shared]
    return "\n".join(("| field | type |", "| --- | --- |", *lines))


def _kinds() -> list[type[Note]]:
    return [
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, Note) and not kind.__subclasses__()
    ]


def _row(kind: type[Note]) -> str:
    when = " ".join((getdoc(kind) or "").split("\n\n")[0].split()).replace("``", "`")
    own = ", ".join(f"`{name}` {type_}" for name, type_ in _own(kind, GroupEvent))
    share = kind.share if issubclass(kind, GroupEvent) else ""
    return f"| `{kind.__name__}` | {when} | {own} | {kind.level} | {share} |"


def _own(kind: type[Note], base: type[Note] | None) -> list[tuple[str, str]]:
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
