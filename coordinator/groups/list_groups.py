"""ListGroups (key 16), v0-5: groups of all types. v4 filters by state (KIP-518), v5 by type (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass

from ...protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from ..engine.effects import Request
from .groups import Group, GroupShard


@dataclass(slots=True)
class ListRequest:
    """A ListGroups; empty filters match every group."""

    states: frozenset[str]
    types: frozenset[str]


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


def list_refusal(_request: Request, _error: int) -> list[ListedGroup]:
    """Return no groups: a shard that does not serve has none to list."""
    return []


def _is_wanted(group: Group, wanted: ListRequest) -> bool:
    if wanted.types and group.type.name not in wanted.types:
        return False
    return not wanted.states or group.state_name.lower() in wanted.states
