"""Share groups where this broker does better than Apache Kafka, and what its settings allow.

Covers: broker/apis/_share.py.
"""

from __future__ import annotations

import select
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import RunningBroker, running_broker
from tests.broker.apis.share_members import (
    ACCEPT,
    RELEASE,
    Place,
    Said,
    ShareMember,
    acquired,
    initialize,
    row_of,
)
from tests.broker.share_requests import set_share_version
from tests.broker.wire import batch, create_topic, produce


@pytest.fixture(scope="module")
def own() -> Iterator[RunningBroker]:
    with running_broker(group_share_max_share_sessions=3) as running:
        yield running


@pytest.fixture
def at(own: RunningBroker) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(own.bootstrap, stack)


@pytest.mark.parametrize("how", ["unknown", "deleted"])
def test_a_topic_that_is_not_there_fails_alone(at: Place, how: str) -> None:
    one, gone = at.member(), uuid.uuid4()
    if how == "deleted":
        gone = create_topic(at.wire, f"{at.topic}-gone").topic_id
        initialize(at.wire, at.group, gone, 0, start=0)
        one.fetch_all(gone, 0, max_wait_ms=50)
        at.wire.call(ApiKey.DELETE_TOPICS, 6, topics=[(None, gone)], timeout_ms=5_000)
    at.produce(2)
    topics: list[Any] = [(at.topic_id, [(0, [])]), (gone, [(0, [])])]
    for size in (2, 3):
        answer = one.fetch_all(topics=topics, max_wait_ms=2_000)
        rows = {topic.topic_id: topic.partitions[0] for topic in answer.responses}
        assert answer.error_code == 0
        assert rows[gone].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert acquired(rows[at.topic_id])[0][1] + 1 == {2: 2, 3: 5}[size]
        at.produce(3)
        topics = []


@pytest.mark.parametrize("how", ["acknowledgement", "closing session"])
def test_what_is_given_back_wakes_whoever_waits(at: Place, how: str) -> None:
    at.produce(4)
    one, other = at.member("a"), at.member("b")
    one.fetch(at.topic_id, 0)
    other.fetch(at.topic_id, 0, max_wait_ms=50)
    asked = other.send_fetch(max_wait_ms=15_000)
    time.sleep(0.2)
    began = time.monotonic()
    if how == "acknowledgement":
        one.acknowledge(at.topic_id, (0, 3, [RELEASE]))
    else:
        one.acknowledge_all(at.topic_id, epoch=-1)
    assert acquired(other.receive_row(asked)) == [(0, 3, 2)]
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("opened_again", [False, True])
def test_a_fetch_whose_session_ended_while_it_waited_acquires_nothing(at: Place, opened_again: bool) -> None:
    one, same, other = at.member(), at.member(), at.member("other")
    one.fetch(at.topic_id, 0, max_records=0)
    number = one.send_fetch(max_wait_ms=2_000)
    while same.acknowledge_all(None, epoch=2).error_code:
        pass  # the fetch, which has epoch 1, has not come yet
    assert same.acknowledge_all(None, epoch=-1).error_code == ErrorCode.NONE
    if opened_again:
        same.fetch(at.topic_id, 0, epoch=0, max_records=0)
    other.fetch(at.topic_id, 0, max_records=0)
    at.produce(3)
    assert acquired(other.fetch()) == [(0, 2, 1)]
    answer = one.receive(number)
    assert answer.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert not answer.responses


def test_a_session_of_very_many_partitions_holds_up_nobody(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.broker.event_loop.time_slices.SLICE_S", 0.0)
    one = at.member()
    rest: list[tuple[int, list[Said]]] = [(number, []) for number in range(1_000)]
    number = one.send_fetch(topics=[(uuid.uuid4(), rest) for _ in range(9)], max_records=0)
    at.wire.call(ApiKey.API_VERSIONS, 3, client_software_name="x", client_software_version="1")
    assert select.select([one.wire.socket], [], [], 0) == ([], [], []), "it is answered later"
    answer = one.receive(number)
    assert sum(len(topic.partitions) for topic in answer.responses) == 9_000


def test_a_fetch_gets_few_while_others_do_not_take_their_responses(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.broker.share.share_leader.MOST_UNSENT_BYTES", 0)
    monkeypatch.setattr("kohort.broker.share.share_leader.FEW_BYTES", 1)
    one = at.member()
    at.produce(2, 2, 2)
    assert acquired(one.fetch(at.topic_id, 0)) == [(0, 1, 1)]
    assert acquired(one.fetch()) == [(2, 3, 1)]


def test_members_that_wait_are_served_in_turn(at: Place) -> None:
    members = [at.member(name) for name in "abc"]
    asked = [(one, one.send_fetch(at.topic_id, 0, max_wait_ms=15_000, max_records=1)) for one in members]
    time.sleep(0.3)
    at.produce(1, 1, 1)
    assert sorted(acquired(one.receive_row(number))[0][0] for one, number in asked) == [0, 1, 2]


def test_more_sessions_than_allowed_are_refused_when_the_wait_is_over(at: Place) -> None:
    members = [at.member(name) for name in "abcd"]
    for one in members[:3]:
        assert one.fetch_all(at.topic_id, 0, max_wait_ms=10).error_code == 0
    began = time.monotonic()
    answer = members[3].fetch_all(at.topic_id, 0, max_wait_ms=300)
    assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert time.monotonic() - began >= 0.3
    members[0].acknowledge_all(at.topic_id, epoch=-1)
    assert members[3].fetch_all(at.topic_id, 0, max_wait_ms=10, epoch=0).error_code == 0


def test_partitions_share_what_the_limits_of_a_fetch_allow(at: Place) -> None:
    topic_id = create_topic(at.wire, f"{at.topic}-wide", 3).topic_id
    initialize(at.wire, at.group, topic_id, 0, 1, 2, start=0)
    for partition in range(3):
        for _ in range(4):
            produce(at.wire, f"{at.topic}-wide", batch(10), partition=partition)
    size = len(batch(10))
    answer = at.member("a").fetch_all(topic_id, 0, 1, 2, max_bytes=6 * size)
    # the first fetch acquires from those that are loaded
    counts = {row.partition_index: len(row.records) for topic in answer.responses for row in topic.partitions}
    assert 0 < sum(counts.values()) <= 6 * size
    second = at.member("b").fetch_all(topic_id, 0, 1, 2, max_records=15)
    taken = [each for topic in second.responses for row in topic.partitions for each in acquired(row)]
    assert 15 <= sum(last - first + 1 for first, last, _ in taken) < 25


def test_a_session_of_a_former_connection_ends_with_it_alone(at: Place) -> None:
    at.produce(2)
    first, second = at.member(), at.member()
    first.fetch(at.topic_id, 0)
    second.fetch(at.topic_id, 0, max_wait_ms=50)
    first.wire.close()
    time.sleep(0.1)
    assert second.acknowledge(at.topic_id, (0, 1, [ACCEPT])) == (0, None)


def test_a_session_that_goes_on_over_another_connection_does_not_end_with_the_first(at: Place) -> None:
    at.produce(2)
    first, second = at.member(), at.member()
    first.fetch(at.topic_id, 0)
    second.epoch = first.epoch
    second.fetch(at.topic_id, 0, max_wait_ms=50)
    first.wire.close()
    time.sleep(0.1)
    assert second.acknowledge(at.topic_id, (0, 1, [ACCEPT])) == (0, None)


def test_a_response_over_a_quota_has_its_records(at: Place) -> None:
    alter: dict[str, Any] = {
        "entries": [([("client-id", "wire")], [("consumer_byte_rate", 2_000.0, False)])],
        "validate_only": False,
    }
    at.produce(500, 500)
    at.wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter)
    try:
        one = at.member()
        answer = one.fetch_all(at.topic_id, 0, max_bytes=1 << 20)
        assert answer.throttle_time_ms > 0
        assert acquired(row_of(answer))[0][:2] == (0, 499)
        assert len(row_of(answer).records) > 2_000
    finally:
        alter["entries"] = [([("client-id", "wire")], [("consumer_byte_rate", 0.0, True)])]
        at.wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter)


def test_with_the_feature_off_nothing_is_served() -> None:
    with running_broker() as running, ShareMember(running.bootstrap, "g", "m") as one:
        set_share_version(one.wire, 0)
        assert one.fetch_all(uuid.uuid4(), 0).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert one.acknowledge_all(uuid.uuid4()).error_code == ErrorCode.UNSUPPORTED_VERSION
