"""SyncGroup (14), v0-5: the leader brings assignments, each member takes its own."""

from __future__ import annotations

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import AT_TOP
from ._groups import hand_over
from ._guards import whole

_GROUP_RIGHT = right(Operation.READ, ResourceType.GROUP, "the group")

API = ServedApi(
    key=ApiKey.SYNC_GROUP,
    versions=(0, 5),
    handler=hand_over,
    access=(_GROUP_RIGHT,),
    guard=whole(_GROUP_RIGHT, field="group_id"),
    errors=AT_TOP,
    parks=True,
    without_task=True,
)
