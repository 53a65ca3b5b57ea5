"""Text of a peer's making, where it is shown."""

from __future__ import annotations

from typing import Final

#: Longest text of a peer's making in a log line, in characters.
MAX_LOGGED_TEXT: Final = 200


def printable(text: str) -> str:
    """Text of a peer's making, fit for one log line: control characters escaped, cut to length."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= MAX_LOGGED_TEXT else escaped[:MAX_LOGGED_TEXT] + "..."
