"""Names of certificates: as Java writes them, and what the mapping rules make of them."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker import SettingsError
from kohort.broker.security._distinguished_names import PrincipalRules, subject_name
from kohort.client.certificates import CertificateError, valid_until

OID = x509.NameOID


def certificate(*relative: list[tuple[Any, str]]) -> bytes:
    """DER with a subject of these relative names, outermost first."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        x509.RelativeDistinguishedName([x509.NameAttribute(oid, value) for oid, value in pairs])
        for pairs in relative
    )
    begin = datetime.datetime(2026, 1, 1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(OID.COMMON_NAME, "authority")]))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.DER)


# each expectation is what java.security.cert.X509Certificate.getSubjectX500Principal().getName() gives
@pytest.mark.parametrize(
    ("relative", "name"),
    [
        (
            [[(OID.COUNTRY_NAME, "DE")], [(OID.ORGANIZATION_NAME, "Example")], [(OID.COMMON_NAME, "alice")]],
            "CN=alice,O=Example,C=DE",
        ),
        ([[(OID.COMMON_NAME, 'a,b+c="d"<e>;#\\')]], r"CN=a\,b\+c\=\"d\"\<e\>\;\#\\"),
        ([[(OID.COMMON_NAME, " lead and trail ")]], r"CN=\ lead and trail\ "),
        ([[(OID.COMMON_NAME, "Łódź 👍")]], "CN=Łódź 👍"),
        ([[(OID.EMAIL_ADDRESS, "a@b.c")]], "1.2.840.113549.1.9.1=#16056140622e63"),
        (
            [[(OID.DOMAIN_COMPONENT, "org"), (OID.USER_ID, "u1")], [(OID.STATE_OR_PROVINCE_NAME, "Bavaria")]],
            "ST=Bavaria,UID=u1+DC=org",
        ),
        ([], ""),
    ],
)
def test_a_subject_is_written_as_java_writes_it(relative: list[list[tuple[Any, str]]], name: str) -> None:
    assert subject_name(certificate(*relative)) == name


@given(st.binary(max_size=64))
def test_bytes_that_are_no_certificate_are_refused(data: bytes) -> None:
    with pytest.raises(CertificateError):
        subject_name(data)


def der(tag: int, *parts: bytes) -> bytes:
    """One value of ASN.1, with its length in the fewest bytes."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def plain_certificate(end: bytes, *subject: bytes, versioned: bool = True) -> bytes:
    """What is read of a certificate, and nothing else."""
    version = [der(0xA0, der(2, b"\x02"))] if versioned else []
    validity = der(0x30, der(0x17, b"700101000000Z"), end)
    issuer = der(0x30, der(0x31, attribute(b"\x55\x04\x03", 0x0C, b"issuer")))
    return der(
        0x30,
        der(0x30, *version, der(2, b"\x07"), der(0x30), issuer, validity, der(0x30, *subject), der(0x30)),
        der(0x30),
        der(3, b"\x00"),
    )


def attribute(oid: bytes, tag: int, value: bytes) -> bytes:
    return der(0x30, der(6, oid), der(tag, value))


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(
    ("tag", "text", "end"),
    [
        (0x17, b"491231235959Z", (2049, 12, 31, 23, 59, 59)),
        (0x17, b"500102030405Z", (1950, 1, 2, 3, 4, 5)),
        (0x17, b"991231000000Z", (1999, 12, 31)),
        (0x17, b"000101000000Z", (2000, 1, 1)),
        (0x18, b"20500607080910Z", (2050, 6, 7, 8, 9, 10)),
        (0x18, b"19491231000000Z", (1949, 12, 31)),
    ],
)
def test_the_end_of_a_certificate_is_read_in_both_forms(
    tag: int, text: bytes, end: tuple[int, ...], versioned: bool
) -> None:
    made = plain_certificate(der(tag, text), versioned=versioned)
    assert valid_until(made) == datetime.datetime(*end, tzinfo=datetime.UTC).timestamp()  # type: ignore[arg-type,misc]


def test_the_end_is_meant_in_utc_wherever_the_broker_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-05:30")
    time.tzset()
    try:
        assert valid_until(plain_certificate(der(0x17, b"700101000000Z"))) == 0.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        (plain_certificate(der(0x17, b"never")), "time data '19never' does not match format"),
        (plain_certificate(der(0x17, b"\xff")), "codec can't decode"),
        (plain_certificate(der(0x17, b"490101000000Z"))[:-1], "a value is longer than what holds it"),
        (der(0x30, der(0x30)), "list index out of range"),
        (b"", "not enough values"),
    ],
    ids=["no time", "no text", "cut", "empty", "nothing"],
)
def test_an_end_that_cannot_be_read_is_refused_with_the_reason(certificate: bytes, why: str) -> None:
    with pytest.raises(CertificateError, match=f"^a certificate whose end cannot be read: .*{why}"):
        valid_until(certificate)


COMMON, UNIT = b"\x55\x04\x03", b"\x55\x04\x0b"
END = der(0x17, b"490101000000Z")


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(
    ("relative", "name"),
    [
        ([attribute(COMMON, 0x0C, "Łódź".encode())], "CN=Łódź"),
        ([attribute(COMMON, 0x13, b"printable")], "CN=printable"),
        ([attribute(COMMON, 0x14, b"caf\xe9")], "CN=café"),
        ([attribute(COMMON, 0x16, b"a@b")], "CN=a@b"),
        ([attribute(COMMON, 0x1B, b"general")], "CN=general"),
        ([attribute(COMMON, 0x1E, "Łódź".encode("utf-16-be"))], "CN=Łódź"),
        ([attribute(COMMON, 0x04, b"octets")], "CN=#04066f6374657473"),
        ([attribute(COMMON, 0x0C, b"x" * 300)], "CN=" + "x" * 300),
        ([attribute(COMMON, 0x0C, b"x" * 128)], "CN=" + "x" * 128),
        ([attribute(COMMON, 0x0C, b"a\0b")], "CN=a\\00b"),
        ([attribute(COMMON, 0x0C, b"\r  a b\r ")], "CN=\\\r\\ \\ a b\\\r\\ "),
        ([attribute(COMMON, 0x0C, b"  ")], "CN=\\ \\ "),
        ([attribute(COMMON, 0x0C, b"")], "CN="),
        ([attribute(UNIT, 0x0C, b"u"), attribute(COMMON, 0x0C, b"n")], "OU=u+CN=n"),
        ([attribute(b"\x02\x03", 0x0C, b"x")], "0.2.3=#0c0178"),
        ([attribute(b"\x88\x37\x81\x00", 0x0C, b"x")], "2.999.128=#0c0178"),
        ([attribute(b"\x2a\x86\x48", 0x0C, b"x")], "1.2.840=#0c0178"),
        ([attribute(b"\x50", 0x0C, b"x")], "2.0=#0c0178"),
        ([attribute(b"\x27", 0x0C, b"x")], "0.39=#0c0178"),
        ([attribute(b"\x4f", 0x0C, b"x")], "1.39=#0c0178"),
    ],
)
def test_values_of_every_string_type_and_names_of_every_kind(
    relative: list[bytes], name: str, versioned: bool
) -> None:
    made = plain_certificate(END, der(0x31, *relative), versioned=versioned)
    assert subject_name(made) == name


@pytest.mark.parametrize(
    ("oid", "short"),
    [
        (b"\x55\x04\x03", "CN"),
        (b"\x55\x04\x06", "C"),
        (b"\x55\x04\x07", "L"),
        (b"\x55\x04\x08", "ST"),
        (b"\x55\x04\x09", "STREET"),
        (b"\x55\x04\x0a", "O"),
        (b"\x55\x04\x0b", "OU"),
        (b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x01", "UID"),
        (b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19", "DC"),
    ],
)
def test_attributes_with_a_short_name_are_called_by_it(oid: bytes, short: str) -> None:
    parts = [der(0x31, attribute(oid, 0x0C, b"x")), der(0x31, attribute(UNIT, 0x0C, b"last"))]
    assert subject_name(plain_certificate(END, *parts)) == f"OU=last,{short}=x"


def test_a_subject_that_cannot_be_read_is_refused_with_the_reason() -> None:
    wrong = plain_certificate(END, der(0x31, attribute(COMMON, 0x13, b"\xff")))
    with pytest.raises(CertificateError, match=r"^a certificate whose subject cannot be read: 'ascii' codec"):
        subject_name(wrong)


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", "CN=Alice,OU=Ops,O=Example"),
        ("RULE:^CN=(.*?),OU=Ops.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),OU=Ops.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U, DEFAULT", "ALICE@OPS"),
        ("RULE:^CN=bob.*$/bob/, RULE:^.*O=Example$/somebody/", "somebody"),
        (r"RULE:^CN=(.*?),.*$/a\b$1/", r"a\bAlice"),
        ("RULE:OU=Ops/part of it/, DEFAULT", "CN=Alice,OU=Ops,O=Example"),
        (r"RULE:^CN=(.*?),.*$/a\/$1/", r"a\/Alice"),
        (r"RULE: ^CN=(.*?),.*$ / $1 /U", "ALICE"),
        ("RULE:^(CN)=(.*?),(OU)=.*$/$3.$1/", "OU.CN"),
        (" DEFAULT , RULE:^.*$/other/", "CN=Alice,OU=Ops,O=Example"),
        ("RULE:^CN=Alice,(X)?.*$/-$1-/", "--"),
    ],
)
def test_the_first_rule_that_fits_the_whole_name_gives_the_user(rules: str, user: str) -> None:
    assert PrincipalRules(rules).user("CN=Alice,OU=Ops,O=Example") == user


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(CertificateError) as caught:
        PrincipalRules("RULE:^CN=(.*?),.*$/$1/").user("CN=eve")
    assert str(caught.value) == ("no rule of ssl.principal.mapping.rules fits 'CN=eve': add one, or DEFAULT")


FORM = "rules are DEFAULT or RULE:pattern/replacement/ with an L or U behind it, with commas"


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("RULE:a", f"'RULE:a' is not allowed: {FORM}"),
        ("RULE:a/b", f"'RULE:a/b' is not allowed: {FORM}"),
        ("else", f"'else' is not allowed: {FORM}"),
        ("DEFAULT DEFAULT", f"'DEFAULT DEFAULT' is not allowed: {FORM}"),
        ("DEFAULT,RULE:a/b/X", f"'RULE:a/b/X' is not allowed: {FORM}"),
        ("default", f"'default' is not allowed: {FORM}"),
        (
            "RULE:(/b/",
            "'(' is no pattern (missing ), unterminated subpattern at position 0): correct it",
        ),
        ("RULE:a/$1/", "'$1' names group 1, the pattern has 0: name one of those"),
        ("RULE:(a)/$1$3$2/", "'$1$3$2' names group 3, the pattern has 1: name one of those"),
    ],
)
def test_rules_that_are_none_are_refused(rules: str, why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        PrincipalRules(rules)
    assert str(caught.value) == f"ssl.principal.mapping.rules: {why}"
