"""Kafka's own tools make access rules, and are refused by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.authorizer.conftest import PASSWORD, eventually
from tests.broker.authorizer.place import Place
from tests.clients.java import TOPIC_COMMAND, ToolServer

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

ACL_COMMAND = "org.apache.kafka.tools.AclCommand"


@pytest.fixture(scope="module")
def run_tool(place: Place) -> Iterator[ToolServer]:
    with ToolServer(place.admin) as server:
        yield server


def test_kafkas_own_tool_makes_lists_and_removes_rules(run_tool: ToolServer, name: str, user: str) -> None:
    run_tool(
        ACL_COMMAND,
        "--add",
        "--allow-principal",
        f"User:{user}",
        "--consumer",
        "--topic",
        name,
        "--group",
        name,
    )
    listed = eventually(
        "they are listed",
        lambda: user in (printed := run_tool(ACL_COMMAND, "--list", "--topic", name)) and printed,
    )
    assert "operation=READ, permissionType=ALLOW" in listed
    assert "operation=DESCRIBE, permissionType=ALLOW" in listed
    assert user in run_tool(ACL_COMMAND, "--list", "--group", name)
    run_tool(
        ACL_COMMAND,
        "--add",
        "--deny-principal",
        f"User:{user}",
        "--deny-host",
        "10.0.0.1",
        "--operation",
        "Write",
        "--topic",
        name[:-2],
        "--resource-pattern-type",
        "prefixed",
    )
    matching = ("--list", "--topic", name, "--resource-pattern-type", "match")
    eventually(
        "the prefix matches",
        lambda: "host=10.0.0.1, operation=WRITE, permissionType=DENY" in run_tool(ACL_COMMAND, *matching),
    )
    for resource in ("--topic", "--group"):
        run_tool(ACL_COMMAND, "--remove", "--force", resource, name)
    eventually("they are gone", lambda: user not in run_tool(ACL_COMMAND, "--list", "--topic", name))


def test_kafkas_own_tools_are_refused_until_rules_allow(
    run_tool: ToolServer, place: Place, name: str, user: str, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={place.certificates.cafile}\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{user}" password="{PASSWORD}";\n'
    )
    secured = ("--command-config", str(config))
    create = ("--create", "--topic", name, "--partitions", "1")
    for tool, *arguments, error in (
        (TOPIC_COMMAND, *create, "TopicAuthorizationException"),
        (ACL_COMMAND, "--list", "ClusterAuthorizationException"),
    ):
        denied = run_tool.run(tool, *secured, *arguments, bootstrap=place.scram)
        assert error in denied.out + denied.errors
    operations = ("--operation", "Create", "--operation", "Describe")
    run_tool(ACL_COMMAND, "--add", "--allow-principal", f"User:{user}", *operations, "--topic", name)
    eventually("it may", lambda: user in run_tool(ACL_COMMAND, "--list", "--topic", name))
    run_tool(TOPIC_COMMAND, *secured, *create, bootstrap=place.scram)
    assert name in run_tool(TOPIC_COMMAND, *secured, "--list", bootstrap=place.scram).split()
