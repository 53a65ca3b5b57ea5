"""Replicas of a partition: what the leader may acknowledge, who is in sync, what a follower cuts off.

Nothing here knows sockets, files or clocks: log ends, fetches and times go in.
"""

from ._replication import Follower, IsrWish, Replication
from ._truncation import Truncation, diverging_epoch, truncation

__all__ = ["Follower", "IsrWish", "Replication", "Truncation", "diverging_epoch", "truncation"]
