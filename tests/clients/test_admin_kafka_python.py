"""kafka-python's admin client: topics, configs, the cluster, groups and their offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import (
    InvalidPartitionsError,
    NoError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.clients.drivers import DRIVERS
from tests.clients.members import Member, wait_for_records, wait_until

pytestmark = [pytest.mark.clients, pytest.mark.kafka]


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as client:
        yield client


def test_topics_are_made_described_widened_and_deleted(
    admin: KafkaAdminClient, topic: Callable[[str], str]
) -> None:
    name = topic("admin")
    [made] = admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})["topics"]
    assert (made["error_code"], made["num_partitions"], made["replication_factor"]) == (0, 2, 1)
    admin.wait_for_topics([name])
    assert name in admin.list_topics()

    admin.create_partitions({name: 5})
    admin.wait_for_topics([name])
    [described] = admin.describe_topics([name])
    assert described["topic_id"] == made["topic_id"]
    assert sorted(partition["partition_index"] for partition in described["partitions"]) == [0, 1, 2, 3, 4]
    assert {partition["leader_id"] for partition in described["partitions"]} == {
        node for partition in described["partitions"] for node in partition["isr_nodes"]
    }

    [deleted] = admin.delete_topics([name])["topics"]
    assert deleted["error_code"] == 0
    wait_until(lambda: name not in admin.list_topics(), "the topic is gone")
    [gone] = admin.describe_topics([name])
    assert gone["error_code"] == UnknownTopicOrPartitionError.errno


def test_what_cannot_be_done_to_a_topic_is_refused_by_its_error(
    admin: KafkaAdminClient, topic: Callable[[str], str], new_topic: Callable[..., str]
) -> None:
    name = new_topic("admin", partitions=3)
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({name: 2})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic("never-made")])


def test_validate_only_makes_nothing(admin: KafkaAdminClient, topic: Callable[[str], str]) -> None:
    name = topic("admin")
    admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}}, validate_only=True)
    assert name not in admin.list_topics()


def test_configs_of_a_topic_tell_what_was_set_and_what_is_default(
    admin: KafkaAdminClient, new_topic: Callable[..., str]
) -> None:
    name = new_topic("admin", partitions=1, retention_ms="3600000")
    configs = admin.describe_configs([ConfigResource("topic", name)], config_filter="all")["topic"][name]
    assert configs["retention.ms"]["value"] == "3600000"
    assert configs["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    assert configs["cleanup.policy"]["value"] == "delete"
    assert configs["cleanup.policy"]["config_source"] == "DEFAULT_CONFIG"
    assert configs["max.message.bytes"]["value"] == "1048588"

    set_by_hand = admin.describe_configs([ConfigResource("topic", name)])["topic"][name]
    assert "retention.ms" in set_by_hand
    assert "cleanup.policy" not in set_by_hand


def test_configs_of_the_broker_hold_the_coordinators_settings(admin: KafkaAdminClient) -> None:
    [broker] = admin.describe_cluster()["brokers"]
    node = str(broker["broker_id"])
    configs = admin.describe_configs([ConfigResource("broker", node)], config_filter="all")["broker"][node]
    assert configs["group.initial.rebalance.delay.ms"]["value"] == "0"
    assert configs["group.min.session.timeout.ms"]["value"] == "500"
    assert configs["offsets.topic.num.partitions"]["value"] == "50"


def test_the_cluster_describes_itself(admin: KafkaAdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster()
    [broker] = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller_id"] == broker["broker_id"]
    assert len(cluster["cluster_id"]) == 22


def test_deleted_records_are_gone_and_the_rest_is_not(
    admin: KafkaAdminClient, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    name = new_topic("admin", partitions=1)
    partition = TopicPartition(name, 0)
    DRIVERS["kafka-python"].produce(bootstrap, name, [b"%d" % number for number in range(10)])

    assert admin.delete_records({partition: 4})[partition]["low_watermark"] == 4
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=3000)
    assert consumer.beginning_offsets([partition]) == {partition: 4}
    assert consumer.end_offsets([partition]) == {partition: 10}
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    assert next(consumer).value == b"4"
    consumer.close()

    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({partition: 11})
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 10


def test_a_living_group_is_listed_and_described_with_its_members(
    admin: KafkaAdminClient, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    name, group_id = new_topic("admin", partitions=3), group("admin")
    DRIVERS["kafka-python"].produce(bootstrap, name, [b"one"])
    with Member(DRIVERS["kafka-python"], bootstrap, group_id, name) as member:
        wait_for_records([member], 1)

        [listed] = [row for row in admin.list_groups() if row["group_id"] == group_id]
        assert listed["protocol_type"] == "consumer"
        assert (listed["group_state"], listed["group_type"]) == ("Stable", "classic")
        assert group_id in {row["group_id"] for row in admin.list_groups(states_filter=["Stable"])}
        assert group_id not in {row["group_id"] for row in admin.list_groups(states_filter=["Empty"])}

        described = admin.describe_groups([group_id])[group_id]
        assert (described["error"], described["group_state"]) == (None, "Stable")
        assert (described["protocol_type"], described["protocol_data"]) == ("consumer", "range")
        [seen] = described["members"]
        assert seen["client_id"].startswith("kafka-python")
        assert seen["member_id"].startswith(f"{seen['client_id']}-")
        assert seen["client_host"] == "/127.0.0.1"
        assert seen["member_metadata"]["topics"] == [name]
        [assigned] = seen["member_assignment"]["assigned_partitions"]
        assert (assigned["topic"], sorted(assigned["partitions"])) == (name, [0, 1, 2])

        assert admin.delete_groups([group_id]) == {group_id: "NonEmptyGroupError"}
    assert admin.describe_groups([group_id])[group_id]["members"] == []


def test_offsets_of_a_group_are_read_altered_and_deleted(
    admin: KafkaAdminClient, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    name, group_id = new_topic("admin", partitions=3), group("admin")
    zero, one = TopicPartition(name, 0), TopicPartition(name, 1)
    values = [b"value-%02d" % number for number in range(30)]
    DRIVERS["kafka-python"].produce(bootstrap, name, values)
    with Member(DRIVERS["kafka-python"], bootstrap, group_id, name) as member:
        got = wait_for_records([member], len(values))
        member.commit()

    committed = admin.list_group_offsets(group_id)[group_id]
    assert {tp.partition: at.offset for tp, at in committed.items()} == {
        partition: 1 + max(record.offset for record in got if record.partition == partition)
        for partition in {record.partition for record in got}
    }

    altered = admin.alter_group_offsets(
        group_id, {zero: OffsetAndMetadata(1, "note", -1), one: OffsetAndMetadata(0, "", -1)}
    )
    assert altered == {zero: NoError, one: NoError}
    assert admin.list_group_offsets({group_id: [zero, one]}) == {
        group_id: {zero: OffsetAndMetadata(1, "note", -1), one: OffsetAndMetadata(0, "", -1)}
    }

    assert admin.delete_group_offsets(group_id, [zero]) == {zero: NoError}
    assert admin.list_group_offsets({group_id: [zero]})[group_id][zero].offset == -1
    assert zero not in admin.list_group_offsets(group_id)[group_id]
    assert one in admin.list_group_offsets(group_id)[group_id]


def test_a_deleted_group_is_unknown_afterwards(
    admin: KafkaAdminClient, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    name, group_id = new_topic("admin", partitions=1), group("admin")
    admin.alter_group_offsets(group_id, {TopicPartition(name, 0): OffsetAndMetadata(7, "", -1)})
    [listed] = [row for row in admin.list_groups() if row["group_id"] == group_id]
    assert (listed["protocol_type"], listed["group_state"]) == ("", "Empty")

    never = group("never")
    assert admin.delete_groups([group_id, never]) == {group_id: "OK", never: "GroupIdNotFoundError"}
    assert group_id not in {row["group_id"] for row in admin.list_groups()}
    assert admin.list_group_offsets(group_id) == {group_id: {}}
    described = admin.describe_groups([group_id])[group_id]
    assert described["group_state"] == "Dead"
    assert "GroupIdNotFoundError" in described["error"]
