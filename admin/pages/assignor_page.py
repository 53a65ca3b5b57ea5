"""Trials of assignors as HTML, for ``kohort ui`` and ``kohort assignors compare --html``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..assignors.workbench import Balance, GroupSnapshot, MemberLoad, Trial, moves_by_pair
from ..tables import assignment, short
from .markup import Html, join, number, self_contained, table, tag

#: Rows of a table of loads: the members whose load changes most.
_MOST_ROWS: Final = 1_000


def comparison_page(now: GroupSnapshot, then: GroupSnapshot, trials: Sequence[Trial]) -> str:
    """Balance, loads and moves with each assignor, as one page that needs no network."""
    changed = f" (now {len(now.members):,})" if len(now.members) != len(then.members) else ""
    partitions = sum(info.partition_count for info in then.topics.values())
    told = f"{len(then.members):,} members{changed}, {len(then.topics):,} topics, {partitions:,} partitions"
    return self_contained(
        f"Assignors for {now.group}",
        tag("h1", now.group),
        tag("p", told),
        balance_table(now, trials),
        *(trial_sections(now, then, trial) for trial in trials),
    )


def balance_table(now: GroupSnapshot, trials: Sequence[Trial]) -> Html:
    """The group as it is, and with each assignor that gave an answer."""

    def row(label: str, found: Balance) -> Sequence[object]:
        counts = (number(count) for count in (found.members, found.least, found.most))
        return label, *counts, f"{found.mean:.1f}", f"{found.deviation:.2f}"

    rows = [row(f"now: {now.protocol or 'as it is'}", trials[0].before)]
    rows += [row(trial.assignor, trial.after) for trial in trials if trial.after is not None]
    return table("Balance", ["Assignor", "Members", "Least", "Most", "Mean", "Deviation"], rows)


def trial_sections(now: GroupSnapshot, then: GroupSnapshot, trial: Trial) -> Html:
    """What would move with an assignor, and what each member would have; or why its answer cannot be used."""
    if not trial.usable:
        words = trial.error or "; ".join(trial.problems[:5])
        return tag("p", f"{trial.assignor}: {words}", class_="trouble")
    pairs = moves_by_pair(now, then, trial.moves)
    moves = ((*pair, number(len(pairs[pair])), assignment(pairs[pair])) for pair in sorted(pairs))
    rounds = f"{trial.rounds} round{'s' * (trial.rounds != 1)}"
    told = (
        f"{trial.moved:,} would move, {trial.placed:,} would be placed; settled after {rounds}, "
        f"computed in {trial.duration_ms:,.0f} ms."
    )
    return join(
        (
            tag("h2", f"{trial.assignor}: moves"),
            tag("p", told),
            table("Moves", ["From", "To", "Count", "Partitions"], moves) if pairs else None,
            tag("h2", f"{trial.assignor}: loads"),
            _loads_table(trial.loads, by_weight=bool(now.weights)),
        )
    )


def _loads_table(loads: Sequence[MemberLoad], *, by_weight: bool) -> Html:
    def load(row: MemberLoad) -> tuple[float, float]:
        before, after = (row.weight_before, row.weight_after) if by_weight else (row.before, row.after)
        return before or 0, after or 0

    def change(row: MemberLoad) -> float:
        before, after = load(row)
        return abs(after - before)

    def meter(value: float) -> Html:
        return tag("meter", max=f"{most:.6g}", value=f"{value:.6g}", aria_hidden="true")

    most = max((value for row in loads for value in load(row)), default=0) or 1
    shown = sorted(loads, key=lambda row: (-change(row), row.name))[:_MOST_ROWS]
    unit = "weight" if by_weight else "partitions"
    return table(
        f"Loads, in {unit}",
        ["Member", "Before", f"{unit.capitalize()} before", "After", f"{unit.capitalize()} after"],
        (
            (short(row.name), number(row.before), meter(load(row)[0]), number(row.after), meter(load(row)[1]))
            for row in shown
        ),
    )
