"""Access rules (ACLs): the rules themselves, what they say, and what each API asks for (KIP-11, KIP-290).

Pure and apart from the broker, but for :mod:`~kohort.broker.authorizer._guards`, which stand between the
router and the handlers.
"""

from ._access import ACCESS, Access
from ._acls import (
    CLUSTER_NAME,
    EVERYONE,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ._authorizer import STANDARD_AUTHORIZER, Authorizer
from ._rules import AclRules, Verdict

__all__ = [
    "ACCESS",
    "CLUSTER_NAME",
    "EVERYONE",
    "STANDARD_AUTHORIZER",
    "WILDCARD",
    "Access",
    "Acl",
    "AclFilter",
    "AclRules",
    "Authorizer",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "Verdict",
]
