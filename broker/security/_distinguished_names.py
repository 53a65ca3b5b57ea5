"""Names in certificates: the subject as Java writes it (RFC 2253), and ``ssl.principal.mapping.rules``.

``client/certificates.py`` reads the values of a certificate. The subject is one of them:

    subject        sets, each of pairs: object id, text

In an object id the first number is 40 times the first arc plus the second; each number has 7 bits a byte, and
bit 7 says that another byte follows.
"""

from __future__ import annotations

import re

from ...client.certificates import CertificateError, DerValue, der_values, signed_values
from ...protocol.named_tuples import NamedTuple
from ...settings import SettingsError

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

_ESCAPED = frozenset(',=+<>#;"\\')


def subject_name(certificate: bytes) -> str:
    """The subject of a DER certificate: ``CN=alice,OU=billing,O=Example``. Raises CertificateError."""
    try:
        names = [_relative_name(item) for item in der_values(signed_values(certificate)[4].content)]
    except (IndexError, ValueError) as error:
        raise CertificateError(f"a certificate whose subject cannot be read: {error}") from None
    return ",".join(reversed(names))


def _relative_name(item: DerValue) -> str:
    return "+".join(_attribute_text(*der_values(pair.content)) for pair in der_values(item.content))


def _attribute_text(kind: DerValue, value: DerValue) -> str:
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
