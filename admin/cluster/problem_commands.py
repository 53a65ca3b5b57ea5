"""``kohort problems``: what is wrong now, with an exit code for scripts and probes."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...problems import PAGE, FoundProblem, Samples, most_severe_first
from ..commands import add_common, reader, run_program
from ..screen import OK, REFUSED, UNREACHABLE, Screen
from .top import metrics_address

if TYPE_CHECKING:
    from rich.table import Table

    from .problems import ProblemReport

_CLIENT: Final = "kohort-problems"
_RUNBOOK: Final = "what to do about each: docs/runbook.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kohort problems``."""
    add_common(parser)
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        type=metrics_address,
        action="append",
        default=[],
        help="also look at the metrics of a broker or a service (--metrics-port, health_port, or a URL; "
        "a JMX exporter's will do); may be given many times",
    )
    parser.add_argument(
        "--over",
        metavar="SECONDS",
        type=reader(_pause_seconds),
        default=0.0,
        help="look at metrics twice, so far apart, and tell what has grown meanwhile, such as dead letters",
    )
    parser.add_argument(
        "--page", action="store_true", help="only what somebody has to look at now: nothing that can wait"
    )


def _pause_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 3_600:
        raise ValueError(f"{text!r}: give seconds, at most 3600")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Print the problems; the exit code is 1 if there is one, 3 if that cannot be known."""
    # a broker that refuses to tell, or a login, is no problem that was found
    return run_program("kohort problems", lambda: asyncio.run(_show_problems(options)), refused=UNREACHABLE)


async def _show_problems(options: argparse.Namespace) -> int:
    from ..connection import open_cluster
    from .problems import find_in_processes, find_problems

    screen = Screen(as_json=options.json)
    before: list[tuple[str, Samples]] = []
    async with open_cluster(options, _CLIENT) as cluster:
        if options.over and options.metrics:
            before = await _read_all(options.metrics, screen)
            await asyncio.sleep(options.over)
        now = await _read_all(options.metrics, screen)
        report = await find_problems(cluster)
        cluster_id = cluster.known_metadata.cluster_id
        found = most_severe_first([*report.found, *find_in_processes(now, before, cluster_id)])
    if options.page:
        found = [each for each in found if each.described.severity == PAGE]
    if screen.as_json:
        screen.document([_to_document(each) for each in found])
    elif found:
        screen.show(_to_table(found), _RUNBOOK)
    else:
        screen.remark(_whole_text(report))
    screen.remark(*report.hidden)
    if found:
        return REFUSED
    return OK if len(now) == len(options.metrics) and not report.is_blind else UNREACHABLE


def _whole_text(report: ProblemReport) -> str:
    """What to say where nothing wrong was found."""
    if report.is_blind:
        return "whether anything is wrong is not known: this user may look into neither a topic nor a group"
    if report.hidden:
        return "nothing is wrong with what this user may see, as far as brokers tell"
    return "nothing is wrong, as far as brokers tell"


async def _read_all(addresses: Sequence[str], screen: Screen) -> list[tuple[str, Samples]]:
    """The metrics of all processes that give some; a remark about each of the others."""
    from .problems import read_metrics

    found = []
    for address in addresses:
        try:
            found.append(await asyncio.to_thread(read_metrics, address))
        except (OSError, ValueError) as error:
            screen.remark(f"no metrics at {address}: {getattr(error, 'reason', error)}")
    return found


def _to_document(problem: FoundProblem) -> dict[str, object]:
    kind = problem.described
    return {
        "problem": kind.name,
        "severity": kind.severity,
        "about": problem.about,
        "text": problem.text,
        "since_ms": problem.since_ms,
        "alert": kind.alert,
        "runbook": f"docs/runbook.md#{kind.anchor}",
    }


def _to_table(problems: Iterable[FoundProblem]) -> Table:
    from ..tables import table

    return table(
        ["SEVERITY", "PROBLEM", "ABOUT", "WHAT"],
        ((each.described.severity, each.kind, each.about, each.text) for each in problems),
    )
