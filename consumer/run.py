"""Records that are made one by one as they are taken, and can be taken back until then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING

from .record import Record, RecordBatch, made

if TYPE_CHECKING:
    from .delivery import Lane


class Run:
    """Records ``first`` to, not including, ``end`` of a lane's batch. Iterate it, in any thread.

    Making the next record is C code from end to end: no other thread comes between the steps, so that
    ``given`` is right when the run was recalled in one thread while another one takes records.
    """

    __slots__ = ("_gate", "_left", "_offsets", "_records", "count", "lane")

    def __init__(self, lane: Lane, first: int, end: int) -> None:
        self.lane = lane
        self.count = end - first
        batch: RecordBatch = lane.batch
        self._offsets = batch.rows.offsets[first:end]
        self._gate = [batch.topic] * self.count
        # counts down with each record
        self._left = repeat(batch.partition, self.count)
        self._records: Iterator[Record] = map(made, batch.fields(first, end, self._gate, self._left))

    def __repr__(self) -> str:
        return f"Run({self.given} of {self.count} given)"

    def __iter__(self) -> Iterator[Record]:
        return self._records

    @property
    def given(self) -> int:
        """Records that were taken."""
        return self.count - length_hint(self._left)

    @property
    def next_offset(self) -> int | None:
        """Of the next record to be taken; None when all were."""
        given = self.given
        return self._offsets[given] if given < self.count else None

    @property
    def over(self) -> bool:
        """Whether there are no more to take."""
        return not self._gate or not length_hint(self._left)

    def recall(self) -> int:
        """Give no more; how many were given."""
        self._gate.clear()
        return self.given
