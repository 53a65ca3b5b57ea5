"""Heartbeat (12), v0-4: a member shows that it is alive, and learns of rebalances."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._guards import whole

API: ServedApi[HeartbeatRequest, HeartbeatResponse] = ServedApi(
    key=ApiKey.HEARTBEAT,
    versions=(0, 4),
    guard=whole(right(Operation.READ, ResourceType.GROUP, "the group"), field="group_id"),
    without_task=True,
)
