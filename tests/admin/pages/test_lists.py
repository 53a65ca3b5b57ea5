"""Tables that are sorted, filtered and turned over as the address asks."""

from __future__ import annotations

import html
import re

import pytest

from kohort.admin.pages.lists import Columns, ListQuery, column_name, list_table
from kohort.admin.pages.markup import Keyed, number, tag

ROWS = [
    ("orders-10", "Stable", number(5), Keyed(tag("span", "2 min"), 120_000)),
    ("orders-9", "Empty", number(None), None),
    ("Straße <b>", "Stable", number(1_200), Keyed(tag("span", "3 h"), 10_800_000)),
    ("orders-1", "Dead", number(40), Keyed(tag("span", "50 s"), 50_000)),
]
COLUMNS = Columns(["Name", "State", "Lag", "Oldest unread"], searched=2)


def names(query: dict[str, str], per_page: int = 1_000) -> list[str]:
    shown = list_table(ListQuery(query), "t", "Things", COLUMNS, ROWS, per_page=per_page)
    return [html.unescape(name) for name in re.findall(r'<th scope="row">(.*?)</th>', shown)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("name", ["orders-1", "orders-9", "orders-10", "Straße <b>"]),
        ("-name", ["Straße <b>", "orders-10", "orders-9", "orders-1"]),
        ("state", ["orders-1", "orders-9", "orders-10", "Straße <b>"]),
        ("lag", ["orders-10", "orders-1", "Straße <b>", "orders-9"]),
        # what is not known comes last, whichever way
        ("-lag", ["Straße <b>", "orders-1", "orders-10", "orders-9"]),
        ("oldest-unread", ["orders-1", "orders-10", "Straße <b>", "orders-9"]),
        ("no-such-column", ["orders-10", "orders-9", "Straße <b>", "orders-1"]),
    ],
)
def test_rows_are_sorted_by_what_a_column_means(order: str, expected: list[str]) -> None:
    assert names({"sort.t": order}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ORDERS-1", ["orders-10", "orders-1"]),
        ("strasse <B>", ["Straße <b>"]),
        (" dead ", ["orders-1"]),
        ("span", []),
        ("3 h", []),  # a column that is not searched
    ],
)
def test_rows_are_found_by_what_a_reader_sees(text: str, expected: list[str]) -> None:
    assert names({"q.t": text}) == expected


@pytest.mark.parametrize(
    ("page", "expected"), [("1", 3), ("2", 1), ("99", 1), ("0", 3), ("-1", 3), ("x", 3), ("9" * 30, 3)]
)
def test_pages_are_turned_and_an_odd_page_is_another(page: str, expected: int) -> None:
    assert len(names({"p.t": page}, per_page=3)) == expected


def test_a_table_keeps_what_is_asked_of_others_and_of_the_page() -> None:
    asked = ListQuery({"name": 'a"&b', "q.other": "x", "sort.t": "lag", "p.t": "2"})
    shown = list_table(asked, "t", "Things", COLUMNS, ROWS, per_page=1)
    assert '<input type="hidden" name="name" value="a&quot;&amp;b">' in shown
    assert '<input type="hidden" name="q.other" value="x">' in shown
    assert 'type="hidden" name="sort.t"' not in shown
    assert 'href="?name=a%22%26b&amp;q.other=x&amp;sort.t=lag&amp;p.t=3" rel="next"' in shown
    assert "2 to 2 of 4 rows" in shown


def test_a_heading_says_how_it_sorts_and_what_it_would_do() -> None:
    shown = list_table(ListQuery({"sort.t": "-lag"}), "t", "Things", COLUMNS, ROWS)
    assert re.findall(r'aria-sort="(\w+)"><button name="sort.t" value="([\w-]+)"', shown) == [
        ("descending", "lag")
    ]
    # numbers begin with the largest, names with the first
    fresh = list_table(ListQuery({}), "t", "Things", COLUMNS, ROWS)
    assert re.findall(r'<button name="sort.t" value="([\w-]+)"', fresh) == [
        "name",
        "state",
        "-lag",
        "-oldest-unread",
    ]
    assert "aria-sort" not in fresh


def test_columns_that_cannot_be_sorted_are_only_headings() -> None:
    columns = Columns(["A", "B"], unsorted=["B"])
    rows = [("x", "2"), ("y", "1")]
    shown = list_table(ListQuery({"sort.t": "b"}), "t", "T", columns, rows)
    assert '<th scope="col">B</th>' in shown
    assert shown.index(">x<") < shown.index(">y<")


def test_a_file_that_nobody_serves_has_the_first_rows_and_says_so() -> None:
    shown = list_table(None, "t", "Things", COLUMNS, ROWS, per_page=3)
    assert "Things, the first 3 of 4" in shown
    assert "<form" not in shown


def test_cells_are_made_of_rows_that_are_shown_unless_all_are_asked_about() -> None:
    made: list[int] = []

    def cells(row: int) -> tuple[object, ...]:
        made.append(row)
        return (str(row), number(row))

    query, rows = ListQuery({}), range(1_000)
    list_table(query, "t", "T", ["A", "B"], rows, cells, per_page=10)
    assert len(made) == 10
    list_table(ListQuery({"sort.t": "-b"}), "t", "T", ["A", "B"], rows, cells, per_page=10)
    assert 999 in made


def test_a_column_has_the_same_name_whatever_the_zone() -> None:
    assert [column_name(each) for each in ("Since (UTC)", "Oldest unread", "In sync")] == [
        "since",
        "oldest-unread",
        "in-sync",
    ]
