"""Where the logs of a leader and a follower diverge, by leader epochs (KIP-101, KIP-279, KIP-595).

Two logs that end an epoch at the same offset are equal up to there, since only one leader wrote under that
epoch. So both sides compare where epochs end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

#: No epoch, no offset.
UNDEFINED: Final = -1

#: Given an epoch: the newest epoch of a log that is not newer, and the offset after its last record;
#: (UNDEFINED, UNDEFINED) if unknown.
EndOfEpoch: TypeAlias = Callable[[int], tuple[int, int]]


class Truncation(NamedTuple):
    """The offset at which a follower truncates its log. ``below_high_watermark``: committed records are lost,
    which an unclean election can cause.
    """

    offset: int
    below_high_watermark: bool


def diverging_epoch(fetch_offset: int, last_epoch: int, end_of_epoch: EndOfEpoch) -> tuple[int, int] | None:
    """Compare with a follower (or consumer) whose log has ``last_epoch`` just below ``fetch_offset``: None if
    the leader's log is the same up to there, else an epoch and its end in the leader's log.

    (UNDEFINED, UNDEFINED) if the leader cannot know, because it has nothing of so new an epoch.
    """
    epoch, end = end_of_epoch(last_epoch)
    if epoch == last_epoch and end >= fetch_offset:
        return None
    return epoch, end


def truncation_for(
    leader_epoch: int, leader_end: int, end_of_epoch: EndOfEpoch, *, log_end: int, high_watermark: int
) -> Truncation:
    """Return how a follower truncates its log when its leader says that ``leader_epoch`` ends at
    ``leader_end``; the follower's own epochs are in ``end_of_epoch``.
    """
    if leader_end == UNDEFINED:
        # only committed records are known to be equal
        offset = high_watermark
    else:
        epoch, end = end_of_epoch(leader_epoch)
        if end == UNDEFINED:
            offset = leader_end
        elif epoch == leader_epoch:
            offset = min(end, leader_end)
        else:
            # the leader has an epoch that this log lacks: records after the older epoch are not in its log
            offset = end
    offset = min(offset, log_end)
    return Truncation(offset, offset < high_watermark)
