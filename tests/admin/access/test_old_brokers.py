"""A broker that is too old for a command is told by the name of what it lacks, in one line."""

from __future__ import annotations

import io

import pytest

from kohort.client.connection import Connection
from kohort.protocol import ApiKey
from tests.admin.conftest import ran

#: What a command needs that an old broker lacks.
NEEDS = [
    ("acls list", ApiKey.DESCRIBE_ACLS),
    ("acls add --allow a --operation Read --topic t", ApiKey.CREATE_ACLS),
    ("acls remove --principal a", ApiKey.DESCRIBE_ACLS),
    ("users list", ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS),
    ("users add alice", ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    ("quotas list", ApiKey.DESCRIBE_CLIENT_QUOTAS),
    ("quotas set --user a producer_byte_rate=1", ApiKey.ALTER_CLIENT_QUOTAS),
    ("configs set --group g consumer.session.timeout.ms=50000", ApiKey.INCREMENTAL_ALTER_CONFIGS),
    ("cluster features share.version=0", ApiKey.UPDATE_FEATURES),
]


@pytest.mark.parametrize(("command", "lacks"), NEEDS)
def test_a_broker_without_the_api_is_told(
    bootstrap: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    lacks: ApiKey,
) -> None:
    _forget(monkeypatch, lacks)
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    found = ran(capsys, [*command.split(), "--bootstrap", bootstrap])
    assert (found.code, found.out) == (1, "")
    (line,) = found.err.splitlines()
    assert "does not offer" in line
    assert line.endswith("it is too old for this")


def test_configs_are_listed_where_groups_with_configs_cannot_be(
    bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget(monkeypatch, ApiKey.LIST_CONFIG_RESOURCES)
    assert ran(capsys, ["configs", "list", "--bootstrap", bootstrap]).code == 0


def _forget(monkeypatch: pytest.MonkeyPatch, api: ApiKey) -> None:
    """Brokers offer this API no more."""
    real = Connection._negotiate_versions

    async def negotiate(connection: Connection) -> None:
        await real(connection)
        connection.versions.pop(api, None)

    monkeypatch.setattr(Connection, "_negotiate_versions", negotiate)
