"""The group coordinator: ``Shard`` is its deterministic core without I/O, ``GroupCoordinator`` runs it."""

from .effects import Append, Effect, Note, Reply, Request
from .errors import Unready, append_error, unready_error
from .history import HistoryEntry
from .insight import (
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
from .listeners import EventStream
from .load import LoadError
from .moves import Move
from .repeats import Repeats
from .runner import OffsetsLog
from .runtime import GroupCoordinator
from .settings import GroupSettings
from .shard import Shard
from .topics import TopicDirectory
from .transactions import OpenTransaction

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
