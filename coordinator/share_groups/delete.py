"""DeleteGroups (key 42) of a share group: first the state of its share partitions, then the group."""

from __future__ import annotations

from ...protocol import ErrorCode
from ..engine.effects import Request
from ..groups.delete_groups import remove_group
from ..groups.groups import GroupShard
from .changes import ShareChanges
from .commands import StateErrors
from .group import ShareGroup, find_share_group
from .kept import delete_state
from .shard_state import PendingRequest, state_of


def handle_delete_group(shard: GroupShard, group: ShareGroup, request: Request, now_ms: int) -> None:
    """Delete an Empty group. What could not be deleted stays noted as being deleted, for the next request.

    Members may come and go while state is deleted, and offsets may be altered: what has state by then is
    deleted next. It would fence the states of a group that is made again, whose epochs begin anew.
    """
    if group.members:
        shard.refuse(request, ErrorCode.NON_EMPTY_GROUP)
        return
    topics = dict.fromkeys(topic_id for some in group.kept for topic_id in some)
    if not topics:
        remove_group(shard, group, request)
        return

    def finish(shard: GroupShard, errors: StateErrors, now_ms: int) -> None:
        found = find_share_group(shard, request.body.group_id)
        if found is None:
            shard.refuse(request, ErrorCode.GROUP_ID_NOT_FOUND)
        elif errors and not found.members:
            shard.refuse(request, next(iter(errors.values())).code)
        elif found.members or found.kept.initializing or found.kept.initialized:
            handle_delete_group(shard, found, request, now_ms)
        elif found.kept.deleting:
            # another request deletes it: first what has begun in between, which would outlive the group
            shard.refuse(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            remove_group(shard, found, request)

    changes = ShareChanges(shard, group, now_ms)
    state_of(shard).pending[delete_state(changes, topics)] = PendingRequest(request, finish)
    changes.commit()
