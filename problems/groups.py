"""What the lag of groups tells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..lag import GroupLag
from .cluster import name_some
from .problem import FoundProblem

#: Records that wait for longer, and offsets that stand still for longer, are a problem; in ms.
OLD_MS: Final = 300_000
#: More rebalances of a group within ten minutes are too many.
_MOST_REBALANCES: Final = 5


def find_in_groups(
    lags: Iterable[GroupLag], old_ms: int = OLD_MS, worked: Collection[str] = ()
) -> list[FoundProblem]:
    """The problems of groups with members, or of which nobody knows whether they have some, and of those that
    ``worked`` when others looked. That one stands still is known from several looks (``LagTracker``).
    """
    return [
        replace(problem, text=f"{problem.text}, and it has no members") if each.member_count == 0 else problem
        for each in lags
        if each.error is None and (each.member_count != 0 or each.group in worked)
        for problem in find_behind(
            each.group, each.records or 0, each.age_ms or 0, each.standing_ms or 0, old_ms
        )
    ]


def find_behind(
    group: str, records: float, age_ms: float, standing_ms: float, old_ms: float = OLD_MS
) -> Iterator[FoundProblem]:
    """The problem of one group: standing still is worse than being behind."""
    unread = f"{records:,.0f} records are unread"
    if standing_ms > old_ms:
        text = f"{unread} and no offset of a partition has moved for {standing_ms / 1_000:,.0f} s"
        yield FoundProblem("GroupStandsStill", f"group {group}", text)
    elif age_ms > old_ms:
        yield FoundProblem(
            "GroupBehind", f"group {group}", f"{unread}, the oldest for {age_ms / 1_000:,.0f} s"
        )


def find_in_rebalances(counts: Mapping[str, int]) -> list[FoundProblem]:
    """The problem of each group that rebalanced more often than _MOST_REBALANCES in the last ten minutes."""
    return [
        FoundProblem("RebalancesTooOften", f"group {group}", f"{count} rebalances within ten minutes")
        for group, count in sorted(counts.items())
        if count > _MOST_REBALANCES
    ]


@dataclass(frozen=True, slots=True)
class ShareSeen:
    """A partition of a share group. ``stalled_ms``: for how long records have been in flight and none at its
    start was done, None if that is not so; ``last_delivery``: records that are given to nobody again.
    """

    group: str
    topic: str
    partition: int
    stalled_ms: int | None
    last_delivery: int

    @property
    def name(self) -> str:
        """Topic and number."""
        return f"{self.topic}-{self.partition}"


def find_in_shares(seen: Iterable[ShareSeen]) -> list[FoundProblem]:
    """The problems of share groups, by the partitions that they have."""
    by_group: dict[str, list[ShareSeen]] = {}
    for each in seen:
        by_group.setdefault(each.group, []).append(each)
    return [problem for group, found in by_group.items() for problem in _find_in_share_group(group, found)]


def _find_in_share_group(group: str, found: Sequence[ShareSeen]) -> Iterator[FoundProblem]:
    about = f"group {group}"
    stalled = [each for each in found if each.stalled_ms is not None]
    if stalled:
        yield find_stalling(about, name_some([each.name for each in stalled]), _longest_s(stalled))
    ending = [each for each in found if each.last_delivery]
    if ending:
        count = sum(each.last_delivery for each in ending)
        text = f"{name_some([each.name for each in ending])} {count:,} records on their last delivery"
        yield FoundProblem("LastDeliveries", about, f"{text}: what fails once more is given to nobody again")


def find_stalling(about: str, who: str, longest_s: float) -> FoundProblem:
    """The problem of share partitions that stand still; ``who`` ends with the verb that fits."""
    text = f"{who} records in flight and no progress for {longest_s:,.0f} s"
    return FoundProblem("SharePartitionStalls", about, f"{text}; `kohort groups describe` names who has them")


def _longest_s(stalled: Iterable[ShareSeen]) -> float:
    return max(each.stalled_ms or 0 for each in stalled) / 1_000
