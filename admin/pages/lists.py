"""Tables that readers sort, filter and turn over, whatever is in them.

What a reader asks for is in the address, so it survives a refresh and can be sent to others: ``q.ID`` is the
text to look for, ``sort.ID`` the column (``-`` before it: largest first), ``p.ID`` the page, each for the
table with this id. The page's script sends the form without loading the page; it also works without a script.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from .markup import Html, Keyed, join, table, tag

RowT = TypeVar("RowT")

#: Most rows of a table at a time: more is too much for a browser.
MOST_ROWS: Final = 1_000


class Columns(NamedTuple):
    """The columns of a table: their headings; how many of the first are searched (None: all); and those that
    cannot be sorted by.
    """

    headings: Sequence[str]
    searched: int | None = None
    unsorted: Collection[str] = ()


class Chosen(NamedTuple, Generic[RowT]):
    """Rows of a page of a table, the numbers of the page and of its first row, and how many match of all."""

    rows: Sequence[RowT]
    page: int
    first: int
    matching: int
    whole: int


class ListQuery:
    """What a reader asks of the tables of a page. ``given`` is the query of the page's address."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = dict(given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListQuery) and self.given == other.given

    __hash__ = None  # type: ignore[assignment]

    def text(self, list_id: str) -> str:
        """The text that rows must contain."""
        return self.given.get(f"q.{list_id}", "").strip()

    def sorted_by(self, list_id: str, columns: Columns) -> tuple[int, bool] | None:
        """The number of the column to sort by, and whether the largest comes first."""
        asked = self.given.get(f"sort.{list_id}", "")
        for at, heading in enumerate(columns.headings):
            if heading not in columns.unsorted and column_name(heading) == asked.removeprefix("-"):
                return at, asked.startswith("-")
        return None

    def page(self, list_id: str) -> int:
        """The number of the page, from 1."""
        text = self.given.get(f"p.{list_id}", "")
        return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else 1

    def choose(
        self,
        list_id: str,
        columns: Columns,
        rows: Sequence[RowT],
        cells: Callable[[RowT], Sequence[object]],
        per_page: int = MOST_ROWS,
    ) -> Chosen[RowT]:
        """Rows of the page that is asked for. Cells are made of all rows only to sort and to filter."""
        text, order = self.text(list_id).casefold(), self.sorted_by(list_id, columns)
        found = rows
        if text:
            found = [row for row in rows if text in " ".join(map(_text, cells(row)[: columns.searched]))]
        if order is not None:
            at, falls = order
            keyed = [(_sort_key(cells(row)[at]), row) for row in found]
            known = [(key, row) for key, row in keyed if key is not None]
            known.sort(key=itemgetter(0), reverse=falls)
            found = [row for _, row in known] + [row for key, row in keyed if key is None]
        page = min(self.page(list_id), max(1, -(-len(found) // per_page)))
        first = (page - 1) * per_page
        return Chosen(found[first : first + per_page], page, first, len(found), len(rows))

    def address(self, **changed: str | int) -> str:
        """The page's address with other values; "" leaves one out. Dots of names are written ``__``."""
        query = self.given | {name.replace("__", "."): str(value) for name, value in changed.items()}
        return f"?{urlencode({name: value for name, value in query.items() if value})}"


def column_name(heading: str) -> str:
    """A heading as it is written in an address: "Oldest unread" is oldest-unread."""
    return re.sub(r"\W+", "-", heading.removesuffix("(UTC)").casefold()).strip("-")


def as_cells(row: object) -> Sequence[object]:
    """A row that is its cells already."""
    assert isinstance(row, Sequence), "rows of cells"
    return row


def list_table(
    query: ListQuery | None,
    list_id: str,
    caption: str,
    columns: Columns | Sequence[str],
    rows: Sequence[RowT],
    cells: Callable[[RowT], Sequence[object]] = as_cells,
    per_page: int = MOST_ROWS,
) -> Html:
    """A table with a filter and headings that sort; without ``query`` (a file that nobody serves) its first
    rows only.
    """
    columns = columns if isinstance(columns, Columns) else Columns(columns)
    if query is None:
        cut = f"{caption}, the first {per_page:,} of {len(rows):,}" if len(rows) > per_page else caption
        return table(cut, columns.headings, map(cells, rows[:per_page]))
    chosen = query.choose(list_id, columns, rows, cells, per_page)
    shown = [cells(row) for row in chosen.rows]
    if len(rows) < 2 and not query.text(list_id):
        return table(caption, columns.headings, shown)
    order = query.sorted_by(list_id, columns)

    def head(at: int, class_: str | None) -> Html:
        heading = columns.headings[at]
        if heading in columns.unsorted:
            return tag("th", heading, scope="col", class_=class_)
        falls = any(isinstance(row[at], Keyed) for row in shown[:1])
        if is_sorted := order is not None and order[0] == at:
            falls = order is not None and not order[1]
        name = column_name(heading)
        button = tag(
            "button",
            heading,
            name_=f"sort.{list_id}",
            value=f"-{name}" if falls else name,
            form=f"list-{list_id}",
            id=f"sort-{list_id}-{name}",
        )
        how = ("ascending" if falls else "descending") if is_sorted else None
        return tag("th", button, scope="col", class_=class_, aria_sort=how)

    tools = _tools(query, list_id, caption, columns, chosen)
    return join((tools, table(caption, columns.headings, shown, head), _turns(query, list_id, chosen)))


def _tools(query: ListQuery, list_id: str, caption: str, columns: Columns, chosen: Chosen[RowT]) -> Html:
    """The form with the text to look for, and with the order where headings are not shown ."""
    own = {f"{kind}.{list_id}" for kind in ("q", "sort", "p")}
    others = (tag("input", type="hidden", name=n, value=v) for n, v in query.given.items() if n not in own)
    now = query.given.get(f"sort.{list_id}", "")
    choices = [("", "as listed")]
    for heading in columns.headings:
        if heading not in columns.unsorted:
            name = column_name(heading)
            choices += [(name, f"{heading}, ascending"), (f"-{name}", f"{heading}, descending")]
    options = (tag("option", words, value=value, selected=value == now) for value, words in choices)
    box = tag("input", type="search", name_=f"q.{list_id}", id=f"q-{list_id}", value=query.text(list_id))
    select = tag("select", options, name_=f"sort.{list_id}", id=f"s-{list_id}")
    return tag(
        "form",
        others,
        tag("label", "Filter", tag("span", f" {caption}", class_="skip"), box),
        tag("label", "Sort", tag("span", f" {caption}", class_="skip"), select, class_="narrow"),
        tag("button", "Apply"),
        tag("span", _count_words(chosen), class_="quiet count"),
        id=f"list-{list_id}",
        class_="tools",
        role="search",
        aria_label=f"Filter and sort: {caption}",
    )


def _count_words(chosen: Chosen[RowT]) -> str:
    whole = f" of {chosen.whole:,}"
    if len(chosen.rows) == chosen.whole:
        return f"{chosen.whole:,} rows"
    if len(chosen.rows) == chosen.matching:
        return f"{chosen.matching:,}{whole} rows match"
    words = f"{chosen.first + 1:,} to {chosen.first + len(chosen.rows):,} of {chosen.matching:,} rows"
    return words if chosen.matching == chosen.whole else f"{words} that match{whole}"


def _turns(query: ListQuery, list_id: str, chosen: Chosen[RowT]) -> Html | None:
    """Links to the previous and the next page; None if there is one page."""
    if len(chosen.rows) == chosen.matching:
        return None
    page, name = chosen.page, f"p__{list_id}"
    links = []
    if chosen.first:
        links.append(tag("a", "previous", href=query.address(**{name: page - 1}), rel="prev"))
    if chosen.first + len(chosen.rows) < chosen.matching:
        links.append(tag("a", "next", href=query.address(**{name: page + 1}), rel="next"))
    return tag("p", *(part for link in links for part in (link, " ")))


def _text(cell: object) -> str:
    """What a reader sees of a cell, to compare with."""
    if isinstance(cell, str) and not isinstance(cell, Html):
        return cell.casefold()
    return html.unescape(re.sub(r"<[^>]*>", "", join((cell,)))).casefold()


def _sort_key(cell: object) -> tuple[float, tuple[int | str, ...]] | None:
    """What cells are sorted by: numbers by value, numbers in text too; None for what is not known."""
    if isinstance(cell, Keyed):
        return None if cell.key is None else (cell.key, ())
    text = "" if cell is None else _text(cell)
    if text in ("", "-"):
        return None
    # "orders-10" comes after "orders-9"
    parts = re.split(r"(\d+)", text)
    return 0.0, tuple(int(part) if at % 2 else part for at, part in enumerate(parts))
