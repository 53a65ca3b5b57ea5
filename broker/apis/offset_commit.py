"""OffsetCommit (8), v2-10: offsets of a group, stored until they expire (KIP-447, KIP-848, KIP-1094)."""

from __future__ import annotations

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import PARTITIONS, Level, in_elements, same
from ._groups import hand_over
from ._guards import topics, whole

_GROUP_RIGHT = right(Operation.READ, ResourceType.GROUP, "the group")
_TOPIC_RIGHT = right(Operation.READ, ResourceType.TOPIC, "each topic")

API = ServedApi(
    key=ApiKey.OFFSET_COMMIT,
    versions=(2, 10),
    handler=hand_over,
    access=(_GROUP_RIGHT, _TOPIC_RIGHT),
    guard=whole(_GROUP_RIGHT, field="group_id", then=topics(_TOPIC_RIGHT)),
    errors=in_elements(Level("topics", "topics", same("name", "topic_id")), PARTITIONS),
    without_task=True,
)
