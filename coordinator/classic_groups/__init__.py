"""Classic groups: members join, the leader assigns, all sync."""

from collections.abc import Sequence
from typing import Final

from ...offsets_topic import GroupDeleted, GroupStored
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.heartbeat import HeartbeatResponse
from ...protocol.messages.leave_group import LeaveGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ..engine.shard import Api, Waits
from ..groups.groups import GroupKind, Groups
from . import describe, heartbeat, join, leave, rebalance, static, sync
from .group import CLASSIC_TYPE, JOIN, RETURN, SESSION, SYNC, restore_group


def _store_groups(groups: Groups, records: Sequence[GroupStored], _at: int, _producer_id: int) -> None:
    groups.durable.of_type(CLASSIC_TYPE).update((record.group, record) for record in records)


def _remove_groups(groups: Groups, records: Sequence[GroupDeleted], _at: int, _producer_id: int) -> None:
    durable = groups.durable
    for record in records:
        durable.of_type(CLASSIC_TYPE).pop(record.group, None)
        durable.from_transactions.discard(record.group)


#: The table of classic groups. During a load a SyncGroup is answered REBALANCE_IN_PROGRESS and a Heartbeat
#: without an error: other errors end some clients.
CLASSIC_GROUPS: Final = GroupKind(
    group_type=CLASSIC_TYPE,
    restore=lambda _groups, group_id, stored: restore_group(group_id, stored),
    apis={
        ApiKey.JOIN_GROUP: Api(join.handle_join, join.refused_join),
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
        ApiKey.DESCRIBE_GROUPS: Api(
            describe.handle_describe, describe.refused_group, fan_out=describe.FAN_OUT
        ),
    },
    applies={
        GroupStored: _store_groups,
        GroupDeleted: _remove_groups,
    },
    timers={
        SESSION: heartbeat.on_session_timer,
        JOIN: rebalance.on_join_timer,
        SYNC: rebalance.on_sync_timer,
        RETURN: static.write_returned,
    },
    activate=rebalance.activate_groups,
    unload=rebalance.unload_groups,
)
