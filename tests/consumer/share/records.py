"""Records of share groups, made by hand."""

from __future__ import annotations

from uuid import UUID

from kohort.consumer.events import Event
from kohort.consumer.share.locks import Locks
from kohort.consumer.share.records import PartitionId, RecordLock, ShareRecord
from kohort.protocol import AcknowledgeType

PLACE = PartitionId(UUID(int=1), 0)
LOCK_MS = 30_000.0


class Desk:
    """Locks with their events, at a time that tests set. It is also the judge of its records."""

    def __init__(self, max_processing_ms: float = 300_000) -> None:
        self.now = 1_000.0
        self.events: list[Event] = []
        self.changes = 0
        self.locks = Locks(self.events.append, self._changed, max_processing_ms, LOCK_MS)

    def _changed(self) -> None:
        self.changes += 1

    def take(self, *offsets: int, place: PartitionId = PLACE, delivery_count: int = 1) -> list[ShareRecord]:
        lock = RecordLock(self.now, self.now + LOCK_MS)
        records = [
            ShareRecord(self, place, lock, "orders", offset, 0, None, b"", (), delivery_count)
            for offset in offsets
        ]
        self.locks.take(place, records, (), self.now)
        return records

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType) -> None:
        self.locks.acknowledge(record, verdict, self.now)

    def renew(self, record: ShareRecord) -> None:
        self.locks.renew(record)
