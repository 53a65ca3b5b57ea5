"""DeleteTopics: by name and id; what goes with the topic, and what a new one of its name does not find."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from kohort.client.cluster import Cluster
from kohort.cluster import TopicImage
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import RunningBroker, running_broker
from tests.broker.clusters import cluster
from tests.broker.wire import Wire, batch, commit_fields, create_topic, fetch, part, produce


def ask(wire: Wire, *topics: str | UUID) -> list[Any]:
    wanted = [
        part(
            ApiKey.DELETE_TOPICS,
            6,
            "DeleteTopicState",
            name=None if isinstance(topic, UUID) else topic,
            topic_id=topic if isinstance(topic, UUID) else None,
        )
        for topic in topics
    ]
    return list(wire.call(ApiKey.DELETE_TOPICS, 6, topics=wanted, timeout_ms=1_000).responses)


@pytest.mark.parametrize("version", range(1, 6))
def test_by_name(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name)
    answer = wire.call(ApiKey.DELETE_TOPICS, version, topic_names=[name], timeout_ms=1_000)
    assert [(one.name, one.error_code) for one in answer.responses] == [(name, 0)]
    assert produce(wire, name, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_by_id(wire: Wire, name: str) -> None:
    topic_id = create_topic(wire, name).topic_id
    (deleted,) = ask(wire, topic_id)
    assert (deleted.name, deleted.topic_id, deleted.error_code) == (name, topic_id, 0)


def test_its_folders_are_gone(broker: RunningBroker, wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)
    produce(wire, name, batch(), partition=1)
    assert [path.name for path in broker.data.glob(f"{name}-*")] == [f"{name}-1"]
    ask(wire, name)
    assert list(broker.data.glob(f"{name}-*")) == []


def test_a_new_topic_of_the_same_name_is_another_one(wire: Wire, name: str) -> None:
    first = create_topic(wire, name).topic_id
    produce(wire, name, batch(3))
    ask(wire, name)
    assert create_topic(wire, name).topic_id != first
    assert fetch(wire, name, 0)[0].high_watermark == 0


def test_what_is_refused(wire: Wire, name: str) -> None:
    (refused,) = ask(wire, name)
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused.error_message == f"there is no topic {name!r}", "clients put the code in front themselves"
    assert ask(wire, uuid4())[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    create_topic(wire, name)
    assert [one.error_code for one in ask(wire, name, name)] == [ErrorCode.INVALID_REQUEST]
    assert fetch(wire, name, 0)[0].error_code == 0


def test_a_topic_without_name_and_id(wire: Wire) -> None:
    neither = part(ApiKey.DELETE_TOPICS, 6, "DeleteTopicState", name=None, topic_id=None)
    answer = wire.call(ApiKey.DELETE_TOPICS, 6, topics=[neither], timeout_ms=1_000)
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST


def test_deletion_can_be_forbidden() -> None:
    with running_broker(delete_topic_enable=False) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "kept")
        assert ask(wire, "kept")[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert fetch(wire, "kept", 0)[0].error_code == 0


def test_committed_offsets_go_with_the_topic(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    wire.call(ApiKey.OFFSET_COMMIT, 5, **commit_fields(name, name, 5))

    def committed() -> int:
        answer = wire.call(
            ApiKey.OFFSET_FETCH,
            5,
            group_id=name,
            topics=[
                part(ApiKey.OFFSET_FETCH, 5, "OffsetFetchRequestTopic", name=name, partition_indexes=[0])
            ],
        )
        offset: int = answer.topics[0].partitions[0].committed_offset
        return offset

    assert committed() == 5
    ask(wire, name)
    assert committed() == -1


def test_offsets_of_a_new_topic_stay_though_the_deletion_of_the_former_is_answered_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller answers once it has asked ZooKeeper; others know before that the topic is gone."""
    place = TopicPartition("orders", 0)

    async def run() -> None:
        async with (
            cluster(1, offsets_topic_replication_factor=1) as nodes,
            Cluster(nodes.bootstrap()) as client,
        ):
            await nodes.create("orders")
            consumer = AIOKafkaConsumer(
                bootstrap_servers=nodes.bootstrap(), group_id="g", enable_auto_commit=False
            )
            async with consumer:
                consumer.assign([place])
                await consumer.commit({place: 1})
                control = nodes.brokers[1].cluster.control  # type: ignore[union-attr]
                delete = control.delete_topics

                async def answered_late(topics: Collection[TopicImage]) -> None:
                    await delete(topics)
                    assert await consumer.committed(place) is None
                    await nodes.create("orders")
                    await consumer.commit({place: 2})

                monkeypatch.setattr(control, "delete_topics", answered_late)
                await client.delete_topics(["orders"])
                assert await consumer.committed(place) == 2

    asyncio.run(run())
