"""Consumer groups (KIP-848): the coordinator assigns, and each member moves to its target by heartbeats."""

from typing import Final

from ...offsets_topic import ConsumerGroupRecord
from ...protocol import ApiKey
from ..engine.shard import Api, Kind, Waits
from ..groups.groups import Groups, GroupShard
from . import classic_members, describe, heartbeat, regex
from .changes import start_sessions
from .group import HOLD, REGEX, RESUME, REVOCATION, SESSION, live
from .holding import refuse_held


def _activate(shard: GroupShard, now_ms: int) -> None:
    """Called when the shard is loaded. A timer of each group restarts its members' sessions, because
    restoring thousands of groups from their records at once would take long.
    """
    for group_id in shard.state.durable.consumer_groups:
        shard.timers.start((RESUME, group_id), now_ms)


def _unload(shard: GroupShard, _now_ms: int) -> None:
    refuse_held(shard)
    for group_id in list(shard.state.groups):
        if live(shard, group_id) is not None:
            del shard.state.groups[group_id]


#: Handlers of classic-protocol requests in consumer groups.
CLASSIC_APIS: Final = {
    ApiKey.JOIN_GROUP: classic_members.handle_join,
    ApiKey.SYNC_GROUP: classic_members.handle_sync,
    ApiKey.HEARTBEAT: classic_members.handle_heartbeat,
    ApiKey.LEAVE_GROUP: classic_members.handle_leave,
}

#: The table of consumer groups.
CONSUMER: Final[Kind[Groups]] = Kind(
    apis={
        ApiKey.CONSUMER_GROUP_HEARTBEAT: Api(heartbeat.handle_heartbeat, heartbeat.refusal),
        ApiKey.CONSUMER_GROUP_DESCRIBE: Api(describe.handle_describe, describe.refusal, Waits.REMOVAL),
    },
    applies={
        ConsumerGroupRecord: lambda groups, run, _at, _producer_id: groups.durable.store_consumer_groups(run),
    },
    timers={
        SESSION: heartbeat.on_session_timer,
        REVOCATION: heartbeat.on_revocation_timer,
        HOLD: heartbeat.on_hold_timer,
        RESUME: lambda shard, key, now_ms: start_sessions(shard, key[1], now_ms),
        REGEX: regex.on_regex_timer,
    },
    activate=_activate,
    unload=_unload,
)
