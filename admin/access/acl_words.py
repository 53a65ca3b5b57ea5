"""The words of access rules, in the order of Kafka's numbers, whose first two no rule has. The help of a
command needs them, too.
"""

from __future__ import annotations

from typing import Final

RESOURCES: Final = (
    *("unknown", "any", "topic", "group", "cluster", "transactional-id", "delegation-token", "user"),
)
PATTERNS: Final = ("unknown", "any", "match", "literal", "prefixed")
PERMISSIONS: Final = ("?", "*", "Deny", "Allow")
OPERATIONS: Final = (
    *("?", "*", "All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
    *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens"),
    "TwoPhaseCommit",
)

#: The one name that the cluster has.
CLUSTER_NAME: Final = "kafka-cluster"

#: The operations that a rule on each type of resource may name, beside All.
OPERATIONS_ON: Final = {
    "topic": ["Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs"],
    "group": ["Read", "Delete", "Describe", "DescribeConfigs", "AlterConfigs"],
    "cluster": (
        ["Create", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"]
    ),
    "transactional-id": ["Write", "Describe", "TwoPhaseCommit"],
    "user": ["CreateTokens", "DescribeTokens"],
}


def read_operation(text: str) -> str:
    """An operation in any of Kafka's spellings: ``Read``, ``DESCRIBE_CONFIGS``. Raises ValueError."""
    spelled = {name.lower(): name for name in OPERATIONS[2:]}
    key = text.strip().lower().replace("_", "").replace("-", "")
    if key not in spelled:
        import difflib

        near = difflib.get_close_matches(key, spelled, n=1)
        meant = f", did you mean {spelled[near[0]]}?" if near else f": give {', '.join(spelled.values())}"
        raise ValueError(f"{text!r} is no operation{meant}")
    return spelled[key]


def read_principal(text: str) -> str:
    """A principal; a name without a type, as ``billing``, is that of a user. Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not text or (colon and not (kind and name)):
        raise ValueError(f"{text!r} is no principal: give User:NAME, or the name alone")
    return text if colon else f"User:{text}"
