"""ListGroups (16), v0-5: all groups, optionally filtered by state and type (KIP-518, KIP-848)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..authorizer import Access, Operation, ResourceType
from ._api import Asked, Guard, ServedApi, replaced

_ALL_RIGHT = Access(Operation.DESCRIBE, ResourceType.CLUSTER, None, "all groups")
_GROUP_RIGHT = Access(
    Operation.DESCRIBE, ResourceType.GROUP, None, "without that, each group; the others are left out"
)


async def _guard(asked: Asked[ListGroupsRequest, ListGroupsResponse]) -> ListGroupsResponse:
    answer = await asked.proceed()
    if not asked.may(_ALL_RIGHT):
        seen = [group for group in answer.groups if asked.may(_GROUP_RIGHT, group.group_id)]
        return replaced(answer, groups=seen)
    return answer


API: ServedApi[ListGroupsRequest, ListGroupsResponse] = ServedApi(
    key=ApiKey.LIST_GROUPS,
    versions=(0, 5),
    guard=Guard((_ALL_RIGHT, _GROUP_RIGHT), _guard),
    reads_only=True,
)
