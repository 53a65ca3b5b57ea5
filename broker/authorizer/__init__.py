"""Access rules (ACLs): the rules themselves, and what they allow (KIP-11, KIP-290).

It is pure, and knows nothing of the broker. Each API's file says which rights the API needs
(``kohort.broker.apis``); its guard stands between the router and the handler.
"""

from ._acls import (
    CLUSTER_NAME,
    OPERATIONS,
    Access,
    Acl,
    AclBindingFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    right,
)
from ._authorizer import STANDARD_AUTHORIZER, Authorizer

__all__ = [
    "CLUSTER_NAME",
    "OPERATIONS",
    "STANDARD_AUTHORIZER",
    "Access",
    "Acl",
    "AclBindingFilter",
    "Authorizer",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "right",
]
