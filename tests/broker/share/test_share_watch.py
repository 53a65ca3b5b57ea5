"""What is told of a share partition: what became of records, and that it stands still.

Covers: broker/share/share_events.py.
"""

from __future__ import annotations

from kohort.broker.share.share_events import (
    ShareEvent,
    ShareLastDelivery,
    ShareLocksLost,
    SharePartitionResumed,
    SharePartitionStalled,
    ShareRecordsExhausted,
    ShareRecordsRejected,
)
from kohort.broker.share.share_watch import ShareHistory, ShareWatch
from kohort.coordinator import CoordinatorEvent
from kohort.share_partitions import AcknowledgedRange, BatchOffsets, ShareLimits, SharePartition

ACCEPT, RELEASE, REJECT = 1, 2, 3
LIMITS = ShareLimits(lock_ms=30_000, delivery_count=2)


class Watched:
    """A share partition with 100 records, and its watch."""

    def __init__(self) -> None:
        self.records = SharePartition(0)
        self.watch = ShareWatch("queue", "jobs", 3)
        self.now_ms = 1_000_000

    def give(self, member: str, count: int) -> None:
        batches = [BatchOffsets(at, at) for at in range(self.records.next_offset, 100)]
        self.records.acquire(member, batches, LIMITS, self.now_ms, most=count)

    def say(self, member: str, first: int, last: int, kind: int) -> None:
        write = self.records.acknowledge(
            member, [AcknowledgedRange(first, last, [kind])], LIMITS, self.now_ms
        )
        assert write is not None
        self.records.complete(write)

    def look(self, after_ms: int = 0) -> list[ShareEvent]:
        self.now_ms += after_ms
        return list(self.watch.look(self.records, LIMITS, self.now_ms))


def test_nothing_is_told_of_records_that_are_given_and_accepted() -> None:
    at = Watched()
    assert at.look() == []
    at.give("worker-1", 10)
    at.say("worker-1", 0, 9, ACCEPT)
    assert at.look(200_000) == []


def test_rejected_records_are_told_once_with_their_member() -> None:
    at = Watched()
    at.give("worker-1", 10)
    at.say("worker-1", 2, 2, REJECT)
    at.say("worker-1", 5, 7, REJECT)
    (told,) = at.look()
    assert isinstance(told, ShareRecordsRejected)
    assert (told.group, told.topic, told.partition, told.member) == ("queue", "jobs", 3, "worker-1")
    assert (told.records, told.first_offset, told.last_offset, told.delivery_count) == (4, 5, 7, 1)
    assert told.offsets == "2 5-7"
    assert told.cause == (
        "4 records of jobs-3 were rejected: nobody is given them again; the last: offsets 5 to 7, "
        "delivery 1, member worker-1"
    )
    assert at.look() == []


def test_lost_locks_last_deliveries_and_exhausted_records_are_told() -> None:
    at = Watched()
    at.give("worker-1", 2)
    at.now_ms += 30_000
    write = at.records.expire(LIMITS, at.now_ms)
    assert write is not None
    at.records.complete(write)
    at.give("worker-2", 1)
    lost, last = at.look()
    assert isinstance(lost, ShareLocksLost)
    assert (lost.records, lost.member, lost.delivery_count) == (2, "worker-1", 1)
    assert isinstance(last, ShareLastDelivery)
    assert (last.member, last.delivery_count) == ("worker-2", 2)
    at.say("worker-2", 0, 0, RELEASE)
    *_, exhausted = at.look()
    assert isinstance(exhausted, ShareRecordsExhausted)
    assert (exhausted.first_offset, exhausted.member) == (0, "worker-2")
    assert exhausted.cause == (
        "1 record of jobs-3 came back from the last delivery: nobody is given it again; offset 0, "
        "delivery 2, member worker-2"
    )


def test_records_of_several_members_are_told_of_each_of_them() -> None:
    at = Watched()
    for number in range(7):
        at.give(f"worker-{number}", 1)
    for number in (0, 2, 1, 3, 4, 5, 6):
        at.say(f"worker-{number}", number, number, REJECT)
    told = [event for event in at.look() if isinstance(event, ShareRecordsRejected)]
    assert [(event.member, event.offsets, event.records) for event in told] == [
        ("worker-1", "1", 3),  # with those of two members that no event names
        *((f"worker-{number}", str(number), 1) for number in (3, 4, 5, 6)),
    ]


def test_an_event_names_the_newest_offsets_that_it_has_room_for() -> None:
    at = Watched()
    at.records = SharePartition(10**15)
    batches = [BatchOffsets(10**15 + at, 10**15 + at) for at in range(100)]
    at.records.acquire("worker-1", batches, LIMITS, at.now_ms, most=100)
    for offset in range(0, 100, 2):
        at.say("worker-1", 10**15 + offset, 10**15 + offset, REJECT)
    (told,) = at.look()
    assert isinstance(told, ShareRecordsRejected)
    assert (told.records, told.last_offset) == (50, 10**15 + 98)
    names = told.offsets.split()
    assert names == [str(10**15 + offset) for offset in range(100 - 2 * len(names), 100, 2)]
    assert len(told.offsets) <= 300 < len(told.offsets) + 17


def test_a_start_offset_that_does_not_move_is_told_with_who_has_the_record_there() -> None:
    at = Watched()
    at.give("worker-1", 1)
    at.give("worker-2", 5)
    at.say("worker-2", 1, 3, ACCEPT)
    assert at.look() == []
    assert at.look(59_999) == []
    assert at.watch.stalled_ms(at.now_ms) is None
    (told,) = at.look(1)
    assert isinstance(told, SharePartitionStalled)
    assert (told.start_offset, told.records, told.done, told.member) == (0, 6, 3, "worker-1")
    assert told.cause == (
        "jobs-3 stands still at offset 0 for 60 s: member worker-1 has it, delivery 1; 6 in flight, "
        "3 of them done"
    )
    assert at.watch.stalled_ms(at.now_ms) == 60_000
    assert at.look(60_000) == [], "told once"
    at.say("worker-1", 0, 0, ACCEPT)
    (resumed,) = at.look(5_000)
    assert isinstance(resumed, SharePartitionResumed)
    assert (resumed.start_offset, resumed.stalled_ms) == (4, 125_000)
    assert at.watch.stalled_ms(at.now_ms) is None


def test_records_that_no_member_takes_stall_too_and_an_empty_partition_does_not() -> None:
    at = Watched()
    at.look()
    at.look(600_000)
    at.give("worker-1", 1)
    at.say("worker-1", 0, 0, RELEASE)
    assert at.look() == [], "it has just begun"
    (told,) = at.look(60_000)
    assert "no member has it" in told.cause


def test_the_history_has_the_newest_events_of_each_group_with_their_time() -> None:
    told: list[CoordinatorEvent] = []
    history = ShareHistory(2, lambda: 77, told.append)
    for offset in range(5):
        history.tell(
            SharePartitionResumed(
                "queue", topic="jobs", partition=0, cause="x", start_offset=offset, stalled_ms=1
            )
        )
    kept = [entry.event for entry in history.of("queue")]
    assert [(event.sequence, event.timestamp_ms) for event in kept] == [(4, 77), (5, 77)]
    assert len(told) == 5
    assert history.of("other") == []
