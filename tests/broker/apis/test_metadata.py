"""Metadata: every version, topics by name and id, and the making of topics."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kohort.broker.apis import metadata
from kohort.cluster import PartitionState
from kohort.log import DataFolder, NoDescriptorsError
from kohort.protocol import ApiKey, ErrorCode, operation_bits
from kohort.testing import RunningBroker, running_broker
from tests.broker.clusters import cluster
from tests.broker.wire import Wire, batch, create_topic, part, produce

VERSIONS = range(14)


def ask(wire: Wire, version: int, *names: str | UUID, create: bool = False, **fields: Any) -> Any:
    topics = [
        part(ApiKey.METADATA, version, "MetadataRequestTopic", name=None, topic_id=name)
        if isinstance(name, UUID)
        else part(ApiKey.METADATA, version, "MetadataRequestTopic", name=name, topic_id=None)
        for name in names
    ]
    return wire.call(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=create, **fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_with_its_partitions(broker: RunningBroker, wire: Wire, name: str, version: int) -> None:
    topic_id = create_topic(wire, name, 3).topic_id
    answer = ask(wire, version, name)
    assert [(node.node_id, node.host, node.port) for node in answer.brokers] == [
        (1, "127.0.0.1", broker.port)
    ]
    (topic,) = answer.topics
    assert (topic.error_code, topic.name) == (0, name)
    assert [(one.partition_index, one.leader_id, one.isr_nodes) for one in topic.partitions] == [
        (number, 1, [1]) for number in range(3)
    ]
    if version >= 2:
        assert answer.cluster_id == broker.cluster_id
    if version >= 10:
        assert topic.topic_id == topic_id


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (13, None)])
def test_all_topics(wire: Wire, name: str, version: int, topics: list[Any] | None) -> None:
    create_topic(wire, name)
    answer = wire.call(ApiKey.METADATA, version, topics=topics)
    assert {name, "__consumer_offsets"} <= {topic.name for topic in answer.topics}


def test_no_topics_when_none_are_named(wire: Wire) -> None:
    assert wire.call(ApiKey.METADATA, 1, topics=[]).topics == []


def test_the_offsets_topic_is_internal_and_has_all_its_partitions(wire: Wire) -> None:
    (topic,) = ask(wire, 12, "__consumer_offsets").topics
    assert topic.is_internal
    assert len(topic.partitions) == 50


def test_a_topic_by_its_id(wire: Wire, name: str) -> None:
    topic_id = create_topic(wire, name).topic_id
    (topic,) = ask(wire, 12, topic_id).topics
    assert (topic.name, topic.topic_id) == (name, topic_id)


def test_an_unknown_id(wire: Wire) -> None:
    unknown = uuid4()
    (topic,) = ask(wire, 12, unknown).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown)


def test_ids_may_not_be_asked_for_before_v12(wire: Wire) -> None:
    answer = ask(wire, 10, uuid4())
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_a_name_asked_for_twice_is_answered_once(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert len(ask(wire, 12, name, name).topics) == 1


@pytest.mark.parametrize("version", [4, 13])
def test_an_unknown_topic_is_not_made_unless_allowed(wire: Wire, name: str, version: int) -> None:
    for _ in range(2):
        (topic,) = ask(wire, version, name).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_an_unknown_topic_is_made_when_allowed(wire: Wire, name: str, version: int) -> None:
    (topic,) = ask(wire, version, name, create=True).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)


def test_topics_are_made_with_num_partitions_or_not_at_all() -> None:
    with running_broker(num_partitions=4) as broker, Wire(broker.bootstrap) as wire:
        assert len(ask(wire, 4, "made", create=True).topics[0].partitions) == 4
    with running_broker(auto_create_topics_enable=False) as broker, Wire(broker.bootstrap) as wire:
        assert ask(wire, 4, "unmade", create=True).topics[0].error_code == 3


@pytest.mark.parametrize("bad", ["", "..", "two words", "x" * 250, "ü"])
@pytest.mark.parametrize("create", [True, False])
def test_names_that_no_topic_can_have(wire: Wire, bad: str, create: bool) -> None:
    (topic,) = ask(wire, 4, bad, create=create).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, bad)


def test_operations_are_told_when_asked_for(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    told = ask(
        wire, 8, name, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    assert told.topics[0].topic_authorized_operations == operation_bits({3, 4, 5, 6, 7, 8, 10, 11})
    assert told.cluster_authorized_operations == operation_bits({5, 7, 8, 9, 10, 11, 12})
    assert ask(wire, 8, name).topics[0].topic_authorized_operations == -(2**31)


def test_partitions_are_described_anew_only_when_they_change(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[int] = []
    whole = metadata._describe_partition

    def noted(index: int, state: PartitionState) -> Any:
        described.append(index)
        return whole(index, state)

    monkeypatch.setattr(metadata, "_describe_partition", noted)
    create_topic(wire, name, 2)
    for version in VERSIONS:
        assert len(ask(wire, version, name).topics[0].partitions) == 2
    assert described == [0, 1]
    wanted = part(ApiKey.CREATE_PARTITIONS, 3, "CreatePartitionsTopic", name=name, count=3, assignments=None)
    wire.call(ApiKey.CREATE_PARTITIONS, 3, topics=[wanted], timeout_ms=1_000, validate_only=False)
    for _ in range(2):
        assert len(ask(wire, 12, name).topics[0].partitions) == 3
    assert described == [0, 1, 0, 1, 2]


def test_a_leader_epoch_that_cannot_be_read_yet_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        produce(wire, "orders", batch())

    def no_descriptor(_: DataFolder, topic: str, partition: int) -> int:
        raise NoDescriptorsError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{partition}: too many open files")

    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        with monkeypatch.context() as patch:
            patch.setattr(DataFolder, "newest_epoch", no_descriptor)
            (topic,) = ask(wire, 8, "orders").topics
            assert (topic.name, topic.error_code) == ("orders", ErrorCode.LEADER_NOT_AVAILABLE)
        (topic,) = ask(wire, 8, "orders").topics
        assert (topic.error_code, topic.partitions[0].leader_epoch) == (0, 1)
        assert produce(wire, "orders", batch()).base_offset == 1


async def test_a_broker_that_knows_of_none_that_is_registered_names_itself() -> None:
    """librdkafka drops all brokers that a response does not name, and finds none again. Java's clients pass
    over a response without brokers, which Apache Kafka may give, too.
    """
    async with cluster(1, replica_lag_time_max_ms=600_000) as nodes:
        node = nodes.brokers[1].cluster
        assert node is not None
        # its session is over, and with it all that were there before
        node.registration.close()
        nodes.stores[1].expire()
        nodes.stores[1].resume()
        await nodes.until(lambda: not nodes.brokers[1].topics.image.brokers)

        def asked(key: ApiKey, version: int, **fields: Any) -> Any:
            with Wire(nodes.brokers[1].bootstrap) as wire:
                return wire.call(key, version, **fields)

        for key, version, fields in (
            (ApiKey.METADATA, 1, {"topics": []}),
            (ApiKey.DESCRIBE_CLUSTER, 0, {"include_cluster_authorized_operations": False}),
        ):
            (found,) = (await asyncio.to_thread(asked, key, version, **fields)).brokers
            assert f"{found.host}:{found.port}" == nodes.brokers[1].bootstrap
