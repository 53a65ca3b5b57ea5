"""Filters: which rules they mean (KIP-290).

Covers: broker/apis/_acls.py, broker/apis/create_acls.py, broker/apis/delete_acls.py.
Covers: broker/apis/describe_acls.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Acl, AclBindingFilter, Operation, PatternType, Permission, ResourceType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

ORDERS = Acl(ResourceType.TOPIC, "orders", LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)
RULES = {
    "orders": ORDERS,
    "order-prefix": ORDERS._replace(name="order", pattern_type=PREFIXED),
    "wildcard": ORDERS._replace(name="*"),
    "other": ORDERS._replace(name="bills"),
    "group": ORDERS._replace(resource_type=ResourceType.GROUP),
    "bob": ORDERS._replace(principal="User:bob"),
    "denied": ORDERS._replace(permission=Permission.DENY),
    "write": ORDERS._replace(operation=Operation.WRITE),
    "host": ORDERS._replace(host="10.0.0.1"),
}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, set(RULES)),
        ({"name": "orders"}, set(RULES) - {"order-prefix", "wildcard", "other"}),
        ({"name": "order", "pattern_type": PREFIXED}, {"order-prefix"}),
        ({"name": "order", "pattern_type": LITERAL}, set()),
        ({"pattern_type": PREFIXED}, {"order-prefix"}),
        ({"name": "orders", "pattern_type": PatternType.MATCH}, set(RULES) - {"other"}),
        ({"name": "ordered", "pattern_type": PatternType.MATCH}, {"order-prefix", "wildcard"}),
        ({"pattern_type": PatternType.MATCH}, set(RULES)),
        ({"name": "*"}, {"wildcard"}),
        ({"resource_type": ResourceType.GROUP}, {"group"}),
        ({"principal": "User:bob"}, {"bob"}),
        ({"permission": Permission.DENY}, {"denied"}),
        ({"operation": Operation.WRITE}, {"write"}),
        ({"host": "10.0.0.1"}, {"host"}),
        ({"operation": Operation.UNKNOWN}, set()),
        ({"resource_type": ResourceType.UNKNOWN}, set()),
    ],
)
def test_a_filter_means(wanted: dict[str, Any], found: set[str]) -> None:
    assert {name for name, acl in RULES.items() if AclBindingFilter(**wanted).matches(acl)} == found


def test_a_rule_reads_as_a_sentence() -> None:
    assert str(ORDERS) == "ALLOW User:alice READ from * on TOPIC LITERAL orders"
