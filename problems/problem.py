"""One thing that is wrong, and what several looks know of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .kinds import KINDS, PAGE, ProblemKind

_RANKS = {name: rank for rank, name in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class FoundProblem:
    """``kind`` is the name of one of ``KINDS``, ``about`` what has the problem (a broker, a listener, a
    group), and ``text`` a sentence without a full stop. ``since_ms`` is None where nobody knows.
    """

    kind: str
    about: str
    text: str
    since_ms: int | None = None

    @property
    def described(self) -> ProblemKind:
        """Its kind: severity, alert, and anchor in the runbook."""
        return KINDS[self.kind]


def keep_since(
    before: Iterable[FoundProblem], now: Iterable[FoundProblem], now_ms: int
) -> list[FoundProblem]:
    """The problems of this look: those that the last one had begin where they began then, the others now."""
    known = {(each.kind, each.about): each.since_ms for each in before}
    return [
        each
        if each.since_ms is not None
        else replace(each, since_ms=known.get((each.kind, each.about), now_ms))
        for each in now
    ]


def most_severe_first(problems: Iterable[FoundProblem]) -> list[FoundProblem]:
    """Each problem once, those that somebody has to look at now in front. Of two with one kind and subject
    the first counts: several looks may find the same.
    """
    found: dict[tuple[str, str], FoundProblem] = {}
    for each in problems:
        found.setdefault((each.kind, each.about), each)
    return sorted(
        found.values(), key=lambda each: (each.described.severity != PAGE, _RANKS[each.kind], each.about)
    )
