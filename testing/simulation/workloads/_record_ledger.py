"""What clients were told, and what follows from it for the logs."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol import TopicPartition
from ..brokers._plan import BrokerPlan
from ..brokers._schedule import BrokerSchedule


class RecordLedger:
    """Records by their values: which were acknowledged, and where they are."""

    def __init__(self, schedule: BrokerSchedule[BrokerPlan]) -> None:
        self._schedule = schedule
        self._sent = 0
        #: Where each acknowledged record is.
        self.acknowledged: dict[bytes, tuple[TopicPartition, int]] = {}
        #: The offset behind the last acknowledged record of each partition.
        self.ends: dict[TopicPartition, int] = {}
        #: What somebody has read, by partition and offset.
        self.read: dict[tuple[TopicPartition, int], bytes] = {}
        #: The offset below which records of a partition may have been deleted.
        self.deleted: dict[TopicPartition, int] = {}

    def __repr__(self) -> str:
        return f"RecordLedger({len(self.acknowledged)} of {self._sent} acknowledged)"

    def new(self, producer: str) -> bytes:
        """The value of another record."""
        self._sent += 1
        return f"{producer}:{self._sent}".encode()

    def was_acknowledged(self, value: bytes, partition: TopicPartition, offset: int) -> None:
        """A producer was told where its record is."""
        self._schedule.stats.records += 1
        self.acknowledged[value] = partition, offset
        self.ends[partition] = max(offset + 1, self.ends.get(partition, 0))

    def may_be_deleted(self, partition: TopicPartition, before: int) -> None:
        """Somebody is about to delete the records of a partition below an offset."""
        self.deleted[partition] = max(before, self.deleted.get(partition, 0))

    def was_read(self, who: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        before = self.read.setdefault((partition, offset), value)
        if partition in self._schedule.lossy:
            self.read[partition, offset] = value
        elif before != value:
            self._schedule.found(
                "B3", f"{who} reads {value!r} at {offset} of {partition}, where {before!r} was read before"
            )

    def compare(self, partition: TopicPartition, records: Iterable[tuple[int, bytes]]) -> None:
        """Compare the records that are committed in a partition in the end with what clients know of it.

        Not if it may have lost records: a producer repeats what a leader lacked, and an older log with the
        same records may come back.
        """
        if partition in self._schedule.lossy:
            return
        there, first = dict(records), self.deleted.get(partition, 0)
        offsets: dict[bytes, int] = {}
        for offset, value in there.items():
            if value in offsets:
                self._schedule.fail("B2", f"{value!r} is in {partition} at {offsets[value]} and at {offset}")
            offsets[value] = offset
        for value, (where, offset) in self.acknowledged.items():
            if where == partition and offset >= first and there.get(offset) != value:
                self._schedule.fail(
                    "B1",
                    f"{value!r} was acknowledged at {offset} of {partition}, where now is "
                    f"{there.get(offset)!r}",
                )
        for (where, offset), value in self.read.items():
            if where == partition and offset >= first and there.get(offset) != value:
                self._schedule.fail(
                    "B3",
                    f"{value!r} was read at {offset} of {partition}, where now is {there.get(offset)!r}",
                )
