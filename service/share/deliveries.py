"""Records of a share group in a service: what handlers get, and what may become of one that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from ...client.waiting import now_ms
from ...consumer.errors import ConsumerError
from ...consumer.record import Record
from ...consumer.share.records import RecordLock, ShareRecord

#: Apache Kafka's default of group.share.delivery.count.limit.
USUAL_LIMIT = 5


class LockedRecord(Record):
    """A Record of a share group, as its handler gets it: locked for this service until the handler ends."""

    share: ShareRecord

    @classmethod
    def of(cls, share: ShareRecord) -> Self:
        """The record for a handler of what the consumer has delivered."""
        record = cls(
            share.topic,
            share.partition,
            share.offset,
            share.timestamp_ms,
            share.key,
            share.value,
            share.headers,
        )
        record.share = share
        return record

    @property
    def delivery_count(self) -> int:
        """How often the group has delivered it, 1 for the first time."""
        return self.share.delivery_count

    @property
    def lost(self) -> bool:
        """Whether its lock has ended: it is delivered again, so what its handler does now is done twice."""
        return self.share.lost

    def _replace(self, **changes: Any) -> Self:
        changed = super()._replace(**changes)
        changed.share = self.share
        return changed


class LastDeliveryError(ConsumerError):
    """A record is in its last delivery: it goes to the dead-letter topic without a call of its handler.

    None of the deliveries before had an end: the process was killed, the handler hung, or the record was
    given back.
    """

    def __init__(self, count: int) -> None:
        super().__init__(
            f"delivery {count} is the last that the share group gives, and no delivery before was finished"
        )


@dataclass(slots=True, eq=False)
class Deliveries:
    """What may become of records of a share group. Of a record that is delivered for the ``limit``-th time
    the group archives whatever is not accepted.

    So that nothing is archived unseen, a record with a dead-letter topic is handled in all deliveries but the
    last, which is for its dead letter.
    """

    _: KW_ONLY
    #: Longest wait for the next try with the lock held, and how long a lock can be held at most.
    hold_ms: float
    max_processing_ms: float
    limit: int = USUAL_LIMIT
    #: Whether locks are renewed.
    renews: bool = True

    def tries_before(self, records: Sequence[Record]) -> int:
        """How many tries came before this delivery, at least: each delivery counts as one."""
        return min(_count(record) for record in records) - 1

    def can_wait(self, records: Sequence[Record], delay_ms: float) -> bool:
        """Whether the locks can be held until the next try."""
        until = now_ms() + delay_ms
        return delay_ms <= self.hold_ms and all(until < self._lock_end_ms(record) for record in records)

    def _lock_end_ms(self, record: Record) -> float:
        assert isinstance(record, LockedRecord), "of a share group"
        lock = record.share.lock
        if lock is None:
            return 0.0
        return max(lock.deadline_ms, lock.acquired_ms + self.max_processing_ms if self.renews else 0.0)

    def is_over(self, record: object) -> bool:
        """Whether its lock has ended by now, though nobody may have told: then it is delivered again."""
        assert isinstance(record, LockedRecord), "of a share group"
        lock = record.share.lock
        return lock is None or lock.deadline_ms <= now_ms()

    def keep(self, record: Record) -> None:
        """Have its lock renewed for another ``max_processing_ms``, as nobody may lose it now."""
        assert isinstance(record, LockedRecord), "of a share group"
        if (lock := record.share.lock) is not None:
            record.share.lock = RecordLock(now_ms(), lock.deadline_ms)
            record.share.renew()

    def is_last(self, record: Record) -> bool:
        """Whether the group delivers it no more."""
        return _count(record) >= self.limit

    def is_handled_again(self, record: Record, *, with_letter: bool) -> bool:
        """Whether a handler gets it once more when it is released now."""
        return _count(record) < self.limit - with_letter


def _count(record: Record) -> int:
    assert isinstance(record, LockedRecord), "of a share group"
    return record.delivery_count


def all_lost(records: Sequence[Record]) -> bool:
    """Whether others have all of these records by now."""
    return all(isinstance(record, LockedRecord) and record.lost for record in records)


def reject(record: Record) -> None:
    """It is safe elsewhere: the group delivers it no more."""
    if isinstance(record, LockedRecord) and record.share.verdict is None:
        record.share.reject()


def release(record: Record) -> None:
    """Give it back: the group delivers it again, unless this was its last delivery."""
    if isinstance(record, LockedRecord) and record.share.verdict is None:
        record.share.release()
