"""confluent-kafka's admin client (librdkafka): topics, configs, the cluster, groups and their offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

from tests.clients.drivers import DRIVERS
from tests.clients.members import Member, wait_for_records, wait_until

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

WAIT_S = 20.0


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def only(futures: dict[Any, Any]) -> Any:
    """The one result of a call for one thing."""
    [future] = futures.values()
    return future.result(WAIT_S)


def error_of(futures: dict[Any, Any]) -> int:
    """The error code of a call for one thing."""
    with pytest.raises(KafkaException) as caught:
        only(futures)
    code: int = caught.value.args[0].code()
    return code


def partitions_of(admin: AdminClient, topic: str) -> int:
    """How many partitions the topic has; 0 where there is none of that name."""
    found = admin.list_topics(timeout=WAIT_S).topics.get(topic)
    return 0 if found is None else len(found.partitions)


def test_topics_are_made_described_widened_and_deleted(
    admin: AdminClient, topic: Callable[[str], str]
) -> None:
    name = topic("admin")
    only(admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1)]))
    assert error_of(admin.create_topics([NewTopic(name, 1, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS
    only(admin.create_partitions([NewPartitions(name, 5)]))
    assert error_of(admin.create_partitions([NewPartitions(name, 4)])) == KafkaError.INVALID_PARTITIONS

    wait_until(
        lambda: len(admin.list_topics(name, timeout=WAIT_S).topics[name].partitions) == 5, "5 partitions"
    )
    described = only(admin.describe_topics(TopicCollection([name])))
    assert [partition.id for partition in described.partitions] == [0, 1, 2, 3, 4]
    assert all(partition.leader.id == partition.isr[0].id for partition in described.partitions)
    assert not described.is_internal

    only(admin.delete_topics([name]))
    wait_until(lambda: partitions_of(admin, name) == 0, "the topic is gone")
    assert error_of(admin.delete_topics([name])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_configs_of_a_topic_are_described(admin: AdminClient, topic: Callable[[str], str]) -> None:
    name = topic("admin")
    wanted = {"segment.bytes": "1048576", "cleanup.policy": "compact"}
    only(admin.create_topics([NewTopic(name, 1, 1, config=wanted)]))
    configs = only(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)]))
    assert {key: configs[key].value for key in wanted} == wanted
    assert not configs["segment.bytes"].is_default
    assert configs["retention.ms"].is_default


def test_a_topic_with_a_bad_config_is_refused(admin: AdminClient, topic: Callable[[str], str]) -> None:
    bad = NewTopic(topic("admin"), 1, 1, config={"cleanup.policy": "shred"})
    assert error_of(admin.create_topics([bad])) == KafkaError.INVALID_CONFIG
    unknown = NewTopic(topic("admin"), 1, 1, config={"no.such.config": "1"})
    assert error_of(admin.create_topics([unknown])) == KafkaError.INVALID_CONFIG


def test_the_cluster_describes_itself(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster().result(WAIT_S)
    [node] = cluster.nodes
    assert f"{node.host}:{node.port}" == bootstrap
    assert cluster.controller.id == node.id
    assert len(cluster.cluster_id) == 22


def test_deleted_records_are_gone(admin: AdminClient, bootstrap: str, new_topic: Callable[..., str]) -> None:
    name = new_topic("admin", partitions=1)
    DRIVERS["confluent-kafka"].produce(bootstrap, name, [b"%d" % number for number in range(10)])
    assert only(admin.delete_records([TopicPartition(name, 0, 6)])).low_watermark == 6
    earliest = only(admin.list_offsets({TopicPartition(name, 0): OffsetSpec.earliest()}))
    latest = only(admin.list_offsets({TopicPartition(name, 0): OffsetSpec.latest()}))
    assert (earliest.offset, latest.offset) == (6, 10)
    assert error_of(admin.delete_records([TopicPartition(name, 0, 99)])) == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_living_group_is_listed_and_described_with_its_members(
    admin: AdminClient, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    name, group_id = new_topic("admin", partitions=3), group("admin")
    DRIVERS["confluent-kafka"].produce(bootstrap, name, [b"one"])
    with Member(DRIVERS["confluent-kafka"], bootstrap, group_id, name) as member:
        wait_for_records([member], 1)

        listed = admin.list_consumer_groups().result(WAIT_S)
        assert listed.errors == []
        [row] = [row for row in listed.valid if row.group_id == group_id]
        assert (row.state, row.is_simple_consumer_group) == (ConsumerGroupState.STABLE, False)
        empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(WAIT_S)
        assert group_id not in {row.group_id for row in empty.valid}

        described = only(admin.describe_consumer_groups([group_id]))
        assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
        [seen] = described.members
        assert (seen.client_id, seen.host) == ("rdkafka", "/127.0.0.1")
        assert sorted(tp.partition for tp in seen.assignment.topic_partitions) == [0, 1, 2]
        assert {tp.topic for tp in seen.assignment.topic_partitions} == {name}

        assert error_of(admin.delete_consumer_groups([group_id])) == KafkaError.NON_EMPTY_GROUP
    assert only(admin.describe_consumer_groups([group_id])).state == ConsumerGroupState.EMPTY


def test_offsets_of_a_group_are_altered_and_read_and_the_group_deleted(
    admin: AdminClient, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    name, group_id = new_topic("admin", partitions=2), group("admin")
    wanted = [TopicPartition(name, 0, 3), TopicPartition(name, 1, 0)]
    only(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id, wanted)]))

    whole = only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)]))
    assert {(tp.partition, tp.offset) for tp in whole.topic_partitions} == {(0, 3), (1, 0)}
    named = ConsumerGroupTopicPartitions(group_id, [TopicPartition(name, 1)])
    assert [tp.offset for tp in only(admin.list_consumer_group_offsets([named])).topic_partitions] == [0]

    only(admin.delete_consumer_groups([group_id]))
    assert error_of(admin.delete_consumer_groups([group_id])) == KafkaError.GROUP_ID_NOT_FOUND
    listed = admin.list_consumer_groups().result(WAIT_S)
    assert group_id not in {row.group_id for row in listed.valid}
