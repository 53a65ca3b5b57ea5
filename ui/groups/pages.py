"""HTML of groups: the list, a group, its Spark batches, what another assignor would do, and resets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from ...admin import ListedGroup, ResetPlan
from ...admin.assignors.actions import Scene
from ...admin.assignors.workbench import Trial, named_limits
from ...admin.groups.results import SHARE
from ...admin.notation import to_sentence, utc
from ...admin.pages import lanes_page
from ...admin.pages.assignor_page import balance_table, trial_sections
from ...admin.pages.lanes import Lanes, headline
from ...admin.pages.lists import Columns, ListQuery, list_table
from ...admin.pages.markup import Html, Keyed, join, number, table, tag
from ...admin.spark_commands import BATCH_HEADINGS, batch_cells, describe_announced
from ...spark.status import BatchHistory
from ..layout import (
    LIST_ROWS,
    Frame,
    confirm_form,
    group_address,
    hidden_fields,
    note_list,
    topic_address,
)
from .views import MOST_DETAILED, Detail

#: The column of batches that has their start.
_STARTED: Final = BATCH_HEADINGS.index("STARTED")


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
