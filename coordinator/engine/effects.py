"""What goes into the core and what comes out of it: requests in, effects out, both plain data.

The order of effects is the order in which things happened; a Reply that depends on records is only there
after the shard was told that they were appended, so whoever carries effects out needs no rules of his own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from ...offsets_topic import Record
from ...protocol import RequestContext


@dataclass(slots=True, eq=False)
class Request:
    """A decoded request. ``handle`` comes back in its Reply, once; the core never looks at it."""

    api_key: int
    version: int
    body: Any
    context: RequestContext
    handle: Any


@dataclass(slots=True)
class Append:
    """Write these records together, then tell the shard ``appended`` or ``append_failed`` with the ticket."""

    ticket: int
    records: tuple[Record, ...]


@dataclass(slots=True)
class Reply:
    """Send this body to the sender of a request."""

    handle: Any
    body: Any


@dataclass(slots=True)
class Note:
    """Something worth knowing happened; the kinds are in ``insight``. ``group`` is "" where none is meant.

    ``timestamp_ms`` and ``sequence`` are given when it is told: the time, and its number in the history of
    its group, 0 where none is kept. ``level`` is what a log takes it for.
    """

    level: ClassVar[Literal["debug", "info", "warning"]] = "info"

    group: str
    sequence: int = field(default=0, kw_only=True, compare=False)
    timestamp_ms: int = field(default=0, kw_only=True, compare=False)


Effect: TypeAlias = Append | Reply | Note
