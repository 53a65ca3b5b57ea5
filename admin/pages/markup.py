"""HTML that is put together from pieces: whatever is no :class:`Html` is text, and escaped."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Self

from ..tables import clean

_EMPTY: Final = frozenset({"input", "link", "meta", "br"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. Children that are None are left out, and attributes that are None or False.

    ``class_`` is class, ``data_id`` data-id.
    """
    opened = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        opened.append(label if value is True else f'{label}="{html.escape(clean(str(value)))}"')
    start = f"<{' '.join(opened)}>"
    return Html(start if name in _EMPTY else f"{start}{join(children)}</{name}>")


def join(children: Iterable[object]) -> Html:
    """Pieces one after the other, nested ones too."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, list | tuple) or (isinstance(child, Iterable) and not isinstance(child, str)):
            parts.append(join(child))
        elif child is not None:
            parts.append(html.escape(clean(str(child)), quote=False))
    return Html("".join(parts))


class Keyed(Html):
    """A cell that is not sorted by what it shows, but by ``key``; None for what is not known."""

    __slots__ = ("key",)

    def __new__(cls, shown: Html, key: float | None) -> Self:
        made = super().__new__(cls, shown)
        made.key = key
        return made

    key: float | None


class Number(Keyed):
    """A number, whose column is aligned to the right."""

    __slots__ = ()


def number(value: int | None, **attributes: object) -> Number:
    """A number with separators; "-" for None."""
    return Number(tag("span", "-" if value is None else f"{value:,}", class_="n", **attributes), value)


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    make_head: Callable[[int, str | None], Html] | None = None,
) -> Html:
    """A table; the first cell of a row is its heading. It scrolls sideways where there is no room for it.

    ``make_head`` makes the heading of a column from its number and class, if it is more than a text.
    """
    shown = list(rows)
    right = ["n" if shown and isinstance(cell, Number) else None for cell in (shown or [headings])[0]]

    def make_text(at: int, class_: str | None) -> Html:
        return tag("th", headings[at], scope="col", class_=class_)

    head = tag("tr", map(make_head or make_text, range(len(headings)), right))

    def cells(row: Sequence[object]) -> Iterable[Html]:
        yield tag("th", row[0], scope="row")
        for heading, cell, class_ in zip(headings[1:], row[1:], right[1:], strict=True):
            # narrow screens show a row as a card, with the heading beside each cell, and leave out what is
            # not known
            yield tag(
                "td", "-" if cell is None else cell, class_=class_, data_label=heading, data_none=cell is None
            )

    body = tag("tbody", (tag("tr", cells(row)) for row in shown))
    made = tag("table", tag("caption", caption), tag("thead", head), body)
    return tag("div", made, class_="wide", tabindex=0, role="region", aria_label=f"Table: {caption}")


def data(value: object, **attributes: object) -> Html:
    """JSON for the page's script: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return tag("script", Html(text), type="application/json", **attributes)


@cache
def asset(name: str) -> str:
    """The page's script ("page.js") or style ("page.css")."""
    return (Path(__file__).parent / name).read_text("utf-8")


def self_contained(title: str, *body: object) -> Html:
    """A page with its script and style inside; it may load and send nothing."""
    script, style = asset("page.js"), asset("page.css")
    policy = f"default-src 'none'; img-src data:; script-src {_hash_of(script)}; style-src {_hash_of(style)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(style)),
    )
    shown = tag("body", tag("main", *body, id="main"), tag("script", Html(script)))
    return Html(f"<!DOCTYPE html>\n{tag('html', head, shown, lang='en')}\n")


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
