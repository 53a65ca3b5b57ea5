"""What a driver loop hands out."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ._driver import GroupBatches
    from ._driver_frames import DriverReading
    from ._ranges import OffsetRange, Plan
    from ._readings import Reading


class Batch:
    """One micro-batch: write ``df``, then call ``commit``.

    ``number`` counts the group's batches from 0 on, over all runs, as far as the group remembers.
    ``replayed`` is set where an earlier driver announced this batch and did not commit it: ``key``, number
    and ranges are the same as then. ``lag`` is how many offsets are left after it; ``lost`` are offsets that
    the logs no longer had.
    """

    def __init__(
        self, loop: GroupBatches, plan: Plan, plan_seconds: float, ahead: DriverReading | None
    ) -> None:
        self._loop = loop
        self._plan = plan
        #: What the driver reads itself is under way already.
        self.ahead = ahead
        self.plan_seconds = plan_seconds
        self.handed_out_at = time.monotonic()
        self.committed = False
        #: Tasks that read it, where it is read by tasks; else what the driver has read.
        self.tasks = 0
        self.reading: Reading | None = None

    def __repr__(self) -> str:
        spans = ", ".join(map(str, self.ranges))
        return f"Batch({self.number}: {spans}{', replayed' if self.replayed else ''}, lag {self.lag})"

    @property
    def number(self) -> int:
        return self._plan.number

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        return self._plan.ranges

    @property
    def replayed(self) -> bool:
        return self._plan.replayed

    @property
    def lag(self) -> int:
        return self._plan.lag

    @property
    def lost(self) -> tuple[OffsetRange, ...]:
        return self._plan.lost

    @property
    def key(self) -> str:
        """A short name: the same for a replay, another for any other batch that ever was or will be.

        A sink that must not repeat a batch has to go by this one. Numbers come again: where offsets are
        reset, expire or are deleted, the count may begin at 0 again.
        """
        return f"{self._plan.number}-{self._plan.token}"

    @cached_property
    def df(self) -> DataFrame:
        """The records, columns as Spark's Kafka source has them. See ``read_on_driver_below``."""
        return self._loop.frame(self, self._plan)

    def commit(self) -> None:
        """Make the ends of the ranges the group's offsets. Raises CommitRefusedError, KafkaError; safe to
        call again."""
        if not self.committed:
            self._loop.commit(self, self._plan)
