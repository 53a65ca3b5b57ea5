"""Lag as people mean it: how many records a group has not read, and since when the oldest of them waits.

Pure calculations, for whoever has offsets and record batches: the admin client asks brokers for them, a
broker has its own logs.
"""

from .groups import GroupLag, PartitionLag
from .progress import LagTracker, Meter, catch_up_ms, time_to_catch_up_ms
from .unread import Looked, Unread, find_oldest, measure_unread

__all__ = [
    "GroupLag",
    "LagTracker",
    "Looked",
    "Meter",
    "PartitionLag",
    "Unread",
    "catch_up_ms",
    "find_oldest",
    "measure_unread",
    "time_to_catch_up_ms",
]
