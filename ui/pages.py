"""HTML pages, made from views. Every text is escaped (:mod:`kohort.admin.pages.markup`)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from ..admin import ListedGroup, ResetPlan
from ..admin.assignors.actions import Scene
from ..admin.assignors.workbench import Trial, named_limits
from ..admin.cluster.commands import ClusterStatus
from ..admin.cluster.problems import ProblemReport
from ..admin.groups.results import SHARE
from ..admin.notation import to_sentence, utc
from ..admin.pages import lanes_page
from ..admin.pages.assignor_page import balance_table, trial_sections
from ..admin.pages.lanes import Lanes, headline
from ..admin.pages.lists import Columns, ListQuery, list_table
from ..admin.pages.markup import Html, Keyed, asset, join, number, table, tag
from ..admin.spark_commands import BATCH_HEADINGS, batch_cells, describe_announced
from ..problems import PAGE, FoundProblem
from ..spark.status import BatchHistory
from .views import MOST_DETAILED, Detail

#: Rows of a list on one page.
LIST_ROWS: Final = 50
#: The column of batches that has their start.
_STARTED: Final = BATCH_HEADINGS.index("STARTED")


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around every page. ``form_token`` is None where nothing may be changed. ``names`` are those
    of all clusters, where there are several; ``name`` is "" on the page of all.
    """

    bootstrap: str
    form_token: str | None = None
    name: str = ""
    names: Sequence[str] = ()


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


def quote_path(path: str, **query: object) -> str:
    given = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def group_address(group: str) -> str:
    """Where the page of a group is, from the page of its cluster."""
    return f"group?{urlencode({'name': group})}"


def versioned_address(name: str) -> str:
    """The address of an asset, which changes with its content."""
    return f"/assets/{name}?{hashlib.sha256(asset(name).encode()).hexdigest()[:12]}"


def document(title: str, body: Html, *, events: str | None = None, status: int = 200) -> HTMLResponse:
    """A whole HTML document with style, script and title."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · kohort"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href=versioned_address("page.css")),
        tag("script", src=versioned_address("page.js"), defer=True),
    )
    shown = tag("html", head, tag("body", body, data_events=events), lang="en")
    return HTMLResponse(f"<!DOCTYPE html>\n{shown}\n", status)


def page(
    frame: Frame,
    title: str,
    *body: object,
    at: str = "",
    trouble: str = "",
    events: str | None = None,
    status: int = 200,
) -> HTMLResponse:
    """A page with its navigation. ``at`` is the part it belongs to."""
    parts = [
        *(("Problems", "./"), ("Groups", "groups"), ("Topics", "topics")),
        *(("Dead letters", "deadletters"), ("Cluster", "cluster")),
    ]
    if frame.names:
        parts = [("All clusters", "../../"), *parts] if frame.name else [("All clusters", "./")]
    links = (tag("a", name, href=href, aria_current="page" if name == at else None) for name, href in parts)
    where = tag(
        "span",
        frame.bootstrap,
        "" if frame.form_token is None else " · changes allowed",
        class_="where quiet",
    )
    top = tag(
        "header",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("b", "kohort"),
        tag("nav", links, aria_label="Pages", class_="top-links"),
        _cluster_links(frame, dict(parts).get(at, "./")) if frame.names else None,
        where,
        class_="top",
    )
    main = tag(
        "main",
        tag("h1", title),
        tag("p", trouble, id="trouble", class_="trouble", role="status"),
        tag("p", id="news", class_="skip", role="status"),
        *body,
        id="main",
        tabindex=-1,
    )
    named = f"{title} · {frame.name}" if frame.name else title
    return document(named, join((top, main)), events=events, status=status)


def _cluster_links(frame: Frame, part: str) -> Html:
    """Links to the same part of the other clusters."""
    where = f"../{{}}/{part.removeprefix('./')}" if frame.name else "at/{}/"
    links = (
        tag("a", name, href=where.format(name), aria_current="true" if name == frame.name else None)
        for name in frame.names
    )
    shown = frame.name or "Clusters"
    unfolded = tag("ul", (tag("li", link) for link in links))
    return tag("nav", tag("details", tag("summary", shown), unfolded, class_="picker"), aria_label="Clusters")


def login(words: str) -> HTMLResponse:
    """The page that asks for the token."""
    form = tag(
        "form",
        tag(
            "label",
            "Token",
            tag(
                "input",
                name="token",
                type="password",
                required=True,
                autofocus=True,
                autocomplete="current-password",
            ),
        ),
        tag("button", "Open"),
        method="post",
        action="/login",
    )
    told = tag("p", "kohort ui printed the token when it started.", class_="quiet")
    body = tag("main", tag("h1", "kohort ui"), tag("p", words, class_="trouble", role="alert"), told, form)
    return document("Token", body, status=401)


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


def note_list(notes: Iterable[str]) -> Html | None:
    """What a page cannot show, and why; None if there is nothing to say."""
    shown = [tag("li", each) for each in notes]
    return tag("ul", shown, class_="notes") if shown else None


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


def topic_address(topic: str) -> str:
    """Where the page of a topic is, from the page of its cluster."""
    return quote_path("topic", name_=topic)


def _group_columns(count: int) -> Columns:
    headings = ["Group", "State", "Type", "Members", "Lag", "Oldest unread", "Trend"]
    rebalance = ["Last rebalance (UTC)", "Why"]
    return Columns([*headings, *rebalance], 3, () if count <= MOST_DETAILED else rebalance)


def _group_cells(details: Mapping[str, Detail]) -> Callable[[ListedGroup], Sequence[object]]:
    def cells(row: ListedGroup) -> Iterable[object]:
        known = details.get(row.group, Detail())
        last = known.last
        yield tag("a", row.group or "(no name)", href=group_address(row.group))
        yield known.error or lanes_page.badge(row.state)
        yield row.group_type or row.protocol_type or None
        yield number(known.members)
        yield number(known.lag)
        if known.behind is None:
            yield from (None, None)
        else:
            oldest, trend = lanes_page.lag_texts(known.behind)
            yield Keyed(tag("span", oldest), known.behind.age_ms)
            yield trend
        yield None if last is None else tag("time", utc(last.timestamp_ms))
        yield None if last is None else headline(last)

    return lambda row: tuple(cells(row))


def choose_groups(
    rows: Sequence[ListedGroup], details: Mapping[str, Detail], query: ListQuery
) -> tuple[Sequence[ListedGroup], bool]:
    """The groups of the page that is asked for, and whether details of all groups decide on them."""
    columns = _group_columns(len(rows))
    order = query.sorted_by("groups", columns)
    chosen = query.choose("groups", columns, rows, _group_cells(details), LIST_ROWS)
    return chosen.rows, order is not None and order[0] >= (columns.searched or 0)


def groups(
    rows: Sequence[ListedGroup],
    details: Mapping[str, Detail],
    query: ListQuery,
    hidden: Iterable[str] = (),
) -> Html:
    """The table of groups, each with its lag, members and last rebalance. ``hidden`` says which lack."""
    body = list_table(
        query, "groups", "Groups", _group_columns(len(rows)), rows, _group_cells(details), LIST_ROWS
    )
    return tag("div", note_list(map(to_sentence, hidden)), body, id="rows", data_live=True)


def facts_list(rows: Iterable[tuple[str, object]]) -> Html:
    """Facts as a list of terms and descriptions."""
    return tag(
        "dl", (tag("div", tag("dt", label), tag("dd", value)) for label, value in rows), class_="facts"
    )


def node_names(numbers: Iterable[int]) -> str:
    """Node ids, or "none"."""
    return ", ".join(map(str, numbers)) or "none"


def _state_text(found: ClusterStatus) -> str:
    if found.offline:
        return "offline"
    if any(each.disk is not None and (each.disk.failing or each.disk.hanging) for each in found.brokers):
        return "disk failing"
    return "under-replicated" if found.under_replicated else "ok"


def cluster(frame: Frame, found: ClusterStatus, query: ListQuery, hidden: Sequence[str] = ()) -> Html:
    """Brokers and their disks, replicas that are behind, and reassignments under way. ``hidden`` says which
    partitions are not looked at.
    """
    state = _state_text(found)
    if hidden and state == "ok":
        state = "ok, in part" if found.partitions else "unknown"
    lead = [
        ("State", lanes_page.badge(state)),
        ("Cluster", found.cluster_id or "-"),
        ("Brokers", number(len(found.brokers))),
        ("Partitions", number(found.partitions)),
        ("Offline", number(found.offline)),
        ("Lack replicas", number(len(found.under_replicated))),
    ]
    brokers = list_table(
        query,
        "brokers",
        "Brokers",
        ["Broker", "Address", "Rack", "Controller", "Leads", "Replicas", "Not in sync", "Disk"],
        [
            (
                *(str(b.node_id), b.address, b.rack, "yes" if b.controller else None),
                *map(number, (b.leads, b.replicas, b.lagging)),
                None if b.disk is None else str(b.disk),
            )
            for b in found.brokers
        ],
    )
    ailing = list_table(
        query,
        "ailing",
        "Partitions that lack replicas",
        ["Partition", "Leader", "Replicas", "In sync"],
        [
            (
                tag("a", f"{each.topic}-{each.partition}", href=topic_address(each.topic)),
                lanes_page.badge("offline") if each.leader is None else f"node {each.leader}",
                node_names(each.replicas),
                node_names(each.in_sync),
            )
            for each in found.under_replicated
        ],
    )
    moving = list_table(
        query,
        "reassignments",
        "Reassignments",
        ["Partition", "Replicas", "Adding", "Removing", "Not in sync yet"],
        [
            (
                tag("a", f"{each.topic}-{each.partition}", href=topic_address(each.topic)),
                *map(node_names, (each.replicas, each.adding, each.removing, each.missing)),
            )
            for each in found.reassignments
        ],
    )
    live = tag(
        "div",
        facts_list(lead),
        note_list(map(to_sentence, hidden)),
        tag("h2", "Brokers"),
        brokers,
        (tag("h2", "Partitions that lack replicas"), ailing) if found.under_replicated else None,
        (tag("h2", "Reassignments"), moving) if found.reassignments else None,
        id="cluster",
        data_live=True,
    )
    return join((live, elect(frame)))


# --- a group ------------------------------------------------------------------------------------------------


def group(
    frame: Frame,
    lanes: Lanes,
    parts: Html,
    assignors: Sequence[str],
    query: ListQuery,
    history: BatchHistory | None = None,
    another_time: Html | None = None,
) -> Html:
    """A group: lanes, members, partitions, rebalances, and forms where changes are allowed."""
    # always there, so that a job's first batch appears without a reload
    job = tag("div", None if history is None else batches(history, query), id="batches", data_live=True)
    # members of a share group have no assignor of ours
    tried = archived = None
    if lanes.now.group_type == SHARE:
        address = f"archived?{urlencode({'name': lanes.now.group})}"
        archived = tag("p", tag("a", "Records that it archived, and their replay", href=address))
    else:
        tried = _what_if(lanes.now.group, assignors)
    return join((parts, another_time, _topic_links(lanes), archived, job, tried, _change_forms(frame, lanes)))


def _topic_links(lanes: Lanes) -> Html:
    """The topics that the group has partitions of; always there, as they may come later."""
    links: list[object] = []
    for topic in sorted({lane.topic for lane in lanes.lanes})[:LIST_ROWS]:
        links += [", " if links else "Topics: ", tag("a", topic, href=topic_address(topic))]
    return tag("p", links, id="topics", data_live=True)


def batches(history: BatchHistory, query: ListQuery) -> Html:
    """The batches of a Spark job, the newest first, as ``kohort spark status`` shows them."""
    words: list[str] = []
    if history.announced is not None:
        words.append(f"Batch {history.announced.number} is under way{describe_announced(history)}.")
    if history.unknown:
        words.append(f"What the batches so far did is unknown: {history.unknown}.")
    cells = [
        [
            number(cell) if isinstance(cell, int) else tag("time", cell) if at == _STARTED else cell
            for at, cell in enumerate(row)
        ]
        for row in reversed([*batch_cells(history)])
    ]
    headings = [each.capitalize() for each in BATCH_HEADINGS]
    shown = list_table(query, "batches", "Batches of the Spark job", headings, cells)
    rows = shown if history.batches else None
    notes = tag("ul", (tag("li", each) for each in words), class_="notes") if words else None
    return tag("section", tag("h2", "Batches"), notes, rows, aria_label="Batches")


def _what_if(name: str, assignors: Sequence[str], chosen: Mapping[str, str] | None = None) -> Html:
    given = chosen or {}
    options = (tag("option", each, selected=each == given.get("assignor")) for each in assignors)
    form = tag(
        "form",
        tag("input", type="hidden", name="name", value=name),
        tag("label", "Assignor", tag("select", options, name="assignor")),
        tag(
            "label",
            "Members that join",
            tag("input", name="join", inputmode="numeric", value=given.get("join", "0")),
        ),
        tag(
            "label",
            "Members that leave, with commas",
            tag("input", name="leave", value=given.get("leave", "")),
        ),
        tag("button", "Try"),
        action="what-if",
    )
    words = tag("p", "What the group would get from an assignor. Nothing is changed.", class_="quiet")
    return tag("section", tag("h2", "What if"), words, form, aria_label="What if")


def what_if(
    name: str, assignors: Sequence[str], given: Mapping[str, str], scene: Scene, trial: Trial
) -> Html:
    """Balance before and after, and partitions that would move, as ``kohort assignors try`` shows them."""
    now, then = scene.now, scene.then
    limits = [str(limit) for limit in named_limits(then)]
    return join(
        (
            tag("p", tag("a", f"Group {name}", href=group_address(name))),
            _what_if(name, assignors, given),
            tag("h2", "Balance"),
            balance_table(now, [trial]),
            tag("p", "Why it cannot be better:") if limits else None,
            tag("ul", (tag("li", each) for each in limits)),
            trial_sections(now, then, trial),
        )
    )


# --- changes ------------------------------------------------------------------------------------------------


def hidden_fields(frame: Frame, **values: str) -> Html:
    """The hidden fields of a form that changes something, its token among them."""
    given = {"csrf": frame.form_token or "", **{name.rstrip("_"): value for name, value in values.items()}}
    return join(tag("input", type="hidden", name=name, value=value) for name, value in given.items())


RESETS: Final = {
    "earliest": "the first record there is",
    "latest": "after the last record",
    "current": "the committed offset, moved into the range of the log",
    "timestamp": "the first record at or after a time (ISO 8601, UTC)",
    "offset": "this offset",
    "shift": "this many records forward; negative: back",
}


def _change_forms(frame: Frame, lanes: Lanes) -> Html | None:
    """Forms for changes to a group without members; they disappear when members join."""
    if frame.form_token is None:
        return None
    name = lanes.now.group
    if not lanes.now.exists:
        body = tag("p", "The group does not exist.", class_="quiet")
    elif lanes.now.state != "Empty":
        body = tag(
            "p", "A group without members can be reset and deleted: stop its members first.", class_="quiet"
        )
    else:
        options = (tag("option", f"{kind}: {words}", value=kind) for kind, words in RESETS.items())
        reset = tag(
            "form",
            hidden_fields(frame, name_=name),
            tag("label", "Reset its offsets to", tag("select", options, name="to")),
            tag("label", "Time, offset or number", tag("input", name="value")),
            tag(
                "label",
                "Topic, or none for all",
                tag("input", name="topic", placeholder="orders or orders:0,3"),
            ),
            tag("button", "Show what it would do"),
            method="post",
            action="reset-offsets",
        )
        body = join((reset, confirm_form(frame, "delete-group", name, "Delete the group with its offsets")))
    return tag(
        "section", tag("h2", "Changes"), tag("div", body, id="changes", data_live=True), aria_label="Changes"
    )


def confirm_form(frame: Frame, action: str, name: str, words: str, **values: str) -> Html:
    """A form that does something once the name has been typed."""
    return tag(
        "form",
        hidden_fields(frame, name_=name, **values),
        tag(
            "label",
            f"Type {name} to confirm",
            tag("input", name="confirm", required=True, autocomplete="off"),
        ),
        tag("button", words, class_="danger"),
        method="post",
        action=action,
    )


def reset_page(frame: Frame, plan: ResetPlan, asked: Mapping[str, str]) -> Html:
    """The plan or the outcome of a reset; a possible reset has a form to confirm it."""
    rows = (
        (f"{c.topic}-{c.partition}", number(c.current_offset), number(c.new_offset), c.note or None)
        for c in plan.changes
    )
    words = plan.refusal or (
        "These offsets are committed." if plan.executed else "Nothing has been changed yet."
    )
    form = None
    if plan.refusal is None and not plan.executed and plan.changes:
        form = confirm_form(frame, "reset-offsets", plan.group, "Commit these offsets", **asked)
    return join(
        (
            tag("p", tag("a", f"Group {plan.group}", href=group_address(plan.group))),
            tag("p", words, role="status"),
            table("Offsets", ["Partition", "Now", "New", "Note"], rows),
            form,
        )
    )


def elect(frame: Frame) -> Html | None:
    """What became of an election, by partition."""
    if frame.form_token is None:
        return None
    sure = tag(
        "label", "Yes, elect", tag("input", type="checkbox", name="confirm", value="elect", required=True)
    )
    form = tag(
        "form",
        hidden_fields(frame),
        sure,
        tag("button", "Let the first replicas lead", class_="danger"),
        method="post",
        action="elect",
    )
    return tag("section", tag("h2", "Changes"), form, aria_label="Changes")


def outcomes(back: str, words: str, rows: Iterable[tuple[str, str]]) -> Html:
    """Outcomes of a change."""
    return join((tag("p", tag("a", "Back", href=back)), table(words, ["What", "Result"], rows)))
