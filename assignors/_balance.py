"""Why the balance is not better: which members share which topics, and what that leaves them with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._group import Group
from ._balanced_loads import best_levels
from .base import Member, TopicInfo

_NAMED = 5


@dataclass(frozen=True, slots=True)
class BalanceLimit:
    """Members that share topics with nobody below them: the best they can have is ``high`` and ``low`` each.

    ``topics`` are wanted by these members, and otherwise only by members who have at least as many
    already; they have ``partitions`` altogether, which these members divide. ``high`` is what the fullest of
    them cannot get below, ``low`` what the emptiest cannot get above. ``str()`` tells it in a sentence.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    partitions: int
    high: int
    low: int

    def __str__(self) -> str:
        loads = f"{self.high}" if self.high == self.low else f"{self.low} or {self.high}"
        verb, each = ("has", "") if len(self.members) == 1 else ("share", " each")
        return (
            f"{_some(self.members, 'member')} {verb} the {self.partitions} partitions of "
            f"{_some(self.topics, 'topic')}, to which no member with fewer subscribes: {loads}{each}"
        )


def explain_balance(topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> list[BalanceLimit]:
    """The limits that subscriptions put to balance, fullest members first; one limit for a perfect balance.

    Every member that wants a topic with partitions is in exactly one of them. Claims and racks play no part.
    """
    group = Group.of(topics, members)
    levels = best_levels(group)
    limits: list[BalanceLimit] = []
    for block in levels.blocks:
        # every subscriber of a topic that is held in a block is in it or in one before
        mine = sorted({t for m in block.members for t in group.wanted[m] if levels.given[t][m]})
        limits.append(
            BalanceLimit(
                tuple(group.member_ids[m] for m in block.members),
                tuple(group.topics[t] for t in mine),
                block.total,
                block.high,
                block.low,
            )
        )
    return limits


def _some(names: tuple[str, ...], what: str) -> str:
    if len(names) == 1:
        return f"{what} {names[0]}"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} {what}s ({', '.join(names[:_NAMED])}{more})"
