"""HTML of what is wrong: in one cluster, and in all that are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ...admin.cluster.problems import ProblemReport
from ...admin.notation import to_sentence, utc
from ...admin.pages import lanes_page
from ...admin.pages.lists import ListQuery, list_table
from ...admin.pages.markup import Html, number, tag
from ...problems import PAGE, FoundProblem
from ..layout import (
    facts_list,
    group_address,
    note_list,
    quote_path,
    topic_address,
)


class ClusterState(NamedTuple):
    """What is wrong with one of several clusters; ``report`` is None before the first look. ``is_refused``:
    its ``trouble`` is that it does not tell this user.
    """

    name: str
    bootstrap: str
    trouble: str
    report: ProblemReport | None
    silent: Mapping[str, str]
    is_refused: bool = False


def problems(report: ProblemReport, silent: Mapping[str, str], query: ListQuery) -> Html:
    """What is wrong, the most severe first. ``silent`` are processes that give no metrics, and why."""
    found = report.found
    urgent = _count_urgent(found)
    lead = [
        ("State", lanes_page.badge(_urgency_text(report))),
        ("To look at now", number(urgent)),
        ("That can wait", number(len(found) - urgent)),
    ]
    shown = list_table(query, "problems", "Problems", _PROBLEM_HEADINGS, [*map(_problem_cells, found)])
    words = _RUNBOOK
    lost = [f"No metrics at {address}: {reason}" for address, reason in silent.items()]
    return tag(
        "div",
        facts_list(lead),
        (shown, tag("p", words, class_="quiet")) if found else tag("p", _nothing_text(report)),
        note_list([*map(to_sentence, report.hidden), *lost]),
        id="problems",
        data_live=True,
    )


def _nothing_text(report: ProblemReport) -> str:
    """What to say where nothing wrong was found."""
    if report.is_blind:
        return "Whether anything is wrong is not known: this user may look into neither a topic nor a group."
    which = " with what this user may see" if report.hidden else ""
    return f"Nothing is wrong{which}, as far as brokers and the metrics given with --metrics tell."


def overview(clusters: Sequence[ClusterState], query: ListQuery) -> Html:
    """What is wrong with several clusters: each in short, and all problems, the most severe first."""

    def cells(each: ClusterState) -> Sequence[object]:
        found = () if each.report is None else each.report.found
        urgent = _count_urgent(found)
        state = "unknown" if each.report is None else _urgency_text(each.report)
        if each.trouble:
            state = "refuses" if each.is_refused else "does not answer"
        return (
            tag("a", each.name, href=f"at/{each.name}/"),
            lanes_page.badge(state),
            number(None if each.report is None else urgent),
            number(None if each.report is None else len(found) - urgent),
            each.bootstrap,
            tag("span", each.trouble, class_="dated") if each.trouble else None,
        )

    headings = ["Cluster", "State", "To look at now", "That can wait", "Brokers", "Note"]
    rows = [
        (tag("a", each.name, href=f"at/{each.name}/"), *_problem_cells(problem, f"at/{each.name}/"))
        for each in clusters
        if each.report is not None
        for problem in each.report.found
    ]
    # most severe first, as each cluster's are
    rows.sort(key=lambda row: "now" not in str(row[2]))
    lost = [
        f"{each.name}: no metrics at {address}: {reason}"
        for each in clusters
        for address, reason in each.silent.items()
    ]
    hidden = [
        f"{each.name}: {words}."
        for each in clusters
        if each.report is not None
        for words in each.report.hidden
    ]
    shown = list_table(query, "problems", "Problems", ["Cluster", *_PROBLEM_HEADINGS], rows)
    return tag(
        "div",
        list_table(query, "clusters", "Clusters", headings, clusters, cells),
        tag("h2", f"Problems ({len(rows):,})"),
        (shown, tag("p", _RUNBOOK, class_="quiet")) if rows else tag("p", "None that is known."),
        note_list([*hidden, *lost]),
        id="clusters",
        data_live=True,
    )


_PROBLEM_HEADINGS: Final = ("Problem", "Look", "About", "What", "Since (UTC)")


#: What a problem is about, which the address of a process may stand in front of.
_SUBJECT: Final = re.compile(r"(?:\S*:\S* )?(group|topic|broker|cluster)(?: (.+))?$", re.DOTALL)


_RUNBOOK: Final = "What each means, what to look at and what to do: docs/runbook.md."


def _count_urgent(found: Iterable[FoundProblem]) -> int:
    return sum(each.described.severity == PAGE for each in found)


def _urgency_text(report: ProblemReport) -> str:
    if report.found:
        return "look now" if _count_urgent(report.found) else "look soon"
    return "unknown" if report.is_blind else "ok, in part" if report.hidden else "ok"


def _problem_cells(each: FoundProblem, place: str = "") -> tuple[object, ...]:
    """A row of a table of problems; ``place`` is where the cluster's pages are."""
    return (
        each.kind,
        lanes_page.badge("now" if each.described.severity == PAGE else "soon"),
        _link_subject(each, place),
        each.text,
        "before this page looked" if each.since_ms is None else tag("time", utc(each.since_ms)),
    )


def _link_subject(each: FoundProblem, place: str) -> Html | str:
    """What has a problem, with a link to the page that shows it."""
    found = _SUBJECT.match(each.about)
    if found is None:
        return each.about
    kind, name = found.groups()
    addresses = {
        "group": group_address(name),
        "topic": quote_path("letters", name_=name) if each.kind == "DeadLetters" else topic_address(name),
    }
    return tag("a", each.about, href=place + addresses.get(kind, "cluster"))
