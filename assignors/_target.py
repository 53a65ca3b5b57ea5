"""How many partitions of each pool every member is given: best balance first, then the rest."""

from __future__ import annotations

from ._group import share_out
from ._balanced_loads import best_levels
from ._min_cost_flow import Wishes, fewest_moves
from ._pools import Pools

Counts = list[list[int]]


def target(pools: Pools, owned: Counts, racks_first: bool = True, slack: int = 0) -> Counts:
    """given[pool][member]; ``owned`` has the same shape, and counts what members cannot keep too."""
    group = pools.group
    own = [[0] * len(group.member_ids) for _ in group.topics]
    for row, all_owned, members in zip(own, owned, group.subscribers, strict=True):
        for m in members:
            row[m] = all_owned[m]
    in_racks = any(pools.elsewhere)
    if len(own) == 1 and not in_racks and not slack:
        return [_even(own[0], group.subscribers[0], group.partition_counts[0])]
    levels = best_levels(group)
    if not in_racks and not any(map(any, own)):
        return levels.given
    return fewest_moves(group, own, levels.blocks, Wishes(pools.elsewhere, racks_first, slack))


def _even(own: list[int], members: list[int], total: int) -> list[int]:
    """All want the same: loads q or q + 1, the larger ones first for those that own more than q."""
    quota = total // len(members)
    larger_first = sorted(members, key=lambda m: own[m] <= quota)  # sorted() is stable: then in member order
    given = [0] * len(own)
    for m, units in share_out(total, larger_first):
        given[m] = units
    return given
