"""DescribeGroups (key 15), v0-6, of classic groups.

v4 instance ids, v6 GROUP_ID_NOT_FOUND for a missing group (KIP-1043; "Dead" in older versions). A request
about many groups is split into one for each.
"""

from __future__ import annotations

from typing import Final

from ...protocol import ErrorCode
from ...protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.shard import FanOut
from ..groups.describing import split_describe
from ..groups.groups import GroupShard
from ..shared_responses import GROUP_OPERATIONS
from .group import find_classic

#: Version from which a missing group is an error; before, it is "Dead" (KIP-1043).
_NOT_FOUND_VERSION: Final = 6


FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: split_describe(
        body.groups, with_operations=bool(body.include_authorized_operations)
    ),
    lambda _version, groups, _topics: DescribeGroupsResponse(groups=groups),
)


def handle_describe(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Describe the group as it is now; members' metadata is shown only when it is Stable."""
    if request.body.error:
        shard.refuse(request, request.body.error)
        return
    group_id = request.body.group_id
    group = find_classic(shard, group_id)
    if group is None:
        shard.reply(request, _not_found(request, is_other=group_id in shard.state.groups))
        return
    stable = group.state is GroupState.STABLE
    members = [
        DescribedGroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.metadata(group.protocol_name) if stable else b"",
            member.assignment,
        )
        for member in group.members.values()
    ]
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=members,
    )
    shard.reply(request, _with_operations(request, described))


def refused_group(request: Request, error: int) -> DescribedGroup:
    """Make the description of a group that cannot be described."""
    return DescribedGroup(error, group_id=request.body.group_id)


def _not_found(request: Request, *, is_other: bool) -> DescribedGroup:
    group_id = request.body.group_id
    dead = DescribedGroup(group_id=group_id, group_state="Dead")
    if request.version < _NOT_FOUND_VERSION:
        return _with_operations(request, dead)
    message = f"Group {group_id} {'is not a classic group' if is_other else 'not found'}."
    return dead._replace(error_code=int(ErrorCode.GROUP_ID_NOT_FOUND), error_message=message)


def _with_operations(request: Request, described: DescribedGroup) -> DescribedGroup:
    asked = request.body.with_operations
    return described._replace(authorized_operations=GROUP_OPERATIONS) if asked else described
