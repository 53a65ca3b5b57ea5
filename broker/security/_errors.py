"""Errors of clients that are not let in."""

from __future__ import annotations

from ...protocol import KohortError


class LoginFailedError(KohortError):
    """A client could not authenticate. The client reads the text: it has no secrets, and does not say who
    exists.
    """
