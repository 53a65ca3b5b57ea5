"""ShareGroupHeartbeat (76), v1: a member joins, stays alive and gets its partitions (KIP-932)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey
from ...protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ..authorizer import Operation, ResourceType, right
from ._api import Asked, Guard, ServedApi, hand_over
from ._errors import AT_TOP
from ._guards import refusal_error

_GROUP_RIGHT = right(Operation.READ, ResourceType.GROUP, "the group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic that the member names")


async def _guard(
    asked: Asked[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse],
) -> ShareGroupHeartbeatResponse:
    body = asked.request.body
    if not asked.may(_GROUP_RIGHT, body.group_id):
        raise refusal_error(_GROUP_RIGHT)
    for name in body.subscribed_topic_names or ():
        if not asked.may(_TOPIC_RIGHT, name):
            raise refusal_error(_TOPIC_RIGHT)
    return await asked.proceed()


API: ServedApi[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse] = ServedApi(
    key=ApiKey.SHARE_GROUP_HEARTBEAT,
    versions=(1, 1),
    handler=hand_over,
    feature=SHARE_VERSION,
    guard=Guard((_GROUP_RIGHT, _TOPIC_RIGHT), _guard),
    errors=AT_TOP,
)
