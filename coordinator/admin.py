"""ListGroups (key 16), v0-5, and DeleteGroups (key 42), v0-2: groups of all types.

ListGroups: v4 filters by state (KIP-518), v5 by type (KIP-848). A DeleteGroups of many groups is split into
one request for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..protocol import ErrorCode
from ..protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ..protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from .engine.effects import Request
from .engine.shard import FanOut
from .groups.events import GroupRemoved
from .groups.groups import Group, GroupShard, forget_group
from .offsets.expiry import group_tombstones


@dataclass(slots=True)
class GroupRequest:
    """A DescribeGroups or DeleteGroups for one group; if ``error`` is not 0 the group is not looked up."""

    group_id: str
    with_operations: bool = False
    error: int = 0


@dataclass(slots=True)
class ListRequest:
    """A ListGroups; empty filters match every group."""

    states: frozenset[str]
    types: frozenset[str]


def split_delete(body: DeleteGroupsRequest) -> list[GroupRequest]:
    """Split a DeleteGroups body into one request for each group, without duplicates."""
    return [GroupRequest(group_id or "") for group_id in dict.fromkeys(body.groups_names)]


DELETE_FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: split_delete(body),
    lambda _version, results, _topics: DeleteGroupsResponse(results=results),
    reads=False,
)


def list_request(body: ListGroupsRequest) -> ListRequest:
    """The filters of a ListGroups body; case does not matter, nor do blanks around a state."""
    states = frozenset(state.strip().lower() for state in body.states_filter or ())
    return ListRequest(states, frozenset(name.lower() for name in body.types_filter or ()))


def handle_list(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """List the groups of this shard that the request's filters let through."""
    wanted: ListRequest = request.body
    listed = []
    for group_id in shard.state.group_ids():
        group = shard.state.find(group_id)
        if group is not None and _is_wanted(group, wanted):
            protocol_type, type_ = group.protocol_type or "", group.type.name
            listed.append(ListedGroup(group_id, protocol_type, group.state_name, type_))
    shard.reply(request, listed)


def handle_delete(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Write tombstones for an Empty group; requests for the group wait until these are written."""
    group_id = request.body.group_id
    group = shard.state.find(group_id)
    if group is None:
        shard.refuse(request, ErrorCode.GROUP_ID_NOT_FOUND)
        return
    if not group.is_empty:
        shard.refuse(request, ErrorCode.NON_EMPTY_GROUP)
        return
    remove_group(shard, group, request)


def remove_group(shard: GroupShard, group: Group, request: Request) -> None:
    """Write a group's tombstones; requests for the group wait until these are written, then ``request`` is
    answered.
    """
    group_id = group.group_id

    def settled(error: ErrorCode, _now_ms: int) -> None:
        shard.unblock(group_id)
        if not error:
            forget_group(shard, group_id)
            shard.tell(GroupRemoved(group_id, cause="deleted by request"))

    shard.block(group_id)
    answer = (request, DeletableGroupResult(group_id, 0))
    shard.append(group_id, group_tombstones(shard, group), settled, (answer,))


def delete_refusal(request: Request, error: int) -> DeletableGroupResult:
    """Return the outcome for a group that is not deleted."""
    return DeletableGroupResult(request.body.group_id, error)


def list_refusal(_request: Request, _error: int) -> list[ListedGroup]:
    """Return no groups: a shard that does not serve has none to list."""
    return []


def _is_wanted(group: Group, wanted: ListRequest) -> bool:
    if wanted.types and group.type.name not in wanted.types:
        return False
    return not wanted.states or group.state_name.lower() in wanted.states
