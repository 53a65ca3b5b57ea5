"""Fields of addresses and forms that several pages have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

#: What is wrong with the address of a topic's page that names none.
NO_TOPIC: Final = "this address names no topic: write it as name=TOPIC"


def page_number(request: Request) -> int:
    """Which part of a list is asked for; 1 is the first."""
    text = request.query_params.get("p", "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def topic_in(given: Mapping[str, str]) -> str:
    """The topic that an address names. Raises HTTPException where it names none."""
    name = given.get("name", "").strip()
    if not name:
        raise HTTPException(400, NO_TOPIC)
    return name


def group_in(given: Mapping[str, str]) -> str:
    """The group that an address names, whose name may be empty. Raises HTTPException where it names none."""
    if "name" not in given:
        raise HTTPException(400, "this address names no group: write it as name=GROUP")
    return given["name"]


def check_confirmed(given: Mapping[str, str], wanted: str) -> None:
    """Raise HTTPException unless what was typed to confirm a change is the name of what is changed."""
    # all kinds of spaces are equal: non-breaking ones cannot be typed
    if given.get("confirm", "").split() != wanted.split():
        raise HTTPException(400, "nothing has been changed: what you typed is another name")
