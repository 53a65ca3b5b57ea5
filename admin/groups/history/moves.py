"""Partitions that change owners between two states of a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....protocol import TopicPartition
from ..results import PartitionMove

#: Owners and what they hold; the value is None where it cannot be read.
Owned = dict[str, frozenset[TopicPartition] | None]


def moves_between(before: Owned, after: Owned) -> tuple[PartitionMove, ...] | None:
    """Partitions that moved between two generations; None when an assignment cannot be read."""
    old, new = _owners_of(before), _owners_of(after)
    if old is None or new is None:
        return None
    return tuple(
        PartitionMove(*partition, old.get(partition), new.get(partition))
        for partition in sorted({*old, *new})
        if old.get(partition) != new.get(partition)
    )


def shared_moves_between(before: Owned, after: Owned) -> tuple[PartitionMove, ...] | None:
    """Partitions that a member of a share group got or lost, where others may have them too; None when an
    assignment cannot be read.
    """
    if None in before.values() or None in after.values():
        return None
    found: list[PartitionMove] = []
    for owner in sorted({*before, *after}):
        old, new = before.get(owner) or frozenset(), after.get(owner) or frozenset()
        found += [PartitionMove(*place, owner, None) for place in old - new]
        found += [PartitionMove(*place, None, owner) for place in new - old]
    return tuple(sorted(found, key=lambda move: (move.topic, move.partition)))


def compose_moves(steps: Iterable[Sequence[PartitionMove]]) -> tuple[PartitionMove, ...]:
    """The moves of several steps as those of one: from the first owner to the last."""
    first: dict[TopicPartition, str | None] = {}
    last: dict[TopicPartition, str | None] = {}
    for moves in steps:
        for move in moves:
            place = TopicPartition(move.topic, move.partition)
            first.setdefault(place, move.from_owner)
            last[place] = move.to_owner
    return tuple(
        PartitionMove(*place, first[place], last[place])
        for place in sorted(first)
        if first[place] != last[place]
    )


def _owners_of(owned: Owned) -> dict[TopicPartition, str] | None:
    if None in owned.values():
        return None
    return {partition: owner for owner, partitions in owned.items() for partition in partitions or ()}
