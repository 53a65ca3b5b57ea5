"""Replicas of a partition: what the leader may acknowledge, which replicas are in sync, what a follower
truncates.

Nothing here uses sockets, files or clocks: log ends, fetches and times are arguments.
"""

from ._replication import Follower, IsrChangeRequest, Replication
from ._truncation import Truncation, diverging_epoch, truncation

__all__ = ["Follower", "IsrChangeRequest", "Replication", "Truncation", "diverging_epoch", "truncation"]
