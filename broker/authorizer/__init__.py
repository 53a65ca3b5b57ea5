"""Access rules (ACLs): the rules themselves, and what they allow (KIP-11, KIP-290).

Pure and apart from the broker. Each API says in its file which rights it needs (``kohort.broker.apis``); its
guard stands between the router and its handler.
"""

from ._access import Access, right
from ._acls import (
    CLUSTER_NAME,
    EVERYONE,
    OPERATIONS,
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
    "CLUSTER_NAME",
    "EVERYONE",
    "OPERATIONS",
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
    "right",
]
