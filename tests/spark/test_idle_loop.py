"""A loop that finds nothing looks less often the longer nothing came and the more a look costs.

Covers: spark/_driver.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.spark import _driver
from kohort.spark._group import GroupState
from tests.spark.loops import Driver

#: What a look at 1,000 partitions takes.
LOOK = 0.028


class Clock:
    """Time that passes in waits and, for the processor, in looks."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0
        self.waits: list[float] = []
        self.ends_at = 3_600.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.worked

    def look(self) -> GroupState:
        self.worked += LOOK
        return GroupState({}, {})

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def is_set(self) -> bool:
        return self.now >= self.ends_at


@pytest.mark.parametrize("how", ["run", "iteration"])
def test_an_idle_loop_of_1000_partitions_takes_less_than_a_hundredth_of_a_core(
    how: str, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: Any = Clock()
    monkeypatch.setattr(_driver, "time", clock)
    batches = driver("etl", "orders")
    monkeypatch.setattr(batches, "_stopping", clock)
    monkeypatch.setattr(batches._group, "look", clock.look)
    if how == "run":
        batches.run(lambda _: None)
    else:
        assert list(batches) == []
    # once it has been idle for a minute
    assert min(wait for at, wait in enumerate(clock.waits) if sum(clock.waits[:at]) > 60) >= LOOK * 100
    assert clock.worked / clock.now < 0.01
    # and who has just had records gets the next ones soon
    assert clock.waits[0] == 0.05
    assert sum(wait <= 0.1 for wait in clock.waits) >= 10
