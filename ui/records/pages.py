"""HTML of records: the form to search, what was found and how far, and one record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from ...admin.notation import byte_text, utc
from ...admin.pages.markup import Html, join, number, table, tag
from ...admin.records.search import FoundRecords, SearchCursor
from ..layout import facts_list, topic_address
from .values import ShownBytes

#: Fields of the address of a search, and where a text may be.
FIELDS: Final = (
    *("name", "order", "partition", "offset", "since", "until", "key", "text", "in", "committed", "rows"),
)
PLACES: Final = {"": "key, value or headers", "key": "key", "value": "value", "headers": "headers"}
_ORDERS: Final = {"": "newest first", "oldest": "oldest first"}
#: Kinds of bytes that need no word to be told.
_PLAIN: Final = ("text", "json", "number")


class ShownRecord(NamedTuple):
    """A record as it is shown. ``headers`` are the first of ``header_count``; ``size`` is in bytes."""

    partition: int
    offset: int
    timestamp_ms: int
    key: ShownBytes
    value: ShownBytes
    headers: tuple[tuple[str, ShownBytes], ...]
    header_count: int
    size: int


def records(given: Mapping[str, str], found: FoundRecords[ShownRecord] | None, rows: Sequence[int]) -> Html:
    """The form and what was found; None if nothing could be. ``rows``: how many a page may have."""
    name = given.get("name", "")
    back = tag("p", tag("a", f"Topic {name}", href=topic_address(name)))
    if found is None:
        return join((back, _search_form(given, rows)))
    shown = table("Records", _HEADINGS, (_cells(given, each) for each in found.found))
    return join(
        (
            back,
            _search_form(given, rows),
            _progress(given, found.cursor, len(found.found), has_more=found.has_more),
            tag("ul", (tag("li", note) for note in found.notes), class_="notes") if found.notes else None,
            shown if found.found else None,
            _go_on(given, found, "Search on" if _is_narrow(given) else "Further records"),
            _export_links(given),
        )
    )


_HEADINGS: Final = ("Record", "Written (UTC)", "Key", "Value", "Headers", "Size")


def _is_narrow(given: Mapping[str, str]) -> bool:
    """Whether a search passes records that it has read."""
    return any(given.get(name) for name in ("key", "text", "since", "until"))


def _search_form(given: Mapping[str, str], rows: Sequence[int]) -> Html:
    def text(name: str, label: str, **more: object) -> Html:
        return tag("label", label, tag("input", name=name, value=given.get(name, ""), **more))

    def choice(name: str, label: str, words: Mapping[str, str]) -> Html:
        now = given.get(name, "")
        options = (tag("option", word, value=value, selected=value == now) for value, word in words.items())
        return tag("label", label, tag("select", options, name=name))

    times = "2026-02-03T04:05, 2h, today"
    committed = tag(
        "label",
        tag("input", type="checkbox", name="committed", value="1", checked="committed" in given),
        " committed only",
        class_="tick",
    )
    return tag(
        "form",
        tag("input", type="hidden", name="name", value=given.get("name", "")),
        choice("order", "Order", _ORDERS),
        text("partition", "Partition, or none for all", inputmode="numeric", size=6),
        text("offset", "From offset", inputmode="numeric", size=12),
        text("since", "Since (UTC)", placeholder=times),
        text("until", "Until (UTC)", placeholder=times),
        text("key", "Key is"),
        text("text", "Text", type="search"),
        choice("in", "in", PLACES),
        choice("rows", "Rows", {"" if each == rows[0] else str(each): str(each) for each in rows}),
        committed,
        tag("button", "Search"),
        action="records",
        role="search",
    )


def _progress(given: Mapping[str, str], cursor: SearchCursor, count: int, *, has_more: bool) -> Html:
    """How far a search is."""
    share = cursor.looked_at / cursor.total if cursor.total else 1.0
    words = f"{count:,} shown. " if count else "Nothing found so far. " if has_more else "Nothing found. "
    words += f"{cursor.looked_at:,} of {cursor.total:,} offsets looked at ({share:.0%}), "
    words += f"{cursor.records:,} records read, {byte_text(cursor.size)}."
    bar = tag("progress", value=cursor.looked_at, max=max(1, cursor.total), aria_label="Offsets looked at")
    return tag("p", bar if _is_narrow(given) else None, " ", words, class_="quiet", role="status")


def _go_on(given: Mapping[str, str], found: FoundRecords[ShownRecord], words: str) -> Html | None:
    if not found.has_more:
        return None
    asked = {name: value for name, value in given.items() if name in FIELDS and value}
    href = f"records?{urlencode({**asked, 'from': found.cursor.text()})}"
    return tag("p", tag("a", words, href=href, rel="next", id="go-on"))


def _export_links(given: Mapping[str, str]) -> Html:
    asked = {name: value for name, value in given.items() if name in FIELDS and value}
    links = (
        tag("a", words, href=f"export?{urlencode({**asked, 'format': kind})}", download=True)
        for kind, words in (("json", "JSON lines"), ("csv", "CSV"))
    )
    first, second = links
    return tag("p", "Export all that this search finds: ", first, " or ", second, class_="quiet")


def _cells(given: Mapping[str, str], row: ShownRecord) -> list[object]:
    place = f"{row.partition} at {row.offset}"
    return [
        tag("a", place, href=_record_address(given, "record", row.partition, row.offset)),
        tag("time", utc(row.timestamp_ms)) if row.timestamp_ms >= 0 else None,
        _brief(row.key),
        "tombstone" if row.value.kind == "null" else _brief(row.value),
        _header_list(row),
        number(row.size),
    ]


def _record_address(given: Mapping[str, str], page: str, partition: int, offset: int, **more: str) -> str:
    asked = {"name": given.get("name", ""), "partition": partition, "offset": offset, **more}
    return f"{page}?{urlencode(asked)}"


def _brief(shown: ShownBytes) -> Html:
    """Bytes in a list: their kind if it is not plain, and the size of what is cut."""
    kind = None if shown.kind in _PLAIN else tag("span", f"{shown.kind} ", class_="quiet")
    cut = tag("span", f" … ({byte_text(shown.size)})", class_="quiet") if shown.is_cut else None
    return tag("span", kind, shown.text, cut, _note(shown), class_="value")


def _note(shown: ShownBytes) -> Html | None:
    return tag("span", f" ({shown.note})", class_="quiet") if shown.note else None


def _header_list(row: ShownRecord) -> Html | None:
    if not row.header_count:
        return None
    more = row.header_count - len(row.headers)
    parts = [tag("div", tag("b", name), ": ", _brief(value)) for name, value in row.headers]
    return join((*parts, tag("div", f"and {more:,} more", class_="quiet") if more else None))


def record(given: Mapping[str, str], found: ShownRecord | None) -> Html:
    """One record; None where there is none at this offset."""
    name, partition, offset = given.get("name", ""), int(given["partition"]), int(given["offset"])
    links: list[object] = [tag("a", f"Topic {name}", href=topic_address(name)), " "]
    around = {"name": name, "partition": partition, "offset": offset, "order": "oldest"}
    links += [tag("a", "records from here on", href=f"records?{urlencode(around)}"), " "]
    if offset:
        href = _record_address(given, "record", partition, offset - 1)
        links += [tag("a", "previous offset", href=href, rel="prev"), " "]
    href = _record_address(given, "record", partition, offset + 1)
    links.append(tag("a", "next offset", href=href, rel="next"))
    if found is None:
        words = "There is no record at this offset: it lies outside of the log, compaction or retention has "
        words += "removed it, it ends a transaction, or its batch is damaged."
        return join((tag("p", links), tag("p", words)))
    lead = [
        ("Written (UTC)", tag("time", utc(found.timestamp_ms)) if found.timestamp_ms >= 0 else "-"),
        ("Size", f"{byte_text(found.size)} ({found.size:,} bytes)"),
        ("Headers", number(found.header_count)),
    ]
    headers = table("Headers", ["Header", "Value"], ((name, _brief(value)) for name, value in found.headers))
    return join(
        (
            tag("p", links),
            facts_list(lead),
            _part(given, "Key", found.key, partition, offset),
            _part(given, "Value", found.value, partition, offset),
            (tag("h2", f"Headers ({found.header_count:,})"), headers) if found.headers else None,
        )
    )


def _part(given: Mapping[str, str], label: str, shown: ShownBytes, partition: int, offset: int) -> Html:
    words = f"{shown.kind}, {shown.size:,} bytes" + (", the beginning is shown" if shown.is_cut else "")
    if shown.kind == "null":
        words = "null: a tombstone" if label == "Value" else "null"
    href = _record_address(given, "value", partition, offset, part=label.lower())
    link = tag("a", "all bytes as a file", href=href, download=True) if shown.size else None
    note = tag("p", shown.note, class_="quiet") if shown.note else None
    body = tag("pre", _lines(shown.text), tabindex=0, role="region", aria_label=label) if shown.size else None
    return join((tag("h2", label), tag("p", words, ". ", link, class_="quiet"), note, body))


def _lines(text: str) -> Iterable[object]:
    """Text of several lines: what else controls a terminal or a page is replaced."""
    for at, line in enumerate(text.split("\n")):
        yield from ([Html("\n")] if at else [])
        yield line.rstrip("\r").replace("\t", "    ")
