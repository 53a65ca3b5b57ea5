"""OffsetDelete (47), v0: offsets of topics that no member of the group is subscribed to (KIP-496)."""

from __future__ import annotations

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import PARTITIONS, TOPICS_BY_NAME, ErrorShape
from ._groups import hand_over
from ._guards import topics, whole

_GROUP_RIGHT = right(Operation.DELETE, ResourceType.GROUP, "the group")
_TOPIC_RIGHT = right(Operation.READ, ResourceType.TOPIC, "each topic")

API = ServedApi(
    key=ApiKey.OFFSET_DELETE,
    versions=(0, 0),
    handler=hand_over,
    access=(_GROUP_RIGHT, _TOPIC_RIGHT),
    guard=whole(_GROUP_RIGHT, field="group_id", then=topics(_TOPIC_RIGHT, always=True)),
    errors=ErrorShape(top=(0, 0), levels={0: (TOPICS_BY_NAME, PARTITIONS)}),
)
