"""Classic groups: members join, the leader assigns, all sync."""

from typing import Final

from ...offsets_topic import GroupDeleted, GroupStored
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.heartbeat import HeartbeatResponse
from ...protocol.messages.leave_group import LeaveGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ..engine.shard import Api, Kind, Waits
from ..groups.groups import Groups
from . import describe, heartbeat, join, leave, rebalance, sync
from .group import JOIN, SESSION, SYNC

#: The table of classic groups. During a load a SyncGroup is answered REBALANCE_IN_PROGRESS and a Heartbeat
#: without an error: other errors end some clients.
CLASSIC: Final[Kind[Groups]] = Kind(
    apis={
        ApiKey.JOIN_GROUP: Api(join.handle_join, join.refusal),
        ApiKey.SYNC_GROUP: Api(
            sync.handle_sync,
            lambda _request, error: SyncGroupResponse(0, error),
            while_loading=ErrorCode.REBALANCE_IN_PROGRESS,
        ),
        ApiKey.HEARTBEAT: Api(
            heartbeat.handle_heartbeat,
            lambda _request, error: HeartbeatResponse(0, error),
            Waits.NEVER,
            ErrorCode.NONE,
        ),
        ApiKey.LEAVE_GROUP: Api(leave.handle_leave, lambda _request, error: LeaveGroupResponse(0, error)),
        ApiKey.DESCRIBE_GROUPS: Api(describe.handle_describe, describe.refusal),
    },
    applies={
        GroupStored: lambda groups, run, _at, _producer_id: groups.durable.store_groups(run),
        GroupDeleted: lambda groups, run, _at, _producer_id: groups.durable.remove_groups(run),
    },
    timers={
        SESSION: heartbeat.on_session_timer,
        JOIN: rebalance.on_join_timer,
        SYNC: rebalance.on_sync_timer,
    },
    activate=rebalance.activate,
    unload=rebalance.unload,
)
