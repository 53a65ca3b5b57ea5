"""A request of each API and the rights that it takes: about what may be seen and, beside it, what may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kohort.broker.authorizer import Operation, PatternType, Permission, ResourceType
from kohort.protocol import ApiKey
from tests.broker.authorizer.world import Right, World, commit_fields
from tests.broker.wire import batch, part, produce_fields

Fields = Callable[[World], dict[str, Any]]
_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_TRANSACTION = ResourceType.TRANSACTIONAL_ID
_TOPICS = ("t/seen", "t/hidden")
_GROUPS = ("g/seen", "g/hidden")


@dataclass(frozen=True)
class Case:
    """``rights`` are all that the request takes. ``before`` makes what it takes away.

    ``done`` says whether it was carried out, where an answer may lie; ``words`` tell cases of one API apart.
    ``ours`` is what stands in Apache Kafka's answers and what in ours, where they differ for other reasons.
    """

    api: ApiKey
    version: int
    fields: Fields
    rights: tuple[Right, ...]
    words: str = ""
    before: Callable[[World], None] = lambda _world: None
    done: Callable[[World], bool] | None = None
    ours: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version}{' ' + self.words if self.words else ''}"


def _t(operation: Operation, name: str = "t/seen") -> Right:
    return Right(operation, _TOPIC, name)


def _g(operation: Operation) -> Right:
    return Right(operation, _GROUP, "g/seen")


def _c(operation: Operation) -> Right:
    return Right(operation, _CLUSTER, "cluster")


def _topics(key: ApiKey, version: int, struct: str, name: str = "name", by_id: bool = False, **more: Any) -> Any:
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


def _partitions(key: ApiKey, version: int, *names: str, **fields: Any) -> list[Any]:
    return [part(key, version, *names, **fields)]


def _produce(version: int, **options: Any) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        transactional_id = options.get("transactional_id")
        body = produce_fields("", batch(**options.get("batch", {})), version=version)
        (one,) = body["topic_data"]
        body["topic_data"] = _topics(
            ApiKey.PRODUCE, version, "TopicProduceData", by_id=version >= 13, partition_data=one.partition_data
        )(world)
        return body | {"transactional_id": transactional_id and world[transactional_id]}

    return fields


def _fetch(version: int, replica: int = -1) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        partitions = _partitions(
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
        topics = _topics(
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


def _list_offsets(version: int) -> Fields:
    partitions = _partitions(
        ApiKey.LIST_OFFSETS,
        version,
        "ListOffsetsTopic",
        "ListOffsetsPartition",
        partition_index=0,
        timestamp=-1,
        current_leader_epoch=-1,
    )
    topics = _topics(ApiKey.LIST_OFFSETS, version, "ListOffsetsTopic", partitions=partitions)
    return lambda world: {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": topics(world),
        "timeout_ms": 1000,
    }


def _metadata(version: int, *, names: tuple[str, ...] | None = _TOPICS, by_id: bool = False, create: bool = False) -> Fields:
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


def _offset_fetch(version: int, *, every: bool = False) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        if version < 8:
            topics = None
            if not every:
                topics = _topics(
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


def _find(version: int, kind: int, *plain: str) -> Fields:
    if version < 4:
        return lambda world: {"key": world[plain[0]], "key_type": kind}
    return lambda world: {"key_type": kind, "coordinator_keys": [world[name] for name in plain]}


def _member(**more: Any) -> Fields:
    return lambda world: {"group_id": world["g/seen"], **more}


def _create_topics(version: int) -> Fields:
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


def _remove_new(world: World) -> None:
    """Nothing is left of a topic that a case has made, or may make again."""
    name = world["t/new"]
    if world.exists("t/new"):
        topic = part(ApiKey.DELETE_TOPICS, 6, "DeleteTopicState", name=name, topic_id=None)
        world.admin.call(ApiKey.DELETE_TOPICS, 6, topics=[topic], timeout_ms=30_000)
        world.wait(lambda: not world.exists("t/new"))


def _make_new(world: World) -> None:
    if not world.exists("t/new"):
        world.make_topic("t/new")


def _delete_topics(version: int, *, by_id: bool = False) -> Fields:
    def fields(world: World) -> dict[str, Any]:
        if version < 6:
            return {"topic_names": [world["t/new"], world["t/hidden"]], "timeout_ms": 30_000}
        topics = [
            part(
                ApiKey.DELETE_TOPICS,
                version,
                "DeleteTopicState",
                name=None if by_id else world[plain],
                topic_id=world.ids[plain] if by_id else None,
            )
            for plain in ("t/new", "t/hidden")
        ]
        return {"topics": topics, "timeout_ms": 30_000}

    return fields


def _new_exists(world: World) -> bool:
    return world.exists("t/new")


def _new_is_gone(world: World) -> bool:
    return not world.exists("t/new")


def _delete_records() -> Fields:
    partitions = _partitions(
        ApiKey.DELETE_RECORDS, 2, "DeleteRecordsTopic", "DeleteRecordsPartition", partition_index=0, offset=1
    )
    topics = _topics(ApiKey.DELETE_RECORDS, 2, "DeleteRecordsTopic", partitions=partitions)
    return lambda world: {"topics": topics(world), "timeout_ms": 30_000}


def _producer_id(transactional_id: str | None) -> Fields:
    return lambda world: {
        "transactional_id": None if transactional_id is None else world[transactional_id],
        "transaction_timeout_ms": 1000,
        "producer_id": -1,
        "producer_epoch": -1,
    }


def _leader_epoch() -> Fields:
    key = ApiKey.OFFSET_FOR_LEADER_EPOCH
    partitions = _partitions(
        key,
        4,
        "OffsetForLeaderTopic",
        "OffsetForLeaderPartition",
        partition=0,
        current_leader_epoch=-1,
        leader_epoch=0,
    )
    topics = _topics(key, 4, "OffsetForLeaderTopic", "topic", partitions=partitions)
    return lambda world: {"replica_id": -1, "topics": topics(world)}


def _acl_filter(**more: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.TOPIC,
        "resource_name_filter": "nothing-is-named-so",
        "pattern_type_filter": PatternType.LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
        **more,
    }


def _create_acls() -> Fields:
    return lambda world: {
        "creations": [
            part(
                ApiKey.CREATE_ACLS,
                3,
                "AclCreation",
                resource_type=ResourceType.TOPIC,
                resource_name=world["t/hidden"],
                resource_pattern_type=PatternType.LITERAL,
                principal="User:mallory",
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
        ]
    }


def _has_rules(world: World) -> bool:
    wanted = _acl_filter(resource_name_filter=world["t/hidden"], principal_filter="User:mallory")
    return bool(world.admin.call(ApiKey.DESCRIBE_ACLS, 3, **wanted).resources)


def _remove_rules(world: World) -> None:
    wanted = _acl_filter(resource_name_filter=world["t/hidden"], principal_filter="User:mallory")
    world.admin.call(
        ApiKey.DELETE_ACLS, 3, filters=[part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **wanted)]
    )
    world.wait(lambda: not _has_rules(world))


def _add_rules(world: World) -> None:
    world.admin.call(ApiKey.CREATE_ACLS, 3, **_create_acls()(world))
    world.wait(lambda: _has_rules(world))


def _has_no_rules(world: World) -> bool:
    return not _has_rules(world)


def _delete_acls(world: World) -> dict[str, Any]:
    wanted = _acl_filter(resource_name_filter=world["t/hidden"], principal_filter="User:mallory")
    return {"filters": [part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **wanted)]}


def _describe_configs(kind: int, *plain: str) -> Fields:
    return lambda world: {
        "resources": [
            part(
                ApiKey.DESCRIBE_CONFIGS,
                4,
                "DescribeConfigsResource",
                resource_type=kind,
                resource_name="1" if name == "broker" else world[name],
                configuration_keys=None,
            )
            for name in plain
        ],
        "include_synonyms": False,
        "include_documentation": False,
    }


def _incremental(kind: int, *plain: str) -> Fields:
    key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    config = part(
        key,
        1,
        "AlterConfigsResource",
        "AlterableConfig",
        name="retention.ms",
        config_operation=0,
        value="604800000",
    )
    return lambda world: {
        "resources": [
            part(
                key,
                1,
                "AlterConfigsResource",
                resource_type=kind,
                resource_name="1" if name == "broker" else world[name],
                configs=[config],
            )
            for name in plain
        ],
        "validate_only": True,
    }


def _alter_configs(kind: int, *plain: str) -> Fields:
    key = ApiKey.ALTER_CONFIGS
    return lambda world: {
        "resources": [
            part(
                key,
                2,
                "AlterConfigsResource",
                resource_type=kind,
                resource_name="1" if name == "broker" else world[name],
                configs=[],
            )
            for name in plain
        ],
        "validate_only": True,
    }


def _create_partitions() -> Fields:
    topics = _topics(
        ApiKey.CREATE_PARTITIONS, 3, "CreatePartitionsTopic", count=2, assignments=None
    )
    return lambda world: {"topics": topics(world), "timeout_ms": 30_000, "validate_only": True}


def _offset_delete() -> Fields:
    key = ApiKey.OFFSET_DELETE
    partitions = _partitions(
        key, 0, "OffsetDeleteRequestTopic", "OffsetDeleteRequestPartition", partition_index=0
    )
    topics = _topics(key, 0, "OffsetDeleteRequestTopic", partitions=partitions)
    return lambda world: {"group_id": world["g/seen"], "topics": topics(world)}


def _offsets(world: World, group: str) -> int:
    wanted = part(
        ApiKey.OFFSET_FETCH,
        9,
        "OffsetFetchRequestGroup",
        group_id=world[group],
        member_id=None,
        member_epoch=-1,
        topics=None,
    )
    answer = world.admin.call(ApiKey.OFFSET_FETCH, 9, groups=[wanted], require_stable=False)
    return sum(len(topic.partitions) for topic in answer.groups[0].topics)


def _commit_seen(world: World) -> None:
    world.commit("g/seen")


def _offset_is_gone(world: World) -> bool:
    return _offsets(world, "g/seen") < 2


_MEMBER = {"generation_id": 1, "member_id": "nobody", "group_instance_id": None}
_PROTOCOL = part(
    ApiKey.JOIN_GROUP, 9, "JoinGroupRequestProtocol", name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0"
)
_OP = Operation
_R, _W, _D = Operation.READ, Operation.WRITE, Operation.DESCRIBE
_TXN = {"batch": {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}}

CASES: tuple[Case, ...] = (
    *(Case(ApiKey.PRODUCE, version, _produce(version), (_t(_W),)) for version in (3, 9, 12, 13)),
    *(Case(ApiKey.FETCH, version, _fetch(version), (_t(_R),)) for version in (4, 12, 13, 18)),
    Case(ApiKey.FETCH, 12, _fetch(12, replica=2), (_t(_R),), "of a replica"),
    *(Case(ApiKey.LIST_OFFSETS, version, _list_offsets(version), (_t(_D),)) for version in (1, 11)),
    *(Case(ApiKey.METADATA, version, _metadata(version), (_t(_D), _c(_D))) for version in (1, 8, 10, 13)),
    *(
        Case(ApiKey.METADATA, version, _metadata(version, names=None), (_t(_D),), "of all")
        for version in (1, 9, 13)
    ),
    Case(ApiKey.METADATA, 0, _metadata(0, names=()), (_t(_D),), "of all"),
    Case(ApiKey.METADATA, 0, _metadata(0, names=("t/hidden",)), (), "of hidden alone"),
    Case(ApiKey.METADATA, 12, _metadata(12, by_id=True), (_t(_D),), "by id"),
    Case(
        ApiKey.METADATA,
        9,
        _metadata(9, names=("t/new",), create=False),
        (_t(_D, "t/new"),),
        "of a topic that there is not",
        before=_remove_new,
    ),
    *(
        Case(
            ApiKey.METADATA,
            7,
            _metadata(7, names=("t/new",), create=True),
            rights,
            f"that creates, by the {words}",
            before=_remove_new,
            done=_new_exists,
            # ours are in the answer to the request that makes them
            ours=(
                "error_code=3 name=t/new partitions=[]",
                "error_code=0 name=t/new partitions=[error_code=0]",
            ),
        )
        for words, rights in (
            ("topic's right", (_t(_D, "t/new"), _t(_OP.CREATE, "t/new"))),
            ("cluster's right", (_t(_D, "t/new"), _c(_OP.CREATE))),
        )
    ),
    *(
        Case(
            ApiKey.OFFSET_COMMIT,
            version,
            lambda world, version=version: commit_fields(world, "g/seen", version),  # type: ignore[misc]
            (_g(_R), _t(_R)),
        )
        for version in (2, 9, 10)
    ),
    *(Case(ApiKey.OFFSET_FETCH, version, _offset_fetch(version), (_g(_D), _t(_D))) for version in (1, 2, 7, 8, 10)),
    *(
        Case(ApiKey.OFFSET_FETCH, version, _offset_fetch(version, every=True), (_g(_D), _t(_D)), "of all")
        for version in (5, 9, 10)
    ),
    *(Case(ApiKey.FIND_COORDINATOR, version, _find(version, 0, *_GROUPS), (_g(_D),)) for version in (0, 3, 4, 6)),
    Case(
        ApiKey.FIND_COORDINATOR,
        4,
        _find(4, 1, "x/hidden"),
        (),
        "of a transaction",
    ),
    Case(
        ApiKey.JOIN_GROUP,
        9,
        _member(
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[_PROTOCOL],
            reason=None,
        ),
        (_g(_R),),
    ),
    Case(ApiKey.HEARTBEAT, 4, _member(**_MEMBER), (_g(_R),)),
    Case(
        ApiKey.SYNC_GROUP,
        5,
        _member(**_MEMBER, protocol_type="consumer", protocol_name="range", assignments=[]),
        (_g(_R),),
    ),
    Case(ApiKey.LEAVE_GROUP, 2, _member(member_id="nobody"), (_g(_R),)),
    Case(
        ApiKey.LEAVE_GROUP,
        5,
        _member(
            members=[
                part(
                    ApiKey.LEAVE_GROUP,
                    5,
                    "MemberIdentity",
                    member_id="nobody",
                    group_instance_id=None,
                    reason=None,
                )
            ]
        ),
        (_g(_R),),
    ),
    *(
        Case(
            ApiKey.DESCRIBE_GROUPS,
            version,
            lambda world: {
                "groups": [world[plain] for plain in _GROUPS],
                "include_authorized_operations": True,
            },
            (_g(_D),),
        )
        for version in (0, 5, 6)
    ),
    *(
        Case(
            ApiKey.LIST_GROUPS, version, lambda _world: {"states_filter": [], "types_filter": []}, rights, words
        )
        for version in (2, 5)
        for words, rights in (("by group", (_g(_D),)), ("by cluster", (_c(_D),)))
    ),
    *(
        Case(
            ApiKey.CREATE_TOPICS,
            version,
            _create_topics(version),
            (create, _t(_OP.DESCRIBE_CONFIGS, "t/new")),
            words,
            before=_remove_new,
            done=_new_exists,
        )
        for version in (4, 7)
        for words, create in (
            ("by topic", _t(_OP.CREATE, "t/new")),
            ("by cluster", _c(_OP.CREATE)),
        )
    ),
    *(
        Case(
            ApiKey.DELETE_TOPICS,
            version,
            _delete_topics(version, by_id=by_id),
            rights,
            "by id" if by_id else "by name",
            before=_make_new,
            done=_new_is_gone,
        )
        for version, by_id, rights in (
            (5, False, (_t(_OP.DELETE, "t/new"),)),
            (6, False, (_t(_OP.DELETE, "t/new"), _t(_D, "t/hidden"))),
            (6, True, (_t(_OP.DELETE, "t/new"), _t(_D, "t/hidden"))),
        )
    ),
    Case(ApiKey.DELETE_RECORDS, 2, _delete_records(), (_t(_OP.DELETE),)),
    Case(ApiKey.INIT_PRODUCER_ID, 5, _producer_id(None), (_c(_OP.IDEMPOTENT_WRITE),), "by cluster"),
    Case(ApiKey.INIT_PRODUCER_ID, 5, _producer_id(None), (_t(_W),), "by topic"),
    Case(ApiKey.INIT_PRODUCER_ID, 2, _producer_id(None), (_t(_OP.ALL),), "by topic"),
    Case(ApiKey.INIT_PRODUCER_ID, 5, _producer_id("x/hidden"), (), "of a transaction"),
    Case(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, _leader_epoch(), (_t(_D),), "by topic"),
    Case(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, _leader_epoch(), (_c(_OP.CLUSTER_ACTION),), "by cluster"),
    Case(ApiKey.DESCRIBE_ACLS, 3, lambda _world: _acl_filter(), (_c(_D),)),
    Case(
        ApiKey.CREATE_ACLS,
        3,
        _create_acls(),
        (_c(_OP.ALTER),),
        before=_remove_rules,
        done=_has_rules,
    ),
    Case(
        ApiKey.DELETE_ACLS,
        3,
        _delete_acls,
        (_c(_OP.ALTER),),
        before=_add_rules,
        done=_has_no_rules,
    ),
    Case(ApiKey.DESCRIBE_CONFIGS, 4, _describe_configs(2, *_TOPICS), (_t(_OP.DESCRIBE_CONFIGS),), "of topics"),
    Case(
        ApiKey.DESCRIBE_CONFIGS, 4, _describe_configs(4, "broker"), (_c(_OP.DESCRIBE_CONFIGS),), "of a broker"
    ),
    Case(ApiKey.DESCRIBE_CONFIGS, 4, _describe_configs(32, "g/hidden"), (), "of a group"),
    Case(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        _incremental(2, *_TOPICS),
        (_t(_OP.ALTER_CONFIGS),),
        "of topics",
    ),
    Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _incremental(4, "broker"), (), "of a broker"),
    Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _incremental(32, "g/hidden"), (), "of a group"),
    Case(ApiKey.ALTER_CONFIGS, 2, _alter_configs(2, *_TOPICS), (_t(_OP.ALTER_CONFIGS),), "of topics"),
    Case(ApiKey.ALTER_CONFIGS, 2, _alter_configs(4, "broker"), (), "of a broker"),
    Case(ApiKey.CREATE_PARTITIONS, 3, _create_partitions(), (_t(_OP.ALTER),)),
    Case(
        ApiKey.OFFSET_DELETE,
        0,
        _offset_delete(),
        (_g(_OP.DELETE), _t(_R)),
        before=_commit_seen,
        done=_offset_is_gone,
    ),
    Case(
        ApiKey.DELETE_GROUPS,
        2,
        lambda world: {"groups_names": [world[plain] for plain in _GROUPS]},
        (_g(_OP.DELETE),),
        before=_commit_seen,
        done=lambda world: _offsets(world, "g/seen") == 0,
    ),
    Case(
        ApiKey.DESCRIBE_CLUSTER,
        2,
        lambda _world: {"include_cluster_authorized_operations": True, "endpoint_type": 1},
        (_c(_D), _c(_OP.ALTER_CONFIGS)),
    ),
    Case(
        ApiKey.PRODUCE,
        9,
        _produce(9, transactional_id="x/hidden", **_TXN),
        (_t(_W),),
        "of a transaction",
    ),
)
