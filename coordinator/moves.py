"""Which partitions change hands between two assignments of a group.

Assignments are bytes by owner, as leaders send them. Those that cannot be read count as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..protocol import MalformedMessageError, TopicPartition, decode_assignment


class Move(NamedTuple):
    """A partition with its owner before and after, None for none."""

    topic: str
    partition: int
    from_owner: str | None
    to_owner: str | None


def count_moves(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[int, int]:
    """How many partitions were given to an owner that did not have them, and how many have an owner."""
    total = moved = 0
    for owner, data in after.items():
        owned = _partitions(data)
        total += len(owned)
        old = before.get(owner)
        if old != data:
            moved += len(owned - _partitions(old))
    return moved, total


def moves_between(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[Move]:
    """Every partition whose owner is another now, by topic and partition."""
    changed = [owner for owner in {**before, **after} if before.get(owner) != after.get(owner)]
    old = {partition: owner for owner in changed for partition in _partitions(before.get(owner))}
    new = {partition: owner for owner in changed for partition in _partitions(after.get(owner))}
    return [
        Move(*partition, old.get(partition), new.get(partition))
        for partition in sorted({**old, **new})
        if old.get(partition) != new.get(partition)
    ]


def _partitions(assignment: bytes | None) -> frozenset[TopicPartition]:
    if assignment is None:
        return frozenset()
    try:
        return frozenset(decode_assignment(assignment).partitions)
    except MalformedMessageError:
        return frozenset()
