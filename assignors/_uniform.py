"""Everyone wants the same topics: best balance and fewest moves have a closed form."""

from __future__ import annotations

from ..protocol import TopicPartition
from ._group import Claimants, Group, share_out
from .base import GroupAssignment


def assign_uniform(group: Group, newest: Claimants) -> GroupAssignment:
    """Loads q or q + 1; the larger ones go first to members that own more than q, then in member order.

    Each member keeps what it owns up to its share, low partition numbers first, so that what it gives up
    comes from all its topics; the rest is dealt round and round, by topic and number.
    """
    active = group.active
    kept: dict[int, list[TopicPartition]] = {m: [] for m in active}
    rest: list[TopicPartition] = []
    for topic, owners in zip(group.topics, newest, strict=True):
        for number, owner in enumerate(owners):
            # an owner that is not active has dropped its topics
            kept.get(owner, rest).append(TopicPartition(topic, number))
    if active:
        _cut_to_shares(kept, rest, _shares(group, kept))
    assignment: GroupAssignment = {member_id: [] for member_id in group.member_ids}
    for m, partitions in kept.items():
        assignment[group.member_ids[m]] = partitions
    return assignment


def _shares(group: Group, kept: dict[int, list[TopicPartition]]) -> dict[int, int]:
    quota = sum(group.partition_counts) // len(kept)
    # sorted() is stable: member order decides among equals
    larger_first = sorted(kept, key=lambda m: len(kept[m]) <= quota)
    return dict(share_out(sum(group.partition_counts), larger_first))


def _cut_to_shares(
    kept: dict[int, list[TopicPartition]], rest: list[TopicPartition], shares: dict[int, int]
) -> None:
    for m, partitions in kept.items():
        if len(partitions) > shares[m]:
            partitions.sort(key=lambda partition: (partition.partition, partition.topic))
            rest.extend(partitions[shares[m] :])
            del partitions[shares[m] :]
    rest.sort()
    waiting = [m for m in kept if len(kept[m]) < shares[m]]
    dealt = iter(rest)
    while waiting:
        for m in waiting:
            kept[m].append(next(dealt))
        waiting = [m for m in waiting if len(kept[m]) < shares[m]]
