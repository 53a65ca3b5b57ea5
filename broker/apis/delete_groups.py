"""DeleteGroups (42), v0-2: deletes groups without members, with their offsets (KIP-229)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi
from ._errors import Level, in_elements
from ._guards import groups

API: ServedApi[DeleteGroupsRequest, DeleteGroupsResponse] = ServedApi(
    key=ApiKey.DELETE_GROUPS,
    versions=(0, 2),
    guard=groups(right(Operation.DELETE, ResourceType.GROUP, "each group"), refused_once=True),
    errors=in_elements(Level("groups_names", "results", {"": "group_id"})),
)
