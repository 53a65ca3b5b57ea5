"""DeleteGroups (key 42), v0-2: groups of all types. One of many groups is split into a request for each."""

from __future__ import annotations

from typing import Final

from ...protocol import ErrorCode
from ...protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ..engine.effects import Request
from ..engine.shard import FanOut
from ..offsets.expiry import group_tombstones
from .events import GroupRemoved
from .groups import Group, GroupRequest, GroupShard, forget_group


def split_delete(body: DeleteGroupsRequest) -> list[GroupRequest]:
    """Split a DeleteGroups body into one request for each group, without duplicates."""
    return [GroupRequest(group_id or "") for group_id in dict.fromkeys(body.groups_names)]


DELETE_FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: split_delete(body),
    lambda _version, results, _topics: DeleteGroupsResponse(results=results),
    reads=False,
)


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
