"""Apache Kafka's tools on a cluster: topics, configs, reassignments, elections, folders of logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.testing import RunningCluster, running_cluster
from tests.clients.java import (
    API_VERSIONS_COMMAND,
    CONFIG_COMMAND,
    ELECTION_COMMAND,
    GET_OFFSETS,
    GROUP_COMMAND,
    LOG_DIRS_COMMAND,
    QUORUM_COMMAND,
    REASSIGN_COMMAND,
    TOPIC_COMMAND,
    ToolServer,
    table,
)

pytestmark = [pytest.mark.clients, pytest.mark.slow(20)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, racks=["a", "b", "c"]) as running:
        yield running


@pytest.fixture(scope="module")
def tools(cluster: RunningCluster) -> Iterator[ToolServer]:
    other = next(number for number in cluster.brokers if number != cluster.controller)
    with ToolServer(cluster.brokers[other].bootstrap) as running:
        yield running


def told(tools: ToolServer, tool: str, *arguments: str) -> str:
    printed = tools.run(tool, *arguments)
    assert printed.code == 0, printed
    return printed.out


def test_topics_are_created_with_replicas_grow_and_are_described(tools: ToolServer) -> None:
    told(
        tools,
        TOPIC_COMMAND,
        "--create",
        "--topic",
        "tooled",
        "--partitions",
        "3",
        "--replication-factor",
        "3",
    )
    told(tools, TOPIC_COMMAND, "--alter", "--topic", "tooled", "--partitions", "4")
    lines = told(tools, TOPIC_COMMAND, "--describe", "--topic", "tooled")
    assert "PartitionCount: 4\tReplicationFactor: 3" in lines
    found = re.findall(r"Leader: (\d)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)", lines)
    assert len(found) == 4
    assert all(replicas[0] == leader and set(replicas) == set(isr) for leader, replicas, isr in found)
    assert told(tools, TOPIC_COMMAND, "--describe", "--under-replicated-partitions").strip() == ""


def test_configs_are_set_by_any_broker(tools: ToolServer) -> None:
    told(tools, TOPIC_COMMAND, "--create", "--topic", "configured")
    entity = ("--entity-type", "topics", "--entity-name", "configured")
    told(tools, CONFIG_COMMAND, "--alter", *entity, "--add-config", "min.insync.replicas=2")
    assert "min.insync.replicas=2" in told(tools, CONFIG_COMMAND, "--describe", *entity)
    everybody = ("--entity-type", "brokers", "--entity-default")
    told(tools, CONFIG_COMMAND, "--alter", *everybody, "--add-config", "log.cleaner.delete.retention.ms=8000")
    for number in ("1", "2", "3"):
        own = ("--entity-type", "brokers", "--entity-name", number)
        told(tools, CONFIG_COMMAND, "--alter", *own, "--add-config", f"log.cleaner.backoff.ms=900{number}")
        shown = told(tools, CONFIG_COMMAND, "--describe", *own)
        assert f"log.cleaner.backoff.ms=900{number}" in shown
    user = ("--entity-type", "users", "--entity-name", "alice")
    told(tools, CONFIG_COMMAND, "--alter", *user, "--add-config", "SCRAM-SHA-256=[password=secret]")
    assert "SCRAM-SHA-256=iterations=4096" in told(tools, CONFIG_COMMAND, "--describe", *user)


def test_partitions_move_and_their_first_replicas_lead(
    cluster: RunningCluster, tools: ToolServer, tmp_path: Path
) -> None:
    told(tools, TOPIC_COMMAND, "--create", "--topic", "moved", "--replica-assignment", "1:2,2:3")
    cluster.produce("moved", [f"v{number}" for number in range(50)])
    plan = {"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [3, 2]}]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    plan_file = ("--reassignment-json-file", str(file))
    assert "Successfully started" in told(tools, REASSIGN_COMMAND, *plan_file, "--execute")
    cluster._eventually(lambda: cluster.state("moved", 0).replicas == (3, 2) or None)
    assert "Reassignment of partition moved-0 is completed." in told(
        tools, REASSIGN_COMMAND, *plan_file, "--verify"
    )
    assert "No partition reassignments found." in told(tools, REASSIGN_COMMAND, "--list")
    told(tools, ELECTION_COMMAND, "--election-type", "preferred", "--all-topic-partitions")
    assert (cluster.leader_of("moved", 0), cluster.leader_of("moved", 1)) == (3, 2)
    assert len(cluster.read("moved")) == 50
    folders = json.loads(
        told(tools, LOG_DIRS_COMMAND, "--describe", "--topic-list", "moved").splitlines()[-1]
    )
    placed = {
        broker["broker"]: sorted(part["partition"] for part in broker["logDirs"][0]["partitions"])
        for broker in folders["brokers"]
    }
    assert placed == {1: [], 2: ["moved-0", "moved-1"], 3: ["moved-0", "moved-1"]}


def test_a_reassignment_is_throttled_until_it_is_verified(
    cluster: RunningCluster, tools: ToolServer, tmp_path: Path
) -> None:
    told(tools, TOPIC_COMMAND, "--create", "--topic", "slow", "--replica-assignment", "1:2")
    cluster.produce("slow", [b"x" * 100_000 for _ in range(30)])
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "slow", "partition": 0, "replicas": [3, 2]}]})
    )
    plan = ("--reassignment-json-file", str(file))
    printed = told(tools, REASSIGN_COMMAND, *plan, "--execute", "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s" in printed
    topic = ("--describe", "--entity-type", "topics", "--entity-name", "slow")
    shown = told(tools, CONFIG_COMMAND, *topic)
    assert "leader.replication.throttled.replicas=0:1,0:2" in shown
    assert "follower.replication.throttled.replicas=0:3" in shown
    broker = ("--describe", "--entity-type", "brokers", "--entity-name", "3")
    assert "follower.replication.throttled.rate=1000" in told(tools, CONFIG_COMMAND, *broker)
    assert "is still in progress" in told(tools, REASSIGN_COMMAND, *plan, "--verify", "--preserve-throttles")
    # it may be raised on the way
    told(tools, REASSIGN_COMMAND, *plan, "--execute", "--additional", "--throttle", "1000000000")
    cluster._eventually(lambda: cluster.state("slow", 0).replicas == (3, 2) or None)
    printed = told(tools, REASSIGN_COMMAND, *plan, "--verify")
    assert "Clearing broker-level throttles on brokers 1,2,3" in printed
    assert "Clearing topic-level throttles on topic slow" in printed
    assert "throttled" not in told(tools, CONFIG_COMMAND, *topic)
    assert "throttled" not in told(tools, CONFIG_COMMAND, *broker)
    assert len(cluster.read("slow")) == 30


def test_a_reassignment_is_listed_cancelled_and_may_name_log_folders(
    cluster: RunningCluster, tools: ToolServer, tmp_path: Path
) -> None:
    told(tools, TOPIC_COMMAND, "--create", "--topic", "stays", "--replica-assignment", "1:2")
    cluster.produce("stays", [b"x" * 100_000 for _ in range(30)])
    file = tmp_path / "plan.json"

    def plan(folder: str) -> tuple[str, str]:
        one = {"topic": "stays", "partition": 0, "replicas": [3, 2], "log_dirs": [folder, "any"]}
        file.write_text(json.dumps({"version": 1, "partitions": [one]}))
        return "--reassignment-json-file", str(file)

    told(tools, REASSIGN_COMMAND, *plan("any"), "--execute", "--throttle", "1000")
    assert "stays-0: replicas: 3,2,1. adding: 3. removing: 1." in told(tools, REASSIGN_COMMAND, "--list")
    printed = told(tools, REASSIGN_COMMAND, *plan("any"), "--cancel")
    assert "Successfully cancelled partition reassignment for: stays-0" in printed
    assert "Clearing topic-level throttles on topic stays" in printed
    assert set(cluster.state("stays", 0).replicas) == {1, 2}
    folder = tools_folder(tools, 3)
    printed = told(tools, REASSIGN_COMMAND, *plan(folder), "--execute")
    assert (
        f"Successfully started moving log directory to {folder} for replica stays-0 with broker 3" in printed
    )
    cluster._eventually(lambda: cluster.state("stays", 0).replicas == (3, 2) or None)
    assert "Reassignment of replica stays-0-3 completed successfully." in told(
        tools, REASSIGN_COMMAND, *plan(folder), "--verify"
    )
    refused = tools.run(REASSIGN_COMMAND, *plan("/nowhere"), "--execute", "--timeout", "1000")
    assert refused.code == 1
    assert "Failed to alter dir" in refused.out + refused.errors


def tools_folder(tools: ToolServer, broker: int) -> str:
    found = json.loads(told(tools, LOG_DIRS_COMMAND, "--describe").splitlines()[-1])
    [folder] = [each["logDirs"][0]["logDir"] for each in found["brokers"] if each["broker"] == broker]
    return str(folder)


def test_offsets_groups_and_versions_are_told_by_any_broker_and_a_quorum_is_not(
    cluster: RunningCluster, tools: ToolServer
) -> None:
    told(tools, TOPIC_COMMAND, "--create", "--topic", "read", "--partitions", "2")
    cluster.produce("read", ["a", "b", "c"], partition=1)
    assert told(tools, GET_OFFSETS, "--topic", "read").split() == ["read:0:0", "read:1:3"]
    reset = ("--group", "readers", "--topic", "read", "--reset-offsets", "--to-latest", "--execute")
    assert table(told(tools, GROUP_COMMAND, *reset))[-1]["GROUP"] == "readers"
    [row] = table(told(tools, GROUP_COMMAND, "--describe", "--group", "readers"))[-1:]
    assert (row["TOPIC"], row["LAG"]) == ("read", "0")
    told(tools, GROUP_COMMAND, "--delete", "--group", "readers")
    versions = told(tools, API_VERSIONS_COMMAND)
    assert len(re.findall(r"\(id: [123] rack: [abc] isFenced: false\) -> \(", versions)) == 3
    refused = tools.run(QUORUM_COMMAND, "describe", "--status")
    assert refused.code == 1
    assert "does not support DESCRIBE_QUORUM" in refused.out + refused.errors
