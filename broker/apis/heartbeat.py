"""Heartbeat (12), v0-4: a member says that it is alive; told of rebalances."""

from __future__ import annotations

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import AT_TOP
from ._groups import hand_over
from ._guards import whole

_GROUP_RIGHT = right(Operation.READ, ResourceType.GROUP, "the group")

API = ServedApi(
    key=ApiKey.HEARTBEAT,
    versions=(0, 4),
    handler=hand_over,
    access=(_GROUP_RIGHT,),
    guard=whole(_GROUP_RIGHT, field="group_id"),
    errors=AT_TOP,
    without_task=True,
)
