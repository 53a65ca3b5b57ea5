"""HTML pages, made from views. Every text is escaped (:mod:`kohort.admin.pages.markup`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from ..admin import ListedGroup, ResetPlan
from ..admin.assignors.actions import Scene
from ..admin.assignors.workbench import Trial, named_limits
from ..admin.cluster.commands import ClusterStatus
from ..admin.groups.results import SHARE
from ..admin.notation import utc
from ..admin.pages import lanes_page
from ..admin.pages.assignor_page import balance_table, trial_sections
from ..admin.pages.lanes import Lanes, headline
from ..admin.pages.markup import Html, asset, join, number, table, tag
from ..admin.spark_commands import BATCH_HEADINGS, batch_cells, describe_announced
from ..admin.topics.requests import DescribedTopic, ListedTopic
from ..problems import PAGE, FoundProblem
from ..spark.status import BatchHistory
from .views import Detail

#: Rows of a list on one page.
LIST_ROWS: Final = 50
_MOST_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around every page. ``form_token`` is None where nothing may be changed."""

    bootstrap: str
    form_token: str | None = None


def _quote_path(path: str, **query: object) -> str:
    given = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def group_address(group: str) -> str:
    return f"/group?{urlencode({'name': group})}"


def versioned_address(name: str) -> str:
    """The address of an asset, which changes with its content."""
    return f"/assets/{name}?{hashlib.sha256(asset(name).encode()).hexdigest()[:12]}"


def document(title: str, body: Html, *, events: str | None = None, status: int = 200) -> HTMLResponse:
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
    parts = (("Problems", "/"), ("Groups", "/groups"), ("Topics", "/topics"), ("Cluster", "/cluster"))
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
    return document(title, join((top, main)), events=events, status=status)


def login(words: str) -> HTMLResponse:
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


def _find_form(path: str, text: str, label: str) -> Html:
    box = tag("input", type="search", name="q", value=text, id="q")
    return tag("form", tag("label", label, box), tag("button", "Find"), action=path, role="search")


def _page_links(path: str, text: str, at: int, shown: int, count: int) -> Html:
    """The number of rows, and links to the previous and the next page."""
    links = []
    if at > 1:
        links.append(tag("a", "previous", href=_quote_path(path, q=text, p=at - 1), rel="prev"))
    if at * LIST_ROWS < count:
        links.append(tag("a", "next", href=_quote_path(path, q=text, p=at + 1), rel="next"))
    first = (at - 1) * LIST_ROWS
    words = f"{first + 1:,} to {first + shown:,} of {count:,} " if shown else "none "
    return tag("p", words, *(part for link in links for part in (link, " ")), class_="quiet")


def problems(found: Sequence[FoundProblem], silent: Mapping[str, str]) -> Html:
    """What is wrong, the most severe first. ``silent`` are processes that give no metrics, and why."""
    urgent = sum(each.described.severity == PAGE for each in found)
    lead = [
        ("State", lanes_page.badge("look now" if urgent else "look soon" if found else "ok")),
        ("To look at now", number(urgent)),
        ("That can wait", number(len(found) - urgent)),
    ]
    rows = (
        (
            each.kind,
            lanes_page.badge("now" if each.described.severity == PAGE else "soon"),
            _link_subject(each.about),
            each.text,
            "before this page looked" if each.since_ms is None else tag("time", utc(each.since_ms)),
        )
        for each in found[:_MOST_ROWS]
    )
    shown = table("Problems", ["Problem", "Look", "About", "What", "Since (UTC)"], rows)
    words = "What each means, what to look at and what to do: docs/runbook.md."
    nothing = "Nothing is wrong, as far as brokers and the metrics given with --metrics tell."
    lost = [tag("li", f"No metrics at {address}: {reason}") for address, reason in silent.items()]
    return tag(
        "div",
        _facts_list(lead),
        (shown, tag("p", words, class_="quiet")) if found else tag("p", nothing),
        tag("ul", lost, class_="notes") if lost else None,
        id="problems",
        data_live=True,
    )


def _link_subject(about: str) -> Html | str:
    """What has a problem, with a link to the page that shows it."""
    kind, _, name = about.partition(" ")
    if kind == "group" and name:
        return tag("a", about, href=group_address(name))
    return tag("a", about, href="/cluster") if kind in ("broker", "cluster") else about


def groups(
    rows: Sequence[ListedGroup], details: Mapping[str, Detail], text: str, at: int, count: int
) -> Html:
    def cells(row: ListedGroup) -> Iterable[object]:
        known = details.get(row.group, Detail())
        last = known.last
        yield tag("a", row.group or "(no name)", href=group_address(row.group))
        yield known.error or lanes_page.badge(row.state)
        yield row.group_type or row.protocol_type or None
        yield number(known.members)
        yield number(known.lag)
        yield from (None, None) if known.behind is None else lanes_page.lag_texts(known.behind)
        yield None if last is None else tag("time", utc(last.timestamp_ms))
        yield None if last is None else headline(last)

    headings = ["Group", "State", "Type", "Members", "Lag", "Oldest unread", "Trend"]
    headings += ["Last rebalance (UTC)", "Why"]
    body = table("Groups", headings, (tuple(cells(row)) for row in rows))
    live = tag("div", _page_links("/groups", text, at, len(rows), count), body, id="rows", data_live=True)
    return join((_find_form("/groups", text, "Groups with this text"), live))


def topics(rows: Sequence[ListedTopic], text: str, at: int, count: int) -> Html:
    body = table(
        "Topics",
        ["Topic", "Partitions", "Replication", "Id"],
        (
            (
                tag("a", row.topic, href=_quote_path("/topic", name_=row.topic)),
                number(row.partitions),
                number(row.replication_factor),
                row.topic_id,
            )
            for row in rows
        ),
    )
    live = tag("div", _page_links("/topics", text, at, len(rows), count), body, id="rows", data_live=True)
    return join((_find_form("/topics", text, "Topics with this text"), live))


def topic(found: DescribedTopic) -> Html:
    lead = [
        ("Partitions", number(len(found.partitions))),
        ("Replication factor", number(found.replication_factor)),
        ("Id", str(found.topic_id or "-")),
    ]
    configs = table(
        "Configs", ["Config", "Value", "Set by"], ((c.name, c.value, c.source) for c in found.configs)
    )
    rows = (
        (
            str(each.partition),
            lanes_page.badge("offline") if each.leader is None else f"node {each.leader}",
            _node_names(each.replicas),
            _node_names(each.in_sync),
            number(each.start_offset),
            number(each.end_offset),
        )
        for each in found.partitions[:_MOST_ROWS]
    )
    headings = ["Partition", "Leader", "Replicas", "In sync", "Start", "End"]
    return tag(
        "div",
        _facts_list(lead),
        (tag("h2", "Configs"), configs) if found.configs else None,
        tag("h2", f"Partitions ({len(found.partitions):,})"),
        table("Partitions", headings, rows),
        id="topic",
        data_live=True,
    )


def _facts_list(rows: Iterable[tuple[str, object]]) -> Html:
    return tag(
        "dl", (tag("div", tag("dt", label), tag("dd", value)) for label, value in rows), class_="facts"
    )


def _node_names(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _state_text(found: ClusterStatus) -> str:
    if found.offline:
        return "offline"
    if any(each.disk is not None and each.disk.failing for each in found.brokers):
        return "disk failing"
    return "under-replicated" if found.under_replicated else "ok"


def cluster(frame: Frame, found: ClusterStatus) -> Html:
    state = _state_text(found)
    lead = [
        ("State", lanes_page.badge(state)),
        ("Cluster", found.cluster_id or "-"),
        ("Brokers", number(len(found.brokers))),
        ("Partitions", number(found.partitions)),
        ("Offline", number(found.offline)),
        ("Lack replicas", number(len(found.under_replicated))),
    ]
    brokers = table(
        "Brokers",
        ["Broker", "Address", "Rack", "Controller", "Leads", "Replicas", "Not in sync", "Disk"],
        (
            (
                *(str(b.node_id), b.address, b.rack, "yes" if b.controller else None),
                *map(number, (b.leads, b.replicas, b.lagging)),
                None if b.disk is None else str(b.disk),
            )
            for b in found.brokers
        ),
    )
    ailing = table(
        "Partitions that lack replicas",
        ["Partition", "Leader", "Replicas", "In sync"],
        (
            (
                f"{each.topic}-{each.partition}",
                lanes_page.badge("offline") if each.leader is None else f"node {each.leader}",
                _node_names(each.replicas),
                _node_names(each.in_sync),
            )
            for each in found.under_replicated[:_MOST_ROWS]
        ),
    )
    moving = table(
        "Reassignments",
        ["Partition", "Replicas", "Adding", "Removing", "Not in sync yet"],
        (
            (
                f"{each.topic}-{each.partition}",
                *map(_node_names, (each.replicas, each.adding, each.removing, each.missing)),
            )
            for each in found.reassignments[:_MOST_ROWS]
        ),
    )
    live = tag(
        "div",
        _facts_list(lead),
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
    history: BatchHistory | None = None,
) -> Html:
    # always there, so that a job's first batch appears without a reload
    job = tag("div", None if history is None else batches(history), id="batches", data_live=True)
    # members of a share group have no assignor of ours
    tried = None if lanes.now.group_type == SHARE else _what_if(lanes.now.group, assignors)
    return join((parts, job, tried, _change_forms(frame, lanes)))


def batches(history: BatchHistory) -> Html:
    """The batches of a Spark job, the newest first, as ``kohort spark status`` shows them."""
    words: list[str] = []
    if history.announced is not None:
        words.append(f"Batch {history.announced.number} is under way{describe_announced(history)}.")
    if history.unknown:
        words.append(f"What the batches so far did is unknown: {history.unknown}.")
    cells = (
        [number(cell) if isinstance(cell, int) else cell for cell in row]
        for row in reversed([*batch_cells(history)])
    )
    headings = [each.capitalize() for each in BATCH_HEADINGS]
    rows = table("Batches of the Spark job", headings, cells) if history.batches else None
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
        action="/what-if",
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


def _hidden_fields(frame: Frame, **values: str) -> Html:
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
            _hidden_fields(frame, name_=name),
            tag("label", "Reset its offsets to", tag("select", options, name="to")),
            tag("label", "Time, offset or number", tag("input", name="value")),
            tag(
                "label",
                "Topic, or none for all",
                tag("input", name="topic", placeholder="orders or orders:0,3"),
            ),
            tag("button", "Show what it would do"),
            method="post",
            action="/group/reset",
        )
        body = join((reset, _confirm_form(frame, "/group/delete", name, "Delete the group with its offsets")))
    return tag(
        "section", tag("h2", "Changes"), tag("div", body, id="changes", data_live=True), aria_label="Changes"
    )


def _confirm_form(frame: Frame, action: str, name: str, words: str, **values: str) -> Html:
    """A form that does something once the name has been typed."""
    return tag(
        "form",
        _hidden_fields(frame, name_=name, **values),
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
        form = _confirm_form(frame, "/group/reset", plan.group, "Commit these offsets", **asked)
    return join(
        (
            tag("p", tag("a", f"Group {plan.group}", href=group_address(plan.group))),
            tag("p", words, role="status"),
            table("Offsets", ["Partition", "Now", "New", "Note"], rows),
            form,
        )
    )


def elect(frame: Frame) -> Html | None:
    if frame.form_token is None:
        return None
    sure = tag(
        "label", "Yes, elect", tag("input", type="checkbox", name="confirm", value="elect", required=True)
    )
    form = tag(
        "form",
        _hidden_fields(frame),
        sure,
        tag("button", "Let the first replicas lead", class_="danger"),
        method="post",
        action="/elect",
    )
    return tag("section", tag("h2", "Changes"), form, aria_label="Changes")


def outcomes(back: str, words: str, rows: Iterable[tuple[str, str]]) -> Html:
    """Outcomes of a change."""
    return join((tag("p", tag("a", "Back", href=back)), table(words, ["What", "Result"], rows)))
