"""OffsetDelete (47), v0: deletes offsets of topics to which no member of the group subscribes (KIP-496)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import PARTITIONS, TOPICS_BY_NAME, ErrorShape
from ._guards import topics, whole

API: ServedApi[OffsetDeleteRequest, OffsetDeleteResponse] = ServedApi(
    key=ApiKey.OFFSET_DELETE,
    versions=(0, 0),
    guard=whole(
        right(Operation.DELETE, ResourceType.GROUP, "the group"),
        field="group_id",
        then=topics(right(Operation.READ, ResourceType.TOPIC, "each topic"), always=True),
    ),
    errors=ErrorShape(top=(0, 0), levels={0: (TOPICS_BY_NAME, PARTITIONS)}),
)
