"""Results of the workbench: as rich tables, and a comparison as one HTML page that needs no network."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..assignors import BalanceLimit
from ..protocol import TopicPartition
from .notation import span
from .results import PartitionMove
from .tables import assignment, short, table
from .workbench import Balance, GroupSnapshot, Trial, WorkbenchError

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


#: Most members drawn one by one: those whose load changes most. A chart of more is unreadable.
_SHOWN: Final = 60
_NOBODY: Final = "(nobody)"
_OTHERS: Final = "(others)"
_STYLE: Final = (
    "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}"
)


def report_page(now: GroupSnapshot, then: GroupSnapshot, trials: Sequence[Trial]) -> str:
    """The comparison as one HTML page. Raises WorkbenchError if altair is not installed."""
    try:
        import altair
        import vl_convert  # noqa: F401 - altair puts Vega into the page with it
    except ImportError as error:
        raise WorkbenchError("a page needs altair: pip install 'kohort[workbench]'") from error
    usable = [trial for trial in trials if trial.usable]
    head = _page_head(now, then, trials)
    if not usable or not then.members:
        return f"<!DOCTYPE html>\n<html><head><meta charset='UTF-8'></head><body>\n{head}</body></html>\n"
    with altair.data_transformers.enable("default", max_rows=None):
        chart = altair.vconcat(*(_draw_charts(altair, now, trial) for trial in usable))
        document: str = chart.to_html(inline=True, fullhtml=True)
    return document.replace("<body>", "<body>\n" + head, 1)


def _page_head(now: GroupSnapshot, then: GroupSnapshot, trials: Sequence[Trial]) -> str:
    headings = ["assignor", "members", "least", "most", "deviation", "moved", "placed", "rounds"]
    rows = [["now", *_summary_cells(trials[0].before), "", "", ""]]
    for trial in trials:
        if trial.after is not None:
            counts = [trial.moved, trial.placed, trial.rounds]
            rows.append([trial.assignor, *_summary_cells(trial.after), *map(str, counts)])
        else:
            rows.append([trial.assignor, trial.error or "; ".join(trial.problems[:3]), *[""] * 6])
    changed = f" (now {len(now.members)})" if len(now.members) != len(then.members) else ""
    partitions = sum(info.partition_count for info in then.topics.values())
    told = f"{len(then.members)} members{changed}, {len(then.topics)} topics, {partitions} partitions"
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<style>{_STYLE}</style><h1>{html.escape(now.group)}</h1><p>{html.escape(told)}</p>"
        f"<table><tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>{body}</table>\n"
    )


def _summary_cells(found: Any) -> list[str]:
    return [str(found.members), str(found.least), str(found.most), f"{found.deviation:.2f}"]


def _script_label(words: str) -> str:
    """A label that is safe inside a script element: no member's name can end the element."""
    return words.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")


def _draw_charts(altair: Any, now: GroupSnapshot, trial: Trial) -> object:
    change = sorted(trial.loads, key=lambda row: (-abs((row.after or 0) - (row.before or 0)), row.name))
    shown = {row.member: _script_label(short(row.name)) for row in change[:_SHOWN]}
    name = _script_label(trial.assignor)
    weighed = bool(now.weights)
    bars = []
    for row in trial.loads:
        if row.member in shown:
            loads = (row.weight_before, row.weight_after) if weighed else (row.before, row.after)
            for when, load in zip(("before", "after"), loads, strict=True):
                bars.append({"member": shown[row.member], "when": when, "load": load or 0})
    unit = "weight" if weighed else "partitions"
    loads_chart = (
        altair.Chart(altair.Data(values=bars), title=f"{name}: load in {unit}")
        .mark_bar()
        .encode(
            y=altair.Y("member:N", title=None),
            yOffset=altair.YOffset("when:N", sort=["before", "after"]),
            x=altair.X("load:Q", title=unit),
            color=altair.Color("when:N", sort=["before", "after"], title=None),
            tooltip=["member:N", "when:N", "load:Q"],
        )
    )
    return altair.hconcat(loads_chart, _draw_matrix(altair, trial, name, shown)).resolve_scale(
        color="independent"
    )


def _draw_matrix(altair: Any, trial: Trial, label: str, shown: dict[str, str]) -> object:
    def name(owner: str | None) -> str:
        return _NOBODY if owner is None else shown.get(owner, _OTHERS)

    counts = Counter((name(move.from_owner), name(move.to_owner)) for move in trial.moves)
    cells = [{"from": old, "to": new, "count": count} for (old, new), count in sorted(counts.items())]
    base = altair.Chart(
        altair.Data(values=cells), title=f"{label}: {trial.moved} moved, {trial.placed} placed"
    ).encode(
        x=altair.X("to:N", title="to"),
        y=altair.Y("from:N", title="from"),
        tooltip=["from:N", "to:N", "count:Q"],
    )
    scale = altair.Scale(scheme="lightorange")
    squares = base.mark_rect().encode(color=altair.Color("count:Q", title="partitions", scale=scale))
    return squares + base.mark_text(color="black").encode(text="count:Q")
