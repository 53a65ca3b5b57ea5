"""Consumer groups (KIP-848): the coordinator assigns, and each member moves to its target by heartbeats."""

from collections.abc import Sequence
from typing import Final

from ...offsets_topic import ConsumerGroupRecord
from ...protocol import ApiKey
from ..engine.shard import Api
from ..groups.groups import CommandWorker, Feature, GroupKind, Groups, GroupShard
from ..settings import GroupSettings
from . import classic_members, describe, heartbeat, regex
from .changes import start_sessions
from .configs import CONSUMER_CONFIGS
from .group import CONSUMER_TYPE, HOLD, REGEX, RESUME, REVOCATION, SESSION, live_consumer_group, restore_group
from .holding import refuse_held
from .shard_state import ConsumerState
from .target import ComputeTarget

#: The feature whose level says whether clients may use consumer groups.
GROUP_VERSION: Final = "group.version"


def _activate_groups(shard: GroupShard, now_ms: int) -> None:
    """Called when the shard is loaded. A timer of each group restarts its members' sessions, because
    restoring thousands of groups from their records at once would take long.
    """
    for group_id in shard.state.durable.of_type(CONSUMER_TYPE):
        shard.timers.start((RESUME, group_id), now_ms)


def _unload_groups(shard: GroupShard, _now_ms: int) -> None:
    refuse_held(shard)
    for group_id in list(shard.state.groups):
        if live_consumer_group(shard, group_id) is not None:
            del shard.state.groups[group_id]


def _store_records(
    groups: Groups, records: Sequence[ConsumerGroupRecord], _at: int, _producer_id: int
) -> None:
    durable = groups.durable
    by_group = durable.of_type(CONSUMER_TYPE)
    for kind, group_id, name, value in records:
        if value is not None:
            by_group.setdefault(group_id, {})[kind, name] = value
            continue
        durable.from_transactions.discard(group_id)
        known = by_group.get(group_id)
        if known is not None and known.pop((kind, name), None) is not None and not known:
            del by_group[group_id]


def _assignor_processes(settings: GroupSettings) -> CommandWorker:
    # most brokers never need one
    from .assignor_processes import AssignorProcesses

    return AssignorProcesses(settings.kohort_consumer_assignor_timeout_ms)


#: The table of consumer groups.
CONSUMER_GROUPS: Final = GroupKind(
    group_type=CONSUMER_TYPE,
    restore=lambda groups, group_id, stored: restore_group(group_id, stored, groups.topics),
    new_state=ConsumerState.from_settings,
    commands={ComputeTarget: _assignor_processes},
    configs=CONSUMER_CONFIGS,
    feature=Feature(GROUP_VERSION, 1),
    # members that speak the classic protocol
    overrides={
        ApiKey.JOIN_GROUP: classic_members.handle_join,
        ApiKey.SYNC_GROUP: classic_members.handle_sync,
        ApiKey.HEARTBEAT: classic_members.handle_heartbeat,
        ApiKey.LEAVE_GROUP: classic_members.handle_leave,
    },
    apis={
        ApiKey.CONSUMER_GROUP_HEARTBEAT: Api(heartbeat.handle_heartbeat, heartbeat.refused_heartbeat),
        ApiKey.CONSUMER_GROUP_DESCRIBE: Api(
            describe.handle_describe, describe.refused_group, fan_out=describe.FAN_OUT
        ),
    },
    applies={
        ConsumerGroupRecord: _store_records,
    },
    timers={
        SESSION: heartbeat.on_session_timer,
        REVOCATION: heartbeat.on_revocation_timer,
        HOLD: heartbeat.on_hold_timer,
        RESUME: lambda shard, key, now_ms: start_sessions(shard, key[1], now_ms),
        REGEX: regex.on_regex_timer,
    },
    activate=_activate_groups,
    unload=_unload_groups,
)
