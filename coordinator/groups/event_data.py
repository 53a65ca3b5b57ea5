"""Events as plain data, for logs and for the wire."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Final

from ...protocol import ErrorCode
from ..engine.events import CoordinatorEvent
from .events import CausedEvent, GroupEvent, RebalanceCompleted, Refusal
from .history import KeptEvent

#: Fields that are not details: those of every event, and those in the response to DescribeGroupHistory.
_EVERYWHERE: Final = frozenset({"group", "sequence", "timestamp_ms"})
_ON_THE_WIRE: Final = frozenset({"generation", "cause", "member", "client_id", "client_host"})

#: Most names, and most moves, that details list; fewer if they are long.
MAX_LISTED: Final = 200

#: Most bytes of details as JSON: a string on the wire has room for 32,767.
MAX_BYTES: Final = 32_000


def event_fields(event: CoordinatorEvent) -> dict[str, object]:
    """The fields that only this kind of event has, without assignments."""
    found = {
        field.name: getattr(event, field.name)
        for field in fields(event)
        if field.repr and field.name not in _EVERYWHERE
    }
    if isinstance(event, CausedEvent):
        found["cause_kind"] = event.cause_kind.value
    if isinstance(event, Refusal):
        found["error"] = ErrorCode(event.error_code).name
        found["error_code"] = int(event.error_code)
    return found


def details_json(entry: KeptEvent) -> str:
    """The fields that DescribeGroupHistory has no field for, as a JSON object."""
    found = _details_of(entry.event)
    if entry.count > 1:
        found |= {"count": entry.count, "first_ms": entry.first_ms}
    if not isinstance(entry.event, RebalanceCompleted) or entry.event.after is None:
        return _to_json(found)
    return _with_moves(found, entry.event)


def recorded_json(event: GroupEvent, most_members: int) -> tuple[str, str]:
    """As ``details_json``, in two parts: what is kept for long, and joined and left members with moves, which
    are "" in a group with more members: they take long to find.
    """
    if not isinstance(event, RebalanceCompleted):
        return _to_json(_details_of(event)), ""
    if max(event.members, event.members_before) > most_members:
        event = replace(event, before=None, after=None)
    extras = "" if event.after is None else _with_moves({}, event)
    return _to_json(_details_of(event)), extras


def _details_of(event: GroupEvent) -> dict[str, object]:
    found = {name: value for name, value in event_fields(event).items() if name not in _ON_THE_WIRE}
    if isinstance(event, RebalanceCompleted):
        found |= {"partitions_moved": event.partitions_moved, "partitions_total": event.partitions_total}
    return found


def _with_moves(found: dict[str, object], event: RebalanceCompleted) -> str:
    joined, left, moves = event.joined(), event.left(), event.moves()
    listed = MAX_LISTED
    while True:
        text = _to_json({**found, "joined": joined[:listed], "left": left[:listed], "moves": moves[:listed]})
        if len(text) <= MAX_BYTES or not listed:
            return text
        listed //= 2


def _to_json(found: dict[str, object]) -> str:
    return json.dumps(found, separators=(",", ":"))
