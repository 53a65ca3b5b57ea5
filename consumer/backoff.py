"""How long to wait before the next try."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Exponential back-off with jitter (Kafka's ``retry.backoff.ms`` and ``retry.backoff.max.ms``).

    The jitter spreads members that failed in the same moment; give ``rng`` for runs that repeat.
    """

    initial_ms: float = 100.0
    max_ms: float = 1000.0
    jitter: float = 0.2
    rng: random.Random = field(default_factory=random.Random)

    def delay_ms(self, attempt: int) -> float:
        """Milliseconds to wait before try ``attempt`` (0 is the first try after a failure)."""
        base = min(self.initial_ms * 2.0 ** min(attempt, 30), self.max_ms)
        return base * (1 + self.jitter * (2 * self.rng.random() - 1))
