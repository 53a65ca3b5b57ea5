"""What transactions tell that nobody will end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .cluster import name_some
from .problem import FoundProblem


@dataclass(frozen=True, slots=True)
class TransactionSeen:
    """A transaction that a partition has open and no coordinator knows. ``held_back`` offsets are out of the
    reach of readers of committed records; nothing was written in it for ``silent_ms``.
    """

    topic: str
    partition: int
    silent_ms: int
    held_back: int


def find_in_transactions(hanging: Iterable[TransactionSeen]) -> list[FoundProblem]:
    """The problem of each topic with such transactions."""
    by_topic: dict[str, list[TransactionSeen]] = {}
    for each in hanging:
        by_topic.setdefault(each.topic, []).append(each)
    return [
        FoundProblem("TransactionHangs", f"topic {topic}", _to_text(topic, found))
        for topic, found in sorted(by_topic.items())
    ]


def _to_text(topic: str, found: list[TransactionSeen]) -> str:
    places = sorted({each.partition for each in found})
    back = sum(each.held_back for each in found)
    longest_s = max(each.silent_ms for each in found) / 1_000
    who = name_some([f"{topic}-{number}" for number in places])
    return (
        f"{who} a transaction open that no coordinator knows, without a record for {longest_s:,.0f} s: "
        f"{back:,} offsets are held back from readers of committed records until "
        f"`kohort transactions abort --topic {topic} --execute` ends it"
    )
