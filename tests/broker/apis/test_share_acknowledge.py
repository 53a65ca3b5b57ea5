"""ShareAcknowledge: what becomes of records, and what is refused with which words."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kohort.protocol import ErrorCode
from tests.broker.apis.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Place,
    Said,
    ShareMember,
    acquired,
)
from tests.broker.wire import create_topic

pytestmark = pytest.mark.kafka

STATE, REQUEST = ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST

NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
NOT_OWNER = "Member is not the owner of batch record"
NOT_OWNER_OF_OFFSET = "Member is not the owner of offset"


@pytest.fixture
def at(bootstrap: str) -> Iterator[Place]:
    """The topic has a record batch of 10 and one of 5."""
    with ExitStack() as stack:
        place = Place(bootstrap, stack)
        place.produce(10, 5)
        yield place


@pytest.fixture
def holder(at: Place) -> ShareMember:
    """A member that has the first record batch."""
    one = at.member("holder")
    assert acquired(one.fetch(at.topic_id, 0, max_records=1)) == [(0, 9, 1)]
    return one


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_accepted_or_rejected_is_not_given_again(at: Place, version: int) -> None:
    one = at.member("m", version)
    one.fetch(at.topic_id, 0, max_records=1)
    answer = one.acknowledge_all(at.topic_id, (0, 3, [ACCEPT]), (4, 5, [REJECT, GAP]), (6, 9, [RELEASE]))
    assert [tuple(row)[:3] for topic in answer.responses for row in topic.partitions] == [(0, 0, None)]
    assert (answer.error_code, answer.acquisition_lock_timeout_ms) == (0, 30_000 if version == 2 else 0)
    assert acquired(one.fetch()) == [(6, 9, 2), (10, 14, 1)]


def test_renewed_locks_are_told_how_long_they_last(at: Place, holder: ShareMember) -> None:
    answer = holder.acknowledge_all(at.topic_id, (0, 9, [RENEW]), is_renew_ack=True)
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert holder.acknowledge(at.topic_id, (0, 9, [ACCEPT])) == (0, None)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([(5, 4, [ACCEPT])], id="first above last"),
        pytest.param([(5, 9, [ACCEPT]), (0, 4, [ACCEPT])], id="out of order"),
        pytest.param([(0, 5, [ACCEPT]), (4, 9, [ACCEPT])], id="overlapping"),
        pytest.param([(0, 9, [])], id="no type"),
        pytest.param([(0, 9, [ACCEPT, ACCEPT])], id="another number of types"),
        pytest.param([(0, 9, [5])], id="unknown type"),
        pytest.param([(0, 9, [-1])], id="negative type"),
        pytest.param([(0, 9, [RENEW])], id="a renewal that was not announced"),
    ],
)
def test_malformed_ranges_are_refused_without_a_message(
    at: Place, holder: ShareMember, said: list[Said]
) -> None:
    code, message = holder.acknowledge(at.topic_id, *said)
    assert (code, message or None) == (REQUEST, None)
    assert holder.acknowledge(at.topic_id, (0, 9, [ACCEPT])) == (0, None), "nothing of it was done"


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        pytest.param(
            [(20, 21, [ACCEPT])],
            (REQUEST, "Batch record not found. The first offset in request is past acquired records."),
            id="above all",
        ),
        pytest.param(
            [(5, 12, [ACCEPT])],
            (REQUEST, "Batch record not found. The last offset in request is past acquired records."),
            id="beyond the end",
        ),
    ],
)
def test_what_was_never_acquired_is_refused(
    at: Place, holder: ShareMember, said: list[Said], refusal: tuple[int, str]
) -> None:
    assert holder.acknowledge(at.topic_id, *said) == refusal
    assert holder.acknowledge(at.topic_id, (0, 9, [ACCEPT])) == (0, None)


Step = tuple[list[Said], tuple[int, str | None]]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [([(0, 9, [RELEASE])], (0, None)), ([(0, 9, [ACCEPT])], (STATE, NOT_ACQUIRED))],
            id="whole, then whole",
        ),
        pytest.param(
            [([(0, 9, [RELEASE])], (0, None)), ([(2, 3, [ACCEPT])], (STATE, NOT_ACQUIRED))],
            id="whole, then a part",
        ),
        pytest.param(
            [([(2, 3, [RELEASE])], (0, None)), ([(2, 3, [ACCEPT])], (STATE, OFFSET_NOT_ACQUIRED))],
            id="a part, then the same",
        ),
        pytest.param(
            [([(2, 3, [RELEASE])], (0, None)), ([(0, 9, [ACCEPT])], (STATE, OFFSET_NOT_ACQUIRED))],
            id="a part, then the whole",
        ),
        pytest.param(
            [([(2, 3, [ACCEPT])], (0, None)), ([(0, 9, [ACCEPT])], (STATE, OFFSET_NOT_ACQUIRED))],
            id="a part accepted, then the whole",
        ),
        pytest.param(
            [([(0, 3, [ACCEPT]), (3, 9, [ACCEPT])], (STATE, OFFSET_NOT_ACQUIRED))],
            id="one offset twice",
        ),
        pytest.param(
            [([(0, 3, [ACCEPT])], (0, None)), ([(0, 3, [ACCEPT])], (0, None))],
            id="below the start",
        ),
    ],
)
def test_what_is_in_nobodys_hands_is_refused_with_apache_kafkas_words(
    at: Place, holder: ShareMember, steps: list[Step]
) -> None:
    for said, outcome in steps:
        assert holder.acknowledge(at.topic_id, *said) == outcome


@pytest.mark.parametrize(
    ("before", "said", "refusal"),
    [
        pytest.param([], (0, 9, [ACCEPT]), NOT_OWNER, id="the whole"),
        pytest.param([], (2, 3, [ACCEPT]), NOT_OWNER, id="a part of the whole"),
        pytest.param([(0, 1, [RENEW])], (2, 3, [ACCEPT]), NOT_OWNER_OF_OFFSET, id="a part of parts"),
    ],
)
def test_what_another_member_has_is_refused(
    at: Place, holder: ShareMember, before: list[Said], said: Said, refusal: str
) -> None:
    if before:
        holder.acknowledge(at.topic_id, *before, is_renew_ack=True)
    other = at.member("other")
    other.fetch(at.topic_id, 0)
    assert other.acknowledge(at.topic_id, said) == (STATE, refusal)
    assert holder.acknowledge(at.topic_id, (0, 9, [ACCEPT])) == (0, None)


def test_nothing_in_flight(at: Place, holder: ShareMember) -> None:
    assert holder.acknowledge(at.topic_id, (0, 9, [ACCEPT])) == (0, None)
    words = "Batch record not found. The request batch offsets are not found in the cache."
    assert holder.acknowledge(at.topic_id, (10, 12, [ACCEPT])) == (STATE, words)


def test_a_partition_that_was_never_fetched_here_is_unknown(at: Place) -> None:
    topic_id = create_topic(at.wire, f"{at.topic}-other").topic_id
    one = at.member()
    one.fetch(max_wait_ms=50)
    words = "This server does not host this topic-partition."
    told = one.acknowledge(topic_id, (0, 0, [ACCEPT]))
    assert told == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)


def test_of_a_partition_that_is_named_twice_the_last_row_counts(at: Place, holder: ShareMember) -> None:
    twice = [(at.topic_id, [(0, [(50, 60, [ACCEPT])]), (0, [(0, 4, [RELEASE])])])]
    answer = holder.acknowledge_all(at.topic_id, topics=twice)
    assert [row.error_code for topic in answer.responses for row in topic.partitions] == [0]
    twice = [(at.topic_id, [(0, [(5, 6, [ACCEPT])]), (0, [(50, 60, [ACCEPT])])])]
    answer = holder.acknowledge_all(at.topic_id, topics=twice)
    assert [row.error_code for topic in answer.responses for row in topic.partitions] == [REQUEST]
    assert holder.acknowledge(at.topic_id, (5, 6, [ACCEPT])) == (0, None), "nothing was done about them"
    assert holder.acknowledge(at.topic_id, (0, 4, [ACCEPT])) == (STATE, OFFSET_NOT_ACQUIRED), (
        "it was released"
    )


def test_an_unknown_topic_fails_alone(holder: ShareMember) -> None:
    code, _ = holder.acknowledge(uuid.uuid4(), (0, 0, [ACCEPT]))
    assert code == ErrorCode.UNKNOWN_TOPIC_ID


def test_one_partition_is_refused_and_the_other_is_not(at: Place, holder: ShareMember) -> None:
    answer = holder.acknowledge_all(
        None, topics=[(at.topic_id, [(0, [(0, 9, [ACCEPT])]), (7, [(0, 0, [ACCEPT])])])]
    )
    codes = {row.partition_index: row.error_code for topic in answer.responses for row in topic.partitions}
    assert codes == {0: 0, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_another_connection_of_the_member_may_acknowledge(at: Place, holder: ShareMember) -> None:
    again = at.member("holder")
    again.fetch(at.topic_id, 0, max_records=0)
    assert again.acknowledge(at.topic_id, (0, 4, [ACCEPT])) == (0, None)
    assert holder.acknowledge_all(at.topic_id, (5, 9, [ACCEPT])).error_code == (
        ErrorCode.INVALID_SHARE_SESSION_EPOCH
    ), "its session is the other's"
    assert again.acknowledge(at.topic_id, (5, 9, [ACCEPT])) == (0, None)


def test_a_closing_request_gives_back_the_rest(at: Place, holder: ShareMember) -> None:
    answer = holder.acknowledge_all(at.topic_id, (0, 4, [ACCEPT]), epoch=-1)
    assert answer.error_code == 0
    assert acquired(at.member("other").fetch(at.topic_id, 0, max_records=1)) == [(5, 9, 2)]
    assert holder.acknowledge_all(at.topic_id, epoch=2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"epoch": 0}, ErrorCode.INVALID_SHARE_SESSION_EPOCH, id="opening"),
        pytest.param({"epoch": 9}, ErrorCode.INVALID_SHARE_SESSION_EPOCH, id="another epoch"),
        pytest.param({"epoch": 1, "member_id": "x"}, ErrorCode.SHARE_SESSION_NOT_FOUND, id="no session"),
        pytest.param({"epoch": 1, "member_id": ""}, REQUEST, id="empty member"),
        pytest.param({"epoch": 1, "member_id": None}, REQUEST, id="null member"),
        pytest.param({"epoch": 1, "member_id": "x" * 37}, REQUEST, id="a member with a long id"),
        pytest.param({"epoch": 1, "group_id": None}, REQUEST, id="null group"),
    ],
)
def test_what_is_refused_as_a_whole(
    at: Place, holder: ShareMember, fields: dict[str, object], code: ErrorCode
) -> None:
    answer = holder.acknowledge_all(at.topic_id, (0, 9, [ACCEPT]), **fields)
    assert (answer.error_code, list(answer.responses)) == (code, [])
    assert holder.acknowledge(at.topic_id, (0, 9, [ACCEPT])) == (0, None), "the session goes on"
