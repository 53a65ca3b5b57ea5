"""SyncGroup (14), v0-5: the leader brings assignments, each member takes its own."""

from __future__ import annotations

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import AT_TOP
from ._guards import whole

API = ServedApi(
    key=ApiKey.SYNC_GROUP,
    versions=(0, 5),
    handler=hand_over,
    guard=whole(right(Operation.READ, ResourceType.GROUP, "the group"), field="group_id"),
    errors=AT_TOP,
    parks=True,
    without_task=True,
)
