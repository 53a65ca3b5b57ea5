"""OffsetCommit (8), v2-10: stores offsets of a group until they expire (KIP-447, KIP-848, KIP-1094)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import PARTITIONS, Level, in_elements, same_fields
from ._guards import topics, whole

API: ServedApi[OffsetCommitRequest, OffsetCommitResponse] = ServedApi(
    key=ApiKey.OFFSET_COMMIT,
    versions=(2, 10),
    guard=whole(
        right(Operation.READ, ResourceType.GROUP, "the group"),
        field="group_id",
        then=topics(right(Operation.READ, ResourceType.TOPIC, "each topic")),
    ),
    errors=in_elements(Level("topics", "topics", same_fields("name", "topic_id")), PARTITIONS),
    without_task=True,
)
