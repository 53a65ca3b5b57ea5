"""The parts of access rules with Kafka's numbers, filters of rules, and the rights that APIs require (KIP-11,
KIP-290).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ...protocol import ErrorCode
from ...protocol.named_tuples import NamedTuple


class ResourceType(IntEnum):
    """Types of resources. Only requests contain UNKNOWN and ANY."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Meanings of a rule's name. Only filters contain ANY and MATCH."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """Operations on a resource. Only requests contain UNKNOWN and ANY."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Effect of a rule: it denies or allows. Only requests contain UNKNOWN and ANY."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


#: The literal name that means every resource of its type; as a host, every host.
WILDCARD: Final = "*"

#: The principal that means everyone.
EVERYONE: Final = "User:*"

#: The one name that the cluster has.
CLUSTER_NAME: Final = "kafka-cluster"

#: Operations whose permission implies another (KIP-11): a principal that may read something may also describe
#: it. A rule that denies implies nothing.
IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}


def _operations_of(names: str) -> tuple[Operation, ...]:
    return tuple(Operation[name] for name in names.split())


#: Operations on each kind of resource, in the order of their numbers: the "authorized operations" (KIP-430).
OPERATIONS: Final = {
    ResourceType.TOPIC: _operations_of(
        "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"
    ),
    ResourceType.GROUP: _operations_of("READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"),
    ResourceType.CLUSTER: _operations_of(
        "CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE"
    ),
}


class Acl(NamedTuple):
    """One rule: ``principal`` from ``host`` may, or may not, do ``operation`` on the resources of the
    pattern.
    """

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"{self.permission.name} {self.principal} {self.operation.name} from {self.host} on "
            f"{self.resource_type.name} {self.pattern_type.name} {self.name}"
        )


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """A filter of rules; None and ANY match all. MATCH matches the patterns that cover ``name``."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Return whether the filter matches a rule."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if acl.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name == WILDCARD


@dataclass(frozen=True, slots=True)
class Access:
    """One right that an API requires.

    ``words`` name the resources, for docs/acls.md. A request about many topics is carried out for the allowed
    ones, and answered with ``error`` for the others. ``error`` None: the others are left out of the response.
    """

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


def right(operation: Operation, resource: ResourceType, words: str) -> Access:
    """A right whose lack has the usual error of its type of resource."""
    return Access(operation, resource, _ERRORS[resource], words)
