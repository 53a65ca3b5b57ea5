"""Retries of failed handlers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...client.errors import ConfigError
from ...settings import SERVICE, Row, Scope, settings_of


def _are_errors(kinds: object) -> bool:
    return isinstance(kinds, tuple) and all(isinstance(k, type) and issubclass(k, Exception) for k in kinds)


@dataclass(frozen=True, slots=True)
class Retry:
    """Attempts at a record on which its handler fails, and the back-off in between.

    While a record waits, its lane waits with it and all other lanes go on. Raises ConfigError.
    """

    SCOPE: ClassVar[Scope] = SERVICE

    attempts: Annotated[int, Row("tries of a record, the first one included", 1)] = 5
    backoff_ms: Annotated[int, Row("wait before the second try", 0)] = 200
    max_backoff_ms: Annotated[int, Row("longest wait, not less than backoff_ms", 0)] = 30_000
    multiplier: Annotated[float, Row("how many times longer each wait is than the one before", 1)] = 2.0
    jitter: Annotated[
        float,
        Row(
            "share by which each wait is spread in both directions, so that records which failed together do "
            "not come back together",
            0,
            check=lambda share: share < 1,
            allowed="a number from 0 on, less than 1",
        ),
    ] = 0.2
    retry_on: Annotated[
        tuple[type[Exception], ...],
        Row(
            "errors after which there is another try",
            check=_are_errors,
            allowed="a tuple of exception classes",
        ),
    ] = (Exception,)

    def __post_init__(self) -> None:
        for name, setting in settings_of(Retry).items():
            if not setting.takes(value := getattr(self, name)):
                raise ConfigError(f"Retry: {name}={value!r}, but it must be {setting.allowed_values}")
        if self.max_backoff_ms < self.backoff_ms:
            raise ConfigError(
                f"Retry: max_backoff_ms={self.max_backoff_ms}, but it must be at least backoff_ms "
                f"({self.backoff_ms})"
            )

    def delay_ms(self, attempt: int, error: BaseException) -> float | None:
        """Milliseconds to wait after attempt number ``attempt`` (from 1) failed; None: do not retry."""
        if attempt >= self.attempts or not isinstance(error, self.retry_on):
            return None
        # an exponent past 60 only overflows: every limit is reached long before
        delay = min(self.backoff_ms * self.multiplier ** min(attempt - 1, 60), self.max_backoff_ms)
        return delay * random.uniform(1.0 - self.jitter, 1.0 + self.jitter)


#: One attempt, no retry.
ONCE = Retry(attempts=1)
