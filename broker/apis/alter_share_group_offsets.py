"""AlterShareGroupOffsets (91), v0: a share group without members begins anew at other offsets (KIP-932)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey
from ...protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import ErrorShape, Level, same_fields
from ._guards import topics, whole

API: ServedApi[AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse] = ServedApi(
    key=ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    versions=(0, 0),
    handler=hand_over,
    feature=SHARE_VERSION,
    guard=whole(
        right(Operation.READ, ResourceType.GROUP, "the group"),
        field="group_id",
        then=topics(right(Operation.READ, ResourceType.TOPIC, "each topic"), "topic_name", always=True),
    ),
    errors=ErrorShape(
        top=(0, 0),
        levels={
            0: (
                Level("topics", "responses", same_fields("topic_name")),
                Level("partitions", "partitions", same_fields("partition_index")),
            )
        },
    ),
    carried_out=True,
)
