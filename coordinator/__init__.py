"""The group coordinator: ``Shard`` is its deterministic core without I/O, ``GroupCoordinator`` runs it."""

from .effects import Append, Effect, Note, Reply, Request
from .errors import Unready, append_error, unready_error
from .insight import (
    AppendRefused,
    CommitRefused,
    GroupRemoved,
    MemberGone,
    MemberJoined,
    MemberReplaced,
    OffsetsRemoved,
    RebalanceNote,
    RebalanceStarted,
    RecordSkipped,
    ShardLoaded,
)
from .runner import OffsetsLog
from .runtime import GroupCoordinator
from .settings import GroupSettings
from .shard import Shard
from .topics import TopicDirectory

__all__ = [
    "Append",
    "AppendRefused",
    "CommitRefused",
    "Effect",
    "GroupCoordinator",
    "GroupRemoved",
    "GroupSettings",
    "MemberGone",
    "MemberJoined",
    "MemberReplaced",
    "Note",
    "OffsetsLog",
    "OffsetsRemoved",
    "RebalanceNote",
    "RebalanceStarted",
    "RecordSkipped",
    "Reply",
    "Request",
    "Shard",
    "ShardLoaded",
    "TopicDirectory",
    "Unready",
    "append_error",
    "unready_error",
]
