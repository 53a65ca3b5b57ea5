"""HTML of topics: the list, and a topic with its partitions, readers and configs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from ...admin.groups.tables import age_text
from ...admin.notation import byte_text
from ...admin.pages import lanes_page
from ...admin.pages.lists import ListQuery, list_table
from ...admin.pages.markup import Html, Keyed, Number, join, number, tag
from ..layout import (
    LIST_ROWS,
    facts_list,
    group_address,
    node_names,
    note_list,
    quote_path,
    topic_address,
)
from .views import Growth, PartitionRow, SeenTopic, TopicReading, TopicRow

#: Partitions of a topic on one page.
PARTITION_ROWS: Final = 200
#: Groups that a row of the list names.
_MOST_NAMED: Final = 3


def topics(rows: Sequence[TopicRow], notes: Iterable[str], query: ListQuery) -> Html:
    """The list of topics. ``notes`` say what is not known."""
    headings = ["Topic", "Partitions", "Replicas", "Size", "Records", "Records/s", "Bytes/s"]
    headings += ["Read by", "Most unread", "Problems"]
    body = list_table(query, "topics", "Topics", headings, rows, _topic_cells, LIST_ROWS)
    return tag("div", note_list(notes), body, id="rows", data_live=True)


def _topic_cells(row: TopicRow) -> list[object]:
    return [
        tag("a", row.topic, href=topic_address(row.topic)),
        number(row.partitions),
        number(row.replication_factor),
        size_cell(row.size),
        number(row.records),
        *_growth_cells(row.growth),
        _reader_links(row.readings),
        number(row.lag),
        _problem_badge(row),
    ]


def size_cell(size: int | None) -> Number:
    """Bytes as people read them, with their exact number as a title."""
    shown = "-" if size is None else byte_text(size)
    title = None if size is None else f"{size:,} bytes"
    return Number(tag("span", shown, class_="n", title=title), size)


def _growth_cells(growth: Growth) -> list[object]:
    records = None if growth.records is None else f"{growth.records:,.1f}"
    written = None if growth.bytes is None else byte_text(round(growth.bytes))
    cells = ((records, growth.records), (written, growth.bytes))
    return [Number(tag("span", text or "-", class_="n"), key) for text, key in cells]


def _reader_links(readings: Sequence[TopicReading] | None) -> Html | None:
    if not readings:
        return None
    links: list[object] = []
    for each in readings[:_MOST_NAMED]:
        links += [", " if links else None, tag("a", each.group, href=group_address(each.group))]
    more = len(readings) - _MOST_NAMED
    return join((*links, f" and {more:,} more" if more > 0 else None))


def _problem_badge(row: TopicRow) -> Html | None:
    if row.offline:
        return lanes_page.badge("offline")
    if not row.problems:
        return None
    words = "under-replicated" if row.lacking else "groups behind"
    return tag("span", lanes_page.badge("soon"), " ", words)


def topic(found: SeenTopic, query: ListQuery) -> Html:
    """A topic with its partitions, who reads it, and its configs."""
    row = found.row
    lead = [
        ("Partitions", number(row.partitions)),
        ("Replicas", number(row.replication_factor)),
        ("Size", size_cell(row.size)),
        ("On all disks", size_cell(row.disk_size)),
        ("Records", number(row.records)),
        *zip(("Records/s", "Bytes/s"), _growth_cells(row.growth), strict=True),
        ("Id", str(row.topic_id or "-")),
    ]
    records = tag("a", "Look at its records", href=records_address(row.topic))
    problems = (
        tag("li", _problem_link(each.about), f": {each.text}" if each.text else "") for each in row.problems
    )
    return tag(
        "div",
        facts_list(lead),
        tag("p", records),
        note_list(found.notes),
        (tag("h2", "Problems"), tag("ul", problems)) if row.problems else None,
        tag("h2", "Read by"),
        _reading_table(row.readings, query),
        tag("h2", f"Partitions ({len(found.partitions):,})"),
        _partition_table(row.topic, found.partitions, query),
        _config_part(found, query),
        id="topic",
        data_live=True,
    )


def records_address(topic: str, **query: object) -> str:
    """The address of a topic's records, found by this query."""
    return quote_path("records", name_=topic, **query)


def _problem_link(about: str) -> Html:
    kind, _, name = about.partition(" ")
    if kind == "group" and name:
        return tag("a", about, href=group_address(name))
    return tag("a", about, href="cluster")


def _reading_table(readings: Sequence[TopicReading] | None, query: ListQuery) -> Html:
    if readings is None:
        return tag("p", "Not known yet.", class_="quiet")
    if not readings:
        return tag("p", "No group has read it.", class_="quiet")
    headings = ["Group", "State", "Unread", "Oldest unread", "Partitions", "Members"]
    rows = [
        (
            tag("a", each.group or "(no name)", href=group_address(each.group)),
            lanes_page.badge(each.state),
            number(each.records),
            Keyed(tag("span", age_text(each.age_ms) or "-"), each.age_ms),
            number(each.partitions),
            number(each.members),
        )
        for each in readings
    ]
    return list_table(query, "readers", "Groups that read it", headings, rows)


def _partition_table(topic: str, partitions: Sequence[PartitionRow], query: ListQuery) -> Html:
    headings = ["Partition", "Leader", "Replicas", "In sync", "Start", "End", "Records", "Size"]
    cells = partial(_partition_cells, topic)
    return list_table(query, "partitions", "Partitions", headings, partitions, cells, PARTITION_ROWS)


def _partition_cells(topic: str, row: PartitionRow) -> list[object]:
    lacking = len(row.in_sync) < len(row.replicas)
    in_sync = node_names(row.in_sync)
    return [
        tag("a", str(row.partition), href=records_address(topic, partition=row.partition)),
        lanes_page.badge("offline") if row.leader is None else f"node {row.leader}",
        node_names(row.replicas),
        tag("span", lanes_page.badge("soon"), f" {in_sync}") if lacking else in_sync,
        number(row.look.start),
        number(row.look.end),
        number(row.look.records),
        size_cell(row.look.size),
    ]


def _config_part(found: SeenTopic, query: ListQuery) -> Html | None:
    """All configs: those that were set in front, the others behind them."""
    if found.configs is None:
        return None
    by_source = sorted(found.configs, key=lambda each: (each.source == "default", each.name))
    rows = [(each.name, "(secret)" if each.value is None else each.value, each.source) for each in by_source]
    shown = list_table(query, "configs", "Configs", ["Config", "Value", "Set by"], rows)
    return join((tag("h2", "Configs"), shown))
