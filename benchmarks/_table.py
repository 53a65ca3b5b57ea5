"""What was measured, as a table: medians, ratios of the rounds, goals; the same in a terminal and in docs."""

from __future__ import annotations

import os
import platform
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ._brokers import SETTINGS
from ._load import Ceiling
from ._rows import Figures, Metric, Part

#: By contender, then by part: the figures of each round.
Measured = Mapping[str, Mapping[str, list[Figures]]]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reports" / "performance.md"
BLOCK = r"(<!-- figures of make bench-{} -->\n).*?(<!-- end of figures -->)"


def environment(versions: Iterable[str], settings: Mapping[str, str] = SETTINGS) -> dict[str, str]:
    """What the figures depend on besides the code."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cores": f"{len(os.sched_getaffinity(0))}, {model[1] if model else platform.machine()}",
        "Python": platform.python_version()
        + (", uvloop installed" if find_spec("uvloop") else ", no uvloop"),
        "brokers": ", ".join(versions),
        "settings of both": ", ".join(f"{key}={value}" for key, value in settings.items()),
    }


def generator(limit: Ceiling) -> str:
    return (
        f"{limit.per_second:,.0f}/s against an echo, 8 x 64; "
        f"one at a time {limit.p50_us:.0f} / {limit.p99_us:.0f} µs"
    )


def table(measured: Measured, parts: Iterable[Part], subject: str, peers: Sequence[str]) -> str:
    """Aligned Markdown. Goals are about the first peer; of the others there are figures and ratios. Without
    peers there are neither.
    """
    head = ["work", "unit", *peers, subject]
    if peers:
        head += ["ratio", "goal", "", *(f"ratio to {peer}" for peer in peers[1:])]
    rows = [head]
    rows += (_line(measured, part.name, metric, subject, peers) for part in parts for metric in part.metrics)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows[2:]:
        row[:] = [cell if i < 2 else cell.rjust(widths[i]) for i, cell in enumerate(row)]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


def _line(measured: Measured, part: str, metric: Metric, subject: str, peers: Sequence[str]) -> list[str]:
    def cell(who: str) -> str:
        values = [figures[metric.key] for figures in measured[who][part]]
        return f"{statistics.median(values):,.{metric.digits}f}" if values else "-"

    ratios = {
        peer: ratio(measured, part, metric, subject, peer)
        for peer in peers
        if measured[peer][part] and not metric.own
    }
    cells = [metric.title, metric.unit, *map(cell, peers), cell(subject)]
    if not peers:
        return cells
    ours = statistics.median(figures[metric.key] for figures in measured[subject][part])
    shown = [f"{ratios[peer]:.2f}" if peer in ratios else "" for peer in peers]
    return [*cells, shown[0], *_verdict(metric, ratios.get(peers[0], ours)), *shown[1:]]


def ratio(measured: Measured, part: str, metric: Metric, subject: str, peer: str) -> float:
    """The median of the rounds' ratios."""
    pairs = zip(measured[subject][part], measured[peer][part], strict=True)
    return statistics.median(mine[metric.key] / other[metric.key] for mine, other in pairs)


def _verdict(metric: Metric, judged: float) -> tuple[str, str]:
    sign = "≥" if metric.more_is_better else "≤"
    goal = f"{metric.goal:,.0f}" if metric.goal >= 1_000 else f"{metric.goal:g}"
    return f"{sign} {goal}", "met" if metric.met(judged) else "missed"


def update_page(text: str, benchmark: str, path: Path | None = None) -> None:
    """Put the text into the block of a benchmark in ``docs/reports/performance.md``, or the page ``path``."""
    path = path or PAGE
    page = path.read_text()
    block = re.compile(BLOCK.format(benchmark), re.S)
    if block.search(page) is None:
        raise SystemExit(f"{path.name} has no block for figures: add its two comment lines")
    path.write_text(block.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page))
