"""How often to look for records when none come."""

from __future__ import annotations

#: Most of a core that looks may take.
SHARE = 0.008

#: Longest wait, as a share of the time since there were records.
SLACK = 0.1

#: Interval at which offsets are committed again while none come, so that they do not expire, in seconds.
TOUCH_SECONDS = 3_600.0


def idle_pause(look_cost: float, idle: float) -> float:
    """Return the seconds until the next look: more the longer none came and the more a look costs.

    ``look_cost``: processor time of the last look. ``idle``: time since there were records.
    """
    return min(look_cost / SHARE, idle * SLACK)
