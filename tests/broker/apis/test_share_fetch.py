"""ShareFetch: sessions, what is given to whom, waiting, and what is refused."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.apis.share_members import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Place,
    ShareMember,
    acquired,
    initialize,
    offsets_in,
    row_of,
)
from tests.broker.wire import Wire, batch, create_topic, produce, produce_fields

pytestmark = pytest.mark.kafka


@pytest.fixture
def at(bootstrap: str) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(bootstrap, stack)


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_given_once_with_their_lock(at: Place, version: int) -> None:
    at.produce(5, 5)
    one = at.member("m", version)
    answer = one.fetch_all(at.topic_id, 0)
    row = row_of(answer)
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert (row.error_code, row.acknowledge_error_code) == (0, 0)
    assert (acquired(row), offsets_in(row)) == ([(0, 9, 1)], [(0, 4), (5, 9)])
    assert one.fetch(max_wait_ms=100) is None
    assert acquired(at.member("other").fetch(at.topic_id, 0, max_wait_ms=100)) == []


def test_max_records_is_reached_in_whole_batches_and_batch_size_cuts_the_ranges(at: Place) -> None:
    at.produce(5, 5, 5, 5, 5, 5)
    first = at.member("a").fetch(at.topic_id, 0, max_records=7)
    assert (acquired(first), offsets_in(first)) == ([(0, 9, 1)], [(0, 4), (5, 9)])
    second = at.member("b").fetch(at.topic_id, 0, max_records=500, batch_size=7)
    assert acquired(second) == [(10, 19, 1), (20, 29, 1)]


def test_a_strict_fetch_gives_no_more_than_it_asked_for_and_the_batch_whole(at: Place) -> None:
    at.produce(10)
    first = at.member("a").fetch(at.topic_id, 0, max_records=4, share_acquire_mode=1)
    assert (acquired(first), offsets_in(first)) == ([(0, 3, 1)], [(0, 9)])
    second = at.member("b").fetch(at.topic_id, 0, max_records=4, share_acquire_mode=1)
    assert (acquired(second), offsets_in(second)) == ([(4, 7, 1)], [(0, 9)])


def test_an_unknown_acquire_mode_is_refused(at: Place) -> None:
    answer = at.member().fetch_all(at.topic_id, 0, share_acquire_mode=2)
    assert answer.error_code in (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_who_opens_a_session_is_told_of_all_its_partitions(at: Place) -> None:
    one = at.member()
    assert acquired(one.fetch(at.topic_id, 0, max_wait_ms=100)) == []
    assert one.fetch(at.topic_id, 0, max_wait_ms=100) is None, "later only of those with news"
    row = one.fetch(at.topic_id, 0, max_wait_ms=100, epoch=0)
    assert (row.partition_index, row.error_code, row.records) == (0, 0, b"")


@pytest.mark.parametrize("nothing", [{"max_records": 0}, {"max_bytes": 0}])
def test_a_fetch_of_nothing_is_answered_at_once(at: Place, nothing: dict[str, int]) -> None:
    at.produce(1)
    began = time.monotonic()
    assert acquired(at.member().fetch(at.topic_id, 0, max_wait_ms=3_000, **nothing)) == []
    assert time.monotonic() - began < 1


def test_a_waiting_fetch_is_woken_by_new_records(at: Place) -> None:
    one = at.member()
    one.fetch(at.topic_id, 0, max_wait_ms=300)
    asked = one.send_fetch(max_wait_ms=5_000)
    time.sleep(0.2)
    began = time.monotonic()
    at.produce(3)
    assert acquired(one.receive_row(asked)) == [(0, 2, 1)]
    assert time.monotonic() - began < 1


def test_a_fetch_waits_for_min_bytes_and_takes_what_there_is_when_the_wait_is_over(at: Place) -> None:
    at.produce(1)
    one = at.member()
    one.fetch(at.topic_id, 0, max_wait_ms=300, max_records=0)
    began = time.monotonic()
    assert acquired(one.fetch(max_wait_ms=700, min_bytes=100_000)) == [(0, 0, 1)]
    assert time.monotonic() - began > 0.65
    at.produce(1)
    asked = one.send_fetch(max_wait_ms=5_000, min_bytes=2 * len(batch()))
    time.sleep(0.2)
    began = time.monotonic()
    at.produce(1)
    assert acquired(one.receive_row(asked)) == [(1, 2, 1)]
    assert time.monotonic() - began < 1


def test_partitions_stay_in_a_session_until_they_are_forgotten(at: Place) -> None:
    one = at.member()
    one.fetch(at.topic_id, 0, max_wait_ms=100)
    at.produce(1)
    assert acquired(one.fetch()) == [(0, 0, 1)]
    at.produce(1)
    assert one.fetch(max_wait_ms=100, forgotten_topics_data=[(at.topic_id, [0])]) is None
    assert one.acknowledge(at.topic_id, (0, 0, [ACCEPT])) == (0, None), "locks stay"
    assert acquired(one.fetch(at.topic_id, 0)) == [(1, 1, 1)]


def test_a_fetch_is_given_records_of_all_its_partitions(at: Place) -> None:
    topic_id = create_topic(at.wire, f"{at.topic}-two", 2).topic_id
    initialize(at.wire, at.group, topic_id, 0, 1, start=0)
    one = at.member()
    one.fetch_all(topic_id, 0, 1, max_wait_ms=50)
    for partition in (0, 1):
        produce(at.wire, f"{at.topic}-two", batch(2), partition=partition)
    answer = one.fetch_all(max_wait_ms=2_000)
    rows = [row for topic in answer.responses for row in topic.partitions]
    assert {row.partition_index: acquired(row) for row in rows} == {0: [(0, 1, 1)], 1: [(0, 1, 1)]}


def test_the_first_share_partition_that_is_loaded_answers_a_fetch(at: Place) -> None:
    topic_id = create_topic(at.wire, f"{at.topic}-two", 2).topic_id
    initialize(at.wire, at.group, topic_id, 0, 1, start=0)
    for partition in (0, 1):
        produce(at.wire, f"{at.topic}-two", batch(2), partition=partition)
    one = at.member()
    given = [
        [row.partition_index for topic in answer.responses for row in topic.partitions if row.records]
        for answer in (one.fetch_all(topic_id, 0, 1), one.fetch_all())
    ]
    assert sorted(given) == [[0], [1]]


def test_acknowledgements_in_a_fetch_come_first(at: Place) -> None:
    at.produce(4)
    one = at.member()
    one.fetch(at.topic_id, 0)
    at.produce(2)
    row = one.fetch(at.topic_id, said={0: [(0, 1, [ACCEPT]), (2, 3, [ACCEPT, REJECT])]})
    assert (row.error_code, row.acknowledge_error_code) == (0, 0)
    assert acquired(row) == [(4, 5, 1)]
    row = one.fetch(at.topic_id, said={0: [(0, 3, [ACCEPT])]}, max_wait_ms=100)
    assert (row.acknowledge_error_code, acquired(row)) == (0, []), "below the start offset it is done"


def test_a_refused_acknowledgement_does_not_keep_records_back(at: Place) -> None:
    at.produce(2)
    one = at.member()
    one.fetch(at.topic_id, 0)
    at.produce(2)
    row = one.fetch(at.topic_id, said={0: [(0, 9, [ACCEPT])]})
    assert row.acknowledge_error_code == ErrorCode.INVALID_REQUEST
    assert (row.error_code, acquired(row)) == (0, [(2, 3, 1)])


def test_a_closing_fetch_gives_back_what_the_member_has(at: Place) -> None:
    at.produce(6)
    one = at.member("a")
    one.fetch(at.topic_id, 0)
    answer = one.fetch_all(at.topic_id, said={0: [(0, 2, [ACCEPT])]}, epoch=-1)
    row = row_of(answer)
    assert (row.acknowledge_error_code, acquired(row)) == (0, [])
    assert acquired(at.member("b").fetch(at.topic_id, 0)) == [(3, 5, 2)]
    assert one.fetch_all(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_closed_connection_gives_back_what_its_member_has(at: Place) -> None:
    at.produce(3)
    one, other = at.member("a"), at.member("b")
    one.fetch(at.topic_id, 0)
    other.fetch(at.topic_id, 0, max_wait_ms=50)
    one.wire.close()
    deadline = time.monotonic() + 10
    while not (given := acquired(other.fetch(max_wait_ms=300))):
        assert time.monotonic() < deadline
    assert given == [(0, 2, 2)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"epoch": 5}, ErrorCode.INVALID_SHARE_SESSION_EPOCH, id="another epoch"),
        pytest.param({"member_id": "x", "epoch": 1}, ErrorCode.SHARE_SESSION_NOT_FOUND, id="no session"),
        pytest.param({"member_id": "x", "epoch": -1}, ErrorCode.SHARE_SESSION_NOT_FOUND, id="none to close"),
        pytest.param({"member_id": None, "epoch": 1}, ErrorCode.INVALID_REQUEST, id="null member"),
        pytest.param({"member_id": "", "epoch": 1}, ErrorCode.INVALID_REQUEST, id="empty member"),
        pytest.param({"member_id": "x" * 37, "epoch": 1}, ErrorCode.INVALID_REQUEST, id="long member"),
        pytest.param({"group_id": None, "epoch": 1}, ErrorCode.INVALID_REQUEST, id="null group"),
        pytest.param(
            {"epoch": 1, "is_renew_ack": True}, ErrorCode.INVALID_REQUEST, id="renewals and a fetch"
        ),
    ],
)
def test_what_is_refused_as_a_whole(at: Place, fields: dict[str, object], code: ErrorCode) -> None:
    one = at.member()
    one.fetch(at.topic_id, 0, max_wait_ms=50)
    answer = (
        one.fetch_all(max_wait_ms=50, **{"epoch": 1} | fields)
        if "is_renew_ack" not in fields
        else (one.fetch_all(epoch=1, is_renew_ack=True, max_wait_ms=50))
    )
    assert (answer.error_code, list(answer.responses)) == (code, [])


def test_acknowledgements_with_the_opening_epoch_are_refused(at: Place) -> None:
    answer = at.member().fetch_all(at.topic_id, said={0: [(0, 0, [ACCEPT])]}, epoch=0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_the_session_goes_on_after_a_wrong_epoch(at: Place) -> None:
    one = at.member()
    one.fetch(at.topic_id, 0, max_wait_ms=50)
    assert one.fetch_all(epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert one.fetch_all(epoch=1, max_wait_ms=50).error_code == 0


def test_a_session_that_is_opened_again_keeps_the_locks(at: Place) -> None:
    at.produce(3)
    one = at.member()
    one.fetch(at.topic_id, 0)
    one.fetch(at.topic_id, 0, epoch=0, max_wait_ms=50)
    assert one.acknowledge(at.topic_id, (0, 2, [ACCEPT])) == (0, None)


def test_a_partition_that_the_topic_lacks_fails_alone(at: Place) -> None:
    at.produce(1)
    answer = at.member().fetch_all(at.topic_id, 0, 7)
    ((first, second),) = [topic.partitions for topic in answer.responses]
    rows = {row.partition_index: row for row in (first, second)}
    assert rows[7].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert acquired(rows[0]) == [(0, 0, 1)]


def test_released_records_come_again_with_a_higher_count_until_they_are_archived(at: Place) -> None:
    at.produce(1)
    one = at.member()
    one.fetch(at.topic_id, 0, max_wait_ms=100, max_records=0)
    for count in range(1, 6):
        assert acquired(one.fetch()) == [(0, 0, count)]
        assert one.acknowledge(at.topic_id, (0, 0, [RELEASE])) == (0, None)
    assert one.fetch(max_wait_ms=100) is None


def test_renewals_in_a_fetch(at: Place) -> None:
    at.produce(2)
    one = at.member()
    one.fetch(at.topic_id, 0)
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    row = one.fetch(at.topic_id, said={0: [(0, 1, [RENEW])]}, is_renew_ack=True, **nothing)
    assert row.acknowledge_error_code == 0
    row = one.fetch(at.topic_id, said={0: [(0, 1, [RENEW])]}, **nothing)
    assert row.acknowledge_error_code == ErrorCode.INVALID_REQUEST


def test_a_new_group_begins_at_the_end_and_with_the_next_record(at: Place) -> None:
    at.produce(3)
    group = f"g-{uuid.uuid4().hex[:10]}"
    initialize(at.wire, group, at.topic_id, 0)
    with ShareMember(at.bootstrap, group, "m") as one:
        assert acquired(one.fetch(at.topic_id, 0, max_wait_ms=500)) == []
        at.produce(2)
        assert acquired(one.fetch()) == [(3, 4, 1)]


def test_aborted_records_are_given_to_nobody_if_the_group_reads_committed(at: Place) -> None:
    level = [("share.isolation.level", 0, "read_committed")]
    at.wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[(32, at.group, level)], validate_only=False)
    at.produce(2)
    end_transaction(at.wire, at.topic, commit=False)
    end_transaction(at.wire, at.topic, commit=True)
    one = at.member()
    given: list[tuple[int, int, int]] = []
    deadline = time.monotonic() + 10
    # 0-1, aborted 2-3 and its marker 4, committed 5-6 and its marker 7
    while time.monotonic() < deadline and not (given and given[-1][1] == 7):
        given += acquired(one.fetch(at.topic_id, 0, max_wait_ms=200))
    offsets = [offset for first, last, _ in given for offset in range(first, last + 1)]
    assert offsets == [0, 1, 4, 5, 6, 7]
    assert one.acknowledge(at.topic_id, (0, 1, [ACCEPT]), (4, 7, [ACCEPT])) == (0, None)


def end_transaction(wire: Wire, topic: str, *, commit: bool) -> None:
    """Write two records in a transaction, and end it."""
    transactional_id = f"x-{uuid.uuid4().hex[:8]}"
    wait_for(
        lambda: wire.call(
            ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[transactional_id]
        ).coordinators[0]
    )
    made = wait_for(
        lambda: wire.call(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=10_000
        )
    )
    who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    wire.call(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=[(topic, [0])],
    )
    fields = produce_fields(topic, batch(2, transactional=True, base_sequence=0, **who))
    answer = wire.call(ApiKey.PRODUCE, 9, **fields | {"transactional_id": transactional_id})
    assert answer.responses[0].partition_responses[0].error_code == 0
    wait_for(lambda: wire.call(ApiKey.END_TXN, 3, transactional_id=transactional_id, committed=commit, **who))


def wait_for(call: Callable[[], Any]) -> Any:
    """The answer once it has no error."""
    deadline = time.monotonic() + 15
    while (answer := call()).error_code:
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return answer
