"""Throttles of replication: bytes of throttled replicas that a broker sends as leader, or fetches as follower
(KIP-73). In-sync replicas are not held back, but their bytes count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ._windows import Gauge, QuotaWindows

_EVERY: Final = "*"
_NONE: Final = ("", "none")
_REPLICAS: Final = re.compile(r"\s*\d+\s*:\s*\d+\s*(,\s*\d+\s*:\s*\d+\s*)*", re.ASCII)


class ReplicationThrottle:
    """The throttle of one direction. ``rate`` returns the limit in force, in bytes per second."""

    def __init__(self, node_id: int, windows: QuotaWindows, rate: Callable[[], int]) -> None:
        self._node_id = node_id
        self._rate = rate
        # the limit in force is read each time
        self._gauge = Gauge(windows, math.inf)

    def __repr__(self) -> str:
        return f"ReplicationThrottle({self._node_id}, {self._gauge})"

    def concerns(self, replicas: str, partition: int) -> bool:
        """Return whether ``replicas``, the topic's throttled ones, include this broker's replica of a
        partition.
        """
        if replicas in _NONE:
            return False
        return replicas == _EVERY or (partition, self._node_id) in _parse_replicas(replicas)

    def used(self, now: float) -> float:
        """Bytes per second of throttled replicas."""
        return self._gauge.used(now)

    def is_exceeded(self, now: float) -> bool:
        """Return whether throttled replicas used more than their rate; ``now`` in seconds."""
        return self.used(now) > self._rate()

    def record(self, size: int, now: float) -> None:
        """Count bytes of throttled replicas; ``now`` is in seconds of a clock that never goes back."""
        self._gauge.record(size, now)


def are_replicas(text: str) -> bool:
    """Return whether a text is a list of throttled replicas: ``PARTITION:BROKER,...``, ``*`` or nothing."""
    return text in (*_NONE, _EVERY) or _REPLICAS.fullmatch(text) is not None


@lru_cache(maxsize=256)
def _parse_replicas(replicas: str) -> frozenset[tuple[int, int]]:
    pairs = (item.split(":") for item in replicas.split(","))
    return frozenset((int(partition), int(broker)) for partition, broker in pairs)
