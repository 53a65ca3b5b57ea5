"""Requests about topics and their records, each of one topic that Alice may see and one that she may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kohort.protocol import ApiKey
from kohort.protocol.messages.describe_topic_partitions import Cursor
from tests.broker.authorizer.world import World
from tests.broker.wire import batch, part, produce_fields

Fields: TypeAlias = Callable[[World], dict[str, Any]]

_TOPICS = ("t/seen", "t/hidden")
_GROUPS = ("g/seen", "g/hidden")


def each_topic(
    key: ApiKey, version: int, struct: str, name: str = "name", by_id: bool = False, **more: Any
) -> Any:
    def made(world: World) -> list[Any]:
        return [
            part(
                key,
                version,
                struct,
                **({"topic_id": world.ids[plain]} if by_id else {name: world[plain]}),
                **more,
            )
            for plain in _TOPICS
        ]

    return made


def one_partition(key: ApiKey, version: int, *names: str, **fields: Any) -> list[Any]:
    return [part(key, version, *names, **fields)]


def produce(version: int, **options: Any) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        transactional_id = options.get("transactional_id")
        body = produce_fields("", batch(**options.get("batch", {})), version=version)
        (one,) = body["topic_data"]
        body["topic_data"] = each_topic(
            ApiKey.PRODUCE,
            version,
            "TopicProduceData",
            by_id=version >= 13,
            partition_data=one.partition_data,
        )(world)
        return body | {"transactional_id": transactional_id and world[transactional_id]}

    return fields


def fetch(version: int, replica: int = -1) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        partitions = one_partition(
            ApiKey.FETCH,
            version,
            "FetchTopic",
            "FetchPartition",
            partition=0,
            fetch_offset=0,
            current_leader_epoch=-1,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        topics = each_topic(
            ApiKey.FETCH, version, "FetchTopic", "topic", by_id=version >= 13, partitions=partitions
        )
        return {
            "replica_id": replica,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": topics(world),
            "forgotten_topics_data": [],
            "rack_id": "",
        }

    return fields


def list_offsets(version: int) -> Fields:
    partitions = one_partition(
        ApiKey.LIST_OFFSETS,
        version,
        "ListOffsetsTopic",
        "ListOffsetsPartition",
        partition_index=0,
        timestamp=-1,
        current_leader_epoch=-1,
    )
    topics = each_topic(ApiKey.LIST_OFFSETS, version, "ListOffsetsTopic", partitions=partitions)
    return lambda world: {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": topics(world),
        "timeout_ms": 1000,
    }


def metadata(
    version: int, *, names: tuple[str, ...] | None = _TOPICS, by_id: bool = False, create: bool = False
) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        topics = None
        if names is not None:
            topics = [
                part(
                    ApiKey.METADATA,
                    version,
                    "MetadataRequestTopic",
                    name=None if by_id else world[name],
                    topic_id=world.ids[name] if by_id else None,
                )
                for name in names
            ]
        return {
            "topics": topics,
            "allow_auto_topic_creation": create,
            "include_cluster_authorized_operations": 8 <= version <= 10,
            "include_topic_authorized_operations": version >= 8,
        }

    return fields


def offset_fetch(version: int, *, every: bool = False) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        if version < 8:
            topics = None
            if not every:
                topics = each_topic(
                    ApiKey.OFFSET_FETCH, version, "OffsetFetchRequestTopic", partition_indexes=[0]
                )(world)
            return {"group_id": world["g/seen"], "topics": topics, "require_stable": False}
        names = ("OffsetFetchRequestGroup", "OffsetFetchRequestTopics")
        groups = [
            part(
                ApiKey.OFFSET_FETCH,
                version,
                "OffsetFetchRequestGroup",
                group_id=world[group],
                member_id=None,
                member_epoch=-1,
                topics=None
                if every
                else [
                    part(
                        ApiKey.OFFSET_FETCH,
                        version,
                        *names,
                        name=world[plain] if version < 10 else "",
                        topic_id=world.ids[plain] if version >= 10 else None,
                        partition_indexes=[0],
                    )
                    for plain in _TOPICS
                ],
            )
            for group in _GROUPS
        ]
        return {"groups": groups, "require_stable": False}

    return fields


def metadata_of_both(*pairs: tuple[str | None, str | None]) -> Fields:
    """Each topic by the name of one and the id of another."""

    def fields(world: World) -> dict[str, Any]:
        topics = [
            part(
                ApiKey.METADATA,
                12,
                "MetadataRequestTopic",
                name=None if name is None else world[name],
                topic_id=None if of is None else world.ids[of],
            )
            for name, of in pairs
        ]
        return {"topics": topics, "allow_auto_topic_creation": False}

    return fields


def offset_fetch_twice(*topics: tuple[str, ...] | None) -> Fields:
    """One group named again and again, each time with these topics."""

    def fields(world: World) -> dict[str, Any]:
        names = ("OffsetFetchRequestGroup", "OffsetFetchRequestTopics")
        groups = [
            part(
                ApiKey.OFFSET_FETCH,
                8,
                "OffsetFetchRequestGroup",
                group_id=world["g/seen"],
                topics=None
                if wanted is None
                else [
                    part(ApiKey.OFFSET_FETCH, 8, *names, name=world[plain], partition_indexes=[0])
                    for plain in wanted
                ],
            )
            for wanted in topics
        ]
        return {"groups": groups, "require_stable": False}

    return fields


def leader_epoch() -> Fields:
    key = ApiKey.OFFSET_FOR_LEADER_EPOCH
    partitions = one_partition(
        key,
        4,
        "OffsetForLeaderTopic",
        "OffsetForLeaderPartition",
        partition=0,
        current_leader_epoch=-1,
        leader_epoch=0,
    )
    topics = each_topic(key, 4, "OffsetForLeaderTopic", "topic", partitions=partitions)
    return lambda world: {"replica_id": -1, "topics": topics(world)}


def delete_records() -> Fields:
    partitions = one_partition(
        ApiKey.DELETE_RECORDS, 2, "DeleteRecordsTopic", "DeleteRecordsPartition", partition_index=0, offset=1
    )
    topics = each_topic(ApiKey.DELETE_RECORDS, 2, "DeleteRecordsTopic", partitions=partitions)
    return lambda world: {"topics": topics(world), "timeout_ms": 30_000}


def create_topics(version: int) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        topics = [
            part(
                ApiKey.CREATE_TOPICS,
                version,
                "CreatableTopic",
                name=world[plain],
                num_partitions=1,
                replication_factor=1,
                assignments=[],
                configs=[],
            )
            for plain in ("t/new", "t/hidden")
        ]
        return {"topics": topics, "timeout_ms": 30_000, "validate_only": False}

    return fields


def remove_new(world: World) -> None:
    """Nothing is left of a topic that a case has made, or may make again."""
    name = world["t/new"]
    if world.exists("t/new"):
        topic = part(ApiKey.DELETE_TOPICS, 6, "DeleteTopicState", name=name, topic_id=None)
        world.admin.call(ApiKey.DELETE_TOPICS, 6, topics=[topic], timeout_ms=30_000)
        world.wait(lambda: not world.exists("t/new"))


def make_new(world: World) -> None:
    if not world.exists("t/new"):
        world.make_topic("t/new")


def delete_topics(
    version: int, *, by_id: bool = False, named: Iterable[str] = ("t/new", "t/hidden")
) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        if version < 6:
            return {"topic_names": [world[plain] for plain in named], "timeout_ms": 30_000}
        topics = [
            part(
                ApiKey.DELETE_TOPICS,
                version,
                "DeleteTopicState",
                name=None if by_id else world[plain],
                topic_id=world.ids[plain] if by_id else None,
            )
            for plain in named
        ]
        return {"topics": topics, "timeout_ms": 30_000}

    return fields


def new_exists(world: World) -> bool:
    return world.exists("t/new")


def new_is_gone(world: World) -> bool:
    return not world.exists("t/new")


def create_partitions() -> Fields:
    topics = each_topic(ApiKey.CREATE_PARTITIONS, 3, "CreatePartitionsTopic", count=2, assignments=None)
    return lambda world: {"topics": topics(world), "timeout_ms": 30_000, "validate_only": True}


def producer_id(transactional_id: str | None) -> Fields:
    return lambda world: {
        "transactional_id": None if transactional_id is None else world[transactional_id],
        "transaction_timeout_ms": 1000,
        "producer_id": -1,
        "producer_epoch": -1,
    }


def partitions_of(cursor: str | None = None) -> Fields:
    """All topics of the world, by name; maybe from one of them on."""
    return lambda world: {
        "topics": [world[name] for name in ("t/hidden", "t/seen")],
        "response_partition_limit": 10,
        "cursor": None if cursor is None else Cursor(world[cursor], 0),
    }


def log_dirs() -> Fields:
    return lambda world: {"topics": [(world["t/seen"], [0])]}


def elected() -> Fields:
    return lambda world: {"topic_partitions": [(world["t/seen"], [0])], "timeout_ms": 1_000}
