"""Share groups (KIP-932): members share partitions record by record. The group knows members, who may read
which partition, and which topics have state at the share coordinators; nothing of records.
"""

from collections.abc import Sequence
from typing import Final

from ...offsets_topic import ShareGroupRecord
from ...protocol import ApiKey, ErrorCode
from ..engine.shard import Api
from ..groups.groups import Feature, GroupKind, Groups, GroupShard
from . import delete, describe, heartbeat, kept, offsets
from .changes import look_for_deleted_topics, start_sessions
from .commands import DeleteShareState, InitializeShareState
from .configs import SHARE_CONFIGS
from .group import MISSING, RESUME, SESSION, SHARE_TYPE, TOPICS, live_share_group, restore_group
from .shard_state import ShareState, state_of

#: The feature whose level says whether clients may use share groups.
SHARE_VERSION: Final = "share.version"


def _resume_groups(shard: GroupShard, now_ms: int) -> None:
    """Called when the shard is loaded. A timer of each group restarts its members' sessions, because
    restoring thousands of groups from their records at once would take long; another one looks for topics
    that were deleted meanwhile.
    """
    for group_id in shard.state.durable.of_type(SHARE_TYPE):
        shard.timers.start((RESUME, group_id), now_ms)
        look_for_deleted_topics(shard, group_id, now_ms)


def _unload_groups(shard: GroupShard, _now_ms: int) -> None:
    pending = state_of(shard).pending
    for request, _ in pending.values():
        shard.refuse(request, ErrorCode.NOT_COORDINATOR)
    pending.clear()
    for group_id in list(shard.state.groups):
        if live_share_group(shard, group_id) is not None:
            del shard.state.groups[group_id]


def _keep_records(groups: Groups, records: Sequence[ShareGroupRecord], _at: int, _producer_id: int) -> None:
    by_group = groups.durable.of_type(SHARE_TYPE)
    for kind, group_id, member_id, value in records:
        if value is not None:
            by_group.setdefault(group_id, {})[kind, member_id] = value
            continue
        known = by_group.get(group_id)
        if known is not None and known.pop((kind, member_id), None) is not None and not known:
            del by_group[group_id]


#: The table of share groups.
SHARE_GROUPS: Final = GroupKind(
    group_type=SHARE_TYPE,
    restore=lambda groups, group_id, stored: restore_group(group_id, stored, groups.topics),
    new_state=ShareState.from_settings,
    commands={
        InitializeShareState: lambda _settings: kept.NoShareCoordinators(),
        DeleteShareState: lambda _settings: kept.NoShareCoordinators(),
    },
    configs=SHARE_CONFIGS,
    feature=Feature(SHARE_VERSION, 1),
    overrides={ApiKey.DELETE_GROUPS: delete.handle_delete_group},
    topics_deleted=kept.remove_deleted_topics,
    apis={
        ApiKey.SHARE_GROUP_HEARTBEAT: Api(heartbeat.handle_heartbeat, heartbeat.refused_heartbeat),
        ApiKey.SHARE_GROUP_DESCRIBE: Api(
            describe.handle_describe, describe.describe_error, fan_out=describe.FAN_OUT
        ),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Api(
            offsets.handle_describe_offsets, offsets.describe_refusal, fan_out=offsets.DESCRIBE_FAN_OUT
        ),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: Api(offsets.handle_alter, offsets.alter_refusal),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: Api(offsets.handle_delete_offsets, offsets.delete_refusal),
    },
    applies={ShareGroupRecord: _keep_records},
    timers={
        SESSION: heartbeat.on_session_timer,
        RESUME: lambda shard, key, now_ms: start_sessions(shard, key[1], now_ms),
        TOPICS: kept.on_topics_timer,
        MISSING: kept.on_missing_timer,
    },
    activate=_resume_groups,
    unload=_unload_groups,
)
