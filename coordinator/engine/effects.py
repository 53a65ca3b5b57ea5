"""Requests, which go into a shard, and effects, which come out of it: both are plain data.

Effects are carried out in their order. A Reply that depends on records appears only after the shard was told
that they are appended, so the code that carries out effects needs no rules of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...protocol import ErrorCode, RequestContext
from ...protocol.named_tuples import NamedTuple
from .events import CoordinatorEvent

#: Producer id and epoch of records that belong to no transaction.
NO_PRODUCER = -1


@dataclass(slots=True, eq=False)
class Request:
    """A decoded request. Its one Reply has the same ``handle``, which the shard never looks at. If somebody
    waits for what it brings (``awaited``), the Reply comes before others that the same step gives out.
    """

    api_key: int
    version: int
    body: Any
    context: RequestContext
    handle: Any
    awaited: bool = False


class EndMarker(NamedTuple):
    """The end of a producer's transaction; the epoch is that of the transaction's coordinator."""

    committed: bool
    coordinator_epoch: int


@dataclass(slots=True, eq=False)
class Append:
    """Write these records as one, then tell the shard ``appended`` or ``append_failed`` with the ticket.

    With a producer id the records are part of that producer's transaction. A ``marker`` ends the transaction
    instead; then there are no records. A ``lazy`` append may wait a moment for others. The other fields are
    the shard's own: see :meth:`.shard.Shard.append`. If one append fails, later ones may fail with it: check
    ``Shard.awaits`` before writing each.
    """

    ticket: int
    records: tuple[Any, ...]
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    marker: EndMarker | None = None
    key: str | None = None
    then: Callable[[ErrorCode, int], None] | None = None
    answers: tuple[tuple[Request, object], ...] = ()
    undo: Callable[[int], None] | None = None
    lazy: bool = False


class Reply(NamedTuple):
    """Send this body to the sender of a request."""

    handle: Any
    body: Any


@dataclass(slots=True, eq=False)
class Command:
    """An action outside of the shard, carried out by the owner of the runtime, who reports the result in a
    step on the shard. Its content depends on the kind of coordinator; two are never equal.
    """


Effect: TypeAlias = Append | Reply | CoordinatorEvent | Command
