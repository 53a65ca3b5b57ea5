"""Members want different topics: count first (levels, then moves), name partitions last."""

from __future__ import annotations

from ..protocol import TopicPartition
from ._group import Claimants, Group, owned_counts
from ._levels import best_levels
from ._moves import fewest_moves
from .base import GroupAssignment


def assign_mixed(group: Group, newest: Claimants) -> GroupAssignment:
    """Best balance, and among those assignments fewest moves, for any subscriptions."""
    levels = best_levels(group)
    own = owned_counts(group, newest)
    nothing_owned = not any(any(row) for row in own)
    given = levels.given if nothing_owned else fewest_moves(group, own, levels.blocks)
    assignment: GroupAssignment = {member_id: [] for member_id in group.member_ids}
    for t in range(len(group.topics)):
        _name_partitions(group, t, newest[t], given[t], assignment)
    return assignment


def _name_partitions(
    group: Group, t: int, owners: list[int], given: list[int], assignment: GroupAssignment
) -> None:
    """Members keep the lowest of what they own; the rest goes round among those short of some."""
    topic, members = group.topics[t], group.member_ids
    short = {m: given[m] for m in group.subscribers[t] if given[m]}
    rest: list[TopicPartition] = []
    for number, owner in enumerate(owners):
        partition = TopicPartition(topic, number)
        if short.get(owner, 0):
            short[owner] -= 1
            assignment[members[owner]].append(partition)
        else:
            rest.append(partition)
    dealt = iter(rest)
    waiting = [m for m, units in short.items() if units]
    while waiting:
        for m in waiting:
            assignment[members[m]].append(next(dealt))
            short[m] -= 1
        waiting = [m for m in waiting if short[m]]
