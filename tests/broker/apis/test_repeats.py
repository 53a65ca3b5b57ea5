"""What a request names again: answered as Apache Kafka does, but not a hundred thousand times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.broker.authorizer import Acl, Operation, PatternType, Permission, ResourceType
from kohort.coordinator.element_limits import MAX_REPEATS
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.authorizer.other_requests import acl_filter
from tests.broker.wire import Wire, batch, commit_fields, create_topic, part, produce
from tests.limits.prepared_broker import prepared_broker

FETCH, INVALID = ApiKey.OFFSET_FETCH, ErrorCode.INVALID_REQUEST
MANY = 1_000


@pytest.fixture
def group(wire: Wire, name: str) -> str:
    """A group with an offset in partition 0 of the topic of its name."""
    create_topic(wire, name, 2)
    produce(wire, name, batch(3))
    wire.call(ApiKey.OFFSET_COMMIT, 8, **commit_fields(name, name, 7))
    return name


def fetched(wire: Wire, *groups: Any) -> list[Any]:
    return list(wire.call(FETCH, 8, groups=list(groups), require_stable=False).groups)


def asked(group: str, *topics: tuple[str, list[int]]) -> Any:
    """One group of an OffsetFetch; all of it where no topics are named."""
    names = ("OffsetFetchRequestGroup", "OffsetFetchRequestTopics")
    rows = [part(FETCH, 8, *names, name=topic, partition_indexes=numbers) for topic, numbers in topics]
    return part(FETCH, 8, names[0], group_id=group, topics=rows or None)


def errors_of(results: Any) -> list[int]:
    return [result.error_code for result in results]


ENOUGH = [0] * (MAX_REPEATS + 1)


def test_a_group_that_is_named_twice_is_answered_twice(wire: Wire, group: str) -> None:
    first, second = fetched(wire, asked(group), asked(group, (group, [1])))
    assert [topic.partitions[0].committed_offset for topic in first.topics] == [7]
    assert [topic.partitions[0].committed_offset for topic in second.topics] == [-1]


def test_a_group_that_is_named_without_end_is_not(wire: Wire, group: str) -> None:
    answers = fetched(wire, *[asked(group)] * MANY, asked("another"))
    assert errors_of(answers) == [*ENOUGH, *[INVALID] * (MANY - len(ENOUGH)), 0]
    assert [len(answer.topics) for answer in answers] == [*[1] * len(ENOUGH), *[0] * (MANY - len(ENOUGH)), 0]
    described = wire.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group] * MANY)
    assert errors_of(described.groups) == [*ENOUGH, *[INVALID] * (MANY - len(ENOUGH))]


@pytest.mark.parametrize("version", [7, 8])
def test_nor_is_a_partition_or_a_topic(wire: Wire, group: str, version: int) -> None:
    topics = [(group, [0] * MANY), *[(group, [0])] * MANY]
    if version == 8:
        (answer,) = fetched(wire, asked(group, *topics))
    else:
        rows = [part(FETCH, 7, "OffsetFetchRequestTopic", name=one, partition_indexes=n) for one, n in topics]
        answer = wire.call(FETCH, 7, group_id=group, topics=rows, require_stable=False)
    told = [partition for topic in answer.topics for partition in topic.partitions]
    assert [partition.partition_index for partition in told] == [0] * 2 * MANY
    assert errors_of(told) == [*ENOUGH, *[INVALID] * (2 * MANY - len(ENOUGH))]


def test_nor_are_the_configs_of_a_resource(wire: Wire) -> None:
    key = ApiKey.DESCRIBE_CONFIGS
    row = part(key, 4, "DescribeConfigsResource", resource_type=4, resource_name="", configuration_keys=None)
    answer = wire.call(key, 4, resources=[row] * MANY)
    assert errors_of(answer.results) == [*ENOUGH, *[INVALID] * (MANY - len(ENOUGH))]


def test_nor_are_the_rules_that_a_filter_means() -> None:
    settings: dict[str, Any] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with running_broker(**settings) as broker, Wire(broker.bootstrap) as wire:
        wanted = part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **acl_filter())
        answer = wire.call(ApiKey.DELETE_ACLS, 3, filters=[wanted] * MANY)
    assert errors_of(answer.filter_results) == [*ENOUGH, *[INVALID] * (MANY - len(ENOUGH))]


def test_nor_are_the_producers_of_a_partition(wire: Wire, name: str) -> None:
    key = ApiKey.DESCRIBE_PRODUCERS
    create_topic(wire, name)
    for producer_id in range(200, 220):
        records = batch(producer_id=producer_id, producer_epoch=0, base_sequence=0)
        assert produce(wire, name, records).error_code == 0
    wanted = part(key, 0, "TopicRequest", name=name, partition_indexes=[0] * MANY)
    (told,) = wire.call(key, 0, topics=[wanted]).topics
    assert errors_of(told.partitions) == [*ENOUGH, *[INVALID] * (MANY - len(ENOUGH))]
    assert sum(len(partition.active_producers) for partition in told.partitions) == 20 * len(ENOUGH)


async def test_rules_are_listed_once_for_each_of_many_filters_and_then_no_more(tmp_path: Path) -> None:
    """Filters of any names match the rules of a prefix of them."""
    anyone = ("User:ANONYMOUS", "*", Operation.ALL, Permission.ALLOW)
    rules = [Acl(ResourceType.TOPIC, "o", PatternType.PREFIXED, f"User:{n}", *anyone[1:]) for n in range(50)]
    async with prepared_broker(tmp_path, filled=False) as broker:
        assert broker.node.authorizer is not None
        cluster = Acl(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, *anyone)
        await broker.node.authorizer.create([*rules, cluster])
        names = [f"orders-{number}" for number in range(20)]
        filters = [acl_filter(resource_name_filter=name, pattern_type_filter=2) for name in names]
        answer = await broker.call(ApiKey.DELETE_ACLS, 3, filters=filters)
    assert errors_of(answer.filter_results) == [*ENOUGH, *[INVALID] * (20 - len(ENOUGH))]
    assert {len(result.matching_acls) for result in answer.filter_results} == {50, 0}


def test_metadata_by_id_tells_each_topic_once_whatever_names_stand_beside(wire: Wire, name: str) -> None:
    """As Apache Kafka: where one topic is asked for by its id, names mean nothing."""
    key = ApiKey.METADATA
    for topic in (name, f"{name}-2"):
        create_topic(wire, topic)
    told = wire.call(key, 12, topics=None).topics
    topic_id = next(topic.topic_id for topic in told if topic.name == name)
    rows = [
        part(key, 12, "MetadataRequestTopic", name=f"{name}-2", topic_id=None),
        *(
            part(key, 12, "MetadataRequestTopic", name=f"{name}-{number}", topic_id=topic_id)
            for number in range(5)
        ),
    ]
    answer = wire.call(key, 12, topics=rows, allow_auto_topic_creation=True)
    assert [topic.name for topic in answer.topics] == [name]
    rows = [part(key, 12, "MetadataRequestTopic", name=name)] * 3
    assert [topic.name for topic in wire.call(key, 12, topics=rows).topics] == [name]
