"""The group coordinator: shards are its deterministic core without I/O, ``GroupCoordinator`` runs them."""

from ..protocol import CauseKind
from .element_limits import RepeatLimit
from .engine.effects import Append, Effect, EndMarker, Reply, Request
from .engine.events import (
    CoordinatorEvent,
    EventsLost,
    EventStream,
    RecordSkipped,
    ShardLoaded,
    ShardLoading,
)
from .engine.readiness import Unready, append_error, unready_error
from .engine.runner import CoordinatorLog
from .engine.shard import Shard
from .groups.durable import OpenTransaction
from .groups.events import (
    AppendRefused,
    AssignorFailed,
    CommitRefused,
    GenerationAbandoned,
    GroupEvent,
    GroupRemoved,
    JoinRefused,
    MemberFenced,
    MemberGone,
    MemberIdUnused,
    MemberJoined,
    MemberReplaced,
    Move,
    OffsetsRemoved,
    RebalanceCompleted,
    RebalanceStarted,
    Refusal,
    RevocationAsked,
    ShareStateFailed,
)
from .groups.group_coordinator import GroupCoordinator, LoadError
from .groups.group_type import GroupType
from .groups.groups import TopicDirectory
from .groups.history import KeptEvent
from .groups.shards import group_shard
from .settings import GroupSettings

__all__ = [
    "Append",
    "AppendRefused",
    "AssignorFailed",
    "CauseKind",
    "CommitRefused",
    "CoordinatorEvent",
    "CoordinatorLog",
    "Effect",
    "EndMarker",
    "EventStream",
    "EventsLost",
    "GenerationAbandoned",
    "GroupCoordinator",
    "GroupEvent",
    "GroupRemoved",
    "GroupSettings",
    "GroupType",
    "JoinRefused",
    "KeptEvent",
    "LoadError",
    "MemberFenced",
    "MemberGone",
    "MemberIdUnused",
    "MemberJoined",
    "MemberReplaced",
    "Move",
    "OffsetsRemoved",
    "OpenTransaction",
    "RebalanceCompleted",
    "RebalanceStarted",
    "RecordSkipped",
    "Refusal",
    "RepeatLimit",
    "Reply",
    "Request",
    "RevocationAsked",
    "Shard",
    "ShardLoaded",
    "ShardLoading",
    "ShareStateFailed",
    "TopicDirectory",
    "Unready",
    "append_error",
    "group_shard",
    "unready_error",
]
