"""Why somebody is not let in."""

from __future__ import annotations

from ...protocol import KohortError


class CertificateError(KohortError):
    """A certificate that cannot be read, or that no mapping rule has a name for."""
