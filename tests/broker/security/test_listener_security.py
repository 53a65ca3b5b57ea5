"""What a listener asks of who connects: a certificate, a password, or nothing."""

from __future__ import annotations

import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.security._listener_security import ListenerSecurity
from kohort.broker.security._listeners import listeners_of
from kohort.broker.security._scram_users import ScramUsers
from kohort.broker.settings import broker_settings
from tests.broker.security.certificates import Certificates


def secured(certificates: Certificates, protocol: str, **given: Any) -> ListenerSecurity:
    settings = broker_settings(
        {
            "listeners": "IN://127.0.0.1:0,OTHER://127.0.0.1:0",
            "listener.security.protocol.map": f"IN:{protocol},OTHER:PLAINTEXT",
            "ssl.keystore.location": certificates.server(),
            "ssl.truststore.location": certificates.cafile,
            **given,
        }
    )
    return ListenerSecurity(settings, listeners_of(settings)[0], ScramUsers())


@pytest.mark.parametrize(
    ("protocol", "given", "mode"),
    [
        ("PLAINTEXT", {"ssl.client.auth": "required"}, None),
        ("SASL_PLAINTEXT", {"ssl.client.auth": "required"}, None),
        ("SSL", {}, ssl.CERT_NONE),
        ("SSL", {"ssl.client.auth": "required"}, ssl.CERT_REQUIRED),
        ("SSL", {"listener.name.in.ssl.client.auth": "requested"}, ssl.CERT_OPTIONAL),
        ("SSL", {"listener.name.other.ssl.client.auth": "required"}, ssl.CERT_NONE),
        ("SASL_SSL", {"ssl.client.auth": "required"}, ssl.CERT_NONE),
        ("SASL_SSL", {"listener.name.in.ssl.client.auth": "required"}, ssl.CERT_REQUIRED),
        ("SASL_SSL", {"listener.name.other.ssl.client.auth": "required"}, ssl.CERT_NONE),
        (
            "SASL_SSL",
            {"ssl.client.auth": "required", "listener.name.in.ssl.client.auth": "requested"},
            ssl.CERT_OPTIONAL,
        ),
    ],
)
def test_a_certificate_is_asked_for_where_tls_or_the_listener_says_so(
    certificates: Certificates, protocol: str, given: dict[str, str], mode: ssl.VerifyMode | None
) -> None:
    security = secured(certificates, protocol, **given)
    context = security.tls_context()
    assert (None if context is None else context.verify_mode) is mode
    assert (security.sasl is not None) is protocol.startswith("SASL")


class _Transport:
    """TLS with this certificate; without it where ``tls`` is False."""

    def __init__(self, certificate: bytes | None, *, tls: bool = True) -> None:
        self._object = SimpleNamespace(getpeercert=self._shown) if tls else None
        self._certificate = certificate

    def get_extra_info(self, name: str) -> Any:
        return self._object if name == "ssl_object" else None

    def _shown(self, *, binary_form: bool) -> bytes | None:
        assert binary_form
        return self._certificate


@pytest.mark.parametrize(
    ("protocol", "tls", "shows", "principal"),
    [
        ("SSL", True, True, "User:alice"),
        ("SSL", True, False, "User:ANONYMOUS"),
        ("SSL", False, False, "User:ANONYMOUS"),
        ("SASL_SSL", True, True, "User:ANONYMOUS"),
        ("PLAINTEXT", True, True, "User:ANONYMOUS"),
    ],
)
def test_a_client_is_called_by_its_certificate_where_no_password_is_asked_for(
    certificates: Certificates, protocol: str, tls: bool, shows: bool, principal: str
) -> None:
    rules = {"ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/"}
    text = Path(certificates.client("alice")).read_text()
    pem = text[text.index("-----BEGIN CERTIFICATE") :].partition("-----END CERTIFICATE-----")
    certificate = ssl.PEM_cert_to_DER_cert(pem[0] + pem[1]) if shows else None
    transport: Any = _Transport(certificate, tls=tls)
    assert secured(certificates, protocol, **rules).principal(transport) == principal


def test_a_listener_says_which_it_is(certificates: Certificates) -> None:
    assert repr(secured(certificates, "SSL")) == "ListenerSecurity(IN://127.0.0.1:0)"
