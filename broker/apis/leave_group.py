"""LeaveGroup (13), v0-5: members leave at once, from v3 many and static ones (KIP-345)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._guards import whole

API: ServedApi[LeaveGroupRequest, LeaveGroupResponse] = ServedApi(
    key=ApiKey.LEAVE_GROUP,
    versions=(0, 5),
    guard=whole(right(Operation.READ, ResourceType.GROUP, "the group"), field="group_id"),
)
