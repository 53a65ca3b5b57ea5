"""DescribeGroups (15), v0-6: state, members and assignments of groups (KIP-430, KIP-1043)."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ._api import Asked, Guard, ServedApi, replaced
from ._errors import Level, in_elements
from ._guards import groups, with_operations

_ALLOWED = groups(right(Operation.DESCRIBE, ResourceType.GROUP, "each group"))


async def _guard(asked: Asked) -> Any:
    answer = await _ALLOWED.admit(asked)
    if not asked.request.body.include_authorized_operations:
        return answer
    told = [
        group
        if group.error_code
        else with_operations(asked, group, ResourceType.GROUP, group.group_id, "authorized_operations")
        async for group in in_slices(answer.groups)
    ]
    return replaced(answer, groups=told)


API = ServedApi(
    key=ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    guard=Guard(_ALLOWED.access, _guard),
    errors=in_elements(Level("groups", "groups", {"": "group_id"})),
    reads_only=True,
)
