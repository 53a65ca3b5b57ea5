"""Share partitions at the leader of a partition: which member has which record, and what is done (KIP-932).

No I/O and no clock: times are arguments, and what has to be stored is returned as a ``StateWrite``.
"""

from .acknowledgements import AcknowledgedRange, AcknowledgeType, check_ranges
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

__all__ = [
    "AcknowledgeType",
    "AcknowledgedRange",
    "AcquiredRange",
    "Acquisition",
    "BatchOffsets",
    "ShareLimits",
    "SharePartition",
    "StateBatch",
    "StateWrite",
    "StoredState",
    "check_ranges",
]
