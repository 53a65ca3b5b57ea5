"""A job's group as other projects' tools see it: its lag, its member, and a reset that the job obeys."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from tests.clients.java import GROUP_COMMAND, ToolServer, table
from tests.spark.conftest import Side
from tests.spark.loops import Driver, Named, NewTopic, bounds, next_of

pytestmark = [pytest.mark.kafka, pytest.mark.clients, pytest.mark.timeout(600)]

#: Sets a stopped group's offsets on partitions 0 and 1: (group, topic, offset).
Reset = Callable[[str, str, int], object]


@pytest.fixture(params=["java", "confluent-kafka"])
def reset(request: pytest.FixtureRequest, bootstrap: str) -> Reset:
    if request.param == "java":
        tool: ToolServer = request.getfixturevalue("run_tool")
        return lambda group, topic, offset: tool(
            GROUP_COMMAND,
            *("--reset-offsets", "--group", group, "--topic", topic),
            *("--to-offset", str(offset), "--execute"),
        )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return lambda group, topic, offset: admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, [Place(topic, 0, offset), Place(topic, 1, offset)])]
    )[group].result(60)


def test_after_a_reset_of_the_stopped_job_the_next_batch_starts_there(
    reset: Reset, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 100})
    stopped = driver(etl, orders, max_offsets=100)
    next_of(stopped).commit()
    # this one is announced and will not be
    next_of(stopped)
    stopped.close()
    reset(etl, orders, 3)
    batch = next_of(driver(etl, orders))
    assert (bounds(batch), batch.replayed) == ({0: (3, 100), 1: (3, 100)}, False)


def test_javas_group_command_shows_lag_and_in_exclusive_mode_the_member(
    run_tool: ToolServer, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 20})
    running = driver(etl, orders, max_offsets=60, group_mode="exclusive")
    batch = next_of(running)
    batch.commit()
    left = {str(p): str({0: 100, 1: 20}[p] - end) for p, (_, end) in bounds(batch).items()}

    assert etl in run_tool(GROUP_COMMAND, "--list").split()
    rows = table(run_tool(GROUP_COMMAND, "--describe", "--group", etl))
    assert {row["PARTITION"]: row["LAG"] for row in rows} == left
    assert {row["CLIENT-ID"] for row in rows} == {"kohort-spark"}
    [member] = table(run_tool(GROUP_COMMAND, "--describe", "--group", etl, "--members", "--verbose"))
    assert (member["CLIENT-ID"], member["#PARTITIONS"]) == ("kohort-spark", "2")

    running.close()
    rows = table(run_tool(GROUP_COMMAND, "--describe", "--group", etl))
    assert {row["PARTITION"]: (row["LAG"], row["CONSUMER-ID"]) for row in rows} == {
        partition: (lag, "-") for partition, lag in left.items()
    }


def test_the_admins_of_confluent_and_kafka_python_show_the_member_with_its_partitions(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 1})
    next_of(driver(etl, orders, group_mode="exclusive"))
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    described = admin.describe_consumer_groups([etl])[etl].result(60)
    assert described.state == ConsumerGroupState.STABLE
    [member] = described.members
    assert member.client_id == "kohort-spark"
    held = [(place.topic, place.partition) for place in member.assignment.topic_partitions]
    assert sorted(held) == [(orders, 0), (orders, 1)]
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as kafka_python:
        shown = kafka_python.describe_groups([etl])[etl]
    assert shown["group_state"] == "Stable"
    assert [one["client_id"] for one in shown["members"]] == ["kohort-spark"]
