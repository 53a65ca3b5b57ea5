"""Names of the events of groups and of their kinds of cause, in DescribeGroupHistory, logs and metrics.

They are part of the protocol: a class may be renamed, its event's name stays.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class EventName:
    """Names of the events of groups."""

    REBALANCE_STARTED: Final = "RebalanceStarted"
    REBALANCE_COMPLETED: Final = "RebalanceCompleted"
    GENERATION_ABANDONED: Final = "GenerationAbandoned"
    MEMBER_JOINED: Final = "MemberJoined"
    MEMBER_GONE: Final = "MemberGone"
    MEMBER_REPLACED: Final = "MemberReplaced"
    REVOCATION_ASKED: Final = "RevocationAsked"
    MEMBER_ID_UNUSED: Final = "MemberIdUnused"
    OFFSETS_REMOVED: Final = "OffsetsRemoved"
    GROUP_REMOVED: Final = "GroupRemoved"
    MEMBER_FENCED: Final = "MemberFenced"
    JOIN_REFUSED: Final = "JoinRefused"
    COMMIT_REFUSED: Final = "CommitRefused"
    ASSIGNOR_FAILED: Final = "AssignorFailed"
    SHARE_STATE_FAILED: Final = "ShareStateFailed"
    APPEND_REFUSED: Final = "AppendRefused"
    SHARE_PARTITION_STALLED: Final = "SharePartitionStalled"
    SHARE_PARTITION_RESUMED: Final = "SharePartitionResumed"
    SHARE_RECORDS_REJECTED: Final = "ShareRecordsRejected"
    SHARE_RECORDS_EXHAUSTED: Final = "ShareRecordsExhausted"
    SHARE_LAST_DELIVERY: Final = "ShareLastDelivery"
    SHARE_LOCKS_LOST: Final = "ShareLocksLost"


#: Names of the events of share partitions, which the leaders of partitions tell.
SHARE_EVENTS: Final = frozenset(
    {
        EventName.SHARE_PARTITION_STALLED,
        EventName.SHARE_PARTITION_RESUMED,
        EventName.SHARE_RECORDS_REJECTED,
        EventName.SHARE_RECORDS_EXHAUSTED,
        EventName.SHARE_LAST_DELIVERY,
        EventName.SHARE_LOCKS_LOST,
    }
)


class CauseKind(StrEnum):
    """Kinds of causes of events."""

    JOIN = "join"
    LEAVE = "leave"
    SESSION_EXPIRED = "session_expired"
    LATE_JOIN = "late_join"
    LATE_REVOCATION = "late_revocation"
    LATE_SYNC = "late_sync"
    CHANGED_SUBSCRIPTION = "changed_subscription"
    ASKED_FOR = "asked_for"
    NOT_WRITTEN = "not_written"
    TOO_LARGE = "too_large"
    OTHER = "other"
