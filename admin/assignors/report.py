"""Results of the workbench as rich tables; ``pages/assignor_page`` has them as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...assignors import BalanceLimit
from ...protocol import TopicPartition
from ..notation import span
from ..tables import assignment, short, table
from .workbench import Balance, GroupSnapshot, Trial, moves_by_pair, name_owners

if TYPE_CHECKING:
    from rich.table import Table


_BAR: Final = 24
_PROBLEMS_SHOWN: Final = 5


class ListedAssignor(NamedTuple):
    """An assignor that can be named. ``error`` is set when it cannot be used."""

    name: str
    origin: str
    version: int | None
    protocols: tuple[str, ...]
    description: str
    error: str | None


def assignors_table(rows: Iterable[ListedAssignor]) -> Table:
    """Return the table of installed assignors; one that cannot be loaded shows its error."""
    cells = (
        (row.name, row.origin, row.version, ", ".join(row.protocols), row.error or row.description)
        for row in rows
    )
    return table(["NAME", "FROM", "VERSION", "PROTOCOLS", "WHAT IT DOES"], cells)


def trial_report(now: GroupSnapshot, then: GroupSnapshot, trial: Trial, *, every_move: bool) -> list[object]:
    """The summary, loads with bars, and which member gives which partitions to which."""
    parts: list[object] = [_summary_table(now, [trial])]
    if not trial.usable:
        return [*parts, *_failure_lines([trial])]
    parts.append(_loads_table(now, then, trial))
    parts.append(_moves_table(now, then, trial, every_move) if trial.moves else "nothing moves")
    return parts


def _moves_table(now: GroupSnapshot, then: GroupSnapshot, trial: Trial, every_move: bool) -> Table:
    if every_move:
        rows = ((move.topic, move.partition, *name_owners(now, then, move)) for move in trial.moves)
        return table(["TOPIC", "PARTITION", "FROM", "TO"], rows)
    pairs = moves_by_pair(now, then, trial.moves)
    return table(["FROM", "TO", "PARTITIONS"], ((*pair, assignment(pairs[pair])) for pair in sorted(pairs)))


def comparison_table(now: GroupSnapshot, trials: Sequence[Trial]) -> list[object]:
    """A row for each assignor, and what went wrong."""
    return [_summary_table(now, trials), *_failure_lines(trials)]


def _summary_table(now: GroupSnapshot, trials: Sequence[Trial]) -> Table:
    weighed = bool(now.weights)
    headings = ["ASSIGNOR", "MEMBERS", "LEAST", "MOST", "MEAN", "DEVIATION"]
    headings += ["LIGHTEST", "HEAVIEST"] if weighed else []
    headings += ["MOVES", "PLACED", "ROUNDS", "TIME"]
    rows = [_summary_row(f"now: {now.protocol or 'as it is'}", trials[0].before, weighed) + [None] * 4]
    for trial in trials:
        took = span(max(0, round(trial.duration_ms)))
        tail: list[object] = [trial.moved, trial.placed, trial.rounds, took]
        rows.append(
            _summary_row(trial.assignor, trial.after, weighed) + (tail if trial.usable else [None] * 4)
        )
    return table(headings, rows)


def _summary_row(label: str, found: Balance | None, weighed: bool) -> list[object]:
    if found is None:
        return [label, "cannot be used", *[None] * (6 if weighed else 4)]
    row: list[object] = [label, found.members, found.least, found.most]
    row += [f"{found.mean:.1f}", f"{found.deviation:.2f}"]
    return row + ([weight_text(found.least_weight), weight_text(found.most_weight)] if weighed else [])


def _failure_lines(trials: Sequence[Trial]) -> list[str]:
    told = []
    for trial in trials:
        words = [trial.error] if trial.error else list(trial.problems)
        more = len(words) - _PROBLEMS_SHOWN
        shown = "; ".join(words[:_PROBLEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        told += [f"{trial.assignor}: {shown}"] if words else []
    return told


def _loads_table(now: GroupSnapshot, then: GroupSnapshot, trial: Trial) -> Table:
    gained, lost = _partitions_by_member(trial, "to_owner"), _partitions_by_member(trial, "from_owner")
    most = max((row.after or 0 for row in trial.loads), default=0) or 1
    weighed = bool(now.weights)
    headings = ["MEMBER", "BEFORE", "AFTER", *(["WEIGHT BEFORE", "WEIGHT AFTER"] if weighed else [])]
    rows = []
    for row in trial.loads:
        weights = [weight_text(row.weight_before), weight_text(row.weight_after)] if weighed else []
        bar = "█" * round(_BAR * (row.after or 0) / most)
        changes = [assignment(gained.get(row.member, ())), assignment(lost.get(row.member, ()))]
        shown = [None if change == "none" else change for change in changes]
        rows.append((short(then.name(row.member)), row.before, row.after, *weights, bar, *shown))
    return table([*headings, "LOAD", "GAINS", "GIVES UP"], rows)


def limit_lines(limits: Iterable[BalanceLimit]) -> list[object]:
    """A line for each block of members, the fullest first."""
    return ["\n".join(str(limit) for limit in limits) or "no member wants a topic that has partitions"]


def _partitions_by_member(trial: Trial, side: str) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for move in trial.moves:
        found.setdefault(getattr(move, side), []).append(TopicPartition(move.topic, move.partition))
    return found


def weight_text(value: float | None) -> str | None:
    """A weight as people read it."""
    return None if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
