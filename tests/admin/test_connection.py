"""Commands on a broker with TLS and SASL: options, variables, files, and secrets that nobody sees.

Covers: admin/connection.py.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from kohort.admin import GroupAdmin
from kohort.admin.connection import read_connection
from tests.admin.conftest import ran
from tests.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture
def properties(tmp_path: Path, secured: Secured) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        f"bootstrap.servers={secured.tls}\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="me" password="{PASSWORD}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.cafile}\n"
    )
    return path


def options(secured: Secured, password: Path) -> list[str]:
    words = (
        f"--bootstrap {secured.tls} --security-protocol SASL_SSL --sasl-mechanism PLAIN --sasl-username me"
    )
    return [*words.split(), "--sasl-password-file", str(password), "--ssl-cafile", secured.cafile]


def test_options_come_before_an_action_or_behind_it(
    capsys: pytest.CaptureFixture[str], secured: Secured, password: Path
) -> None:
    given = options(secured, password)
    assert ran(capsys, ["groups", *given, "list"]).code == 0
    assert ran(capsys, ["groups", "list", *given]).code == 0
    assert ran(capsys, ["groups", *given[:4], "list", *given[4:]]).code == 0


def test_a_topic_with_configs_is_made_filled_and_read_by_a_file(
    capsys: pytest.CaptureFixture[str], properties: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"connection-{uuid.uuid4().hex[:8]}"
    file = ["--command-config", str(properties)]
    assert ran(capsys, ["topics", "create", name, "--config", "retention.ms=3600000", *file]).code == 0
    assert ran(capsys, ["topics", "--config", str(properties), "describe", name]).code == 0
    lines = tmp_path / "lines"
    lines.write_text("a\nb\n")
    assert ran(capsys, ["produce", name, "--file", str(lines), "--config", str(properties)]).code == 0
    monkeypatch.setenv("KOHORT_CONFIG", str(properties))
    read = ran(capsys, ["consume", name, "--from", "earliest"])
    assert (read.code, read.out.split()) == (0, ["a", "b"]), read.err
    read = ran(capsys, ["consume", name, "--group", f"g-{name}", "--from", "earliest"])
    assert (read.code, read.out.split()) == (0, ["a", "b"]), read.err
    assert ran(capsys, ["groups", "describe", f"g-{name}"]).code == 0
    assert ran(capsys, ["transactions", "list"]).code == 0


def test_variables_are_enough_and_the_process_list_has_no_secret(secured: Secured) -> None:
    environ = {
        **os.environ,
        "KOHORT_BOOTSTRAP": secured.tls,
        "KOHORT_SECURITY_PROTOCOL": "SASL_SSL",
        "KOHORT_SASL_MECHANISM": "SCRAM-SHA-256",
        "KOHORT_SASL_USERNAME": "me",
        "KOHORT_SASL_PASSWORD": PASSWORD,
        "KOHORT_SSL_CAFILE": secured.cafile,
    }
    command = [sys.executable, "-m", "kohort", "groups", "list"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    environ["KOHORT_SASL_PASSWORD"] = "not " + PASSWORD
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "SCRAM-SHA-256 was refused" in done.stderr
    assert PASSWORD not in done.stderr.replace("kohort", "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sasl-mechanism", "PLAIN"], "needs security_protocol"),
        (["--security-protocol", "SASL_SSL"], "needs a sasl_mechanism"),
        (["--security-protocol", "SSL", "--ssl-cafile", "/nowhere.pem"], "ssl_cafile: "),
        (["--config", "/nowhere.properties"], "/nowhere.properties cannot be read"),
        (["--sasl-password-file", "/nowhere"], "/nowhere: No such file"),
        (["--sasl-password", "x"], "use --sasl-password-file"),
        (["--ssl-keyfile", "-----BEGIN PRIVATE KEY-----\nx"], "keyfile: everybody on this machine can read"),
        (["--ssl-certfile", "x\n-----BEGIN RSA PRIVATE KEY-----"], "give its file, or a variable"),
    ],
)
def test_wrong_use_is_told_before_a_broker_is_asked(
    capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    found = ran(capsys, ["groups", *words, "list"])
    assert found.code == 2
    assert says in found.err


def test_a_password_that_is_no_text_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xff\n")
    found = ran(capsys, ["groups", "--sasl-password-file", str(tmp_path / "password"), "list"])
    assert found.code == 2
    assert found.err == f"kohort groups: {tmp_path / 'password'} is no text in UTF-8\n"


def test_brokers_are_a_list_in_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('bootstrap = ["a:1", "b:2"]\n')
    assert read_connection(None, {"config": str(tmp_path / "a.toml")}).bootstrap == "a:1,b:2"


@pytest.mark.parametrize(
    ("protocol", "found"), [("SASL_SSL", "SASL_SSL"), ("SASL_PLAINTEXT", "SASL_SSL"), (None, "SSL")]
)
def test_a_context_of_one_s_own_goes_with_a_login_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch, protocol: str | None, found: str
) -> None:
    if protocol is not None:
        for name, value in (("SECURITY_PROTOCOL", protocol), ("SASL_MECHANISM", "PLAIN")):
            monkeypatch.setenv(f"KOHORT_{name}", value)
        for name in ("USERNAME", "PASSWORD"):
            monkeypatch.setenv(f"KOHORT_SASL_{name}", "me")
    given = {"ssl_context": ssl.create_default_context()}
    assert read_connection("a:1", given).security_protocol == found


async def test_an_admin_client_takes_the_settings_of_a_consumer(secured: Secured, properties: Path) -> None:
    async with GroupAdmin(config=str(properties)) as admin:
        await admin.list_groups()
    given: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": secured.cafile,
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": PASSWORD,
    }
    async with GroupAdmin([secured.tls], **given) as admin:
        await admin.list_groups()
        assert PASSWORD not in repr(admin)
