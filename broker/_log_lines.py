"""Text of a peer's making, where it is shown."""

from __future__ import annotations

from typing import Final

#: Longest text of a peer's making in a log line, in characters.
MAX_LOGGED_TEXT: Final = 200


def cut(text: str) -> str:
    """Text of a peer's making, cut to length."""
    return text if len(text) <= MAX_LOGGED_TEXT else text[:MAX_LOGGED_TEXT] + "..."


def printable(text: str) -> str:
    """Text of a peer's making, fit for one log line: control characters escaped, cut to length."""
    return cut(text.encode("unicode_escape").decode("ascii"))
