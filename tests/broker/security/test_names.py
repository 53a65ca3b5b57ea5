"""Names of certificates: as Java writes them, and what the mapping rules make of them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker import SettingsError
from kohort.broker.security._errors import CertificateError
from kohort.broker.security._names import PrincipalRules, subject_name

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
    ],
)
def test_the_first_rule_that_fits_the_whole_name_gives_the_user(rules: str, user: str) -> None:
    assert PrincipalRules(rules).user("CN=Alice,OU=Ops,O=Example") == user


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"no rule .* fits .*or DEFAULT"):
        PrincipalRules("RULE:^CN=(.*?),.*$/$1/").user("CN=eve")


@pytest.mark.parametrize(
    "rules", ["RULE:a", "RULE:a/b", "else", "DEFAULT DEFAULT", "RULE:(/b/", "RULE:a/$1/"]
)
def test_rules_that_are_none_are_refused(rules: str) -> None:
    with pytest.raises(SettingsError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalRules(rules)
