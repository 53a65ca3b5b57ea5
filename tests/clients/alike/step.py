"""One step on two brokers: the same request to both, and answers that must be alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .side import Answer, Sent, Side, answers_of
from .views import differences, view


def take(
    sides: Sequence[Side],
    number: int,
    step: Any,
    request_of: Callable[[Any, Any], tuple[int, dict[str, Any]]],
    told: list[str],
) -> None:
    """``request_of`` makes version and fields for a side; ``told`` has what was asked and answered."""
    for side in sides:
        version, fields = request_of(step, side)
        sent = Sent(number, step.client, step.kind, version)
        side.send(sent, fields)
    got = answers_of(sides, sent)
    for side, answers in zip(sides, got, strict=True):
        for answer in answers:
            side.learn(answer)
    theirs, ours = (views_of(side, answers) for side, answers in zip(sides, got, strict=True))
    told.append(f"{sent} {fields}: {ours}")
    assert list(differences(theirs, ours)) == [], "\n".join(told)


def views_of(side: Side, answers: list[Answer]) -> list[Any]:
    """What a side was asked, and its answers without what may differ."""
    return [{"of": each.sent[:3], "answer": view(side, each)} for each in answers]
