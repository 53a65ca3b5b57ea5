"""What is locked for this member, what was said of it, and what the brokers answered. No I/O and no clock."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

from ...protocol import AcknowledgeType, ErrorCode, KafkaError, KohortError
from ...protocol.messages.share_fetch import AcquiredRecords
from ..events import Event
from .events import LockLost
from .records import (
    AlreadyAcknowledgedError,
    LockLostError,
    PartitionId,
    RecordLock,
    ShareRecord,
)
from .verdicts import Gap, Said, VerdictQueue, end_of, records_in

#: Renewed when this part of the lock's duration is left.
_LEFT_AT_RENEWAL = 1 / 3
#: A lock counts as lost so long after its end: until then the broker may have it, and hears what is said.
_LATE_MS = 5_000.0
#: Errors that say of at least one record of a partition that it is not locked for this member; of the others
#: nothing was done.
NOT_LOCKED = frozenset({ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST})


@dataclass(slots=True, eq=False)
class PendingFlush:
    """The answers to what was said before a call of ``flush``: None for what counts, else the error.

    ``answered`` is called when nothing is left.
    """

    left: set[ShareRecord]
    answered: Callable[[], None]
    answers: dict[ShareRecord, KohortError | None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Locks:
    """``changed`` is called when something is to be sent, or room was made.

    What is said of a record is only noted. All that was noted is sorted in at once, when somebody looks at
    what is held or what waits.
    """

    report: Callable[[Event], None]
    changed: Callable[[], None]
    #: Longest time that a record's lock is renewed, from its acquisition.
    max_processing_ms: float
    duration_ms: float = 0.0
    flushes: list[PendingFlush] = field(default_factory=list)
    #: Of what something was said since somebody looked, and when the first of it was.
    noted: list[ShareRecord] = field(default_factory=list)
    _noted_at: float = 0.0
    _held: dict[PartitionId, dict[int, ShareRecord]] = field(default_factory=lambda: defaultdict(dict))
    #: The greatest offset of each partition that was ever acquired: what is behind it is new.
    _newest: dict[PartitionId, int] = field(default_factory=dict)
    _queues: dict[PartitionId, VerdictQueue] = field(default_factory=lambda: defaultdict(VerdictQueue))
    #: Taken, and not answered, by the identity of the list.
    _sent: dict[int, list[Said]] = field(default_factory=dict)
    #: When locks of a partition are to be renewed next.
    _renew_at: dict[PartitionId, float] = field(default_factory=dict)
    _asked: dict[PartitionId, dict[int, ShareRecord]] = field(default_factory=lambda: defaultdict(dict))
    #: Before this time no lock of a partition is renewed.
    _renew_from: dict[PartitionId, float] = field(default_factory=dict)
    #: Before this time no lock of a partition counts as lost because it has ended.
    _over_at: dict[PartitionId, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Locks({sum(map(len, self.held.values()))} held, {self.unanswered} unanswered)"

    @property
    def held(self) -> dict[PartitionId, dict[int, ShareRecord]]:
        """Delivered or waiting for it, and not acknowledged."""
        self._sort_noted()
        return self._held

    @property
    def _waiting(self) -> dict[PartitionId, VerdictQueue]:
        """What is to be sent, of partitions of which something is."""
        self._sort_noted()
        return self._queues

    # what was acquired

    def take(
        self, place: PartitionId, records: Sequence[ShareRecord], gaps: Sequence[Gap], now: float
    ) -> None:
        """Take in what was acquired. What was held or said of these offsets before has lost its lock."""
        acquired = {record.offset: record for record in records}
        offsets: Set[int] = acquired.keys()
        if gaps:
            offsets |= {gap.offset for gap in gaps}
        newest = self._newest.get(place, -1)
        if offsets and min(offsets) <= newest:
            self._lose_former(place, offsets, now)
        self._newest[place] = max(newest, max(offsets, default=newest))
        if held := self._held[place]:
            held |= acquired
        else:
            self._held[place] = acquired
        for gap in gaps:
            self._waiting[place].say(gap, now)
        at = now + self.duration_ms * (1 - _LEFT_AT_RENEWAL)
        self._renew_at[place] = min(self._renew_at.get(place, math.inf), at)
        over_at = now + self.duration_ms + _LATE_MS
        self._over_at[place] = min(self._over_at.get(place, math.inf), over_at)

    def are_new(self, place: PartitionId, acquired: Iterable[AcquiredRecords]) -> bool:
        """Return whether none of these offsets was acquired before: nothing is said of them so far."""
        newest = self._newest.get(place, -1)
        return all(part.first_offset > newest for part in acquired)

    def _lose_former(self, place: PartitionId, offsets: Set[int], now: float) -> None:
        """These offsets have been acquired again."""
        held = self.held[place]
        gone = [held.pop(offset) for offset in sorted(offsets & held.keys())]
        # a request that names an offset twice is refused, and with it all that it says of the partition
        if (queue := self._waiting.get(place)) is not None:
            gone += records_in(queue.drop(offsets))
            self._forget_empty(place, queue)
        self._lose(gone, now, "it was delivered again")

    def count(self, places: Iterable[PartitionId]) -> int:
        """Return how many records of these partitions are held."""
        held = self.held
        return sum(len(records) for place in places if (records := held.get(place)))

    @property
    def any_held(self) -> bool:
        """Whether any record is held."""
        return any(self.held.values())

    @property
    def unanswered(self) -> int:
        """Number of records of which something was said that is not answered."""
        return len(self._all_unanswered())

    def lose(self, place: PartitionId, now: float, reason: str) -> None:
        """The locks of a partition have ended: of what is held, and of what was said and not sent."""
        held = self.held.pop(place, {})
        queue = self._waiting.pop(place, None)
        said = [] if queue is None else records_in(queue.all())
        self._lose([*said, *held.values()], now, reason)

    def give_back(self, place: PartitionId, now: float, reason: str) -> None:
        """The connection to the broker broke, with which its locks end, unless the next connection is faster:
        what is held is lost, and released for that case. What was said and not sent is sent all the same.
        """
        held = list(self.held.get(place, {}).values())
        self.release_held([place])
        self._lose(held, now, reason)

    def release_held(self, places: Iterable[PartitionId]) -> None:
        """Queue the release of what is held of these partitions, whatever is said of it later."""
        for place in places:
            if held := self.held.pop(place, {}):
                gaps: list[Said] = [
                    Gap(offset, AcknowledgeType.RELEASE, end_of(record)) for offset, record in held.items()
                ]
                self._waiting[place].say_apart(gaps)
            for record in held.values():
                record.lock = None

    def over_at(self, places: Iterable[PartitionId]) -> float:
        """Return when ``lose_over`` may find some of these partitions; infinity for never."""
        return min((self._over_at.get(place, math.inf) for place in places), default=math.inf)

    def lose_over(self, places: Iterable[PartitionId], now: float) -> None:
        """Lose what is held although its lock has ended: a handler that hangs takes no room for ever."""
        for place in places:
            ends = {
                record: record.lock.deadline_ms + _LATE_MS
                for record in self.held.get(place, {}).values()
                if record.lock is not None
            }
            over = [record for record, end in ends.items() if end <= now]
            for record in over:
                del self.held[place][record.offset], ends[record]
            self._over_at[place] = min(ends.values(), default=math.inf)
            self._lose(over, now, "its time was up")

    def end(self, now: float, reason: str) -> None:
        """All locks have ended with the connections. What is held was given back; what was said and not sent
        does not count.
        """
        for held in self.held.values():
            for record in held.values():
                record.lock = None
        self.held.clear()
        for place in list(self._waiting):
            self.lose(place, now, reason)

    def _forget_empty(self, place: PartitionId, queue: VerdictQueue) -> None:
        if not queue:
            del self._waiting[place]

    def _lose(self, records: Sequence[ShareRecord], now: float, reason: str) -> None:
        for record in records:
            lock, record.lock = record.lock, None
            late_ms = 0.0
            if record.verdict is not None:
                late_ms = 0.0 if lock is None else max(0.0, now - lock.deadline_ms)
                self._answer([record], LockLostError(f"{_name(record)}: {reason}", late_ms))
            self.report(LockLost(record, record.verdict, late_ms, reason))
        if records:
            self.changed()

    # what is said

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType, now: float) -> None:
        """Note a verdict. Of a record whose lock is lost it changes nothing, as the event has told."""
        say_once(record, verdict)
        self.note((record,), now)

    def acknowledge_all(self, records: Iterable[ShareRecord], verdict: AcknowledgeType, now: float) -> None:
        """As ``acknowledge``, for several; for those before the first of which something was said already."""
        said: list[ShareRecord] = []
        try:
            for record in records:
                if record.verdict is not None:
                    raise already_said(record)
                record.verdict = verdict
                said.append(record)
        finally:
            self.note(said, now)

    def note(self, records: Iterable[ShareRecord], now: float) -> None:
        """Note records of which something was said. Records are noted once."""
        noted, was_empty = self.noted, not self.noted
        noted += records
        if was_empty and noted:
            self._noted_at = now
            self.changed()

    def _sort_noted(self) -> None:
        if not (noted := self.noted):
            return
        self.noted, place, at, count = [], None, 0, len(noted)
        looked = set[PartitionId]()
        while at < count:
            record = noted[at]
            at += 1
            if record.lock is None:
                continue  # lost before that
            if record.place is not place:
                place = record.place
                held, said = self._held[place], self._queues[place].begin(self._noted_at)
                if held and place not in looked and at + len(held) <= count + 1:
                    looked.add(place)  # once: partitions may take turns, record by record
                    if noted[at - 1 : at - 1 + len(held)] == list(held.values()):
                        # all that is held, in order, as it is when a reader never waits
                        at += len(held) - 1
                        said += held.values()
                        held.clear()
                        continue
            del held[record.offset]
            said.append(record)

    def renew(self, record: ShareRecord) -> None:
        """Queue a renewal of the record's lock."""
        if record.lock is not None and record.verdict is None:
            self._asked[record.place][record.offset] = record
            self.changed()

    def waiting_since(self, places: Iterable[PartitionId]) -> float:
        """Return since when a verdict on these partitions waits, or when it may be sent; infinity if none
        does.
        """
        waiting = self._waiting
        return min((waiting[place].since for place in places if place in waiting), default=math.inf)

    def may_linger(self, places: Iterable[PartitionId], few: int) -> bool:
        """Whether what waits of these partitions is so little that it may wait for more: nobody waits for
        answers, and nothing was refused.
        """
        queues = [queue for place in places if (queue := self._waiting.get(place))]
        return bool(queues) and not self.flushes and all(queue.is_short(few) for queue in queues)

    def take_waiting(
        self, places: Iterable[PartitionId], now: float = math.inf
    ) -> dict[PartitionId, list[Said]]:
        """Take what is to be sent next. Then call ``on_answered`` or ``on_unanswered`` for each partition."""
        taken = {}
        for place in places:
            if (queue := self._waiting.get(place)) and queue.since <= now:
                taken[place] = part = queue.take()
                self._sent[id(part)] = part
                self._forget_empty(place, queue)
        return taken

    def put_back(
        self, place: PartitionId, part: list[Said], error: KafkaError, now: float, wait_ms: float = 0.0
    ) -> None:
        """The broker has done nothing of what was taken, for now: it is sent again while its locks last."""
        del self._sent[id(part)]
        self.on_lost([said for said in part if end_of(said) <= now], now, str(error))
        if left := [said for said in part if end_of(said) > now]:
            self._waiting[place].put_back(left, now + wait_ms)
            self.changed()

    # what brokers answer

    def on_answered(self, place: PartitionId, part: list[Said], error: KafkaError | None, now: float) -> None:
        """A broker has answered what was said of a partition: all of it counts, or nothing does."""
        if error is None:
            self.on_unanswered(part, None)
            return
        del self._sent[id(part)]
        if error.code in NOT_LOCKED and len(part) > 1 and records_in(part):
            # the lock of one has ended: most likely of those that came late, which are not said again
            late = [said for said in part if end_of(said) < now]
            rest = [said for said in part if end_of(said) >= now]
            self.on_lost(late, now, str(error))
            if not late:
                self._waiting[place].say_in_parts(rest)
            elif rest:
                self._waiting[place].say_apart(rest)
            self.changed()
        else:
            self.on_lost(part, now, str(error))

    def on_lost(self, part: Iterable[Said], now: float, reason: str) -> None:
        """What was said does not count, as the locks had ended."""
        self._sent.pop(id(part), None)
        self._lose(records_in(part), now, reason)

    def on_unanswered(self, part: list[Said], error: KohortError | None) -> None:
        """No answer came, so it may count or not; it cannot be said again, since the locks are gone."""
        del self._sent[id(part)]
        if self.flushes:
            self._answer(records_in(part), error)

    def _answer(self, records: Sequence[ShareRecord], error: KohortError | None) -> None:
        for flush in self.flushes:
            answered = flush.left.intersection(records)
            flush.answers.update(dict.fromkeys(answered, error))
            flush.left -= answered
            if answered and not flush.left:
                flush.answered()

    def begin_flush(self, answered: Callable[[], None]) -> PendingFlush:
        """Begin to wait for the answers to what has been said until now; then ``answered`` is called."""
        flush = PendingFlush(set(self._all_unanswered()), answered)
        self.flushes.append(flush)
        self.changed()
        return flush

    def _all_unanswered(self) -> list[ShareRecord]:
        queues = (queue.all() for queue in self._waiting.values())
        return records_in(chain(*queues, *self._sent.values()))

    # renewals

    def renew_at(self, places: Iterable[PartitionId]) -> float:
        """Return when ``due_renewals`` may have some of these partitions; infinity for never."""
        return min(map(self._renewal_at, places), default=math.inf)

    def _renewal_at(self, place: PartitionId) -> float:
        at = -math.inf if place in self._asked else self._renew_at.get(place, math.inf)
        return max(at, self._renew_from.get(place, at))

    def due_renewals(
        self, places: Iterable[PartitionId], now: float, *, unasked: bool = True
    ) -> dict[PartitionId, list[ShareRecord]]:
        """Return the records of these partitions whose locks are to be renewed now, in order of offsets:
        those that the user asked for, and ``unasked`` those that end soon.
        """
        due = {}
        for place in places:
            if self._renew_from.get(place, now) > now:
                continue
            self._renew_from.pop(place, None)
            asked = self._asked.pop(place, {})
            rows = {offset: r for offset, r in asked.items() if r.lock is not None and r.verdict is None}
            if unasked:
                rows |= {o: r for o, r in self.held.get(place, {}).items() if self._renewal_of(r) <= now}
            if rows:
                due[place] = [rows[offset] for offset in sorted(rows)]
        return due

    def plan_renewals(self, places: Iterable[PartitionId], now: float) -> None:
        """Find out when the next renewal of these partitions is due."""
        for place in places:
            at = [
                at for record in self.held.get(place, {}).values() if (at := self._renewal_of(record)) > now
            ]
            self._renew_at[place] = min(at, default=math.inf)

    def _renewal_of(self, record: ShareRecord) -> float:
        lock = record.lock
        if lock is None or lock.deadline_ms >= lock.acquired_ms + self.max_processing_ms:
            return math.inf
        return lock.deadline_ms - self.duration_ms * _LEFT_AT_RENEWAL

    def on_renewed(self, records: Iterable[ShareRecord], now: float) -> None:
        """The broker was asked then to renew these locks, and has not refused. Of a lock that had ended this
        says nothing: brokers pass over what others have completed meanwhile.
        """
        fresh: dict[RecordLock, RecordLock] = {}
        for record in records:
            if record.lock is not None and record.lock.deadline_ms > now:
                lock = RecordLock(record.lock.acquired_ms, now + self.duration_ms)
                record.lock = fresh.setdefault(record.lock, lock)

    def renew_later(self, place: PartitionId, records: Iterable[ShareRecord], at: float) -> None:
        """The broker has renewed none of these, for now."""
        self._renew_from[place] = at
        self.ask_again(records)

    def ask_again(self, records: Iterable[ShareRecord]) -> None:
        """Renew these in another request."""
        for record in records:
            self.renew(record)

    def on_not_renewed(self, record: ShareRecord, error: KafkaError, now: float) -> None:
        """The lock of this record has ended, as its renewal shows."""
        if self.held.get(record.place, {}).get(record.offset) is record:
            del self.held[record.place][record.offset]
            self._lose([record], now, str(error))


def say_once(record: ShareRecord, verdict: AcknowledgeType) -> None:
    """Note a verdict on a record, which any thread may do. Raises AlreadyAcknowledgedError."""
    if record.verdict is not None:
        raise already_said(record)
    record.verdict = verdict


def already_said(record: ShareRecord) -> AlreadyAcknowledgedError:
    """The error of a second verdict."""
    said = "" if record.verdict is None else record.verdict.name
    return AlreadyAcknowledgedError(f"{_name(record)} has been acknowledged: {said}")


def _name(record: ShareRecord) -> str:
    return f"{record.topic}-{record.partition}@{record.offset}"
