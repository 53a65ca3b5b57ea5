"""DeleteShareGroupOffsets (92), v0: a share group without members forgets topics (KIP-932)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey
from ...protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import ErrorShape, Level, same_fields
from ._guards import topics, whole

API: ServedApi[DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse] = ServedApi(
    key=ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    versions=(0, 0),
    handler=hand_over,
    feature=SHARE_VERSION,
    guard=whole(
        right(Operation.DELETE, ResourceType.GROUP, "the group"),
        field="group_id",
        then=topics(right(Operation.READ, ResourceType.TOPIC, "each topic"), "topic_name", always=True),
    ),
    errors=ErrorShape(top=(0, 0), levels={0: (Level("topics", "responses", same_fields("topic_name")),)}),
    carried_out=True,
)
