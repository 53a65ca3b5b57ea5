"""A request of each API and the rights that it takes: about what may be seen and, beside it, what may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol import ApiKey, SharePartitionKey
from tests.broker.authorizer import other_requests as other
from tests.broker.authorizer import share_requests as share
from tests.broker.authorizer import topic_requests as topic
from tests.broker.authorizer import transaction_requests as txn
from tests.broker.authorizer.topic_requests import Fields
from tests.broker.authorizer.world import Right, World, commit_fields
from tests.broker.wire import part

_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_TOPICS = ("t/seen", "t/hidden")
_GROUPS = ("g/seen", "g/hidden")
_NEXT_GROUPS = (other.CONSUMER_GROUP, "g/hidden")
_SHARE_GROUPS = (other.SHARE_GROUP, "g/hidden")


@dataclass(frozen=True)
class Case:
    """``rights`` are all that the request takes. ``before`` makes what it takes away.

    ``done`` says whether it was carried out, where an answer may lie; ``words`` tell cases of one API apart.
    ``ours`` is what stands in Apache Kafka's answers, as a regular expression, and what in ours, where they
    differ for other reasons.
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


def _x(operation: Operation) -> Right:
    return Right(operation, ResourceType.TRANSACTIONAL_ID, "x/seen")


def _c(operation: Operation) -> Right:
    return Right(operation, _CLUSTER, "cluster")


_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_MEMBER = {"generation_id": 1, "member_id": "nobody", "group_instance_id": None}
_PROTOCOL = part(
    ApiKey.JOIN_GROUP, 9, "JoinGroupRequestProtocol", name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0"
)
_OP = Operation
_R, _W, _D = Operation.READ, Operation.WRITE, Operation.DESCRIBE
_TXN = {"batch": {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}}

CASES: tuple[Case, ...] = (
    *(Case(ApiKey.PRODUCE, version, topic.produce(version), (_t(_W),)) for version in (3, 9, 12, 13)),
    *(Case(ApiKey.FETCH, version, topic.fetch(version), (_t(_R),)) for version in (4, 12, 13, 18)),
    Case(ApiKey.FETCH, 12, topic.fetch(12, replica=2), (_t(_R),), "of a replica"),
    *(Case(ApiKey.LIST_OFFSETS, version, topic.list_offsets(version), (_t(_D),)) for version in (1, 11)),
    *(
        Case(ApiKey.METADATA, version, topic.metadata(version), (_t(_D), _c(_D)))
        for version in (1, 8, 10, 13)
    ),
    *(
        Case(ApiKey.METADATA, version, topic.metadata(version, names=None), (_t(_D),), "of all")
        for version in (1, 9, 13)
    ),
    Case(ApiKey.METADATA, 0, topic.metadata(0, names=()), (_t(_D),), "of all"),
    Case(ApiKey.METADATA, 0, topic.metadata(0, names=("t/hidden",)), (), "of hidden alone"),
    Case(ApiKey.METADATA, 12, topic.metadata(12, by_id=True), (_t(_D),), "by id"),
    *(
        Case(ApiKey.METADATA, 12, topic.metadata_of_both(*pairs), (_t(_D),), words)
        for words, pairs in (
            ("of a name with a hidden id", (("t/seen", "t/hidden"),)),
            ("of a hidden name with an id", (("t/hidden", "t/seen"),)),
            ("of a name beside an id", (("t/seen", None), (None, "t/hidden"))),
            ("of a hidden name beside an id", (("t/hidden", None), (None, "t/seen"))),
        )
    ),
    Case(
        ApiKey.METADATA,
        9,
        topic.metadata(9, names=("t/new",), create=False),
        (_t(_D, "t/new"),),
        "of a topic that there is not",
        before=topic.remove_new,
    ),
    *(
        Case(
            ApiKey.METADATA,
            7,
            topic.metadata(7, names=("t/new",), create=True),
            rights,
            f"that creates, by the {words}",
            before=topic.remove_new,
            done=topic.new_exists,
            # ours are in the answer to the request that makes them
            ours=(
                r"error_code=3 name=t/new partitions=\[\]",
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
    *(
        Case(ApiKey.OFFSET_FETCH, version, topic.offset_fetch(version), (_g(_D), _t(_D)))
        for version in (1, 2, 7, 8, 10)
    ),
    *(
        Case(
            ApiKey.OFFSET_FETCH, version, topic.offset_fetch(version, every=True), (_g(_D), _t(_D)), "of all"
        )
        for version in (5, 9, 10)
    ),
    *(
        Case(ApiKey.OFFSET_FETCH, 8, topic.offset_fetch_twice(*topics), (_g(_D), _t(_D)), words)
        for words, topics in (
            ("of a group that is named twice", (("t/hidden",), ("t/seen",))),
            ("of a group that is named twice, once for all", (None, ())),
        )
    ),
    *(
        Case(ApiKey.FIND_COORDINATOR, version, other.find(version, 0, *_GROUPS), (_g(_D),))
        for version in (0, 3, 4, 6)
    ),
    Case(
        ApiKey.FIND_COORDINATOR,
        4,
        other.find(4, 1, "x/hidden"),
        (),
        "of a transaction",
    ),
    Case(ApiKey.FIND_COORDINATOR, 3, other.find(3, 1, "x/seen"), (_x(_D),), "of a transaction", txn.ready),
    Case(
        ApiKey.FIND_COORDINATOR,
        6,
        lambda world: {"key_type": 2, "coordinator_keys": [f"g:{world.ids['t/hidden']}:0"]},
        (),
        "of a share group",
    ),
    Case(
        ApiKey.FIND_COORDINATOR,
        6,
        lambda world: {
            "key_type": 2,
            "coordinator_keys": [
                str(SharePartitionKey(world["g/seen"], world.ids[plain], 0)) for plain in _TOPICS
            ],
        },
        (_c(_OP.CLUSTER_ACTION),),
        "of share partitions",
        before=share.ready,
    ),
    Case(
        ApiKey.JOIN_GROUP,
        9,
        other.member(
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
    Case(ApiKey.HEARTBEAT, 4, other.member(**_MEMBER), (_g(_R),)),
    Case(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        lambda world: {
            "group_id": world["g/seen"],
            "member_id": "nobody",
            "member_epoch": 3,
            "subscribed_topic_names": [world["t/seen"]],
            "topic_partitions": None,
        },
        (_g(_R), _t(_D)),
    ),
    Case(
        ApiKey.SYNC_GROUP,
        5,
        other.member(**_MEMBER, protocol_type="consumer", protocol_name="range", assignments=[]),
        (_g(_R),),
    ),
    Case(ApiKey.LEAVE_GROUP, 2, other.member(member_id="nobody"), (_g(_R),)),
    Case(
        ApiKey.LEAVE_GROUP,
        5,
        other.member(
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
            ApiKey.LIST_GROUPS,
            version,
            lambda _world: {"states_filter": [], "types_filter": []},
            rights,
            words,
        )
        for version in (2, 5)
        for words, rights in (("by group", (_g(_D),)), ("by cluster", (_c(_D),)))
    ),
    *(
        Case(
            ApiKey.CREATE_TOPICS,
            version,
            topic.create_topics(version),
            (create, _t(_OP.DESCRIBE_CONFIGS, "t/new")),
            words,
            before=topic.remove_new,
            done=topic.new_exists,
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
            topic.delete_topics(version, by_id=by_id),
            rights,
            "by id" if by_id else "by name",
            before=topic.make_new,
            done=topic.new_is_gone,
        )
        for version, by_id, rights in (
            (5, False, (_t(_OP.DELETE, "t/new"),)),
            (6, False, (_t(_OP.DELETE, "t/new"), _t(_D, "t/hidden"))),
            (6, True, (_t(_OP.DELETE, "t/new"), _t(_D, "t/hidden"))),
        )
    ),
    *(
        Case(
            ApiKey.DELETE_TOPICS,
            version,
            topic.delete_topics(version, by_id=version >= 6, named=["t/new"]),
            (_c(_OP.DELETE),),
            "by cluster",
            before=topic.make_new,
            done=topic.new_is_gone,
        )
        for version in (5, 6)
    ),
    Case(ApiKey.DELETE_RECORDS, 2, topic.delete_records(), (_t(_OP.DELETE),)),
    Case(ApiKey.INIT_PRODUCER_ID, 5, topic.producer_id(None), (_c(_OP.IDEMPOTENT_WRITE),), "by cluster"),
    Case(ApiKey.INIT_PRODUCER_ID, 5, topic.producer_id(None), (_t(_W),), "by topic"),
    Case(ApiKey.INIT_PRODUCER_ID, 2, topic.producer_id(None), (_t(_OP.ALL),), "by topic"),
    Case(ApiKey.INIT_PRODUCER_ID, 5, topic.producer_id("x/hidden"), (), "of a transaction"),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        4,
        topic.producer_id("x/seen"),
        (_x(_W),),
        "of a producer",
        before=txn.ready,
    ),
    *(
        Case(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            txn.add_partitions("t/seen"),
            (_x(_W), _t(_W)),
            before=txn.ready,
        )
        for version in (0, 3)
    ),
    Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        txn.add_partitions("t/seen", "t/hidden"),
        (_x(_W), _t(_W)),
        "of a hidden topic",
        before=txn.ready,
    ),
    Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        5,
        txn.add_for_broker,
        (_c(_OP.CLUSTER_ACTION),),
        "by a broker",
        txn.ready,
    ),
    Case(ApiKey.ADD_OFFSETS_TO_TXN, 3, txn.add_offsets, (_x(_W), _g(_R)), before=txn.ready),
    *(Case(ApiKey.END_TXN, version, txn.end, (_x(_W),), before=txn.ready) for version in (2, 5)),
    *(
        Case(
            ApiKey.TXN_OFFSET_COMMIT, version, txn.commit_offsets, (_x(_W), _g(_R), _t(_R)), before=txn.ready
        )
        for version in (2, 4, 5)
    ),
    Case(ApiKey.WRITE_TXN_MARKERS, 1, txn.write_marker, (_c(_OP.CLUSTER_ACTION),), "by a broker", txn.ready),
    Case(ApiKey.WRITE_TXN_MARKERS, 1, txn.write_marker, (_c(_OP.ALTER),), "by who may alter", txn.ready),
    *(
        Case(api, version, share.about(**fields), (_c(_OP.CLUSTER_ACTION),), before=share.ready)
        for api, version, fields in (
            (ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, {"state_epoch": 1, "start_offset": 0}),
            (ApiKey.READ_SHARE_GROUP_STATE, 0, {"leader_epoch": 0}),
            (ApiKey.WRITE_SHARE_GROUP_STATE, 1, {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0}),
            (ApiKey.DELETE_SHARE_GROUP_STATE, 0, {}),
            (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, {"leader_epoch": 0}),
        )
    ),
    Case(ApiKey.SHARE_FETCH, 2, share.fetch(0), (_g(_R), _t(_R)), before=share.ready),
    Case(ApiKey.SHARE_ACKNOWLEDGE, 2, share.acknowledge, (_g(_R), _t(_R)), before=share.open_session),
    Case(ApiKey.DESCRIBE_PRODUCERS, 0, txn.describe_producers, (_t(_R),)),
    Case(ApiKey.DESCRIBE_TRANSACTIONS, 0, txn.describe, (_x(_D),), before=txn.ready),
    *(Case(ApiKey.LIST_TRANSACTIONS, version, txn.listed, (_x(_D),), before=txn.ready) for version in (0, 2)),
    *(Case(ApiKey.UPDATE_FEATURES, version, txn.no_features, (_c(_OP.ALTER),)) for version in (0, 1, 2)),
    Case(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, topic.leader_epoch(), (_t(_D),), "by topic"),
    Case(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, topic.leader_epoch(), (_c(_OP.CLUSTER_ACTION),), "by cluster"),
    Case(ApiKey.DESCRIBE_ACLS, 3, lambda _world: other.acl_filter(), (_c(_D),)),
    Case(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, other.scram_users, (_c(_D),)),
    Case(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, other.scram_deletion, (_c(_OP.ALTER),)),
    Case(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, other.client_quotas, (_c(_OP.DESCRIBE_CONFIGS),)),
    Case(ApiKey.ALTER_CLIENT_QUOTAS, 1, other.quota_change, (_c(_OP.ALTER_CONFIGS),)),
    Case(
        ApiKey.CREATE_ACLS,
        3,
        other.create_acls(),
        (_c(_OP.ALTER),),
        before=other.remove_rules,
        done=other.has_rules,
    ),
    Case(
        ApiKey.DELETE_ACLS,
        3,
        other.delete_acls,
        (_c(_OP.ALTER),),
        before=other.add_rules,
        done=other.has_no_rules,
    ),
    Case(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        other.describe_configs(2, *_TOPICS),
        (_t(_OP.DESCRIBE_CONFIGS),),
        "of topics",
    ),
    Case(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        other.describe_configs(4, "broker"),
        (_c(_OP.DESCRIBE_CONFIGS),),
        "of a broker",
    ),
    Case(ApiKey.DESCRIBE_CONFIGS, 4, other.describe_configs(32, "g/hidden"), (), "of a group"),
    Case(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        other.incremental(2, *_TOPICS),
        (_t(_OP.ALTER_CONFIGS),),
        "of topics",
    ),
    Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, other.incremental(4, "broker"), (), "of a broker"),
    Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, other.incremental(32, "g/hidden"), (), "of a group"),
    Case(ApiKey.ALTER_CONFIGS, 2, other.alter_configs(2, *_TOPICS), (_t(_OP.ALTER_CONFIGS),), "of topics"),
    Case(ApiKey.ALTER_CONFIGS, 2, other.alter_configs(4, "broker"), (), "of a broker"),
    Case(ApiKey.ALTER_CONFIGS, 2, other.alter_configs(32, "g/hidden"), (), "of a group"),
    Case(ApiKey.CREATE_PARTITIONS, 3, topic.create_partitions(), (_t(_OP.ALTER),)),
    Case(
        ApiKey.OFFSET_DELETE,
        0,
        other.offset_delete(),
        (_g(_OP.DELETE), _t(_R)),
        before=other.commit_seen,
        done=other.offset_is_gone,
    ),
    Case(
        ApiKey.DELETE_GROUPS,
        2,
        lambda world: {"groups_names": [world[plain] for plain in _GROUPS]},
        (_g(_OP.DELETE),),
        before=other.commit_seen,
        done=lambda world: other.offsets(world, "g/seen") == 0,
    ),
    Case(
        ApiKey.DESCRIBE_CLUSTER,
        2,
        lambda _world: {"include_cluster_authorized_operations": True, "endpoint_type": 1},
        (_c(_D), _c(_OP.ALTER_CONFIGS)),
    ),
    Case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topic.partitions_of(), (_t(_D),)),
    Case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topic.partitions_of(cursor="t/hidden"), (_t(_D),), "from one"),
    *(Case(ApiKey.DESCRIBE_LOG_DIRS, version, topic.log_dirs(), (_c(_D),)) for version in (1, 2, 3, 4)),
    *(
        Case(
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            version,
            lambda world: {"dirs": [("/nowhere", [(world["t/seen"], [0]), (world["t/hidden"], [0])])]},
            (_c(_OP.ALTER),),
        )
        for version in (1, 2)
    ),
    *(Case(ApiKey.ELECT_LEADERS, version, topic.elected(), (_c(_OP.ALTER),)) for version in (0, 2)),
    *(
        Case(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            version,
            lambda world: {"topics": [(world["t/seen"], [(0, None)])], "timeout_ms": 1_000},
            (_c(_OP.ALTER),),
        )
        for version in (0, 1)
    ),
    Case(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        lambda _world: {"timeout_ms": 1_000, "topics": None},
        (_c(_D),),
    ),
    Case(
        ApiKey.LIST_CONFIG_RESOURCES,
        1,
        lambda _world: {"resource_types": [4]},
        (_c(_OP.DESCRIBE_CONFIGS),),
    ),
    *(
        Case(
            ApiKey.PRODUCE,
            version,
            topic.produce(version, transactional_id="x/hidden", **_TXN),
            (_t(_W),),
            "of a transaction",
        )
        for version in (9, 12, 13)
    ),
    Case(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        lambda world: {
            "group_id": world["g/seen"],
            "member_id": "nobody",
            "member_epoch": 3,
            "rack_id": None,
            "subscribed_topic_names": [world["t/seen"]],
        },
        (_g(_R), _t(_D)),
    ),
    # last: lists of groups would show them
    *(
        Case(api, version, make, (Right(needed, _GROUP, other.SHARE_GROUP),), "of share groups")
        for api, version, make, needed in (
            (
                ApiKey.DESCRIBE_CONFIGS,
                4,
                other.describe_configs(32, *_SHARE_GROUPS),
                _OP.DESCRIBE_CONFIGS,
            ),
            (
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                1,
                other.incremental(32, *_SHARE_GROUPS, config=("share.isolation.level", "read_committed")),
                _OP.ALTER_CONFIGS,
            ),
            (ApiKey.ALTER_CONFIGS, 2, other.alter_configs(32, *_SHARE_GROUPS), _OP.ALTER_CONFIGS),
        )
    ),
    Case(
        ApiKey.DELETE_GROUPS,
        2,
        lambda world: {"groups_names": [world[plain] for plain in _SHARE_GROUPS]},
        (Right(_OP.DELETE, _GROUP, other.SHARE_GROUP),),
        "of share groups",
        before=other.make_share_group,
    ),
    Case(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        lambda world: {
            "group_id": world[other.SHARE_GROUP],
            "topics": [(world[plain], [(9, 0)]) for plain in _TOPICS],
        },
        (Right(_R, _GROUP, other.SHARE_GROUP), _t(_R)),
        before=other.make_share_group,
        # the id of a topic that may not be read would tell that it exists
        ours=(r"topic_id=[^=]+ partitions=\[error_code=29\]", "topic_id=null partitions=[error_code=29]"),
    ),
    Case(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        lambda world: {
            "group_id": world[other.SHARE_GROUP],
            "topics": [world[plain] for plain in _TOPICS],
        },
        (Right(_OP.DELETE, _GROUP, other.SHARE_GROUP), _t(_R)),
        before=other.make_share_group,
    ),
    Case(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        lambda world: {
            "group_ids": [world[other.SHARE_GROUP], world["g/hidden"]],
            "include_authorized_operations": False,
        },
        (Right(_D, _GROUP, other.SHARE_GROUP), _t(_D)),
        before=other.join_share_group,
    ),
    *(
        Case(
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            1,
            other.share_offsets(names),
            (Right(_D, _GROUP, other.SHARE_GROUP), _t(_D)),
            words,
            before=other.join_share_group,
        )
        for words, names in (("", _TOPICS), ("of all", None))
    ),
    Case(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        lambda world: {
            "group_ids": [world[plain] for plain in _NEXT_GROUPS],
            "include_authorized_operations": False,
        },
        (Right(_D, _GROUP, _NEXT_GROUPS[0]), _t(_D)),
        before=other.join_consumer_group,
    ),
)
