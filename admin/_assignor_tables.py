"""Results of the workbench as rich tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..assignors import BalanceLimit
from ..protocol import TopicPartition
from ._words import span
from .results import PartitionMove
from .tables import assignment, short, table
from .workbench import Balance, GroupSnapshot, Trial

if TYPE_CHECKING:
    from rich.table import Table

_BAR: Final = 24
_PROBLEMS_SHOWN: Final = 5


class Listed(NamedTuple):
    """An assignor that can be named. ``error`` is set when it cannot be used."""

    name: str
    origin: str
    version: int | None
    protocols: tuple[str, ...]
    description: str
    error: str | None


def listed(rows: Iterable[Listed]) -> Table:
    return table(
        ["NAME", "FROM", "VERSION", "PROTOCOLS", "WHAT IT DOES"],
        (
            (row.name, row.origin, row.version, ", ".join(row.protocols), row.error or row.description)
            for row in rows
        ),
    )


def tried(now: GroupSnapshot, then: GroupSnapshot, trial: Trial, *, every_move: bool) -> list[Any]:
    """The summary, loads with bars, and who gives what to whom."""
    parts: list[Any] = [_summary(now, [trial])]
    if not trial.usable:
        return [*parts, *_failures([trial])]
    parts.append(_loads(now, then, trial))
    parts.append(_moves(now, then, trial, every_move) if trial.moves else "nothing moves")
    return parts


def _moves(now: GroupSnapshot, then: GroupSnapshot, trial: Trial, every_move: bool) -> Table:
    def names(move: PartitionMove) -> tuple[str, str]:
        old = "nobody" if move.from_owner is None else short(now.name(move.from_owner))
        return old, short(then.name(move.to_owner or ""))

    if every_move:
        rows = ((move.topic, move.partition, *names(move)) for move in trial.moves)
        return table(["TOPIC", "PARTITION", "FROM", "TO"], rows)
    pairs: dict[tuple[str, str], list[TopicPartition]] = {}
    for move in trial.moves:
        pairs.setdefault(names(move), []).append(TopicPartition(move.topic, move.partition))
    return table(["FROM", "TO", "PARTITIONS"], ((*pair, assignment(pairs[pair])) for pair in sorted(pairs)))


def compared(now: GroupSnapshot, then: GroupSnapshot, trials: Sequence[Trial]) -> list[Any]:
    """A row for each assignor, and what went wrong."""
    del then
    return [_summary(now, trials), *_failures(trials)]


def _summary(now: GroupSnapshot, trials: Sequence[Trial]) -> Table:
    weighed = bool(now.weights)
    headings = ["ASSIGNOR", "MEMBERS", "LEAST", "MOST", "MEAN", "DEVIATION"]
    headings += ["LIGHTEST", "HEAVIEST"] if weighed else []
    headings += ["MOVES", "PLACED", "ROUNDS", "TIME"]
    rows = [_row(f"now: {now.protocol or 'as it is'}", trials[0].before, weighed) + [None] * 4]
    for trial in trials:
        took = span(max(0, round(trial.duration_ms)))
        tail: list[object] = [trial.moved, trial.placed, trial.rounds, took]
        rows.append(_row(trial.assignor, trial.after, weighed) + (tail if trial.usable else [None] * 4))
    return table(headings, rows)


def _row(label: str, found: Balance | None, weighed: bool) -> list[object]:
    if found is None:
        return [label, "cannot be used", *[None] * (6 if weighed else 4)]
    row: list[object] = [label, found.members, found.least, found.most]
    row += [f"{found.mean:.1f}", f"{found.deviation:.2f}"]
    return row + ([number(found.least_weight), number(found.most_weight)] if weighed else [])


def _failures(trials: Sequence[Trial]) -> list[str]:
    told = []
    for trial in trials:
        words = [trial.error] if trial.error else list(trial.problems)
        more = len(words) - _PROBLEMS_SHOWN
        shown = "; ".join(words[:_PROBLEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        told += [f"{trial.assignor}: {shown}"] if words else []
    return told


def _loads(now: GroupSnapshot, then: GroupSnapshot, trial: Trial) -> Table:
    gained = _partitions(trial, "to_owner")
    lost = _partitions(trial, "from_owner")
    most = max((row.after or 0 for row in trial.loads), default=0) or 1
    weighed = bool(now.weights)
    headings = ["MEMBER", "BEFORE", "AFTER", *(["WEIGHT BEFORE", "WEIGHT AFTER"] if weighed else [])]
    rows = []
    for row in trial.loads:
        weights = [number(row.weight_before), number(row.weight_after)] if weighed else []
        bar = "█" * round(_BAR * (row.after or 0) / most)
        changes = [assignment(gained.get(row.member, ())), assignment(lost.get(row.member, ()))]
        shown = [None if change == "none" else change for change in changes]
        rows.append((short(then.name(row.member)), row.before, row.after, *weights, bar, *shown))
    return table([*headings, "LOAD", "GAINS", "GIVES UP"], rows)


def explained(limits: Iterable[BalanceLimit]) -> list[Any]:
    """A line for each block of members, the fullest first."""
    return ["\n".join(str(limit) for limit in limits) or "no member wants a topic that has partitions"]


def _partitions(trial: Trial, side: str) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for move in trial.moves:
        owner = getattr(move, side)
        if owner is not None:
            found.setdefault(owner, []).append(TopicPartition(move.topic, move.partition))
    return found


def number(value: float | None) -> str | None:
    """A weight for people."""
    return None if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
