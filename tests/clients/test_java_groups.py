"""Every mode of Apache Kafka's ConsumerGroupCommand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import kafka
import pytest
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition

from kohort.offsets_topic import partition_for
from tests.clients.drivers import DRIVERS
from tests.clients.java import CONSOLE_CONSUMER, GROUP_COMMAND, ToolServer, table
from tests.clients.members import Member, wait_until

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

OFFSETS_PARTITIONS = 50  # of __consumer_offsets, unless a cluster's settings say otherwise
START_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z; a record a second from there

#: Scenarios of --reset-offsets; partition 0 holds records 2-9 and 5 is committed, 1 holds 0-3 and 2 is.
RESETS: dict[str, tuple[list[str], dict[int, int]]] = {
    "to the earliest": (["--to-earliest"], {0: 2, 1: 0}),
    "to the latest": (["--to-latest"], {0: 10, 1: 4}),
    "to an offset": (["--to-offset", "3"], {0: 3, 1: 3}),
    "to an offset before the log": (["--to-offset", "1"], {0: 2, 1: 1}),
    "to an offset behind the log": (["--to-offset", "99"], {0: 10, 1: 4}),
    "forward": (["--shift-by", "1"], {0: 6, 1: 3}),
    "back": (["--shift-by", "-2"], {0: 3, 1: 0}),
    "back before the log": (["--shift-by", "-100"], {0: 2, 1: 0}),
    "forward behind the log": (["--shift-by", "100"], {0: 10, 1: 4}),
    "to a datetime": (["--to-datetime", "2023-11-14T22:13:23.000Z"], {0: 3, 1: 3}),
    "to a datetime of another zone": (["--to-datetime", "2023-11-14T23:13:21.500+01:00"], {0: 2, 1: 2}),
    "to a datetime after all records": (["--to-datetime", "2024-01-01T00:00:00.000Z"], {0: 10, 1: 4}),
    "by a duration after all records": (["--by-duration", "PT1H"], {0: 10, 1: 4}),
    "by a duration before all records": (["--by-duration", "P3650D"], {0: 2, 1: 0}),
    "to the current offsets": (["--to-current"], {0: 5, 1: 2}),
}


class Offsets:
    """A topic with records, and a group without members that has committed offsets of it."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.bootstrap, self.topic, self.group = bootstrap, topic, group
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
        for partition, count in ((0, 10), (1, 4)):
            for number in range(count):
                producer.send(topic, b"value", partition=partition, timestamp_ms=START_MS + 1000 * number)
        producer.close()
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.delete_records({TopicPartition(topic, 0): 2})

    def commit(self, offsets: dict[int, int]) -> None:
        consumer = kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=self.group)
        partitions = {TopicPartition(self.topic, number): offset for number, offset in offsets.items()}
        consumer.assign(list(partitions))
        consumer.commit({key: OffsetAndMetadata(offset, "", -1) for key, offset in partitions.items()})
        consumer.close()

    def committed(self) -> dict[int, int]:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            found = admin.list_group_offsets(self.group)[self.group]
        return {
            key.partition: at.offset
            for key, at in found.items()
            if key.topic == self.topic and at.offset >= 0
        }


@pytest.fixture
def offsets(bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]) -> Offsets:
    made = Offsets(bootstrap, new_topic("reset", partitions=2, retention_ms="-1"), group("reset"))
    made.commit({0: 5, 1: 2})
    return made


def planned(printed: str) -> dict[int, int]:
    return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in table(printed)}


def test_reset_offsets_in_every_scenario(run_tool: ToolServer, offsets: Offsets) -> None:
    """A dry run says what would be and changes nothing; --execute does it."""
    reset = (GROUP_COMMAND, "--reset-offsets", "--group", offsets.group)
    for name, (scenario, expected) in RESETS.items():
        assert planned(run_tool(*reset, "--topic", offsets.topic, *scenario, "--dry-run")) == expected, name
        assert offsets.committed() == {0: 5, 1: 2}, name
    for name, (scenario, expected) in RESETS.items():
        assert planned(run_tool(*reset, "--topic", offsets.topic, *scenario, "--execute")) == expected, name
        assert offsets.committed() == expected, name
        offsets.commit({0: 5, 1: 2})


def test_the_scope_of_a_reset(run_tool: ToolServer, offsets: Offsets, tmp_path: Path) -> None:
    reset = (GROUP_COMMAND, "--reset-offsets", "--group", offsets.group)
    assert planned(run_tool(*reset, "--all-topics", "--to-earliest", "--dry-run")) == {0: 2, 1: 0}
    assert planned(run_tool(*reset, "--topic", f"{offsets.topic}:1", "--to-latest", "--execute")) == {1: 4}
    assert offsets.committed() == {0: 5, 1: 4}

    plan = tmp_path / "plan.csv"
    plan.write_text(run_tool(*reset, "--all-topics", "--shift-by", "-1", "--export", "--dry-run"))
    assert sorted(plan.read_text().split()) == [f"{offsets.topic},0,4", f"{offsets.topic},1,3"]
    run_tool(*reset, "--from-file", str(plan), "--dry-run")
    assert offsets.committed() == {0: 5, 1: 4}
    assert planned(run_tool(*reset, "--from-file", str(plan), "--execute")) == {0: 4, 1: 3}
    assert offsets.committed() == {0: 4, 1: 3}


def test_list_by_state_and_type(run_tool: ToolServer, offsets: Offsets) -> None:
    def listed(*arguments: str) -> list[dict[str, str]]:
        printed = run_tool(GROUP_COMMAND, "--list", *arguments)
        return [row for row in table(printed) if row["GROUP"] == offsets.group]

    assert offsets.group in run_tool(GROUP_COMMAND, "--list").split()
    assert listed("--state") == [{"GROUP": offsets.group, "STATE": "Empty"}]
    assert listed("--type") == [{"GROUP": offsets.group, "TYPE": "Classic"}]
    assert listed("--state", "eMPTY,dead", "--type", "CLASSIC") == [
        {"GROUP": offsets.group, "TYPE": "Classic", "STATE": "Empty"}
    ]
    assert listed("--state", "stable") == []
    assert listed("--type", "consumer") == []
    refused = run_tool.run(GROUP_COMMAND, "--list", "--state", "asleep")
    assert refused.code == 1
    assert "Invalid state list 'asleep'" in refused.errors


def test_describe_a_group_without_members(run_tool: ToolServer, offsets: Offsets) -> None:
    describe = (GROUP_COMMAND, "--describe", "--group", offsets.group)
    done = run_tool.run(*describe, "--offsets", "--verbose")
    rows = sorted(table(done.out), key=lambda row: row["PARTITION"])
    assert [(row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows] == [
        ("5", "10", "5"),
        ("2", "4", "2"),
    ]
    assert {(row["LEADER-EPOCH"], row["CONSUMER-ID"], row["HOST"]) for row in rows} == {("-", "-", "-")}
    assert f"Consumer group '{offsets.group}' has no active members." in done.errors
    assert table(run_tool(*describe, "--members")) == []
    assert re.search(
        rf"{offsets.group}\s+127\.0\.0\.1:\d+\s+\(\d+\)\s+-\s+Empty\s+0\b", run_tool(*describe, "--state")
    )

    every = run_tool.run(GROUP_COMMAND, "--describe", "--all-groups", "--state")
    assert re.search(rf"^{offsets.group} .* Empty\s+0\s*$", every.out, re.MULTILINE)


def test_a_live_group_is_described_and_protected(run_tool: ToolServer, offsets: Offsets) -> None:
    group, topic = offsets.group, offsets.topic
    ours = (GROUP_COMMAND, "--group", group)
    with Member(DRIVERS["kafka-python"], offsets.bootstrap, group, topic) as member:
        wait_until(lambda: member.held == {0, 1}, "the member holds both", [member])
        rows = table(run_tool(*ours, "--describe"))
        assert {(row["PARTITION"], row["HOST"]) for row in rows} == {("0", "/127.0.0.1"), ("1", "/127.0.0.1")}
        [shown] = table(run_tool(*ours, "--describe", "--members", "--verbose"))
        assert (shown["HOST"], shown["#PARTITIONS"]) == ("/127.0.0.1", "2")
        assert f"{topic}:0,1" in shown.values()
        described = run_tool(*ours, "--describe", "--state", "--verbose")
        assert re.search(rf"{group}\s+127\.0\.0\.1:\d+\s+\(\d+\)\s+range\s+Stable\s+-\s+-\s+1\b", described)

        scope = ("--topic", topic)
        for execute in ("--dry-run", "--execute"):
            refused = run_tool.run(*ours, "--reset-offsets", "--to-earliest", *scope, execute)
            assert f"'{group}' is inactive, but the current state is Stable" in refused.out
            assert table(refused.out) == []
        assert "GroupNotEmptyException" in run_tool.run(*ours, "--delete").out
        refused = run_tool.run(*ours, "--delete-offsets", *scope)
        assert refused.out.count("GroupSubscribedToTopicException") == 2
    assert set(offsets.committed()) == {0, 1}


def test_delete_offsets_of_a_live_group_that_reads_something_else(
    run_tool: ToolServer, offsets: Offsets, new_topic: Callable[..., str]
) -> None:
    other = new_topic("other", partitions=1)
    with Member(DRIVERS["confluent-kafka"], offsets.bootstrap, offsets.group, other) as member:
        wait_until(lambda: member.held == {0}, "the member holds its partition", [member])
        delete = (GROUP_COMMAND, "--delete-offsets", "--group", offsets.group)
        assert "Successful" in run_tool(*delete, "--topic", f"{offsets.topic}:0")
        assert "GroupSubscribedToTopicException" in run_tool.run(*delete, "--topic", other).out
    assert offsets.committed() == {1: 2}


def test_delete_offsets_and_groups(run_tool: ToolServer, offsets: Offsets) -> None:
    delete_offsets = (GROUP_COMMAND, "--delete-offsets", "--group", offsets.group)
    assert "Successful" in run_tool(*delete_offsets, "--topic", f"{offsets.topic}:0")
    assert offsets.committed() == {1: 2}
    assert "Successful" in run_tool(*delete_offsets, "--topic", offsets.topic)  # 0 has none: no error
    assert offsets.committed() == {}
    refused = run_tool.run(*delete_offsets, "--topic", f"{offsets.topic}-missing")
    assert "UnknownTopicOrPartitionException" in refused.out

    offsets.commit({0: 3})
    missing = f"{offsets.group}-missing"
    done = run_tool.run(GROUP_COMMAND, "--delete", "--group", offsets.group, "--group", missing)
    assert f"deleted successfully: '{offsets.group}'" in done.out
    assert re.search(rf"'{missing}' could not be deleted.*GroupIdNotFoundException", done.out)
    assert offsets.group not in run_tool(GROUP_COMMAND, "--list").split()
    assert offsets.committed() == {}


def test_a_group_that_is_not_there(
    run_tool: ToolServer, offsets: Offsets, group: Callable[[str], str]
) -> None:
    missing = ("--group", group("missing"))
    for part in ("--offsets", "--members", "--state"):
        assert "GroupIdNotFoundException" in run_tool.run(GROUP_COMMAND, "--describe", *missing, part).out
    assert "does not exist" in run_tool.run(GROUP_COMMAND, "--delete", *missing).out
    refused = run_tool.run(GROUP_COMMAND, "--delete-offsets", *missing, "--topic", offsets.topic)
    assert refused.out.count("GroupIdNotFoundException") == 2
    # A reset makes it.
    reset = (GROUP_COMMAND, "--reset-offsets", *missing, "--topic", offsets.topic, "--to-latest")
    assert planned(run_tool(*reset, "--execute")) == {0: 10, 1: 4}
    assert re.search(r"Empty\s+0\b", run_tool(GROUP_COMMAND, "--describe", *missing, "--state"))


@pytest.mark.parametrize("formatter", ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"])
def test_the_offsets_topic_is_read_by_the_formatters(
    formatter: str, run_tool: ToolServer, offsets: Offsets
) -> None:
    with Member(DRIVERS["aiokafka"], offsets.bootstrap, offsets.group, offsets.topic) as member:
        wait_until(lambda: member.held == {0, 1}, "the member holds both", [member])
    # Of this group's partition only: a cluster that is in use has much to tell.
    partition = str(partition_for(offsets.group, OFFSETS_PARTITIONS))
    place = ("--topic", "__consumer_offsets", "--partition", partition, "--offset", "earliest")
    printed = run_tool.run(
        CONSOLE_CONSUMER,
        *place,
        "--timeout-ms",
        "1500",
        "--formatter",
        f"org.apache.kafka.tools.consumer.{formatter}",
    ).out
    records = [record for record in re.split(r"(?=\{\"key\")", printed) if f'"{offsets.group}"' in record]
    if formatter == "OffsetsMessageFormatter":
        [first] = [record for record in records if '"partition":0' in record and '"offset":5' in record]
        assert f'"topic":"{offsets.topic}"' in first
        assert '"leaderEpoch":-1,"metadata":""' in first
    else:
        generations = [
            int(number) for record in records for number in re.findall(r'"generation":(\d+)', record)
        ]
        assert generations == [1, 2]
        assert '"protocolType":"consumer"' in records[0]
        assert '"clientHost":"/127.0.0.1"' in records[0]
        assert '"members":[]' in records[1]
