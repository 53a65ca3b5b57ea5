"""ListGroups (16), v0-5: all groups, optionally filtered by state and type (KIP-518, KIP-848)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..authorizer import Access, Operation, ResourceType
from ..node import Node
from ._api import Guard, Request, ServedApi, replaced
from ._guards import only_shown

_ALL_RIGHT = Access(Operation.DESCRIBE, ResourceType.CLUSTER, None, "all groups")
_GROUP_RIGHT = Access(
    Operation.DESCRIBE, ResourceType.GROUP, None, "without that, each group; the others are left out"
)


async def _guard(node: Node, request: Request[ListGroupsRequest]) -> object:
    answer = await request.proceed(node)
    if request.shows(_ALL_RIGHT):
        return answer
    seen = await only_shown(request, answer.groups, _GROUP_RIGHT, lambda group: group.group_id)
    return replaced(answer, groups=seen)


API: ServedApi[ListGroupsRequest, ListGroupsResponse] = ServedApi(
    key=ApiKey.LIST_GROUPS,
    versions=(0, 5),
    guard=Guard((_ALL_RIGHT, _GROUP_RIGHT), _guard),
    reads_only=True,
)
