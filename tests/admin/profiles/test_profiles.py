"""Profiles: one name for a cluster's address, TLS and login; secrets stand elsewhere.

Covers: admin/profiles/commands.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.admin.conftest import Ran, ran
from tests.secured import PASSWORD, Secured

Writes = Callable[[str], Path]


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writes:
    """``profiles("[one]")``: the file of profiles."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    file = tmp_path / "settings" / "kohort" / "profiles.toml"
    file.parent.mkdir(parents=True)

    def write(text: str) -> Path:
        file.write_text(text)
        return file

    return write


@pytest.fixture
def kohort(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    return lambda *words: ran(capsys, words)


@pytest.mark.kafka
def test_a_profile_is_a_whole_connection_and_variables_do_not_mix_with_it(
    secured: Secured,
    profiles: Writes,
    kohort: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    login = f'security_protocol = "SASL_SSL"\nssl_cafile = "{secured.cafile}"\n'
    profiles(
        f'[by-file]\nbootstrap = "{secured.tls}"\n{login}'
        f'[by-file.sasl]\nmechanism = "SCRAM-SHA-512"\nusername = "me"\npassword_file = "{secret}"\n'
        f'[by-variable]\nbootstrap.servers = "{secured.tls}"\n{login}'
        'sasl_mechanism = "PLAIN"\nsasl_username = "me"\nsasl_password_env = "ITS_PASSWORD"\n'
        f'[open]\nbootstrap = ["{secured.plain}"]\n'
    )
    monkeypatch.setenv("KOHORT_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("ITS_PASSWORD", PASSWORD)
    for name in ("by-file", "by-variable", "open"):
        found = kohort("topics", "list", "--profile", name)
        assert found.code == 0, found.err
        assert kohort("topics", "--profile", name, "list").code == 0
    monkeypatch.setenv("KOHORT_PROFILE", "open")
    assert kohort("groups", "list").code == 0
    assert kohort("groups", "list", "--bootstrap", "127.0.0.1:1", "--timeout", "1").code == 3
    listed = kohort("profiles", "list")
    assert listed.rows()[1:] == [
        ["by-file", secured.tls, "SASL_SSL", "me", "-"],
        ["by-variable", secured.tls, "SASL_SSL", "me", "-"],
        ["open", secured.plain, "-", "-", "yes"],
    ]
    assert PASSWORD not in listed.out


def test_the_profiles_of_the_page_are_profiles(profiles: Writes, kohort: Callable[..., Ran]) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "connections.md").read_text()
    profiles(page.partition("## Profiles")[2].partition("```toml\n")[2].partition("```")[0])
    assert [row[0] for row in kohort("profiles", "list").rows()[1:]] == ["local", "production", "staging"]
    (line,) = kohort("topics", "list", "--profile", "production").err.splitlines()
    assert "sasl_password_file" in line
    assert "cannot be read" in line


@pytest.mark.kafka
def test_a_settings_file_behind_a_profile(
    secured: Secured, profiles: Writes, kohort: Callable[..., Ran], tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "bootstrap.servers=127.0.0.1:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="me" password="{PASSWORD}";\n'
    )
    profiles(f'[one]\nbootstrap = "{secured.sasl}"\nconfig = "{properties}"\n')
    found = kohort("topics", "list", "--profile", "one")
    assert found.code == 0, found.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no profile 'one' in"),
        ("[two]\n[three]\n", ": there are two, three"),
        ("[ones]\n", "did you mean ones?"),
        ("[one", "cannot be read"),
        ('bootstrap = "x"\n', "bootstrap stands outside of a profile"),
        ('[one]\nsasl_password = "x"\n', "sasl_password has a secret: give sasl_password_file or"),
        ('[one.sasl.jaas]\nconfig = "x"\n', "sasl_jaas_config has a secret: give sasl_password_file or"),
        ('[one]\nsasl_password_file = "/nowhere"\n', "/nowhere cannot be read"),
        ('[one]\nsasl_password_env = "NOT_SET_AT_ALL"\n', "NOT_SET_AT_ALL is not set"),
        ('[one]\nbootstraps = "x:1"\n', "bootstraps is no setting: did you mean bootstrap.servers?"),
        ('[one]\nsecurity_protocol = "TLS"\n', "profile one"),
        ('[one]\nconfig = "/nowhere"\n', "/nowhere"),
    ],
)
def test_what_is_wrong_with_a_profile_is_told_in_one_line(
    profiles: Writes, kohort: Callable[..., Ran], text: str, said: str
) -> None:
    profiles(text)
    found = kohort("topics", "list", "--profile", "one")
    assert (found.code, found.out) == (2, "")
    (line,) = found.err.splitlines()
    assert said in line


def test_a_profile_and_a_file_are_not_given_both(profiles: Writes, kohort: Callable[..., Ran]) -> None:
    profiles("[one]\n")
    found = kohort("topics", "list", "--profile", "one", "--config", "x")
    assert found.code == 2
    assert "give --profile or --config" in found.err


def test_without_a_file_there_are_no_profiles(
    kohort: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = kohort("profiles", "list", "--json")
    assert found.document == {"file": str(tmp_path / "kohort" / "profiles.toml"), "profiles": []}
    assert "no profiles in" in found.err
