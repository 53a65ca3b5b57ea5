"""A comparison of assignors as one HTML page that needs no network: a table, load bars, matrices of moves."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from .tables import short
from .workbench import GroupSnapshot, Trial, WorkbenchError

#: Members shown one by one, those that change most; a picture of more says nothing.
_SHOWN: Final = 60
_NOBODY: Final = "(nobody)"
_OTHERS: Final = "(others)"
_STYLE: Final = (
    "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}"
)


def page(now: GroupSnapshot, then: GroupSnapshot, trials: Sequence[Trial]) -> str:
    """The page. WorkbenchError where altair is not installed."""
    try:
        import altair
        import vl_convert  # noqa: F401 - altair puts Vega into the page with it
    except ImportError as error:
        raise WorkbenchError("a page needs altair: pip install 'kohort[workbench]'") from error
    usable = [trial for trial in trials if trial.usable]
    parts = [_head(now, then, trials)]
    if usable and then.members:
        with altair.data_transformers.enable("default", max_rows=None):
            chart = altair.vconcat(*(_charts(altair, now, trial) for trial in usable))
            document: str = chart.to_html(inline=True, fullhtml=True)
        return document.replace("<body>", "<body>\n" + parts[0], 1)
    return f"<!DOCTYPE html>\n<html><head><meta charset='UTF-8'></head><body>\n{parts[0]}</body></html>\n"


def _head(now: GroupSnapshot, then: GroupSnapshot, trials: Sequence[Trial]) -> str:
    headings = ["assignor", "members", "least", "most", "deviation", "moved", "placed", "rounds"]
    rows = [["now", *_cells(trials[0].before), "", "", ""]]
    for trial in trials:
        if trial.after is not None:
            counts = [trial.moved, trial.placed, trial.rounds]
            rows.append([trial.assignor, *_cells(trial.after), *map(str, counts)])
        else:
            rows.append([trial.assignor, trial.error or "; ".join(trial.problems[:3]), *[""] * 6])
    changed = f" (now {len(now.members)})" if len(now.members) != len(then.members) else ""
    partitions = sum(info.partition_count for info in then.topics.values())
    told = f"{len(then.members)} members{changed}, {len(then.topics)} topics, {partitions} partitions"
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<style>{_STYLE}</style><h1>{_text(now.group)}</h1><p>{_text(told)}</p>"
        f"<table><tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>{body}</table>\n"
    )


def _cells(found: Any) -> list[str]:
    return [str(found.members), str(found.least), str(found.most), f"{found.deviation:.2f}"]


def _text(words: str) -> str:
    return html.escape(words)


def _label(words: str) -> str:
    """Words for the inside of a script, which no name of a member may end."""
    return words.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")


def _charts(altair: Any, now: GroupSnapshot, trial: Trial) -> Any:
    change = sorted(trial.loads, key=lambda row: (-abs((row.after or 0) - (row.before or 0)), row.name))
    shown = {row.member: _label(short(row.name)) for row in change[:_SHOWN]}
    name = _label(trial.assignor)
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
    return altair.hconcat(loads_chart, _matrix(altair, trial, name, shown)).resolve_scale(color="independent")


def _matrix(altair: Any, trial: Trial, label: str, shown: dict[str, str]) -> Any:
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
    squares = base.mark_rect().encode(
        color=altair.Color("count:Q", title="partitions", scale=altair.Scale(scheme="lightorange"))
    )
    return squares + base.mark_text(color="black").encode(text="count:Q")
