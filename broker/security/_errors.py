"""Errors of clients that are not let in."""

from __future__ import annotations

from ...protocol import KohortError


class CertificateError(KohortError):
    """A certificate cannot be read, or no mapping rule has a name for it."""


class AuthenticationError(KohortError):
    """Somebody could not prove who they are. The text is for the client: it holds no secret, and does not
    tell whether a user exists.
    """
