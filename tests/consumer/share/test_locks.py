"""What is locked, what was said of it, and what answers mean.

Covers: consumer/share/locks.py, consumer/share/records.py.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client import BrokerConnectionError
from kohort.consumer.share.events import LockLost
from kohort.consumer.share.records import (
    AlreadyAcknowledgedError,
    LockLostError,
    PartitionId,
    ShareRecord,
)
from kohort.consumer.share.verdicts import Gap, Said
from kohort.protocol import AcknowledgeType, ErrorCode, KafkaError
from tests.consumer.share.records import LOCK_MS, PLACE, Desk

NOT_LOCKED = KafkaError(ErrorCode.INVALID_RECORD_STATE, "not acquired")


def offsets_of(part: list[Said]) -> list[int]:
    return [said.offset for said in part]


def test_what_is_said_waits_until_it_is_taken_and_is_answered_once() -> None:
    desk = Desk()
    one, other = desk.take(3, 4)
    one.accept()
    other.reject()
    assert desk.locks.waiting_since([PLACE]) == desk.now
    assert not desk.locks.any_held
    flush = desk.locks.begin_flush(lambda: None)
    taken = desk.locks.take_waiting([PLACE])
    assert [(said.offset, said.verdict) for said in taken[PLACE]] == [
        (3, AcknowledgeType.ACCEPT),
        (4, AcknowledgeType.REJECT),
    ]
    assert desk.locks.waiting_since([PLACE]) == math.inf
    desk.locks.on_answered(PLACE, taken[PLACE], None, desk.now)
    assert flush.answers == {one: None, other: None}
    assert not flush.left
    assert desk.locks.unanswered == 0


def test_a_second_verdict_is_refused() -> None:
    (record,) = Desk().take(1)
    record.release()
    with pytest.raises(AlreadyAcknowledgedError, match="orders-0@1 has been acknowledged: RELEASE"):
        record.accept()


def test_of_several_those_before_one_of_which_something_was_said_are_acknowledged() -> None:
    desk = Desk()
    first, said, last = desk.take(1, 2, 3)
    said.reject()
    with pytest.raises(AlreadyAcknowledgedError, match="orders-0@2"):
        desk.locks.acknowledge_all([first, said, last], AcknowledgeType.ACCEPT, desk.now)
    assert [record.verdict for record in (first, last)] == [AcknowledgeType.ACCEPT, None]
    assert offsets_of(desk.locks.take_waiting([PLACE])[PLACE]) == [2, 1]


def test_partitions_whose_records_are_said_in_turns_are_compared_with_what_is_held_once() -> None:
    class Watched(dict[int, ShareRecord]):
        walks = 0

        def values(self) -> Any:
            self.walks += 1
            return super().values()

    desk, places = Desk(), [PartitionId(PLACE.topic_id, number) for number in range(2)]
    pairs = list(zip(*(desk.take(*range(50), place=place) for place in places), strict=True))
    watched = {place: Watched(desk.locks.held[place]) for place in places}
    desk.locks._held |= watched
    desk.locks.acknowledge_all(
        [record for pair in pairs for record in pair], AcknowledgeType.ACCEPT, desk.now
    )
    assert desk.locks.unanswered == 100
    assert not desk.locks.any_held
    assert sum(held.walks for held in watched.values()) <= 2


def test_what_is_said_is_told_once_until_somebody_looks_and_has_waited_since_the_first_of_it() -> None:
    desk = Desk()
    began = desk.now
    for record in desk.take(1, 2, 3):
        record.accept()
        desk.now += 5
    assert desk.changes == 1
    assert desk.locks.waiting_since([PLACE]) == began
    (record,) = desk.take(4)
    record.accept()
    assert desk.changes == 2


def test_all_that_is_held_of_two_partitions_is_sent_whatever_the_order_in_which_it_is_acknowledged() -> None:
    desk, elsewhere = Desk(), PartitionId(PLACE.topic_id, 1)
    first, second, third = desk.take(1, 2, 3)
    others = desk.take(7, 8, place=elsewhere)
    for record in (first, *others, third, second):
        record.accept()
    assert not desk.locks.any_held
    taken = desk.locks.take_waiting([PLACE, elsewhere])
    assert {place: sorted(offsets_of(part)) for place, part in taken.items()} == {
        PLACE: [1, 2, 3],
        elsewhere: [7, 8],
    }


def test_a_record_that_was_lost_before_another_thread_spoke_of_it_is_not_sent() -> None:
    desk = Desk()
    (record,) = desk.take(1)
    desk.locks.lose(PLACE, desk.now, "the connection broke")
    record.verdict = AcknowledgeType.ACCEPT
    desk.locks.note([record], desk.now)
    assert desk.locks.take_waiting([PLACE]) == {}
    assert desk.locks.unanswered == 0


def test_a_block_accepts_at_its_end_releases_after_an_error_and_leaves_what_was_said() -> None:
    desk = Desk()
    fine, failed, said, cancelled = desk.take(0, 1, 2, 3)
    with fine:
        pass
    with pytest.raises(ValueError, match="no"), failed:
        raise ValueError("no")
    with said:
        said.reject()

    async def cancel() -> None:
        async with cancelled:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    verdicts = [record.verdict for record in (fine, failed, said, cancelled)]
    assert verdicts == [
        AcknowledgeType.ACCEPT,
        AcknowledgeType.RELEASE,
        AcknowledgeType.REJECT,
        AcknowledgeType.RELEASE,
    ]


def test_one_that_came_late_is_told_and_the_others_of_its_request_count() -> None:
    desk = Desk()
    (late,) = desk.take(0)
    desk.now += LOCK_MS + 500
    fresh = desk.take(1, 2)
    for record in (late, *fresh):
        record.accept()
    flush = desk.locks.begin_flush(lambda: None)
    part = desk.locks.take_waiting([PLACE])[PLACE]
    desk.locks.on_answered(PLACE, part, NOT_LOCKED, desk.now)
    rest = desk.locks.take_waiting([PLACE])[PLACE]
    assert offsets_of(rest) == [1, 2]
    desk.locks.on_answered(PLACE, rest, None, desk.now)
    assert [answer for record, answer in flush.answers.items() if record in fresh] == [None, None]
    answer = flush.answers[late]
    assert isinstance(answer, LockLostError)
    assert answer.late_ms == 500
    assert desk.events == [LockLost(late, AcknowledgeType.ACCEPT, 500, str(NOT_LOCKED))]


def test_a_record_that_is_delivered_again_takes_the_place_of_the_one_before() -> None:
    desk = Desk()
    held, said = desk.take(0, 1)
    said.accept()
    flush = desk.locks.begin_flush(lambda: None)
    again = desk.take(0, 1, delivery_count=2)
    assert held.lost
    held.accept()
    assert [event.record for event in desk.events if isinstance(event, LockLost)] == [held, said]
    assert isinstance(flush.answers[said], LockLostError)
    assert desk.locks.take_waiting([PLACE]) == {}
    for record in again:
        record.accept()
    assert offsets_of(desk.locks.take_waiting([PLACE])[PLACE]) == [0, 1]


def test_a_record_that_is_delivered_again_after_an_older_one_was_takes_the_place_of_the_one_before() -> None:
    desk = Desk()
    (held,) = desk.take(5)
    desk.take(1, delivery_count=2)
    (again,) = desk.take(5, delivery_count=2)
    assert (held.lost, again.lost) == (True, False)


def test_locks_that_ended_with_their_session_are_told_and_nothing_of_them_is_sent() -> None:
    desk, elsewhere = Desk(), PartitionId(PLACE.topic_id, 1)
    held, said = desk.take(0, 1)
    desk.take(0, place=elsewhere)
    said.accept()
    desk.locks.lose(PLACE, desk.now, "the connection broke")
    assert held.lost
    assert held.deadline is None
    assert desk.locks.take_waiting([PLACE]) == {}
    assert desk.locks.count([PLACE, elsewhere]) == 1


def test_a_connection_that_broke_gives_back_what_was_held_and_leaves_what_was_said() -> None:
    desk = Desk()
    held, said, other = desk.take(0, 1, 2)
    said.accept()
    desk.locks.give_back(PLACE, desk.now, "the connection broke")
    assert held.lost
    assert not said.lost
    (again,) = desk.take(2, delivery_count=2)
    parts = [desk.locks.take_waiting([PLACE])[PLACE] for _ in range(2)]
    assert [(each.offset, each.verdict) for part in parts for each in part] == [
        (1, AcknowledgeType.ACCEPT),
        (0, AcknowledgeType.RELEASE),
    ]
    desk.locks.on_answered(PLACE, parts[1], NOT_LOCKED, desk.now)
    assert desk.locks.take_waiting([PLACE]) == {}
    assert desk.locks.waiting_since([PLACE]) == math.inf
    assert [event.record for event in desk.events if isinstance(event, LockLost)] == [held, other]
    assert not again.lost


def test_what_is_held_long_after_its_lock_ended_is_lost_and_takes_no_room() -> None:
    desk = Desk()
    hung, renewed = desk.take(0, 1)
    desk.now += LOCK_MS - 1
    desk.locks.on_renewed([renewed], desk.now)
    assert desk.locks.over_at([PLACE]) > desk.now
    desk.now = desk.locks.over_at([PLACE])
    desk.locks.lose_over([PLACE], desk.now)
    assert (hung.lost, renewed.lost) == (True, False)
    assert desk.locks.count([PLACE]) == 1
    assert desk.events == [LockLost(hung, None, 0.0, "its time was up")]
    assert desk.locks.over_at([PLACE]) == (renewed.deadline or 0) * 1_000 + 5_000


def test_all_locks_end_with_the_consumer_and_what_was_not_sent_does_not_count() -> None:
    desk = Desk()
    held, said = desk.take(0, 1)
    said.accept()
    flush = desk.locks.begin_flush(lambda: None)
    desk.locks.end(desk.now, "closed")
    assert held.lost
    assert not desk.locks.any_held
    assert isinstance(flush.answers[said], LockLostError)
    assert desk.events == [LockLost(said, AcknowledgeType.ACCEPT, 0.0, "closed")]
    held.accept()
    assert desk.locks.unanswered == 0


def test_nothing_waits_when_all_that_waited_was_delivered_again() -> None:
    desk = Desk()
    (record,) = desk.take(0)
    record.accept()
    desk.take(0, delivery_count=2)
    assert desk.locks.waiting_since([PLACE]) == math.inf
    assert desk.locks.take_waiting([PLACE]) == {}


def test_an_offset_without_a_record_that_is_acquired_again_is_named_once() -> None:
    desk = Desk()
    desk.locks.take(PLACE, [], [Gap(4, AcknowledgeType.GAP, LOCK_MS)], desk.now)
    desk.now += LOCK_MS
    again = Gap(4, AcknowledgeType.GAP, desk.now + LOCK_MS)
    desk.locks.take(PLACE, [], [again], desk.now)
    assert desk.locks.take_waiting([PLACE]) == {PLACE: [again]}


def test_a_record_that_is_acquired_again_without_one_to_deliver_is_lost() -> None:
    desk = Desk()
    held, said = desk.take(0, 1)
    said.accept()
    desk.now += LOCK_MS
    again = [Gap(offset, AcknowledgeType.RELEASE, desk.now + LOCK_MS) for offset in (0, 1)]
    desk.locks.take(PLACE, [], again, desk.now)
    assert [event.record for event in desk.events if isinstance(event, LockLost)] == [held, said]
    assert not desk.locks.any_held
    assert desk.locks.take_waiting([PLACE]) == {PLACE: again}


def test_an_answer_that_was_lost_leaves_open_whether_it_counts() -> None:
    desk = Desk()
    (record,) = desk.take(0)
    record.accept()
    flush, error = desk.locks.begin_flush(lambda: None), BrokerConnectionError("localhost:9", "gone")
    desk.locks.on_unanswered(desk.locks.take_waiting([PLACE])[PLACE], error)
    assert flush.answers == {record: error}
    assert desk.events == []


def test_what_the_broker_did_not_take_is_sent_first() -> None:
    desk = Desk()
    one, other = desk.take(0, 1)
    one.accept()
    taken = desk.locks.take_waiting([PLACE])
    other.accept()
    desk.locks.put_back(PLACE, taken[PLACE], KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH), desk.now)
    assert offsets_of(desk.locks.take_waiting([PLACE])[PLACE]) == [0]
    assert offsets_of(desk.locks.take_waiting([PLACE])[PLACE]) == [1]


# renewals


def test_locks_are_renewed_when_a_third_is_left_until_the_longest_time_of_processing() -> None:
    desk = Desk(max_processing_ms=70_000)
    held, done = desk.take(0, 1)
    done.accept()
    renewed = []
    for _ in range(100):
        desk.now = desk.locks.renew_at([PLACE])
        if desk.now == math.inf:
            break
        due = desk.locks.due_renewals([PLACE], desk.now)
        assert due == {PLACE: [held]}
        renewed.append(desk.now - 1_000)
        desk.locks.on_renewed([held], desk.now)
        desk.locks.plan_renewals([PLACE], desk.now)
    assert renewed == pytest.approx([20_000, 40_000])
    assert held.deadline == pytest.approx(71)


def test_a_renewal_that_is_asked_for_is_due_at_once_for_that_record_alone() -> None:
    desk = Desk()
    asked, other = desk.take(0, 1)
    asked.renew()
    assert desk.locks.renew_at([PLACE]) == -math.inf
    assert desk.locks.due_renewals([PLACE], desk.now) == {PLACE: [asked]}
    desk.locks.on_renewed([asked], desk.now + 5)
    assert asked.deadline == (desk.now + 5 + LOCK_MS) / 1_000
    assert other.deadline == (desk.now + LOCK_MS) / 1_000


def test_a_renewal_that_is_not_refused_says_nothing_of_a_lock_that_had_ended_when_it_was_asked_for() -> None:
    """Others may have completed the record, as when this process stood still; brokers pass over that."""
    desk = Desk()
    (record,) = desk.take(0)
    ended_at = record.deadline
    desk.now += LOCK_MS
    desk.locks.on_renewed(desk.locks.due_renewals([PLACE], desk.now)[PLACE], desk.now)
    assert record.deadline == ended_at
    desk.locks.lose_over([PLACE], desk.now + 5_000)
    assert record.lost


def test_a_renewal_that_is_refused_shows_that_the_lock_has_ended() -> None:
    desk = Desk()
    (record,) = desk.take(0)
    desk.locks.on_not_renewed(record, NOT_LOCKED, desk.now)
    assert record.lost
    assert desk.locks.count([PLACE]) == 0
    assert desk.events == [LockLost(record, None, 0.0, str(NOT_LOCKED))]


# any order of steps


@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "accept", "send", "lose", "expire"]), st.integers(0, 5)),
        max_size=60,
    )
)
def test_each_verdict_is_answered_once_and_counts_only_if_the_broker_had_the_record_locked(
    steps: list[tuple[str, int]],
) -> None:
    """The broker of this model does all of a request's verdicts on a partition, or nothing."""
    desk = Desk()
    given_last: dict[int, ShareRecord] = {}
    locked: dict[int, ShareRecord] = {}
    counted: set[ShareRecord] = set()
    said: list[ShareRecord] = []
    flushes = [desk.locks.begin_flush(lambda: None)]

    def send() -> None:
        for place, part in desk.locks.take_waiting([PLACE]).items():
            records = [each for each in part if isinstance(each, ShareRecord)]
            fine = all(locked.get(record.offset) is record for record in records)
            if fine:
                counted.update(records)
                for record in records:
                    del locked[record.offset]
            desk.locks.on_answered(place, part, None if fine else NOT_LOCKED, desk.now)

    for step, offset in steps:
        desk.now += 1
        if step == "take" and offset not in locked:
            (given_last[offset],) = desk.take(offset)
            locked[offset] = given_last[offset]
        elif step == "accept" and offset in given_last and given_last[offset].verdict is None:
            was_lost = given_last[offset].lost
            given_last[offset].accept()
            if not was_lost:
                said.append(given_last[offset])
                flushes.append(desk.locks.begin_flush(lambda: None))
        elif step == "send":
            send()
        elif step == "lose":
            locked.clear()
            desk.locks.lose(PLACE, desk.now, "the connection broke")
        elif step == "expire":
            locked.pop(offset, None)
    for _ in range(2 * len(said) + 2):
        send()
    assert desk.locks.unanswered == 0
    assert not any(flush.left for flush in flushes)
    answers = {record: answer for flush in flushes for record, answer in flush.answers.items()}
    assert answers.keys() == set(said)
    assert {record for record, answer in answers.items() if answer is None} == counted
