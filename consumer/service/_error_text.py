"""Errors of others, in words: whatever their ``__str__`` does."""

from __future__ import annotations

import traceback

#: Most characters of an error in a log line.
SHORT = 500


def short(error: BaseException) -> str:
    """Class and message, on one line."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return text if len(text) <= SHORT else f"{text[:SHORT]} ..."


def message(error: BaseException) -> str:
    """The error's own text."""
    try:
        return str(error)
    except Exception:
        return "(an error whose text cannot be made)"
