"""Share partitions at the leader of a partition: which member has which record, and what is done; and the
sessions in which members read them (KIP-932).

No I/O and no clock: times are arguments, and what has to be stored is returned as a ``StateWrite``.
"""

from .acknowledgements import AcknowledgedRange, check_ranges
from .partition import (
    AcquiredRange,
    Acquisition,
    BatchOffsets,
    ShareLimits,
    SharePartition,
    StateBatch,
    StateWrite,
    StoredState,
)
from .rules import ShareRules
from .sessions import (
    CLOSING_EPOCH,
    MOST_ID_CHARACTERS,
    OPENING_EPOCH,
    ShareSession,
    ShareSessions,
    TopicPlace,
)
from .tallies import Happened, ShareSummary, ShareTallies, Tally

__all__ = [
    "CLOSING_EPOCH",
    "MOST_ID_CHARACTERS",
    "OPENING_EPOCH",
    "AcknowledgedRange",
    "AcquiredRange",
    "Acquisition",
    "BatchOffsets",
    "Happened",
    "ShareLimits",
    "SharePartition",
    "ShareRules",
    "ShareSession",
    "ShareSessions",
    "ShareSummary",
    "ShareTallies",
    "StateBatch",
    "StateWrite",
    "StoredState",
    "Tally",
    "TopicPlace",
    "check_ranges",
]
