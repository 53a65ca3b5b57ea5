"""The time for which a coroutine runs, without its waits."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Generator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: The clock of quotas and metrics, in seconds.
clock: Final = time.perf_counter


class Stopwatch(Generic[T]):
    """Awaits a coroutine; ``running_s`` is the time for which it has run so far."""

    __slots__ = ("_coroutine", "running_s")

    def __init__(self, coroutine: Coroutine[object, object, T]) -> None:
        self._coroutine = coroutine
        self.running_s = 0.0

    def __await__(self) -> Generator[object, object, T]:
        steps = self._coroutine
        value: object = None
        error: BaseException | None = None
        while True:
            begun_s = clock()
            try:
                waits_for = steps.send(value) if error is None else steps.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self.running_s += clock() - begun_s
            value = error = None
            try:
                value = yield waits_for
            except BaseException as thrown:
                error = thrown
