"""Options of a secured connection: Python's names and Java's, and what nobody is shown.

Covers: spark/_connection_options.py.
"""

from __future__ import annotations

import pickle
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from kohort.client import ConfigError
from kohort.client.sasl import Sasl
from kohort.client.security import Security
from kohort.consumer import BrokerConnectionError
from kohort.spark import OptionsError
from kohort.spark._client import Client, ConnectionOptions
from kohort.spark._options import GroupBatchesOptions, read_options
from kohort.spark._source_options import read_source_options

SECRET = "a-password-nobody-may-see"
LOGIN = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "etl",
    "sasl_plain_password": SECRET,
}


def python_options(**more: Any) -> ConnectionOptions:
    return read_options(GroupBatchesOptions, bootstrap="b:1", group="g", topics=["t"], **more).connection


def spark_options(**more: str) -> ConnectionOptions:
    given = {"kafka.bootstrap.servers": "b:1", "groupId": "g", "subscribe": "t"}
    named = {f"kafka.{name.replace('_', '.')}": text for name, text in more.items()}
    return read_source_options(given | named, stream=True).connection


def test_java_s_names_say_the_same_as_python_s(tmp_path: Path) -> None:
    ca, client = trustme.CA(), trustme.CA().issue_cert("etl@example.org")
    cafile, keystore = tmp_path / "ca.pem", tmp_path / "client.pem"
    ca.cert_pem.write_to_path(str(cafile))
    client.private_key_and_cert_chain_pem.write_to_path(str(keystore))
    ours = python_options(
        **LOGIN, ssl_cafile=str(cafile), ssl_certfile=str(keystore), ssl_check_hostname=False
    )
    tls = {
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(cafile),
        "ssl_keystore_certificate_chain": keystore.read_text(),
        "ssl_endpoint_identification_algorithm": "",
    }
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="etl" password="{SECRET}";'
    assert spark_options(**tls, **login, sasl_jaas_config=jaas) == ours
    assert spark_options(**tls, **login, sasl_username="etl", sasl_password=SECRET) == ours
    assert ours.security.authorities == cafile.read_text()
    context = ours.security.ssl_context()
    assert context is not None
    assert not context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    sasl = ours.security.sasl()
    assert sasl is not None
    assert (sasl.mechanism, sasl.username, sasl.password) == ("SCRAM-SHA-512", "etl", SECRET)


def test_delegation_tokens_kerberos_and_providers_reach_each_process() -> None:
    """ConnectionOptions are sent to executors, which make the login there."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="etl" password="{SECRET}" tokenauth="true";'
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
    by_token = spark_options(**login, sasl_jaas_config=jaas)
    assert by_token == python_options(**LOGIN, sasl_tokenauth=True)
    kerberos = {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}
    by_ticket = spark_options(**kerberos, sasl_kerberos_service_name="kafka")
    provider = "tests.spark.test_security:give_token"
    oauth = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    by_provider = spark_options(**oauth, sasl_oauth_token_provider=provider)
    assert by_provider == python_options(**oauth, sasl_oauth_token_provider=provider)
    there = [pickle.loads(pickle.dumps(each)).security.sasl() for each in (by_token, by_ticket, by_provider)]
    assert there == [
        Sasl("SCRAM-SHA-512", "etl", SECRET, tokenauth=True),
        Sasl("GSSAPI", service="kafka"),
        Sasl("OAUTHBEARER", token_provider=give_token),
    ]
    missing = spark_options(**oauth, sasl_oauth_token_provider="tests.spark.test_security:nobody")
    with pytest.raises(ConfigError, match="nobody"):
        missing.security.sasl()


def give_token() -> str:
    return SECRET


def test_nothing_is_the_default() -> None:
    assert python_options() == spark_options() == ConnectionOptions("b:1")
    assert Security().ssl_context() is None
    assert Security().sasl() is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"sasl_plain_password": SECRET},
            "needs security_protocol='SASL_PLAINTEXT' or 'SASL_SSL'",
        ),
        ({**LOGIN, "sasl_mechanism": None}, "'SASL_SSL' needs a sasl_mechanism"),
        (
            {**LOGIN, "sasl_mechanism": "OAUTHBEARER"},
            "'OAUTHBEARER' needs sasl_oauth_token_url, .*, or sasl_oauth_token_provider, a function$",
        ),
        (
            {**LOGIN, "sasl_oauth_token_provider": lambda: SECRET},
            "executors need it too: give MODULE:NAME of a function that each process can import",
        ),
        ({**LOGIN, "sasl_oauth_token_provider": "tokens"}, "sasl_oauth_token_provider=.*MODULE:NAME"),
        ({**LOGIN, "sasl_mechanism": "GSSAPI"}, "'GSSAPI' needs sasl_kerberos_service_name"),
        ({**LOGIN, "sasl_mechanism": "PLAIN", "sasl_tokenauth": True}, "sasl_tokenauth needs"),
        ({"ssl_context": ssl.create_default_context()}, "executors need it too: give ssl_cafile"),
        (
            {**LOGIN, "sasl_plain_password": [SECRET]},
            r"sasl_plain_password=\(hidden\) is not allowed: it must be text",
        ),
        ({"ssl_cafile": "/ca.pem"}, "the ssl settings need security_protocol"),
        ({"security_protocol": "SSL", "ssl_keyfile": "/key.pem"}, "ssl_keyfile needs ssl_certfile"),
        ({**LOGIN, "ssl_cafile": "/no-such-file.pem"}, "ssl_cafile: .*No such file"),
        ({**LOGIN, "max_offsets": 0}, "max_offsets=0"),
    ],
)
def test_what_cannot_be_is_told_without_a_secret(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionsError, match=problem) as caught:
        python_options(**options)
    assert SECRET not in everything(caught.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"sasl_jaas_config": f'password="{SECRET}"'}, "kafka.sasl.jaas.config: name PlainLoginModule"),
        ({"sasl_jaas_config": "Krb5LoginModule required useKeyTab=true;"}, "leave it out for Kerberos"),
        ({"ssl_truststore_type": "JKS"}, "only PEM"),
        ({"ssl_truststore_password": SECRET}, "kafka.ssl.truststore.password is not taken"),
        (
            {"sasl_pasword": SECRET},
            r"kafka.sasl.pasword is no option of the source: did you mean kafka.sasl.password\?",
        ),
    ],
)
def test_java_s_names_are_checked_too(options: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionsError, match=problem) as caught:
        spark_options(**options)
    assert SECRET not in everything(caught.value)


def test_certificates_that_are_none_are_told(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(OptionsError, match=r"store.jks' is no PEM file"):
        python_options(security_protocol="SSL", ssl_cafile=str(store))
    damaged = Security("SSL", certificate="-----BEGIN CERTIFICATE-----\n" + SECRET)
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        damaged.ssl_context()
    assert SECRET not in everything(caught.value)


@pytest.mark.kafka
def test_tls_to_a_listener_without_it_is_an_error_with_its_reason(bootstrap: str) -> None:
    plain = read_options(GroupBatchesOptions, bootstrap=bootstrap, group="g", topics=["t"])
    options = plain.model_copy(update={"security_protocol": "SSL", "request_timeout_ms": 200})
    client = Client(options.connection)
    try:
        with pytest.raises(BrokerConnectionError, match="does this listener take TLS"):
            client.run(lambda cluster: cluster.connect(timeout_ms=200))
    finally:
        client.close()


def test_a_representation_has_no_secret() -> None:
    options = read_options(GroupBatchesOptions, bootstrap="b:1", group="g", topics=["t"], **LOGIN)
    source = read_source_options(
        {
            "kafka.bootstrap.servers": "b:1",
            "groupId": "g",
            "subscribe": "t",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "etl",
            "kafka.sasl.password": SECRET,
        },
        stream=False,
    )
    for shown in (options, options.connection, source.connection, source):
        assert SECRET not in f"{shown!r} {shown}"


def everything(error: BaseException | None) -> str:
    """An error and all that a traceback would show behind it."""
    words = ""
    while error is not None:
        words += f"{error!r} {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return words
