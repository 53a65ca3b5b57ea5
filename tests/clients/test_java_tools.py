"""Apache Kafka's own tools. Skipped where there is no Java 17+ or no jars can be fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import kafka
import pytest

from tests.clients.drivers import DRIVERS
from tests.clients.java import (
    CONFIG_COMMAND,
    ELECTION_COMMAND,
    GET_OFFSETS,
    GROUP_COMMAND,
    LOG_DIRS_COMMAND,
    REASSIGN_COMMAND,
    TOPIC_COMMAND,
    ToolServer,
    table,
)
from tests.clients.members import Member, wait_for_records

pytestmark = [pytest.mark.clients, pytest.mark.kafka]


def test_topic_command(run_tool: ToolServer, topic: Callable[[str], str]) -> None:
    name = topic("tool")
    made = run_tool(
        TOPIC_COMMAND, "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=3600000"
    )
    assert f"Created topic {name}." in made

    described = run_tool(TOPIC_COMMAND, "--describe", "--topic", name)
    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 1", described)
    assert "retention.ms=3600000" in described
    assert len(re.findall(r"Partition: \d+\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 2

    run_tool(TOPIC_COMMAND, "--alter", "--topic", name, "--partitions", "4")
    assert "PartitionCount: 4" in run_tool(TOPIC_COMMAND, "--describe", "--topic", name)

    run_tool(TOPIC_COMMAND, "--delete", "--topic", name)
    assert name not in run_tool(TOPIC_COMMAND, "--list").split()


def test_config_command_sets_client_quotas(run_tool: ToolServer, topic: Callable[[str], str]) -> None:
    client = ("--entity-type", "clients", "--entity-name", topic("quota"))
    quota = "producer_byte_rate=12345"
    run_tool(CONFIG_COMMAND, "--alter", *client, "--add-config", quota)
    assert f"{quota}.0" in run_tool(CONFIG_COMMAND, "--describe", *client)
    run_tool(CONFIG_COMMAND, "--alter", *client, "--delete-config", "producer_byte_rate")
    assert "producer_byte_rate" not in run_tool(CONFIG_COMMAND, "--describe", *client)


def test_log_dirs_command(run_tool: ToolServer, bootstrap: str, new_topic: Callable[..., str]) -> None:
    name = new_topic("tool", partitions=2)
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(name, b"value", partition=1).get(20)
    producer.close()
    printed = run_tool(LOG_DIRS_COMMAND, "--describe", "--topic-list", name)
    (brokers,) = (json.loads(line)["brokers"] for line in printed.splitlines() if line.startswith("{"))
    ((folder,),) = (broker["logDirs"] for broker in brokers)
    assert folder["error"] is None
    sizes = {one["partition"]: one["size"] for one in folder["partitions"]}
    assert sizes.keys() == {f"{name}-0", f"{name}-1"}
    assert sizes[f"{name}-0"] == 0 < sizes[f"{name}-1"]


def test_leader_election_command(run_tool: ToolServer, new_topic: Callable[..., str]) -> None:
    name = new_topic("tool")
    for kind in ("PREFERRED", "UNCLEAN"):
        printed = run_tool(ELECTION_COMMAND, "--election-type", kind, "--topic", name, "--partition", "0")
        assert f"Valid replica already elected for partitions {name}-0" in printed
    run_tool(ELECTION_COMMAND, "--election-type", "PREFERRED", "--all-topic-partitions")


def test_reassign_partitions_command(run_tool: ToolServer) -> None:
    assert "No partition reassignments found." in run_tool(REASSIGN_COMMAND, "--list")


def test_get_offset_shell(run_tool: ToolServer, bootstrap: str, new_topic: Callable[..., str]) -> None:
    name = new_topic("tool", partitions=2, retention_ms="-1")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(5):
        producer.send(name, b"value", partition=1, timestamp_ms=1_700_000_000_000 + number).get(20)
    producer.close()

    def offsets(time: str) -> list[str]:
        printed = run_tool(GET_OFFSETS, "--topic-partitions", f"{name}:0,{name}:1", "--time", time)
        return sorted(printed.split())

    assert offsets("latest") == [f"{name}:0:0", f"{name}:1:5"]
    assert offsets("earliest") == [f"{name}:0:0", f"{name}:1:0"]
    assert f"{name}:1:4" in offsets("max-timestamp")
    assert f"{name}:1:2" in offsets("1700000000002")


def test_consumer_group_command(
    run_tool: ToolServer, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    name, group_id = new_topic("tool", partitions=2), group("tool")
    client = DRIVERS["kafka-python"]
    values = [b"value-%02d" % number for number in range(20)]
    client.produce(bootstrap, name, values)

    with Member(client, bootstrap, group_id, name) as member:
        wait_for_records([member], len(values))
        member.commit()

        rows = table(run_tool(GROUP_COMMAND, "--describe", "--group", group_id))
        assert sorted(row["PARTITION"] for row in rows) == ["0", "1"]
        assert sum(int(row["CURRENT-OFFSET"]) for row in rows) == len(values)
        assert {(row["LAG"], row["HOST"]) for row in rows} == {("0", "/127.0.0.1")}
        [shown] = table(run_tool(GROUP_COMMAND, "--describe", "--group", group_id, "--members", "--verbose"))
        assert (shown["#PARTITIONS"], shown["HOST"]) == ("2", "/127.0.0.1")
        printed = run_tool(GROUP_COMMAND, "--describe", "--group", group_id, "--state")
        assert re.search(rf"{group_id}\s+127\.0\.0\.1:\d+\s+\(\d+\)\s+range\s+Stable\s+1\b", printed)

    stable = run_tool(GROUP_COMMAND, "--list", "--state", "stable")
    empty = run_tool(GROUP_COMMAND, "--list", "--state", "empty")
    assert group_id not in stable.split()
    assert group_id in empty.split()
    assert group_id in run_tool(GROUP_COMMAND, "--list").split()

    to_earliest = ("--reset-offsets", "--group", group_id, "--topic", name, "--to-earliest", "--execute")
    assert {row["NEW-OFFSET"] for row in table(run_tool(GROUP_COMMAND, *to_earliest))} == {"0"}
    rows = table(run_tool(GROUP_COMMAND, "--describe", "--group", group_id))
    assert {row["CURRENT-OFFSET"] for row in rows} == {"0"}
    assert sum(int(row["LAG"]) for row in rows) == len(values)

    run_tool(GROUP_COMMAND, "--delete-offsets", "--group", group_id, "--topic", f"{name}:1")
    rows = table(run_tool(GROUP_COMMAND, "--describe", "--group", group_id))
    assert [row["PARTITION"] for row in rows] == ["0"]

    assert "successful" in run_tool(GROUP_COMMAND, "--delete", "--group", group_id)
    assert group_id not in run_tool(GROUP_COMMAND, "--list").split()
