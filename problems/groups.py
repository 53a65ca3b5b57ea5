"""What the lag of groups tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..lag import GroupLag
from .problem import FoundProblem

#: Records that wait for longer, and offsets that stand still for longer, are a problem; in ms.
OLD_MS: Final = 300_000


def find_in_groups(lags: Iterable[GroupLag], old_ms: int = OLD_MS) -> list[FoundProblem]:
    """The problems of groups with members, or of which nobody knows whether they have some. That one stands
    still is known from several looks (``LagTracker``).
    """
    return [
        problem
        for each in lags
        if each.error is None and each.member_count != 0
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
