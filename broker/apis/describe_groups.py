"""DescribeGroups (15), v0-6: state, members and assignments of groups (KIP-430, KIP-1043)."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, operation_bits
from ..authorizer import Operation, ResourceType, right
from ._api import Asked, ServedApi, replaced
from ._errors import Level, in_elements
from ._groups import hand_over
from ._guards import groups

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")


async def _guard(asked: Asked) -> Any:
    answer = await groups(_GROUP_RIGHT)(asked)
    if not asked.request.body.include_authorized_operations:
        return answer
    return replaced(answer, groups=[_with_operations(asked, group) for group in answer.groups])


def _with_operations(asked: Asked, group: Any) -> Any:
    if group.error_code:
        return group
    operations = asked.operations(ResourceType.GROUP, group.group_id)
    return replaced(group, authorized_operations=operation_bits(operations))


API = ServedApi(
    key=ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    handler=hand_over,
    access=(_GROUP_RIGHT,),
    guard=_guard,
    errors=in_elements(Level("groups", "groups", {"": "group_id"})),
    reads_only=True,
)
