"""HTML of a group in another time: the form that asks for it, and what happened then."""

from __future__ import annotations

from typing import Final

from ...admin.groups.results import TimeStretch
from ...admin.notation import utc
from ...admin.pages import lanes_page
from ...admin.pages.lanes import Lanes
from ...admin.pages.lists import ListQuery
from ...admin.pages.markup import Html, join, tag
from ..layout import group_address, quote_path
from ..observer import now_ms
from .past import AskedTime

#: Days that a group's page links to, today included.
_LINKED_DAYS: Final = 8
_DAY_MS: Final = 86_400_000


def past_page(name: str, asked: AskedTime, lanes: Lanes, stretch: TimeStretch, query: ListQuery) -> Html:
    """What happened to a group in a stretch of time, and forms for another one."""
    first = tag("time", f"{utc(stretch.from_ms)} UTC") if stretch.from_ms else "the beginning"
    last = tag("time", f"{utc(lanes.now_ms)} UTC")
    shown = tag("p", "From ", first, " to ", last, ". ", tag("a", "The group now", href=group_address(name)))
    live = tag("div", shown, lanes_page.past_parts(lanes, query), id="past", data_live=True)
    return join((live, time_form(name, asked)))


def time_form(name: str, asked: AskedTime) -> Html:
    """A form for a day or for the ends of a stretch, and links to the last days."""
    today = now_ms()
    days = [utc(today - number * _DAY_MS)[:10] for number in range(_LINKED_DAYS)]
    links = (
        tag(
            "a",
            words or day,
            href=quote_path("group", name_=name, day=day),
            aria_current="date" if day == asked.day else None,
        )
        for day, words in zip(days, ("today", "yesterday", *[""] * (_LINKED_DAYS - 2)), strict=True)
    )
    boxes = (
        ("day", "Day (UTC)", "date"),
        ("since", "or from (UTC)", "datetime-local"),
        ("until", "to (UTC)", "datetime-local"),
    )
    form = tag(
        "form",
        tag("input", type="hidden", name="name", value=name),
        (
            tag("label", words, tag("input", type=kind, name=field, value=getattr(asked, field)))
            for field, words, kind in boxes
        ),
        tag("button", "Show"),
        action="group",
    )
    told = "What brokers and the recording of kohort ui remember of another time."
    body = tag("p", *(part for link in links for part in (link, " "))), form
    heading = tag("h2", "Another time"), tag("p", told, class_="quiet")
    return tag("section", heading, body, aria_label="Another time")
