"""ShareGroupHeartbeat (76), v1: a member joins, stays alive and gets its partitions (KIP-932)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey
from ...protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import AT_TOP
from ._guards import member_heartbeat

_GROUP_RIGHT = right(Operation.READ, ResourceType.GROUP, "the group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic that the member names")


API: ServedApi[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse] = ServedApi(
    key=ApiKey.SHARE_GROUP_HEARTBEAT,
    versions=(1, 1),
    handler=hand_over,
    feature=SHARE_VERSION,
    guard=member_heartbeat(_GROUP_RIGHT, _TOPIC_RIGHT),
    errors=AT_TOP,
)
