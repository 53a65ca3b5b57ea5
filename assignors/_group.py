"""Indexed form of a group for the sticky assignors, and equivalence classes of its partitions.

Topics and members are replaced by their indexes, and the partitions of all topics are numbered in one
sequence: partition 3 of topic 2 is ``starts[2] + 3``. Partitions with the same subscribers, and with replicas
in the racks of the same members, are equivalent: balance, moves and racks depend on how many partitions of a
class each member has, not on which. So the search works on classes, and does not grow with the number of
partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise, repeat, starmap

from ..protocol import TopicPartition
from .base import Member, TopicInfo, in_member_order
from .user_data import NO_GENERATION

#: In place of a member's index: nobody claims the partition; several members claim it in one generation.
UNCLAIMED, CONTESTED = -1, -2

#: Some partitions of one topic: topic index, and partition numbers in the group's sequence, ascending.
TopicSlice = tuple[int, Sequence[int]]


@dataclass(slots=True)
class IndexedGroup:
    """Subscribed topics that exist, sorted, and all members, in the order of ``in_member_order``.

    Topics with the same subscribers share one list in ``subscribers``, and members with the same topics share
    one in ``wanted``. So these lists must not be changed.
    """

    member_ids: list[str]
    topics: list[str]
    partition_counts: list[int]
    subscribers: list[list[int]]  # members of each topic, ascending
    wanted: list[list[int]]  # topics of each member, ascending

    @classmethod
    def of(cls, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> IndexedGroup:
        """Number the members in order, and the partitions of all topics that somebody subscribes to."""
        ordered = in_member_order(members.values())
        alike: dict[tuple[str, ...], list[int]] = {}  # members by subscription as sent
        last: tuple[str, ...] = ()
        of_last = alike[last] = []
        for m, member in enumerate(ordered):
            # comparing is faster than hashing, and neighbors mostly have the same subscription
            as_sent = tuple(member.subscription.topics)
            if as_sent is not last and as_sent != last:
                last, of_last = as_sent, alike.setdefault(as_sent, [])
            of_last.append(m)
        subscribed = set[str]().union(*alike)
        names = sorted(topic for topic in subscribed & topics.keys() if topics[topic].partition_count)
        index = {topic: t for t, topic in enumerate(names)}
        wanted: list[list[int]] = [[]] * len(ordered)
        sharing: list[list[int]] = [[] for _ in names]  # by topic: indexes into alike.values()
        for sort, (as_sent, of_sort) in enumerate(alike.items()):
            mine = sorted(set(map(index.get, as_sent, repeat(-1))) - {-1})
            for m in of_sort:
                wanted[m] = mine
            for t in mine:
                sharing[t].append(sort)
        sorts = list(alike.values())
        subscribers = {
            key: sorted(chain.from_iterable(map(sorts.__getitem__, key))) for key in set(map(tuple, sharing))
        }
        counts = [topics[topic].partition_count for topic in names]
        ids = [member.member_id for member in ordered]
        return cls(ids, names, counts, [subscribers[tuple(key)] for key in sharing], wanted)

    @property
    def active(self) -> list[int]:
        """Members with at least one topic that exists, in order."""
        return [m for m, mine in enumerate(self.wanted) if mine]

    @property
    def starts(self) -> list[int]:
        """Number of each topic's first partition; the last entry is the total number of partitions."""
        return list(accumulate(self.partition_counts, initial=0))


def settle_claims(
    newest: list[int] | dict[int, int], claimed: Iterable[tuple[int, int]], generations: list[int]
) -> None:
    """Set ``newest[partition]`` to the member that claims it in the newest generation.

    ``claimed`` are pairs (member, partition). Two claimants in the newest generation both lose (CONTESTED).
    The winner may have dropped the topic from its subscription: it still reads the partition, but cannot keep
    it.
    """
    contested: dict[int, int] = {}  # partition -> generation of its claimants
    for m, partition in claimed:
        holder = newest[partition]
        if holder == UNCLAIMED:
            newest[partition] = m
        elif holder != m:
            best = contested[partition] if holder == CONTESTED else generations[holder]
            best, mine = max(best, NO_GENERATION), max(generations[m], NO_GENERATION)
            if mine > best:
                newest[partition] = m
            elif mine == best:
                newest[partition] = CONTESTED
                contested[partition] = best


def topic_partitions(topics: Iterable[str], numbers: Iterable[int]) -> Iterator[TopicPartition]:
    """Make TopicPartitions without calling Python code for each."""
    return starmap(
        tuple.__new__, zip(repeat(TopicPartition), zip(topics, numbers, strict=False), strict=False)
    )


@dataclass(slots=True)
class EquivalenceClasses:
    """Equivalence classes of a group's partitions.

    ``group``: the group with classes in place of topics, each with the name of its first topic. ``slices``:
    the partitions of each class. ``elsewhere``: for each class, the members whose racks have none of its
    replicas.
    """

    group: IndexedGroup
    slices: list[list[TopicSlice]]
    elsewhere: list[frozenset[int]]

    @classmethod
    def of(cls, group: IndexedGroup) -> EquivalenceClasses:
        """Make classes of partitions with the same subscribers."""
        nobody = frozenset[int]()
        return cls._classes_of(
            group, ((t, nobody, range(*ends)) for t, ends in enumerate(pairwise(group.starts)))
        )

    @classmethod
    def in_racks(
        cls, group: IndexedGroup, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]
    ) -> EquivalenceClasses:
        """Make classes of partitions with the same subscribers and the same members in racks of replicas."""
        racks = [members[member_id].rack for member_id in group.member_ids]
        if not any(topics[topic].racks for topic in group.topics) or not any(racks):
            return cls.of(group)
        return cls._classes_of(group, _slices_in_racks(group, topics, racks))

    @classmethod
    def _classes_of(
        cls, group: IndexedGroup, cut: Iterator[tuple[int, frozenset[int], range | list[int]]]
    ) -> EquivalenceClasses:
        found: dict[tuple[int, frozenset[int]], list[TopicSlice]] = {}
        for t, elsewhere, partitions in cut:
            # topics with the same subscribers share one list of them
            found.setdefault((id(group.subscribers[t]), elsewhere), []).append((t, partitions))
        slices = list(found.values())
        firsts = [of_class[0][0] for of_class in slices]
        subscribers = [group.subscribers[t] for t in firsts]
        by_class = IndexedGroup(
            group.member_ids,
            [group.topics[t] for t in firsts],
            [sum(len(partitions) for _, partitions in of_class) for of_class in slices],
            subscribers,
            _wanted_by(subscribers, len(group.member_ids)),
        )
        return cls(by_class, slices, [elsewhere for _, elsewhere in found])


def _slices_in_racks(
    group: IndexedGroup, topics: Mapping[str, TopicInfo], racks: list[str | None]
) -> Iterator[tuple[int, frozenset[int], range | list[int]]]:
    for t, start in enumerate(group.starts[:-1]):
        of_partitions = topics[group.topics[t]].racks or (frozenset[str](),) * group.partition_counts[t]
        alike: dict[frozenset[str], list[int]] = {}
        for number, replicas in enumerate(of_partitions):
            alike.setdefault(replicas, []).append(start + number)
        found: dict[frozenset[int], list[int]] = {}
        for replicas, partitions in alike.items():
            found.setdefault(_subscribers_elsewhere(group.subscribers[t], racks, replicas), []).extend(
                partitions
            )
        for elsewhere, partitions in found.items():
            yield t, elsewhere, sorted(partitions)


def _subscribers_elsewhere(
    subscribers: list[int], racks: list[str | None], replicas: frozenset[str]
) -> frozenset[int]:
    """Subscribers in other racks than ``replicas``. Empty if that is all of them, as no choice helps then,
    and if the racks of the replicas are not known.
    """
    found = frozenset(m for m in subscribers if racks[m] is not None and racks[m] not in replicas)
    return frozenset() if not replicas or len(found) == len(subscribers) else found


def _wanted_by(subscribers: list[list[int]], size: int) -> list[list[int]]:
    wanted: list[list[int]] = [[] for _ in range(size)]
    for p, members in enumerate(subscribers):
        for m in members:
            wanted[m].append(p)
    return wanted
