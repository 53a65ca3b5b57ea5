"""What a type of groups with records of its own brings: how they are read, written and shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ..protocol import WireReader
from ..protocol.named_tuples import NamedTuple


@runtime_checkable
class GroupRecord(Protocol):
    """A record of a type of groups, or its tombstone."""

    @property
    def group(self) -> str:
        """Id of the group that the record is about."""

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value. Raises ValueError for a too long string, struct.error for a number."""

    def readable(self) -> tuple[str, dict[str, object]]:
        """Return the kind of the record, and its fields by name, for ``kohort log dump``."""


class RecordFormats(NamedTuple):
    """The records of one type of groups. ``types`` are those of their keys; the group follows in each key.
    ``decode`` makes a record from its type, its key behind the type, and its value; it returns None for one
    of an unused type, and raises MalformedMessageError.
    """

    types: tuple[int, ...]
    decode: Callable[[int, WireReader, bytes | None], GroupRecord | None]
