"""What the coordinator tells about itself: one typed note for each thing that happens.

Nobody has to listen, so a note costs little to make: the moves of a rebalance are only worked out when asked
for, and only then are members' assignments looked into, and only for the protocol type "consumer".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..protocol import MalformedMessageError, TopicPartition, decode_assignment
from .effects import Note

# a rebalance that keeps starting over keeps its first reasons
_MAX_CAUSES = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a rebalance starts: in words, and the member it is about ("" if about none)."""

    text: str
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""


@dataclass(slots=True, eq=False)
class RebalanceTrace:
    """A rebalance under way. ``assignments`` are those it ends, by owner (instance id, or member id)."""

    causes: list[Cause]
    started_ms: int
    members_before: int
    assignments: dict[str, bytes]
    joined_ms: int | None = None

    def add(self, cause: Cause) -> None:
        """It starts over, for another reason."""
        if len(self.causes) < _MAX_CAUSES:
            self.causes.append(cause)


@dataclass(slots=True)
class RebalanceStarted(Note):
    """A group begins to collect its members; ``generation`` is the one that ends."""

    generation: int
    cause: str
    member: str


@dataclass(slots=True)
class RebalanceNote(Note):
    """A rebalance is over: the generation is Stable, or Empty with ``members`` 0.

    ``duration_ms`` runs from the first cause to here; ``join_ms`` of it until all had joined.
    ``before`` and ``after`` are assignments by owner (instance id, or member id).
    """

    generation: int
    cause: str
    member: str
    client_id: str
    client_host: str
    members: int
    members_before: int
    protocol_type: str
    protocol: str
    duration_ms: int
    join_ms: int
    before: dict[str, bytes] = field(repr=False)
    after: dict[str, bytes] = field(repr=False)
    _counted: tuple[int, int] | None = field(default=None, repr=False, compare=False)

    @property
    def partitions_moved(self) -> int:
        """Partitions given to an owner that did not have them before; 0 for types other than "consumer"."""
        return self._count()[0]

    @property
    def partitions_total(self) -> int:
        """Partitions that have an owner now; 0 for types other than "consumer"."""
        return self._count()[1]

    def _count(self) -> tuple[int, int]:
        if self._counted is None:
            self._counted = _moves(self.before, self.after) if self.protocol_type == "consumer" else (0, 0)
        return self._counted


@dataclass(slots=True)
class MemberJoined(Note):
    """A member was taken in."""

    generation: int
    member: str
    instance_id: str | None
    client_id: str
    client_host: str


@dataclass(slots=True)
class MemberGone(Note):
    """A member was removed; ``reason`` says why, in words."""

    generation: int
    member: str
    instance_id: str | None
    client_id: str
    client_host: str
    reason: str


@dataclass(slots=True)
class MemberReplaced(Note):
    """A static member came back under a new id; the old one is fenced."""

    generation: int
    instance_id: str
    old_member: str
    member: str
    client_host: str


@dataclass(slots=True)
class CommitRefused(Note):
    """A whole OffsetCommit was refused with ``error_code``."""

    member: str
    generation: int
    error_code: int


@dataclass(slots=True)
class GroupRemoved(Note):
    """A group is gone with its offsets."""

    reason: str


@dataclass(slots=True)
class OffsetsRemoved(Note):
    """Offsets of a group were removed: expired, deleted, or their topic was."""

    count: int
    reason: str


@dataclass(slots=True)
class AppendRefused(Note):
    """The log did not take records; ``error_code`` is what it said."""

    error_code: int


@dataclass(slots=True)
class RecordSkipped(Note):
    """A record of the offsets topic could not be read and was left out."""

    partition: int
    offset: int
    reason: str


@dataclass(slots=True)
class ShardLoaded(Note):
    """A partition of the offsets topic was read back."""

    partition: int
    records: int
    skipped: int
    groups: int
    duration_ms: int


def _moves(before: dict[str, bytes], after: dict[str, bytes]) -> tuple[int, int]:
    total = moved = 0
    for owner, data in after.items():
        owned = _partitions(data)
        total += len(owned)
        moved += len(owned - _partitions(before.get(owner, b"")))
    return moved, total


def _partitions(assignment: bytes) -> frozenset[TopicPartition]:
    try:
        return frozenset(decode_assignment(assignment).partitions)
    except MalformedMessageError:
        return frozenset()
