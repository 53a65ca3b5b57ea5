"""Parts of responses that several APIs share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

from ..protocol import operation_bits
from ..protocol.messages.join_group import JoinGroupResponse

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")

NO_TOPIC_ID: Final = uuid.UUID(int=0)

#: Operations allowed on a group without access rules, as bits of Kafka's AclOperation (KIP-430): READ,
#: DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
GROUP_OPERATIONS: Final = operation_bits((3, 6, 8, 10, 11))


def protocol_told(version: int, protocol_name: str | None) -> str | None:
    """Return a protocol name as a JoinGroup response has it: from v7 on an empty name is null."""
    return protocol_name or (None if version >= 7 else "")


def join_failed(version: int, error_code: int, member_id: str) -> JoinGroupResponse:
    """A JoinGroup response that is an error; the protocol is null if the version allows it, else ""."""
    return JoinGroupResponse(
        error_code=error_code, protocol_name=protocol_told(version, None), member_id=member_id
    )


def bad_first(
    topics: Sequence[tuple[K, Iterable[P]]], is_bad: Callable[[P], bool]
) -> Iterable[tuple[K, list[P]]]:
    """Group partitions by topic in the order of Kafka's responses: those that do not exist first."""
    merged: dict[K, list[P]] = {}
    for wanted in (True, False):
        for topic, partitions in topics:
            found = [partition for partition in partitions if is_bad(partition) is wanted]
            if found:
                merged.setdefault(topic, []).extend(found)
    return merged.items()
