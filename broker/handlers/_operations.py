"""Operations a principal may do, as bits of Kafka's AclOperation (KIP-430); without access rules, all."""

from __future__ import annotations

from ...protocol import operation_bits

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12

TOPIC_OPERATIONS = operation_bits(
    {_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS}
)
#: What the field says to who has not asked.
OPERATIONS_NOT_ASKED = -(1 << 31)

CLUSTER_OPERATIONS = operation_bits(
    {_CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE}
)
