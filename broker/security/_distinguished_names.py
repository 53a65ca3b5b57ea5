"""Names in certificates: the subject as Java writes it (RFC 2253), and ``ssl.principal.mapping.rules``.

A certificate is nested DER values (X.690). Each is a tag of one byte, a length, and its content, which may be
values in turn. A length below 128 is one byte; else the first byte, less 128, counts the bytes of the length
that follow, big-endian. What is read of it (RFC 5280; the version has the tag 0xa0, and v1 leaves it out):

    certificate    tbsCertificate, algorithm, signature
    tbsCertificate [version], serial number, algorithm, issuer, validity, subject, key ...
    subject        sets, each of pairs: object id, text
    validity       two times: UTCTime YYMMDDHHMMSSZ, or GeneralizedTime YYYYMMDDHHMMSSZ

In an object id the first number is 40 times the first arc plus the second; each number has 7 bits a byte, and
bit 7 says that another byte follows.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime
from typing import NamedTuple

from ...settings import SettingsError
from ._errors import CertificateError

#: Attributes with a short name (RFC 2253, section 2.3); values of others are written in hex.
_SHORT_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}

#: Encodings of the string types of ASN.1.
_STRINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1B: "ascii", 0x1E: "utf-16-be"}

_VERSION_TAG, _UTC_TIME = 0xA0, 0x17
_ESCAPED = frozenset(',=+<>#;"\\')


class _Value(NamedTuple):
    tag: int
    content: bytes
    raw: bytes


def subject_name(certificate: bytes) -> str:
    """The subject of a DER certificate: ``CN=alice,OU=billing,O=Example``. Raises CertificateError."""
    try:
        names = [_relative_name(item) for item in _der_values(_signed_values(certificate)[4].content)]
    except (IndexError, ValueError) as error:
        raise CertificateError(f"a certificate whose subject cannot be read: {error}") from None
    return ",".join(reversed(names))


def valid_until(certificate: bytes) -> float:
    """End of a DER certificate's validity, in seconds since 1970. Raises CertificateError."""
    try:
        end = _der_values(_signed_values(certificate)[3].content)[1]
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


def _signed_values(certificate: bytes) -> list[_Value]:
    """Serial number, algorithm, issuer, validity, subject and so on, without the version."""
    (whole,) = _der_values(certificate)
    found = _der_values(_der_values(whole.content)[0].content)
    return found[1:] if found[0].tag == _VERSION_TAG else found


def _relative_name(item: _Value) -> str:
    return "+".join(_attribute_text(*_der_values(pair.content)) for pair in _der_values(item.content))


def _attribute_text(kind: _Value, value: _Value) -> str:
    name = _oid_text(kind.content)
    if name not in _SHORT_NAMES or value.tag not in _STRINGS:
        return f"{_SHORT_NAMES.get(name, name)}=#{value.raw.hex()}"
    return f"{_SHORT_NAMES[name]}={_escape_value(value.content.decode(_STRINGS[value.tag]))}"


def _escape_value(text: str) -> str:
    inner = text.strip(" \r")
    lead = len(text) - len(text.lstrip(" \r"))
    shown = "".join("\\" + char if char in _ESCAPED else "\\00" if char == "\0" else char for char in inner)
    before, after = text[:lead], text[lead + len(inner) :]
    return "".join("\\" + char for char in before) + shown + "".join("\\" + char for char in after)


def _oid_text(content: bytes) -> str:
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _der_values(data: bytes) -> list[_Value]:
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
        found.append(_Value(data[at], data[start:end], data[at:end]))
        at = end
    return found


class _Rule(NamedTuple):
    """A mapping rule; ``pattern`` None is DEFAULT: the name as it is."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str


_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<name>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)",
    re.DOTALL,
)


class PrincipalRules:
    """``ssl.principal.mapping.rules``: the first rule that matches the whole name gives the user
    (KIP-371).
    """

    def __init__(self, text: str) -> None:
        """Raises SettingsError."""
        self._rules: list[_Rule] = []
        at = 0
        while at < len(text):
            match = _RULE.match(text, at)
            if match is None:
                raise SettingsError(
                    f"ssl.principal.mapping.rules: {text[at:]!r} is not allowed: rules are DEFAULT or "
                    "RULE:pattern/replacement/ with an L or U behind it, with commas"
                )
            self._rules.append(_parse_rule(match))
            at = match.end()

    def user(self, name: str) -> str:
        """The user for a distinguished name. Raises CertificateError if no rule matches."""
        for rule in self._rules:
            if rule.pattern is None:
                return name
            match = rule.pattern.fullmatch(name)
            if match is not None:
                user = match.expand(rule.replacement)
                return user.lower() if rule.case == "L" else user.upper() if rule.case == "U" else user
        raise CertificateError(f"no rule of ssl.principal.mapping.rules fits {name!r}: add one, or DEFAULT")


def _parse_rule(match: re.Match[str]) -> _Rule:
    if match["default"]:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(match["pattern"].strip())
    except re.error as error:
        raise SettingsError(
            f"ssl.principal.mapping.rules: {match['pattern']!r} is no pattern ({error}): correct it"
        ) from None
    wanted = [int(number) for number in re.findall(r"\$(\d)", match["name"])]
    if max(wanted, default=0) > pattern.groups:
        raise SettingsError(
            f"ssl.principal.mapping.rules: {match['name']!r} names group {max(wanted)}, the pattern has "
            f"{pattern.groups}: name one of those"
        )
    # Java writes $1 for what Python writes \g<1>; a backslash is a plain one
    text = match["name"].strip().replace("\\", "\\\\")
    return _Rule(pattern, re.sub(r"\$(\d)", r"\\g<\1>", text), match["case"])
