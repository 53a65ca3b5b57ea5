"""Errors of others, in words: whatever their ``__str__`` does."""

from __future__ import annotations

from ..protocol import KohortError

#: Most characters of an error in a log line.
SHORT = 500


def short(error: BaseException) -> str:
    """Class and message, on one line."""
    said = " ".join(message(error).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= SHORT else f"{text[:SHORT]} ..."


def told(error: BaseException) -> str:
    """As ``short``, without the class where it is an error of kohort: those speak for themselves."""
    text = short(error)
    return text.removeprefix(f"{type(error).__name__}: ") if isinstance(error, KohortError) else text


def message(error: BaseException) -> str:
    """The error's own text."""
    try:
        return str(error)
    except Exception:
        return "(an error whose text cannot be made)"
