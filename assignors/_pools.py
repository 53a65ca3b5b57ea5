"""Partitions that are alike: the same members want them, and are in their racks or not.

Within a pool it does not matter who has which, only how many: everything about balance, moves and racks is
decided on counts by pool and member, however many partitions there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ._ownership import Piece
from ._group import Group
from .base import Member, TopicInfo


@dataclass(slots=True)
class Pools:
    """``group`` has pools in place of topics, each named as its first topic.

    ``pieces``: the partitions of each pool. ``elsewhere``: by pool, members that would read from another
    rack than their own.
    """

    group: Group
    pieces: list[list[Piece]]
    elsewhere: list[frozenset[int]]

    @classmethod
    def of(cls, group: Group) -> Pools:
        """Racks do not count."""
        nowhere = frozenset[int]()
        return cls._of(
            group,
            ((t, nowhere, range(start, start + group.partition_counts[t])) for t, start in _starts(group)),
        )

    @classmethod
    def in_racks(cls, group: Group, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> Pools:
        """Topics are cut where their replicas are in racks of some members and not of others."""
        racks = [members[member_id].rack for member_id in group.member_ids]
        if not any(topics[topic].racks for topic in group.topics) or not any(racks):
            return cls.of(group)
        return cls._of(group, _pieces_in_racks(group, topics, racks))

    @classmethod
    def _of(cls, group: Group, cut: Iterator[tuple[int, frozenset[int], range | list[int]]]) -> Pools:
        found: dict[tuple[int, frozenset[int]], list[Piece]] = {}
        for t, elsewhere, partitions in cut:
            # topics that the same members want share one list of them
            found.setdefault((id(group.subscribers[t]), elsewhere), []).append((t, partitions))
        pieces = list(found.values())
        firsts = [of_pool[0][0] for of_pool in pieces]
        subscribers = [group.subscribers[t] for t in firsts]
        pooled = Group(
            group.member_ids,
            [group.topics[t] for t in firsts],
            [sum(len(partitions) for _, partitions in of_pool) for of_pool in pieces],
            subscribers,
            _wanted(subscribers, len(group.member_ids)),
        )
        return cls(pooled, pieces, [elsewhere for _, elsewhere in found])


def _starts(group: Group) -> Iterator[tuple[int, int]]:
    return enumerate(group.starts[:-1])


def _pieces_in_racks(
    group: Group, topics: Mapping[str, TopicInfo], racks: list[str | None]
) -> Iterator[tuple[int, frozenset[int], range | list[int]]]:
    for t, start in _starts(group):
        of_partitions = topics[group.topics[t]].racks or (frozenset[str](),) * group.partition_counts[t]
        alike: dict[frozenset[str], list[int]] = {}
        for number, replicas in enumerate(of_partitions):
            alike.setdefault(replicas, []).append(start + number)
        found: dict[frozenset[int], list[int]] = {}
        for replicas, partitions in alike.items():
            found.setdefault(_elsewhere(group.subscribers[t], racks, replicas), []).extend(partitions)
        for elsewhere, partitions in found.items():
            yield t, elsewhere, sorted(partitions)


def _elsewhere(subscribers: list[int], racks: list[str | None], replicas: frozenset[str]) -> frozenset[int]:
    """Nobody where all are (it is the same for each of them), or where the replicas' racks are unknown."""
    found = frozenset(m for m in subscribers if racks[m] is not None and racks[m] not in replicas)
    return frozenset() if not replicas or len(found) == len(subscribers) else found


def _wanted(subscribers: list[list[int]], size: int) -> list[list[int]]:
    wanted: list[list[int]] = [[] for _ in range(size)]
    for p, members in enumerate(subscribers):
        for m in members:
            wanted[m].append(p)
    return wanted
