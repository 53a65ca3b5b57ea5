"""What every page is made of: the frame with its navigation, addresses, forms. Every text is escaped
(:mod:`kohort.admin.pages.markup`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from ..admin.pages.markup import Html, asset, join, table, tag

#: Rows of a list on one page.
LIST_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around every page. ``form_token`` is None where nothing may be changed. ``names`` are those
    of all clusters, where there are several; ``name`` is "" on the page of all.
    """

    bootstrap: str
    form_token: str | None = None
    name: str = ""
    names: Sequence[str] = ()


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


def note_list(notes: Iterable[str]) -> Html | None:
    """What a page cannot show, and why; None if there is nothing to say."""
    shown = [tag("li", each) for each in notes]
    return tag("ul", shown, class_="notes") if shown else None


def topic_address(topic: str) -> str:
    """Where the page of a topic is, from the page of its cluster."""
    return quote_path("topic", name_=topic)


def facts_list(rows: Iterable[tuple[str, object]]) -> Html:
    """Facts as a list of terms and descriptions."""
    return tag(
        "dl", (tag("div", tag("dt", label), tag("dd", value)) for label, value in rows), class_="facts"
    )


def node_names(numbers: Iterable[int]) -> str:
    """Node ids, or "none"."""
    return ", ".join(map(str, numbers)) or "none"


# --- changes ------------------------------------------------------------------------------------------------


def hidden_fields(frame: Frame, **values: str) -> Html:
    """The hidden fields of a form that changes something, its token among them."""
    given = {"csrf": frame.form_token or "", **{name.rstrip("_"): value for name, value in values.items()}}
    return join(tag("input", type="hidden", name=name, value=value) for name, value in given.items())


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


def outcomes(back: str, words: str, rows: Iterable[tuple[str, str]]) -> Html:
    """Outcomes of a change."""
    return join((tag("p", tag("a", "Back", href=back)), table(words, ["What", "Result"], rows)))
