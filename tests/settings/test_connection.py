"""Settings of connections from a file and from variables: what counts first, and what an error says.

Covers: settings/connection.py.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from kohort.admin.connection import AdminConnection
from kohort.client import ConfigError
from kohort.consumer.config import ConsumerConfig, consumer_config
from kohort.producer.config import producer_config
from kohort.settings import SettingsError, read_settings
from kohort.settings.connection import fallback_settings
from kohort.spark import OptionsError
from kohort.spark._options import GroupBatchesOptions, read_options
from kohort.spark._source_options import read_source_options

SECRET = "a-password-nobody-may-see"
JAVA = f"""
# as for kafka-console-consumer.sh
bootstrap.servers=b1:9092,b2:9092
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="etl" password="{SECRET}";
ssl.truststore.type=PEM
ssl.endpoint.identification.algorithm=
group.id=billing
fetch.min.bytes=7
enable.auto.commit=false
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
"""
TOML = f"""
bootstrap = "b1:9092,b2:9092"
security_protocol = "SASL_SSL"
group = "billing"
fetch_min_bytes = 7
enable.auto.commit = false
[sasl]
mechanism = "SCRAM-SHA-512"
username = "etl"
password = "{SECRET}"
[ssl]
check_hostname = false
"""


def fallback(environ: dict[str, str], config: str | None = None) -> dict[str, Any]:
    return dict(fallback_settings(ConsumerConfig, config, environ).values)


@pytest.mark.parametrize(("name", "text"), [("client.properties", JAVA), ("client.toml", TOML)])
def test_a_file_has_java_s_names_or_ours(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    config = consumer_config(config=str(path))
    assert config.bootstrap == "b1:9092,b2:9092"
    assert (config.security_protocol, config.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (config.sasl_plain_username, config.sasl_plain_password) == ("etl", SECRET)
    assert not config.ssl_check_hostname
    assert (config.group, config.fetch_min_bytes, config.enable_auto_commit) == ("billing", 7, False)
    assert SECRET not in repr(config)


def test_arguments_count_before_variables_and_these_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=file:1\nclient.id=file\nsasl.username=file\nsecurity.protocol=SSL\n")
    monkeypatch.setenv("KOHORT_CONFIG", str(path))
    assert consumer_config(sasl_plain_username=None).bootstrap == "file:1"
    monkeypatch.setenv("KOHORT_BOOTSTRAP", "environment:1")
    monkeypatch.setenv("KOHORT_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("KOHORT_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("KOHORT_SASL_PASSWORD", SECRET)
    found = producer_config(sasl_plain_username="given")
    assert (found.bootstrap, found.client_id) == ("environment:1", "file")
    assert (found.security_protocol, found.sasl_plain_username) == ("SASL_PLAINTEXT", "given")
    assert found.sasl_plain_password == SECRET
    assert producer_config(bootstrap="given:1").bootstrap == "given:1"
    # no file: nobody gives the user then
    with pytest.raises(ConfigError, match=r"needs sasl_plain_username .* KOHORT_SASL_MECHANISM, KOHORT_SA"):
        producer_config(config="")


def test_what_comes_first_voids_what_does_not_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"sasl.username=file\nsasl.password={SECRET}\nssl.truststore.location=ca.pem\n")
    monkeypatch.setenv("KOHORT_CONFIG", str(path))
    monkeypatch.setenv("KOHORT_BOOTSTRAP", "environment:1")
    plain = consumer_config(security_protocol="PLAINTEXT")
    assert (plain.sasl_plain_username, plain.ssl_cafile) == (None, None)
    by_context = consumer_config(security_protocol="SSL", ssl_context=ssl.create_default_context())
    assert (by_context.sasl_plain_username, by_context.ssl_cafile) == (None, None)
    monkeypatch.setenv("KOHORT_SECURITY_PROTOCOL", "PLAINTEXT")
    assert consumer_config().sasl_plain_password is None
    monkeypatch.setenv("KOHORT_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("KOHORT_SASL_MECHANISM", "OAUTHBEARER")
    monkeypatch.setenv("KOHORT_SASL_OAUTH_TOKEN_URL", "https://tokens")
    assert consumer_config(sasl_oauth_token_provider=str).sasl_oauth_token_url is None
    # what is given itself must go together as before
    with pytest.raises(ConfigError, match="sasl_plain_username needs security_protocol"):
        consumer_config(security_protocol="PLAINTEXT", sasl_plain_username="given")


def test_variables_are_for_connections_alone() -> None:
    found = fallback(
        {"KOHORT_GROUP": "g", "KOHORT_BOOTSTRAP_SERVERS": "b:1", "KOHORT_SSL_CHECK_HOSTNAME": "False"}
    )
    assert found == {"bootstrap": "b:1", "ssl_check_hostname": False}


def test_spark_s_options_have_the_same_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "client.properties"
    path.write_text(JAVA)
    source = read_source_options({"subscribe": "t", "config": str(path)}, stream=True)
    loop = read_options(GroupBatchesOptions, topics=["t"], config=str(path))
    assert source.connection == loop.connection
    assert source.group == loop.group == "billing"
    assert loop.connection.bootstrap == "b1:9092,b2:9092"
    assert loop.connection.security.password == SECRET
    monkeypatch.setenv("KOHORT_BOOTSTRAP", "environment:1")
    assert read_source_options({"subscribe": "t", "groupId": "g"}, stream=True).bootstrap == "environment:1"
    with pytest.raises(OptionsError, match=r"/nowhere.properties cannot be read"):
        read_options(GroupBatchesOptions, topics=["t"], config="/nowhere.properties")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "a.properties",
            "sasl.mechansim=PLAIN",
            "no setting: did you mean sasl.mechanism?",
        ),
        ("a.properties", "ssl.truststore.type=JKS", "only PEM"),
        ("a.properties", f"ssl.truststore.password={SECRET}", "certificates are PEM, without a password"),
        ("a.properties", f'sasl.jaas.config=x required password="{SECRET}";', "name PlainLoginModule"),
        (
            "a.properties",
            f'sasl.jaas.config=PlainLoginModule required password="{SECRET}";',
            "with username and password",
        ),
        ("a.toml", "a = ", "cannot be read: Invalid value"),
        ("a.toml", "\xff", "a.toml"),
        ("a.toml", "ssl.endpoint.identification.algorithm = false", "algorithm must be text"),
        ("a.toml", "ssl.truststore.type = 1", "ssl.truststore.type must be text"),
        ("a.toml", "sasl.jaas.config = ['x']", "sasl.jaas.config must be text"),
    ],
)
def test_what_a_file_cannot_say_is_told_with_its_name(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="latin-1")
    with pytest.raises(SettingsError, match=name) as caught:
        fallback_settings(ConsumerConfig, str(path), {})
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("KOHORT_SECURITY_PROTOCOL", "TLS", "security_protocol='TLS' is not allowed"),
        ("KOHORT_SSL_CHECK_HOSTNAME", "maybe", "ssl_check_hostname='maybe' is not allowed"),
        ("KOHORT_BOOTSTRAP", "b:port", "'b:port'"),
    ],
)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=says) as caught:
        consumer_config(**({} if variable == "KOHORT_BOOTSTRAP" else {"bootstrap": "b:1"}))
    assert f"(settings also come from {variable})" in str(caught.value)


def test_a_misspelled_variable_is_told_and_others_of_the_prefix_are_somebody_else_s() -> None:
    with pytest.raises(SettingsError, match=r"KOHORT_SASL_PASWORD is no setting: .* KOHORT_SASL_PASSWORD\?"):
        fallback({"KOHORT_SASL_PASWORD": "secret"})
    assert fallback({"KOHORT_DEMO_RECORDS": "5", "KOHORT_TLS": "1", "KOHORT_CONFIG": ""}) == {}


def test_a_text_that_is_too_short_is_refused_where_pydantic_is_not_needed_either() -> None:
    with pytest.raises(SettingsError, match="sasl_plain_username='' is not allowed"):
        read_settings(AdminConnection, {"sasl_plain_username": ""})


def test_settings_of_other_clients_are_left_unused_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=b:1\nkey.serializer=X\nlinger.ms=5\n")
    with caplog.at_level(logging.INFO, "kohort"):
        assert consumer_config(config=str(path)).bootstrap == "b:1"
    assert "linger.ms is no setting of a consumer" in caplog.text


def test_client_credentials_are_those_of_java_s_login(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=b:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.oauthbearer.token.endpoint.url=https://issuer/token\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        f'clientId="etl" clientSecret="{SECRET}" scope="kafka";\n'
    )
    config = consumer_config(config=str(path))
    assert (config.sasl_oauth_token_url, config.sasl_oauth_client_id) == ("https://issuer/token", "etl")
    assert (config.sasl_oauth_client_secret, config.sasl_oauth_scope) == (SECRET, "kafka")
    assert SECRET not in repr(config)
    with pytest.raises(ConfigError, match="must begin with https://"):
        consumer_config(config=str(path), sasl_oauth_token_url="http://issuer/token")
    with pytest.raises(ConfigError, match="give one of them"):
        consumer_config(
            config=str(path),
            sasl_oauth_token_url="https://issuer/token",
            sasl_oauth_token_provider=lambda: "token",
        )
