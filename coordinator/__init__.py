"""The group coordinator: ``Shard`` is its deterministic core without I/O, ``GroupCoordinator`` runs it."""

from .engine.effects import Append, Effect, Note, Reply, Request
from .engine.events import EventStream
from .engine.loader import LoadError
from .engine.readiness import Unready, append_error, unready_error
from .engine.runner import OffsetsLog
from .engine.shard import Shard
from .events import (
    AppendRefused,
    CommitRefused,
    EventsLost,
    GenerationAbandoned,
    GroupEvent,
    GroupRemoved,
    JoinRefused,
    MemberFenced,
    MemberGone,
    MemberIdUnused,
    MemberJoined,
    MemberReplaced,
    OffsetsRemoved,
    RebalanceNote,
    RebalanceStarted,
    RecordSkipped,
    Refusal,
    ShardLoaded,
    ShardLoading,
)
from .group_coordinator import GroupCoordinator
from .history import HistoryEntry
from .moves import Move
from .offsets.transactions import OpenTransaction
from .repeats import Repeats
from .settings import GroupSettings
from .topics import TopicDirectory

__all__ = [
    "Append",
    "AppendRefused",
    "CommitRefused",
    "Effect",
    "EventStream",
    "EventsLost",
    "GenerationAbandoned",
    "GroupCoordinator",
    "GroupEvent",
    "GroupRemoved",
    "GroupSettings",
    "HistoryEntry",
    "JoinRefused",
    "LoadError",
    "MemberFenced",
    "MemberGone",
    "MemberIdUnused",
    "MemberJoined",
    "MemberReplaced",
    "Move",
    "Note",
    "OffsetsLog",
    "OffsetsRemoved",
    "OpenTransaction",
    "RebalanceNote",
    "RebalanceStarted",
    "RecordSkipped",
    "Refusal",
    "Repeats",
    "Reply",
    "Request",
    "Shard",
    "ShardLoaded",
    "ShardLoading",
    "TopicDirectory",
    "Unready",
    "append_error",
    "unready_error",
]
