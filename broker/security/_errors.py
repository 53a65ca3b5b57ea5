"""Errors of clients that are not let in."""

from __future__ import annotations

from ...protocol import KohortError


class CertificateError(KohortError):
    """A certificate cannot be read, or no mapping rule has a name for it."""


class LoginFailedError(KohortError):
    """A client could not authenticate. The client reads the text: it has no secrets, and does not say who
    exists.
    """
