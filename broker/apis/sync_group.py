"""SyncGroup (14), v0-5: the leader sends all assignments, each member gets its own."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._guards import whole

API: ServedApi[SyncGroupRequest, SyncGroupResponse] = ServedApi(
    key=ApiKey.SYNC_GROUP,
    versions=(0, 5),
    guard=whole(right(Operation.READ, ResourceType.GROUP, "the group"), field="group_id"),
    parks=True,
    without_task=True,
)
