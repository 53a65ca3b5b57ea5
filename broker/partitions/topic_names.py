"""Topic names (Kafka's rule: 1 to 249 of ``a-zA-Z0-9._-``, but not ``.`` or ``..``)."""

from __future__ import annotations

import re

from ...protocol import ErrorCode, KafkaError

MAX_LENGTH = 249
_ALLOWED = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_LENGTH}}}", re.ASCII)

#: Topics that the broker writes itself.
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
#: Topics of this broker's coordinators: they cannot be deleted, or get more partitions.
COORDINATORS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})

#: Kafka's own metadata log: never a topic here.
_RESERVED = "__cluster_metadata"


def check_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION for a name that no topic can have."""
    if not _ALLOWED.fullmatch(name) or name in (".", ".."):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"the topic name {name[: MAX_LENGTH + 1]!r} is not allowed: take 1 to {MAX_LENGTH} letters, "
            "digits, dots, underscores and hyphens, other than '.' and '..'",
        )
    if name == _RESERVED:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the topic name {name} is Kafka's own: take another")


def fold_name(name: str) -> str:
    """Fold a name: topics with equal folded names may not coexist, because metrics write dots as
    underscores.
    """
    return name.replace(".", "_")
