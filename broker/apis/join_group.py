"""JoinGroup (11), v0-9: a member joins and waits for the others (KIP-345, KIP-394, KIP-814)."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import at_top
from ._guards import whole

#: Version from which a protocol name may be null.
_NULL_PROTOCOL_FROM = 7


def _with_error(body: JoinGroupRequest, version: int, _code: ErrorCode) -> dict[str, object]:
    return {
        "member_id": body.member_id,
        "protocol_name": None if version >= _NULL_PROTOCOL_FROM else "",
    }


API: ServedApi[JoinGroupRequest, JoinGroupResponse] = ServedApi(
    key=ApiKey.JOIN_GROUP,
    versions=(0, 9),
    guard=whole(right(Operation.READ, ResourceType.GROUP, "the group"), field="group_id"),
    errors=at_top(_with_error),
    parks=True,
    without_task=True,
)
