"""Drawn deliveries, verdicts, answers, renewals and ends of locks, beside a plain model of each record.

Covers: consumer/share/locks.py, consumer/share/verdicts.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kohort.client import BrokerConnectionError
from kohort.consumer.share.events import LockLost
from kohort.consumer.share.locks import PendingFlush, say_once
from kohort.consumer.share.records import PartitionId, RecordLock, ShareRecord
from kohort.consumer.share.verdicts import Gap, Said
from kohort.protocol import AcknowledgeType, ErrorCode, KafkaError, KohortError
from tests.consumer.share.records import LOCK_MS, Desk

OFFSETS = 12
#: After its end a lock counts as lost.
LATE_MS = 5_000.0
NOT_LOCKED = KafkaError(ErrorCode.INVALID_RECORD_STATE, "not acquired")
GONE = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another leads")
BUSY = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
VERDICTS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)


@dataclass
class Row:
    """One record as a reader of the docs expects it: held, said, sent, lost or answered."""

    record: ShareRecord
    state: str = "held"
    answers: list[KohortError | None] = field(default_factory=list)


class World:
    """Locks, and the plain model of them. Places are made anew each time, as responses make them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.desk = Desk(max_processing_ms=60_000)
        self.rows: dict[ShareRecord, Row] = {}
        self.sent: list[tuple[PartitionId, list[Said]]] = []
        #: Said by another thread, of which the loop has not heard.
        self.said_elsewhere: list[ShareRecord] = []
        self.flushes: list[tuple[PendingFlush, set[ShareRecord]]] = []
        #: Offsets without a record that wait, of each partition.
        self.gaps: dict[PartitionId, list[int]] = {self.place(number): [] for number in range(3)}

    def place(self, number: int | None = None) -> PartitionId:
        return PartitionId(UUID(int=7), self.random.randrange(3) if number is None else number)

    def those(self, state: str, place: PartitionId | None = None) -> list[ShareRecord]:
        rows = (row for row in self.rows.values() if row.state == state)
        return [row.record for row in rows if place is None or row.record.place == place]

    def set_lost(self, records: list[ShareRecord]) -> None:
        for record in records:
            self.rows[record].state = "lost"

    # what happens

    def take(self) -> None:
        place, desk = self.place(), self.desk
        first = self.random.randrange(OFFSETS)
        offsets = range(first, self.random.randint(first, OFFSETS) + 1)
        busy = {said.offset for at, part in self.sent if at == place for said in part}
        offsets_free = [offset for offset in offsets if offset not in busy]
        gaps = [offset for offset in offsets_free if self.random.random() < 0.15]
        lock = RecordLock(desk.now, desk.now + LOCK_MS)
        records = [
            ShareRecord(desk, place, lock, "orders", offset, 0, None, b"", (), 1)
            for offset in offsets_free
            if offset not in gaps
        ]
        again = [
            r for r in (*self.those("held", place), *self.those("said", place)) if r.offset in offsets_free
        ]
        self.set_lost(again)
        self.gaps[place] = [offset for offset in self.gaps[place] if offset not in offsets_free] + gaps
        self.rows |= {record: Row(record) for record in records}
        spans = [Gap(offset, AcknowledgeType.GAP, lock.deadline_ms) for offset in gaps]
        desk.locks.take(place, records, spans, desk.now)

    def say(self) -> None:
        if held := [record for record in self.rows if record.verdict is None]:
            record = self.random.choice(held)
            if self.rows[record].state == "held":
                self.rows[record].state = "said"
            record.judge.acknowledge(record, self.random.choice(VERDICTS))

    def say_all(self) -> None:
        held = [record for record in self.those("held") if record.verdict is None]
        if self.random.random() < 0.5:
            held = self.random.sample(held, self.random.randint(0, len(held)))
        for record in held:
            self.rows[record].state = "said"
        self.desk.locks.acknowledge_all(held, self.random.choice(VERDICTS), self.desk.now)

    def say_in_a_thread(self) -> None:
        if held := [record for record in self.those("held") if record.verdict is None]:
            record = self.random.choice(held)
            say_once(record, self.random.choice(VERDICTS))
            self.said_elsewhere.append(record)

    def hear(self) -> None:
        for record in self.said_elsewhere:
            if self.rows[record].state == "held":
                self.rows[record].state = "said"
        self.desk.locks.note(self.said_elsewhere, self.desk.now)
        self.said_elsewhere = []

    def send(self) -> None:
        place = self.place()
        if any(at == place for at, _ in self.sent):
            return  # one request at a time
        for at, part in self.desk.locks.take_waiting([place], self.desk.now).items():
            offsets = [said.offset for said in part]
            assert part
            assert len(offsets) == len(set(offsets)), "an offset twice: a broker would refuse all"
            for said in part:
                if isinstance(said, ShareRecord):
                    assert self.rows[said].state == "said"
                    self.rows[said].state = "sent"
                else:
                    self.gaps[place].remove(said.offset)
            self.sent.append((at, part))

    def answer(self) -> None:
        if not self.sent:
            return
        place, part = self.sent.pop(self.random.randrange(len(self.sent)))
        desk, records = self.desk, [said for said in part if isinstance(said, ShareRecord)]
        match self.random.randrange(6):
            case 0 | 1:
                desk.locks.on_answered(place, part, None, desk.now)
                self.set_answered(records, None)
            case 2:
                error = BrokerConnectionError("127.0.0.1:9092", "gone")
                desk.locks.on_unanswered(part, error)
                self.set_answered(records, error)
            case 3:
                desk.locks.on_lost(part, desk.now, "another leads")
                self.set_lost(records)
            case 4:
                late = {said for said in part if self.end_of(said) <= desk.now}
                self.set_back(place, part, late)
                desk.locks.put_back(place, part, BUSY, desk.now, 100.0)
            case _:
                late = {said for said in part if self.end_of(said) < desk.now}
                if len(part) == 1 or not records:
                    late = set(part)
                self.set_back(place, part, late)
                desk.locks.on_answered(place, part, NOT_LOCKED, desk.now)

    @staticmethod
    def end_of(said: Said) -> float:
        if isinstance(said, Gap):
            return said.deadline_ms
        assert said.lock is not None
        return said.lock.deadline_ms

    def set_back(self, place: PartitionId, part: list[Said], late: set[Said]) -> None:
        for said in part:
            if isinstance(said, ShareRecord):
                self.rows[said].state = "lost" if said in late else "said"
            elif said not in late:
                self.gaps[place].append(said.offset)

    def set_answered(self, records: list[ShareRecord], error: KohortError | None) -> None:
        for record in records:
            self.rows[record].state = "answered"
            self.rows[record].answers.append(error)

    def end_some(self) -> None:
        place, locks, now = self.place(), self.desk.locks, self.desk.now
        held = self.those("held", place)
        match self.random.randrange(4):
            case 0:
                self.set_lost([*held, *self.those("said", place)])
                self.gaps[place] = []
                locks.lose(place, now, "another leads")
            case 1:
                self.set_lost(held)
                self.gaps[place] += [record.offset for record in held]
                locks.give_back(place, now, "the connection broke")
            case 2:
                for record in held:
                    self.rows[record].state = "released"
                self.gaps[place] += [record.offset for record in held]
                locks.release_held([place])
            case _:
                self.set_lost([record for record in held if self.end_of(record) + LATE_MS <= now])
                if locks.over_at([place]) <= now:
                    locks.lose_over([place], now)

    def renew(self) -> None:
        place, locks, now = self.place(), self.desk.locks, self.desk.now
        if (held := self.those("held", place)) and self.random.random() < 0.5:
            self.random.choice(held).renew()
        due = locks.due_renewals([place], now).get(place, [])
        assert {self.rows[record].state for record in due} <= {"held"}
        assert [record.offset for record in due] == sorted({record.offset for record in due})
        locks.plan_renewals([place], now)
        for record in due:
            if self.random.random() < 0.7:
                locks.on_renewed([record], now)
            else:
                self.rows[record].state = "lost"
                locks.on_not_renewed(record, NOT_LOCKED, now)

    def flush(self) -> None:
        unanswered = {*self.those("said"), *self.those("sent")}
        flush = self.desk.locks.begin_flush(lambda: None)
        assert flush.left == unanswered
        self.flushes.append((flush, unanswered))

    def wait(self) -> None:
        self.desk.now += self.random.choice((1.0, 100.0, LOCK_MS / 2, LOCK_MS, LOCK_MS + LATE_MS))

    # what is so

    def check(self) -> None:
        locks = self.desk.locks
        for place in self.gaps:
            # by offset, since the model says the same of a record that was lost and comes again
            held = {record.offset: record for record in self.those("held", place)}
            assert locks.held.get(place, {}) == held
            waits = bool(self.those("said", place) or self.gaps[place])
            assert (locks.waiting_since([place]) < math.inf) == waits
        assert locks.unanswered == len(self.those("said")) + len(self.those("sent"))
        told = [event.record for event in self.desk.events if isinstance(event, LockLost)]
        assert len(told) == len(set(told)), "a loss is told once"
        assert set(told) == set(self.those("lost"))
        for record in self.rows:
            assert (record.lock is None) == (self.rows[record].state in ("lost", "released"))
        for flush, asked in self.flushes:
            waits_for = {record for record in asked if self.rows[record].state in ("said", "sent")}
            assert flush.left == waits_for
            assert flush.answers.keys() == asked - waits_for

    def drain(self) -> None:
        """What was said is answered in the end, whatever was refused before."""
        self.hear()
        while self.sent:
            self.answer()
        self.desk.now += 1_000.0
        for place in self.gaps:
            rounds = 0
            while locks_part := self.desk.locks.take_waiting([place], self.desk.now):
                for part in locks_part.values():
                    self.desk.locks.on_answered(place, part, None, self.desk.now)
                    self.set_answered([said for said in part if isinstance(said, ShareRecord)], None)
                rounds += 1
                self.desk.now += 1_000.0
                assert rounds < 4 * OFFSETS
            self.gaps[place] = []
        assert not self.desk.locks.unanswered


STEPS = ("take", "say", "say_all", "say_in_a_thread", "hear", "send", "answer", "end_some", "renew", "flush")


@given(
    st.lists(st.tuples(st.sampled_from((*STEPS, "wait")), st.booleans()), max_size=80), st.integers(0, 2**32)
)
def test_each_record_is_where_a_plain_model_has_it(steps: list[tuple[str, bool]], seed: int) -> None:
    """``looks``: whether somebody looks after a step; what is said is sorted in only then."""
    world = World(seed)
    for step, looks in steps:
        getattr(world, step)()
        if looks:
            world.check()
    world.check()
    world.drain()
    world.check()
