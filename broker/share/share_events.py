"""Events of share partitions, as their leader sees them: what stands still, and what became of records.

They are told in summary when a leader looks at its share partitions, some seconds apart. So a record costs a
count at most, and a member that rejects a million records makes a few events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...coordinator import GroupEvent
from ...coordinator.groups.events import Share
from ...protocol import EventName


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareEvent(GroupEvent):
    """Something that happened in a share partition."""

    topic: str
    partition: int


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SharePartitionStalled(ShareEvent):
    """Records are in flight, and the start offset has not moved for twice the duration of a lock. ``member``
    has the record there, "" if nobody has; ``records`` are in flight, ``done`` of them done.
    """

    name = EventName.SHARE_PARTITION_STALLED

    start_offset: int
    records: int
    done: int
    delivery_count: int
    stalled_ms: int


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SharePartitionResumed(ShareEvent):
    """The start offset of a share partition that stood still has moved to ``start_offset``."""

    name = EventName.SHARE_PARTITION_RESUMED

    start_offset: int
    stalled_ms: int


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareRecordsEvent(ShareEvent):
    """Something happened to ``records`` records since the last such event, which ``member`` had for the
    ``delivery_count``-th time; the last of them are those from ``first_offset`` to ``last_offset``.
    ``offsets`` names the newest of them, as far as there is room: ``2 5-7``.
    """

    share: ClassVar[Share] = "members"

    records: int
    first_offset: int
    last_offset: int
    offsets: str
    delivery_count: int


class ShareRecordsRejected(ShareRecordsEvent):
    """Members rejected records: nobody is given them again."""

    __slots__ = ()
    name = EventName.SHARE_RECORDS_REJECTED
    level = "warning"


class ShareRecordsExhausted(ShareRecordsEvent):
    """Records came back from their last delivery, released or with a lock that ended: nobody is given them
    again.
    """

    __slots__ = ()
    name = EventName.SHARE_RECORDS_EXHAUSTED
    level = "warning"


class ShareLastDelivery(ShareRecordsEvent):
    """Records were given to a member for the last time."""

    __slots__ = ()
    name = EventName.SHARE_LAST_DELIVERY
    share = "refusals"


class ShareLocksLost(ShareRecordsEvent):
    """Members had records for longer than a lock lasts: others are given them."""

    __slots__ = ()
    name = EventName.SHARE_LOCKS_LOST
    share = "refusals"
