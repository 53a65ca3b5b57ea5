"""What topics of dead letters tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .problem import FoundProblem

#: A letter that is older is no news, in ms.
_NEWS_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class LettersSeen:
    """A topic of dead letters: its records, and when the newest letter was written, in ms since 1970."""

    topic: str
    records: int
    written_ms: int


def find_in_letters(seen: Iterable[LettersSeen], now_ms: float) -> list[FoundProblem]:
    """The problem of each topic that letters have come to within the last hour."""
    return [
        FoundProblem(
            "DeadLetters",
            f"topic {each.topic}",
            f"{each.records:,} records are set aside, the newest for {age_ms / 1_000:,.0f} s",
        )
        for each in seen
        if (age_ms := max(0.0, now_ms - each.written_ms)) <= _NEWS_MS
    ]
