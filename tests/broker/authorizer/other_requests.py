"""Requests about groups, rules and configs."""

from __future__ import annotations

from typing import Any

from kohort.broker.authorizer import Operation, PatternType, Permission, ResourceType
from kohort.protocol import ApiKey
from tests.broker import share_requests as requests
from tests.broker.authorizer.topic_requests import Fields, each_topic, one_partition
from tests.broker.authorizer.world import World
from tests.broker.wire import part


def find(version: int, kind: int, *plain: str) -> Fields:
    if version < 4:
        return lambda world: {"key": world[plain[0]], "key_type": kind}
    return lambda world: {"key_type": kind, "coordinator_keys": [world[name] for name in plain]}


#: A consumer group (KIP-848) with a member that reads t/seen.
CONSUMER_GROUP = "g/next"


def join_consumer_group(world: World) -> None:
    """A member joins the consumer group, and has joined before."""
    answer = world.admin.call(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=world[CONSUMER_GROUP],
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[world["t/seen"]],
        topic_partitions=[],
    )
    assert answer.error_code == 0, answer


#: The share group of the tests; a name apart, as a group keeps its type.
SHARE_GROUP = "g/share"


def make_share_group(world: World) -> None:
    """There is a share group without members and without offsets."""
    for epoch in (0, -1):
        answer = world.admin.call(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            1,
            group_id=world[SHARE_GROUP],
            member_id="m",
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=["nothing-is-named-so"],
        )
        assert answer.error_code == 0, answer


def join_share_group(world: World) -> None:
    """A member of the share group has partitions."""
    requests.join_share_group(world.admin, world[SHARE_GROUP], "d", world["t/seen"])


def share_offsets(names: tuple[str, ...] | None) -> Fields:
    """Asks for the offsets of both groups in these topics; None: in all."""
    return lambda world: {
        "groups": [
            {
                "group_id": world[group],
                "topics": None if names is None else [(world[plain], [0]) for plain in names],
            }
            for group in (SHARE_GROUP, "g/hidden")
        ]
    }


def member(**more: Any) -> Fields:
    return lambda world: {"group_id": world["g/seen"], **more}


def acl_filter(**more: Any) -> dict[str, Any]:
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


def create_acls() -> Fields:
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


def has_rules(world: World) -> bool:
    wanted = acl_filter(resource_name_filter=world["t/hidden"], principal_filter="User:mallory")
    return bool(world.admin.call(ApiKey.DESCRIBE_ACLS, 3, **wanted).resources)


def remove_rules(world: World) -> None:
    wanted = acl_filter(resource_name_filter=world["t/hidden"], principal_filter="User:mallory")
    world.admin.call(
        ApiKey.DELETE_ACLS, 3, filters=[part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **wanted)]
    )
    world.wait(lambda: not has_rules(world))


def add_rules(world: World) -> None:
    world.admin.call(ApiKey.CREATE_ACLS, 3, **create_acls()(world))
    world.wait(lambda: has_rules(world))


def has_no_rules(world: World) -> bool:
    return not has_rules(world)


def delete_acls(world: World) -> dict[str, Any]:
    wanted = acl_filter(resource_name_filter=world["t/hidden"], principal_filter="User:mallory")
    return {"filters": [part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **wanted)]}


def describe_configs(kind: int, *plain: str) -> Fields:
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


def incremental(kind: int, *plain: str, config: tuple[str, str] = ("retention.ms", "604800000")) -> Fields:
    key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    row = part(
        key,
        1,
        "AlterConfigsResource",
        "AlterableConfig",
        name=config[0],
        config_operation=0,
        value=config[1],
    )
    return lambda world: {
        "resources": [
            part(
                key,
                1,
                "AlterConfigsResource",
                resource_type=kind,
                resource_name="1" if name == "broker" else world[name],
                configs=[row],
            )
            for name in plain
        ],
        "validate_only": True,
    }


def alter_configs(kind: int, *plain: str) -> Fields:
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


def offset_delete() -> Fields:
    key = ApiKey.OFFSET_DELETE
    partitions = one_partition(
        key, 0, "OffsetDeleteRequestTopic", "OffsetDeleteRequestPartition", partition_index=0
    )
    topics = each_topic(key, 0, "OffsetDeleteRequestTopic", partitions=partitions)
    return lambda world: {"group_id": world["g/seen"], "topics": topics(world)}


def offsets(world: World, group: str) -> int:
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


def commit_seen(world: World) -> None:
    world.commit("g/seen")


def offset_is_gone(world: World) -> bool:
    return offsets(world, "g/seen") < 2


def scram_users(world: World) -> dict[str, Any]:
    """Nobody has this name."""
    key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    return {"users": [part(key, 0, "UserName", name=world["x/hidden"])]}


def scram_deletion(world: World) -> dict[str, Any]:
    key = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    gone = part(key, 0, "ScramCredentialDeletion", name=world["x/hidden"], mechanism=1)
    return {"deletions": [gone], "upsertions": []}


def client_quotas(world: World) -> dict[str, Any]:
    """Nobody of this name has quotas."""
    key = ApiKey.DESCRIBE_CLIENT_QUOTAS
    wanted = part(key, 1, "ComponentData", entity_type="user", match_type=0, match=world["x/hidden"])
    return {"components": [wanted], "strict": False}


def quota_change(world: World) -> dict[str, Any]:
    key = ApiKey.ALTER_CLIENT_QUOTAS
    user = part(key, 1, "EntryData", "EntityData", entity_type="user", entity_name=world["x/hidden"])
    change = part(key, 1, "EntryData", "OpData", key="producer_byte_rate", value=1e9, remove=False)
    return {"entries": [part(key, 1, "EntryData", entity=[user], ops=[change])], "validate_only": True}
