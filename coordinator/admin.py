"""DescribeGroups (key 15) v0-6, ListGroups (key 16) v0-5, DeleteGroups (key 42) v0-2: what tools ask.

Describe: v4 instance ids, v6 GROUP_ID_NOT_FOUND for a missing group (KIP-1043; "Dead" below). List: v4 filter
by state (KIP-518), v5 by type (KIP-848). A request with many groups is asked one group at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..protocol import ErrorCode
from ..statemachine import GroupState
from .engine.readiness import append_error
from .events import GroupRemoved, append_refused
from .offsets.expiry import group_tombstones
from .repeats import Repeats
from .replies import GROUP_OPERATIONS, DeletedGroup, DescribedGroup, DescribedMember, ListedGroup

if TYPE_CHECKING:
    from .engine.effects import Request
    from .engine.shard import Shard

#: The only kind of group here; KIP-848 has others.
GROUP_TYPE: Final = "classic"

_NOT_FOUND_VERSION: Final = 6


@dataclass(slots=True)
class GroupRequest:
    """A DescribeGroups or DeleteGroups for one group; ``error`` is not 0 when it is not looked up."""

    group_id: str
    with_operations: bool = False
    error: int = 0


@dataclass(slots=True)
class ListRequest:
    """A ListGroups; no filter means all."""

    states: frozenset[str]
    types: frozenset[str]


def split_describe(body: Any) -> list[GroupRequest]:
    """One request for each group of a DescribeGroups body."""
    with_operations = bool(body.include_authorized_operations)
    repeats = Repeats()
    return [
        GroupRequest(
            group_id, with_operations, int(ErrorCode.INVALID_REQUEST) if repeats.refuses(group_id) else 0
        )
        for group_id in (named or "" for named in body.groups)
    ]


def split_delete(body: Any) -> list[GroupRequest]:
    """One request for each group of a DeleteGroups body, duplicates folded."""
    return [GroupRequest(group_id or "") for group_id in dict.fromkeys(body.groups_names)]


def list_request(body: Any) -> ListRequest:
    """The filters of a ListGroups body; case does not matter, nor do blanks around a state."""
    states = frozenset(state.strip().lower() for state in body.states_filter or ())
    return ListRequest(states, frozenset(name.lower() for name in body.types_filter or ()))


def handle_describe(shard: Shard, request: Request, _now_ms: int) -> None:
    """The group as it is now; metadata of members only when Stable."""
    if request.body.error:
        shard.reply(request, describe_refusal(request, request.body.error))
        return
    group = shard.find(request.body.group_id)
    if group is None:
        shard.reply(request, _not_found(request))
        return
    stable = group.state is GroupState.STABLE
    members = [
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.metadata(group.protocol_name) if stable else b"",
            member.assignment,
        )
        for member in group.members.values()
    ]
    protocol = (group.protocol_name or "") if stable else ""
    described = DescribedGroup(
        0, group.group_id, group.state.value, group.protocol_type or "", protocol, members
    )
    shard.reply(request, _with_operations(request, described))


def describe_refusal(request: Request, error: int) -> DescribedGroup:
    """The answer for a group that cannot be described."""
    return DescribedGroup(error, request.body.group_id, group_state="")


def handle_list(shard: Shard, request: Request, _now_ms: int) -> None:
    """All groups of this shard that pass the filters."""
    wanted: ListRequest = request.body
    listed = []
    if not wanted.types or GROUP_TYPE in wanted.types:
        for group_id in shard.group_ids():
            group = shard.find(group_id)
            if group is not None and (not wanted.states or group.state.value.lower() in wanted.states):
                state = group.state.value
                listed.append(ListedGroup(group_id, group.protocol_type or "", state, GROUP_TYPE))
    shard.reply(request, listed)


def handle_delete(shard: Shard, request: Request, _now_ms: int) -> None:
    """Tombstones for an Empty group; whoever asks for the group meanwhile waits until it is settled."""
    group_id = request.body.group_id
    group = shard.find(group_id)
    if group is None:
        shard.reply(request, delete_refusal(request, ErrorCode.GROUP_ID_NOT_FOUND))
    elif group.state is not GroupState.EMPTY:
        shard.reply(request, delete_refusal(request, ErrorCode.NON_EMPTY_GROUP))
    else:
        shard.block(group_id)
        shard.append(group_tombstones(shard, group_id), AfterDelete(group_id, request))


def delete_refusal(request: Request, error: int) -> DeletedGroup:
    """The outcome for a group that cannot be deleted."""
    return DeletedGroup(request.body.group_id, error)


@dataclass(slots=True)
class AfterDelete:
    """Waits for the tombstones of a DeleteGroups, then answers it."""

    group_id: str
    request: Request

    def done(self, shard: Shard, _now_ms: int) -> None:
        shard.forget(self.group_id)
        shard.note(GroupRemoved(self.group_id, cause="deleted by request"))
        shard.reply(self.request, DeletedGroup(self.group_id, 0))

    def failed(self, shard: Shard, error: ErrorCode, _now_ms: int) -> None:
        shard.note(append_refused(self.group_id, error))
        shard.unblock(self.group_id)
        shard.reply(self.request, delete_refusal(self.request, append_error(error)))


def _not_found(request: Request) -> DescribedGroup:
    group_id = request.body.group_id
    if request.version < _NOT_FOUND_VERSION:
        return _with_operations(request, DescribedGroup(0, group_id))
    message = f"Group {group_id} not found."
    return DescribedGroup(int(ErrorCode.GROUP_ID_NOT_FOUND), group_id, error_message=message)


def _with_operations(request: Request, described: DescribedGroup) -> DescribedGroup:
    if request.body.with_operations:
        described.authorized_operations = GROUP_OPERATIONS
    return described
