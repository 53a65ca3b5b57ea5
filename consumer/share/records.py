"""Records of a share group: each one locked for this member until it is acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Protocol
from uuid import UUID

from ...protocol import AcknowledgeType, TopicPartition
from ..errors import ConsumerError
from ..record import Headers

#: A partition's number has 31 bits.
_PARTITION_BITS = 32
# found sooner than attributes of the enumeration
_ACCEPT, _RELEASE, _REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


class PartitionId(int):
    """A partition of a topic that may be remade under the same name.

    A number, because it is looked up several times with each record: the hash of a tuple with a UUID takes
    longer than all else in that. It is the same in every process, so that simulations can be repeated.
    """

    topic_id: UUID
    partition: int

    def __new__(cls, topic_id: UUID, partition: int) -> PartitionId:
        made = super().__new__(cls, topic_id.int << _PARTITION_BITS | partition)
        made.topic_id, made.partition = topic_id, partition
        return made

    def __repr__(self) -> str:
        return f"PartitionId({self.topic_id}, {self.partition})"


class AlreadyAcknowledgedError(ConsumerError):
    """The record has been accepted, released or rejected before."""


class WrongConsumerError(ConsumerError):
    """Something is said of a record where it cannot be: to another consumer than the one that delivered it,
    or beside its event loop.
    """


class LockLostError(ConsumerError):
    """The acknowledgement of a record does not count: its lock had ended, so it is delivered again.

    ``late_ms``: by how much it came late, about; 0 if the lock ended before its time, with the connection or
    the partition's leader.
    """

    def __init__(self, message: str, late_ms: float = 0.0) -> None:
        super().__init__(message)
        self.late_ms = late_ms


class Judge(Protocol):
    """Takes the verdicts on records."""

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType) -> None: ...

    def renew(self, record: ShareRecord) -> None: ...


class RecordLock:
    """The lock of records that were acquired together: ``acquired_ms``, and when it ends, ``deadline_ms``, by
    the event loop's clock in milliseconds.
    """

    __slots__ = ("acquired_ms", "deadline_ms")

    def __init__(self, acquired_ms: float, deadline_ms: float) -> None:
        self.acquired_ms = acquired_ms
        self.deadline_ms = deadline_ms


class ShareRecord:
    """One record, locked for this member. ``key`` and ``value`` are None for null; times are in milliseconds.

    ``delivery_count`` is 1 at the first delivery. Say ``accept``, ``release`` or ``reject`` once; or use it
    in ``with`` or ``async with``, which accepts it at the end, and releases it after an error or a
    cancellation, unless something was said before.
    """

    __slots__ = (
        "delivery_count",
        "headers",
        "judge",
        "key",
        "lock",
        "offset",
        "partition",
        "place",
        "timestamp_ms",
        "topic",
        "value",
        "verdict",
    )

    def __init__(
        self,
        judge: Judge,
        place: PartitionId,
        lock: RecordLock,
        topic: str,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        delivery_count: int,
    ) -> None:
        self.judge = judge
        self.place = place
        #: None once it is lost.
        self.lock: RecordLock | None = lock
        self.topic = topic
        self.partition = place.partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = headers
        self.delivery_count = delivery_count
        #: What was said of it; None so far.
        self.verdict: AcknowledgeType | None = None

    def __repr__(self) -> str:
        said = "lost" if self.lost else "locked" if self.verdict is None else self.verdict.name.lower()
        where = f"{self.topic}-{self.partition}@{self.offset}"
        return f"ShareRecord({where}, delivery {self.delivery_count}, {said})"

    @property
    def topic_partition(self) -> TopicPartition:
        """The record's partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def deadline(self) -> float | None:
        """When the lock ends unless it is renewed, in seconds of the event loop's clock (by default
        ``time.monotonic``); None once it is acknowledged, or lost.
        """
        return None if self.lock is None or self.verdict is not None else self.lock.deadline_ms / 1000

    @property
    def lost(self) -> bool:
        """Whether the lock has ended before anything was said: what is said now does not count."""
        return self.lock is None and self.verdict is None

    def accept(self) -> None:
        """Say that it is done. Raises AlreadyAcknowledgedError."""
        self.judge.acknowledge(self, _ACCEPT)

    def release(self) -> None:
        """Give it back: it is delivered again, unless this was its last delivery."""
        self.judge.acknowledge(self, _RELEASE)

    def reject(self) -> None:
        """Set it aside for good: it is never delivered again."""
        self.judge.acknowledge(self, _REJECT)

    def renew(self) -> None:
        """Have its lock begin anew, beside what the consumer renews by itself."""
        self.judge.renew(self)

    def __enter__(self) -> ShareRecord:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.verdict is None:
            self.judge.acknowledge(self, _ACCEPT if kind is None else _RELEASE)

    async def __aenter__(self) -> ShareRecord:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.verdict is None:
            self.judge.acknowledge(self, _ACCEPT if kind is None else _RELEASE)


def own_records(records: ShareRecord | Iterable[ShareRecord], judge: Judge) -> list[ShareRecord]:
    """A record or several as a list. Raises WrongConsumerError if one of them has another judge."""
    chosen = [records] if isinstance(records, ShareRecord) else list(records)
    for record in chosen:
        if not isinstance(record, ShareRecord):
            raise TypeError(f"{record!r} is no record of a share consumer")
        if record.judge is not judge:
            raise WrongConsumerError(
                f"{record.topic}-{record.partition}@{record.offset} was delivered by another consumer: tell "
                "that, or the record itself"
            )
    return chosen
