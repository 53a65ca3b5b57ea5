"""HTML from pieces: text is text, whatever is in it."""

from __future__ import annotations

import json

import pytest

from kohort.admin.pages.markup import Html, asset, data, join, number, self_contained, table, tag


def test_text_and_attributes_are_escaped() -> None:
    made = tag("a", "<b> & 'c'", href='x" onclick="y', class_="k", hidden=False, open=True, data_id=None)
    assert made == '<a href="x&quot; onclick=&quot;y" class="k" open>&lt;b&gt; &amp; \'c\'</a>'


def test_control_characters_do_not_reach_the_page() -> None:
    assert tag("p", "a\x00b\x1b") == "<p>a\ufffdb\ufffd</p>"


def test_pieces_may_be_nested_and_missing() -> None:
    assert join(["a", None, (tag("br"), [Html("<i>")]), 3]) == "a<br><i>3"


def test_nothing_in_data_ends_its_element() -> None:
    made = data({"a": "</script><!--\u2028"}, id="model")
    assert made.count("<") == 2
    assert json.loads(made.partition(">")[2].rpartition("<")[0]) == {"a": "</script><!--\u2028"}


def test_a_table_names_its_columns_rows_and_itself() -> None:
    made = table("Loads", ["Member", "Count"], [("a", number(1_234)), ("b", None)])
    assert "<caption>Loads</caption>" in made
    assert '<th scope="col" class="n">Count</th>' in made
    assert '<th scope="row">a</th><td class="n" data-label="Count"><span class="n">1,234</span></td>' in made
    assert '<td class="n" data-label="Count" data-none>-</td>' in made
    assert "<tbody></tbody>" in table("None", ["A"], [])


@pytest.mark.parametrize("name", ["page.css", "page.js"])
def test_what_is_put_into_a_page_cannot_end_its_element(name: str) -> None:
    assert "</" not in asset(name)
    assert name.removeprefix("page.") in ("css", "js")
    assert asset(name) in self_contained("t", "body")
