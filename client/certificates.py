"""Certificates: when they end, and a line about one that soon will.

A certificate is nested DER values (X.690). Each is a tag of one byte, a length, and its content, which may be
values in turn. A length below 128 is one byte; else the first byte, less 128, counts the bytes of the length
that follow, big-endian. What is read of it (RFC 5280; the version has the tag 0xa0, and v1 leaves it out):

    certificate    tbsCertificate, algorithm, signature
    tbsCertificate [version], serial number, algorithm, issuer, validity, subject, key ...
    validity       two times: UTCTime YYMMDDHHMMSSZ, or GeneralizedTime YYYYMMDDHHMMSSZ
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ..protocol import KohortError
from ..protocol.named_tuples import NamedTuple

log = logging.getLogger("kohort.client")

#: A certificate that ends within this many days is told.
SOON_DAYS: Final = 30
DAY_S: Final = 86_400.0

_VERSION_TAG, _UTC_TIME = 0xA0, 0x17


class CertificateError(KohortError):
    """A certificate cannot be read, or no mapping rule has a name for it."""


class DerValue(NamedTuple):
    """A value: its content, and with tag and length (``raw``)."""

    tag: int
    content: bytes
    raw: bytes


def valid_until(certificate: bytes) -> float:
    """End of a DER certificate's validity, in seconds since 1970. Raises CertificateError."""
    try:
        end = der_values(signed_values(certificate)[3].content)[1]
        text = end.content.decode("ascii")
        if end.tag == _UTC_TIME:
            # years of two digits: 1950 to 2049 (RFC 5280)
            text = ("19" if text[:2] >= "50" else "20") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except (IndexError, ValueError) as error:
        raise CertificateError(f"a certificate whose end cannot be read: {error}") from None


def ends_of(pem: str) -> list[float]:
    """When each certificate of a PEM text expires, in seconds since 1970. Raises CertificateError."""
    begin = "-----BEGIN CERTIFICATE-----"
    try:
        return [valid_until(ssl.PEM_cert_to_DER_cert(begin + text)) for text in pem.split(begin)[1:]]
    except ValueError as error:
        raise CertificateError(f"a certificate that cannot be read: {error}") from None


def first_end(pem: str) -> float | None:
    """When the first certificate of a PEM text ends; None if none can be read."""
    try:
        return min(ends_of(pem), default=None)
    except CertificateError:
        return None


class EndReminder:
    """Tells of a certificate that ends soon or has ended, once a day, from ``first_after_s`` on. ``name`` is
    that of its setting; ``now`` is a steady clock, ``wall`` the one that certificates go by.
    """

    def __init__(
        self,
        name: str,
        end_s: float | None,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        *,
        first_after_s: float = 0.0,
    ) -> None:
        #: When it ends, in seconds since 1970; None: there is none, or that is not known.
        self.end_s = end_s
        self._name = name
        self._now = now
        self._wall = wall
        self._next_s = now() + first_after_s

    def __repr__(self) -> str:
        return f"EndReminder({self._name}, {self.end_s})"

    def remind(self) -> None:
        """Log it, unless that was done within a day; may be called often."""
        if self.end_s is None or self._now() < self._next_s:
            return
        self._next_s = self._now() + DAY_S
        left_s = self.end_s - self._wall()
        day = datetime.fromtimestamp(self.end_s, UTC).date()
        if left_s < 0:
            log.error("%s: the certificate expired on %s, it is refused: exchange it", self._name, day)
        elif left_s < SOON_DAYS * DAY_S:
            log.warning("%s: the certificate expires on %s: exchange it", self._name, day)


def signed_values(certificate: bytes) -> list[DerValue]:
    """Serial number, algorithm, issuer, validity, subject and so on, without the version."""
    (whole,) = der_values(certificate)
    found = der_values(der_values(whole.content)[0].content)
    return found[1:] if found[0].tag == _VERSION_TAG else found


def der_values(data: bytes) -> list[DerValue]:
    """The consecutive DER values in ``data``."""
    found, at = [], 0
    while at < len(data):
        size, start = data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, start = int.from_bytes(data[start : start + count], "big"), start + count
        end = start + size
        if end > len(data):
            raise ValueError("a value is longer than what holds it")
        found.append(DerValue(data[at], data[start:end], data[at:end]))
        at = end
    return found
