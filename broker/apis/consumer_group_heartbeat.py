"""ConsumerGroupHeartbeat (68), v0-1: a member joins, stays alive and moves to its target (KIP-848)."""

from __future__ import annotations

from ...coordinator.consumer_groups import GROUP_VERSION
from ...protocol import ApiKey
from ...protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import AT_TOP
from ._guards import member_heartbeat

_GROUP_RIGHT = right(Operation.READ, ResourceType.GROUP, "the group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic that the member names")


API: ServedApi[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse] = ServedApi(
    key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
    versions=(0, 1),
    handler=hand_over,
    feature=GROUP_VERSION,
    guard=member_heartbeat(_GROUP_RIGHT, _TOPIC_RIGHT),
    errors=AT_TOP,
    without_task=True,
)
