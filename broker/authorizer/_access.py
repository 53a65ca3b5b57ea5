"""Access that each API needs: operation, kind of resource, and the error where it is not allowed.

The guards read this table and docs/acls.md is made from it. A row is about what its words name, so that a
request about many topics is carried out for those that are allowed and answered with the error for the rest.
``error`` None leaves things out of the answer: nothing is told of them. An API that is not here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...protocol import ApiKey, ErrorCode
from ._acls import Operation, ResourceType


@dataclass(frozen=True, slots=True)
class Access:
    """One right that an API asks for."""

    operation: Operation
    resource: ResourceType
    error: ErrorCode | None
    words: str


_ERRORS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def _asked(operation: Operation, resource: ResourceType, words: str) -> Access:
    """A right without which the usual error of its kind of resource is answered."""
    return Access(operation, resource, _ERRORS[resource], words)


_TOPIC, _GROUP, _CLUSTER, _TRANSACTION = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)

_MEMBER = (_asked(Operation.READ, _GROUP, "the group"),)
_ALTERED = (
    _asked(Operation.ALTER_CONFIGS, _TOPIC, "each topic whose configs are changed"),
    _asked(Operation.ALTER_CONFIGS, _CLUSTER, "settings of brokers"),
    _asked(Operation.ALTER_CONFIGS, _GROUP, "each group whose configs are changed"),
)
_OPERATIONS = Access(
    Operation.DESCRIBE, _CLUSTER, None, "the authorized operations of the cluster; without it none is told"
)

#: The rights by API, in the order in which they are asked for.
ACCESS: Final[Mapping[ApiKey, tuple[Access, ...]]] = {
    ApiKey.PRODUCE: (
        _asked(Operation.WRITE, _TRANSACTION, "the transactional id, if a batch is transactional"),
        _asked(Operation.WRITE, _TOPIC, "each topic"),
    ),
    ApiKey.FETCH: (
        Access(
            Operation.CLUSTER_ACTION,
            _CLUSTER,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "every topic, if the request names a replica",
        ),
        _asked(Operation.READ, _TOPIC, "each topic, for everyone else"),
    ),
    ApiKey.LIST_OFFSETS: (_asked(Operation.DESCRIBE, _TOPIC, "each topic"),),
    ApiKey.METADATA: (
        _asked(Operation.DESCRIBE, _TOPIC, "each topic asked for; of all topics, the others are left out"),
        Access(
            Operation.CREATE,
            _CLUSTER,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "each topic to be created on the way, if the next right is missing",
        ),
        _asked(Operation.CREATE, _TOPIC, "each topic to be created on the way"),
        _OPERATIONS,
    ),
    ApiKey.OFFSET_COMMIT: (
        _asked(Operation.READ, _GROUP, "the group"),
        _asked(Operation.READ, _TOPIC, "each topic"),
    ),
    ApiKey.OFFSET_FETCH: (
        _asked(Operation.DESCRIBE, _GROUP, "each group"),
        _asked(Operation.DESCRIBE, _TOPIC, "each topic asked for; of all topics, the others are left out"),
    ),
    ApiKey.FIND_COORDINATOR: (
        _asked(Operation.DESCRIBE, _GROUP, "each group"),
        _asked(Operation.DESCRIBE, _TRANSACTION, "each transactional id"),
        _asked(Operation.CLUSTER_ACTION, _CLUSTER, "each share group's partition"),
    ),
    ApiKey.JOIN_GROUP: _MEMBER,
    ApiKey.HEARTBEAT: _MEMBER,
    ApiKey.LEAVE_GROUP: _MEMBER,
    ApiKey.SYNC_GROUP: _MEMBER,
    ApiKey.DESCRIBE_GROUPS: (_asked(Operation.DESCRIBE, _GROUP, "each group"),),
    ApiKey.LIST_GROUPS: (
        Access(Operation.DESCRIBE, _CLUSTER, None, "all groups"),
        Access(Operation.DESCRIBE, _GROUP, None, "without that, each group; the others are left out"),
    ),
    ApiKey.CREATE_TOPICS: (
        Access(
            Operation.CREATE,
            _CLUSTER,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "each topic, if the next right is missing",
        ),
        _asked(Operation.CREATE, _TOPIC, "each topic"),
        Access(
            Operation.DESCRIBE_CONFIGS,
            _TOPIC,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "the configs in the answer; without it the topic is created and they are not told",
        ),
    ),
    ApiKey.DELETE_TOPICS: (
        Access(
            Operation.DESCRIBE,
            _TOPIC,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "the names of topics given by id: without it they are not told",
        ),
        Access(
            Operation.DELETE,
            _CLUSTER,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "each topic, if the next right is missing",
        ),
        _asked(Operation.DELETE, _TOPIC, "each topic"),
    ),
    ApiKey.DELETE_RECORDS: (_asked(Operation.DELETE, _TOPIC, "each topic"),),
    ApiKey.INIT_PRODUCER_ID: (
        _asked(Operation.WRITE, _TRANSACTION, "the transactional id, if there is one"),
        _asked(Operation.IDEMPOTENT_WRITE, _CLUSTER, "without one, if the next right is missing"),
        Access(
            Operation.WRITE,
            _TOPIC,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "without one: any topic that there may be",
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Access(Operation.CLUSTER_ACTION, _CLUSTER, None, "every topic: the next right is not asked for"),
        _asked(Operation.DESCRIBE, _TOPIC, "each topic"),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_asked(Operation.DESCRIBE, _CLUSTER, "all users"),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_asked(Operation.ALTER, _CLUSTER, "all users"),),
    ApiKey.DESCRIBE_ACLS: (_asked(Operation.DESCRIBE, _CLUSTER, "all rules"),),
    ApiKey.CREATE_ACLS: (_asked(Operation.ALTER, _CLUSTER, "all rules"),),
    ApiKey.DELETE_ACLS: (_asked(Operation.ALTER, _CLUSTER, "all rules"),),
    ApiKey.DESCRIBE_CONFIGS: (
        _asked(Operation.DESCRIBE_CONFIGS, _TOPIC, "each topic"),
        _asked(Operation.DESCRIBE_CONFIGS, _CLUSTER, "settings of brokers"),
        _asked(Operation.DESCRIBE_CONFIGS, _GROUP, "each group"),
    ),
    ApiKey.ALTER_CONFIGS: _ALTERED,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _ALTERED,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_asked(Operation.DESCRIBE_CONFIGS, _CLUSTER, "all quotas"),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_asked(Operation.ALTER_CONFIGS, _CLUSTER, "all quotas"),),
    ApiKey.CREATE_PARTITIONS: (_asked(Operation.ALTER, _TOPIC, "each topic"),),
    ApiKey.DELETE_GROUPS: (_asked(Operation.DELETE, _GROUP, "each group"),),
    ApiKey.OFFSET_DELETE: (
        _asked(Operation.DELETE, _GROUP, "the group"),
        _asked(Operation.READ, _TOPIC, "each topic"),
    ),
    ApiKey.DESCRIBE_CLUSTER: (_OPERATIONS,),
    ApiKey.DESCRIBE_GROUP_HISTORY: (_asked(Operation.DESCRIBE, _GROUP, "the group"),),
}
