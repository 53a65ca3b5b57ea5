"""Retries of failed handlers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ...client.errors import ConfigError

#: Longest time between two tries unless said otherwise.
MAX_BACKOFF_MS = 30_000


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a handler is called with one record, and the back-off in between.

    ``attempts`` counts the first try. The wait doubles (``multiplier``) from ``backoff_ms`` up to
    ``max_backoff_ms``; ``jitter`` spreads each wait by that share in both directions, so that records which
    failed together do not come back together. Only errors that are instances of ``retry_on`` are tried again.
    While a record waits, its lane waits with it and all other lanes go on.
    """

    attempts: int = 5
    backoff_ms: int = 200
    max_backoff_ms: int = MAX_BACKOFF_MS
    multiplier: float = 2.0
    jitter: float = 0.2
    retry_on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        _require_numbers(self, ("attempts", "backoff_ms", "max_backoff_ms"), int, "a whole number")
        _require_numbers(self, ("multiplier", "jitter"), (int, float), "a number")
        _require(self.attempts >= 1, "attempts", self.attempts, "at least 1: the first try counts")
        _require(self.backoff_ms >= 0, "backoff_ms", self.backoff_ms, "0 or more")
        _require(
            self.max_backoff_ms >= self.backoff_ms,
            "max_backoff_ms",
            self.max_backoff_ms,
            f"at least backoff_ms ({self.backoff_ms})",
        )
        _require(self.multiplier >= 1.0, "multiplier", self.multiplier, "1 or more")
        _require(0.0 <= self.jitter < 1.0, "jitter", self.jitter, "in [0, 1)")
        kinds = self.retry_on
        fit = isinstance(kinds, tuple) and all(
            isinstance(k, type) and issubclass(k, Exception) for k in kinds
        )
        _require(fit, "retry_on", kinds, "a tuple of exception classes")

    def delay_ms(self, attempt: int, error: BaseException) -> float | None:
        """Milliseconds to wait after try number ``attempt`` (from 1) failed; None: do not try again."""
        if attempt >= self.attempts or not isinstance(error, self.retry_on):
            return None
        # an exponent past 60 only overflows: every limit is reached long before
        delay = min(self.backoff_ms * self.multiplier ** min(attempt - 1, 60), self.max_backoff_ms)
        return delay * random.uniform(1.0 - self.jitter, 1.0 + self.jitter)


def _require(holds: bool, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"Retry: {name}={value!r}, but it must be {allowed}")


def _require_numbers(retry: Retry, names: tuple[str, ...], kind: Any, allowed: str) -> None:
    for name in names:
        value = getattr(retry, name)
        _require(isinstance(value, kind) and not isinstance(value, bool), name, value, allowed)


#: One try, no second one.
ONCE = Retry(attempts=1)
