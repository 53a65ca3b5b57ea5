"""Replicas of a partition: what the leader may acknowledge, which replicas are in sync, what a follower
truncates.

Nothing here uses sockets, files or clocks: log ends, fetches and times are arguments.
"""

from ._replication import FollowerState, IsrChangeRequest, Replication
from ._truncation import Truncation, diverging_epoch, truncation_for

__all__ = [
    "FollowerState",
    "IsrChangeRequest",
    "Replication",
    "Truncation",
    "diverging_epoch",
    "truncation_for",
]
