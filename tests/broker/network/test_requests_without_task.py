"""Requests that take the short way: ahead of each other, never ahead in their answers.

Covers: broker/requests/pending_response.py.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from kohort.broker.network import _connection
from kohort.broker.network._flow import MAX_AHEAD, RequestQueue
from kohort.offsets_topic import OffsetsStore
from kohort.protocol import ApiKey, ErrorCode, encode_request
from kohort.testing import RunningBroker
from tests.broker.wire import Wire, commit_fields, create_topic, part
from tests.messages import request_of

COMMIT, FETCH_OFFSETS, HEARTBEAT = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.HEARTBEAT


def committed(answer: Any) -> int:
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def refused(answer: Any) -> int:
    error: int = answer.topics[0].partitions[0].error_code
    return error


def fetch(group: str, topic: str) -> dict[str, Any]:
    wanted = part(FETCH_OFFSETS, 5, "OffsetFetchRequestTopic", name=topic, partition_indexes=[0])
    return {"group_id": group, "topics": [wanted]}


def heartbeat(group: str) -> dict[str, Any]:
    return {"group_id": group, "generation_id": 3, "member_id": "nobody"}


def join(group: str, member_id: str) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [part(ApiKey.JOIN_GROUP, 5, "JoinGroupRequestProtocol", name="range", metadata=b"")],
    }


def send_for_ever(link: socket.socket, data: bytes) -> None:
    while True:
        link.sendall(data)


def test_a_read_behind_commits_sees_the_last_of_them(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    commits = [wire.send(COMMIT, 8, **commit_fields(name, name, offset)) for offset in range(50)]
    read = wire.send(FETCH_OFFSETS, 5, **fetch(name, name))
    beat = wire.send(HEARTBEAT, 4, **heartbeat(name))
    after = wire.send(COMMIT, 8, **commit_fields(name, name, 99))
    other = wire.send(ApiKey.METADATA, 1, topics=[])
    assert {refused(wire.receive(COMMIT, 8, number)) for number in commits} == {0}
    assert committed(wire.receive(FETCH_OFFSETS, 5, read)) == 49
    assert wire.receive(HEARTBEAT, 4, beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(wire.receive(COMMIT, 8, after)) == 0
    wire.receive(ApiKey.METADATA, 1, other)
    assert committed(wire.call(FETCH_OFFSETS, 5, **fetch(name, name))) == 99


def test_an_answer_leaves_before_a_write_that_it_does_not_wait_for(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, written = threading.Event(), threading.Event()
    seen: list[bool] = []
    append = OffsetsStore.append

    def slow(*args: Any, **how: Any) -> int:
        seen.append(answered.wait(10))
        written.set()
        return append(*args, **how)

    monkeypatch.setattr(OffsetsStore, "append", slow)
    # makes the group, whose record is written, and has only its first step
    assert wire.call(ApiKey.JOIN_GROUP, 5, **join(name, "")).error_code == ErrorCode.MEMBER_ID_REQUIRED
    answered.set()
    assert written.wait(10)
    assert all(seen)


def test_more_commits_than_may_run_ahead_are_all_answered_in_order(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    body = request_of(COMMIT)(version=8, **commit_fields(name, name, 7))
    numbers = range(1_000, 1_000 + 3 * MAX_AHEAD)
    wire.socket.sendall(b"".join(bytes(encode_request(8, number, "wire", body)) for number in numbers))
    for number in numbers:
        assert refused(wire.receive(COMMIT, 8, number)) == 0


def test_no_more_bytes_than_may_wait_run_ahead(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(wire, name)
    waited: list[bytes] = []
    add = RequestQueue.add

    def adding(queue: RequestQueue, frame: bytes) -> None:
        waited.append(frame)
        add(queue, frame)

    monkeypatch.setattr(RequestQueue, "add", adding)
    monkeypatch.setattr(_connection, "MAX_WAITING_BYTES", 1_000)
    with Wire(broker.bootstrap) as other:
        last = other.send_together(
            COMMIT, 8, [commit_fields(name, name, offset, "m" * 400) for offset in range(8)]
        )
        assert [refused(other.receive(COMMIT, 8, number + 1)) for number in range(last)] == [0] * 8
    assert waited


def test_commits_of_a_client_that_leaves_at_once_are_kept(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    create_topic(wire, name)
    with Wire(broker.bootstrap) as leaving:
        leaving.send_together(COMMIT, 8, [commit_fields(name, name, offset) for offset in range(100)])
        # the first answer is there: all were read; the others are not waited for
        leaving.receive(COMMIT, 8, 1)
    deadline = time.monotonic() + 20
    while committed(wire.call(FETCH_OFFSETS, 5, **fetch(name, name))) != 99:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_client_that_closes_its_side_still_gets_the_answers_to_its_commits(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    numbers = [wire.send(COMMIT, 8, **commit_fields(name, name, offset)) for offset in range(20)]
    wire.socket.shutdown(socket.SHUT_WR)
    for number in numbers:
        assert refused(wire.receive(COMMIT, 8, number)) == 0
    assert wire.closed_by_broker()


def test_nothing_overtakes_a_join_that_waits_for_others(broker: RunningBroker, wire: Wire, name: str) -> None:
    first = wire.call(ApiKey.JOIN_GROUP, 5, **join(name, "")).member_id
    assert wire.call(ApiKey.JOIN_GROUP, 5, **join(name, first)).generation_id == 1
    with Wire(broker.bootstrap) as other:
        second = other.call(ApiKey.JOIN_GROUP, 5, **join(name, "")).member_id
        create_topic(wire, name)
        # in one read: what is answered at once does not wait with the join
        ahead = encode_request(4, 0, "wire", request_of(HEARTBEAT)(version=4, **heartbeat(name)))
        waits = 1_000
        joining = request_of(ApiKey.JOIN_GROUP)(version=5, **join(name, second))
        other.socket.sendall(bytes(ahead) + bytes(encode_request(5, waits, "wire", joining)))
        assert other.receive(HEARTBEAT, 4, 0).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        behind = other.send(HEARTBEAT, 4, **heartbeat(name))
        committing = other.send(COMMIT, 8, **commit_fields(f"{name}-alone", name, 5))
        last = other.send(ApiKey.METADATA, 1, topics=[])
        other.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.frame()
        other.socket.settimeout(10)
        assert committed(wire.call(FETCH_OFFSETS, 5, **fetch(f"{name}-alone", name))) == -1
        rejoined = wire.send(ApiKey.JOIN_GROUP, 5, **join(name, first))
        assert other.receive(ApiKey.JOIN_GROUP, 5, waits).generation_id == 2
        assert other.receive(HEARTBEAT, 4, behind).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert refused(other.receive(COMMIT, 8, committing)) == 0
        other.receive(ApiKey.METADATA, 1, last)
        assert wire.receive(ApiKey.JOIN_GROUP, 5, rejoined).generation_id == 2


def test_a_flood_of_heartbeats_in_one_read_lets_others_go_on(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    body = request_of(HEARTBEAT)(version=4, **heartbeat(name))
    flood = bytes(encode_request(4, 1, "x", body)) * 40_000
    with Wire(broker.bootstrap) as rude:
        rude.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            # it does not read its answers, so the broker stops reading it
            send_for_ever(rude.socket, flood)
        for _ in range(5):
            wire.call(ApiKey.API_VERSIONS, 0)


def test_a_commit_whose_metadata_no_hand_reads_is_the_same_commit(wire: Wire, name: str) -> None:
    """A text of more than 127 bytes has a longer length; one of more than 4,096 is refused alone."""
    create_topic(wire, name)
    assert refused(wire.call(COMMIT, 8, **commit_fields(name, name, 5, "m" * 200))) == 0
    answer = wire.call(FETCH_OFFSETS, 5, **fetch(name, name))
    assert answer.topics[0].partitions[0].metadata == "m" * 200
    too_large = wire.call(COMMIT, 8, **commit_fields(name, name, 6, "m" * 4_097))
    assert refused(too_large) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(wire.call(FETCH_OFFSETS, 5, **fetch(name, name))) == 5
