"""Commits that a client sends again with other offsets are what they would be if each were read anew."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any, NamedTuple

import pytest

from kohort.broker.clients.known_commits import KnownCommits
from kohort.coordinator import TopicDirectory
from kohort.coordinator.offsets.commit import CommitRequest, resolve_commit
from kohort.protocol import ApiKey, ErrorCode, codec_of, encode_request
from kohort.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.testing import RunningBroker
from tests.broker.wire import Wire, create_topic
from tests.coordinator.bodies import DIRECTORY

COMMIT, FETCH = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
CODEC = codec_of(COMMIT, 9)
LARGE = TopicDirectory({"t": 1_000}.get, lambda _: None, lambda _: None)


def body(
    group: str, topic: str, *offsets: int, member: str = "", generation: int = -1, metadata: str = ""
) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(number, offset, offset + 1, metadata)
        for number, offset in enumerate(offsets)
    ]
    return OffsetCommitRequest(
        group, generation, member, topics=[OffsetCommitRequestTopic(topic, None, partitions)]
    )


def commit(wire: Wire, request: OffsetCommitRequest, version: int = 9) -> list[int]:
    """The errors in the answer, which must be that of these partitions."""
    wire.socket.sendall(bytes(encode_request(version, 77, "wire", request)))
    answer = wire.receive(COMMIT, version, 77)
    (topic,) = answer.topics
    assert topic.name == request.topics[0].name
    wanted = [each.partition_index for each in request.topics[0].partitions]
    assert [each.partition_index for each in topic.partitions] == wanted
    return [each.error_code for each in topic.partitions]


def committed(wire: Wire, group: str, topic: str) -> dict[int, tuple[int, int, str]]:
    wanted = [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}]
    answer = wire.call(FETCH, 9, groups=wanted, require_stable=False)
    return {
        each.partition_index: (each.committed_offset, each.committed_leader_epoch, each.metadata)
        for found in answer.groups[0].topics
        if found.name == topic
        for each in found.partitions
    }


@pytest.mark.parametrize("version", [5, 6, 8, 9])
def test_each_of_many_is_stored_with_its_own_offsets(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, 3)
    for offset in range(0, 100, 7):
        assert commit(wire, body(name, name, offset, offset + 1, offset + 2), version) == [0, 0, 0]
        epochs = (offset + 1, offset + 2, offset + 3) if version >= 6 else (-1, -1, -1)
        assert committed(wire, name, name) == {
            number: (offset + number, epochs[number], "") for number in range(3)
        }


def test_other_partitions_groups_and_metadata_between_them_are_seen(wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)
    for offset in range(5):
        assert commit(wire, body(name, name, offset, offset)) == [0, 0]
        assert commit(wire, body(name + "2", name, offset + 50)) == [0]
        assert commit(wire, body(name, name, offset + 10, offset, metadata="m")) == [0, 0]
        assert commit(wire, body(name, name, offset + 20, metadata="x")) == [0]
        assert committed(wire, name, name) == {
            0: (offset + 20, offset + 21, "x"),
            1: (offset, offset + 1, "m"),
        }
        assert committed(wire, name + "2", name) == {0: (offset + 50, offset + 51, "")}


def test_a_refused_one_in_between_changes_nothing_for_those_behind_it(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    create_topic(wire, name)
    for offset in range(4):
        assert commit(wire, body(name, name, offset)) == [0]
    protocols = [{"name": "range", "metadata": b""}]
    with Wire(broker.bootstrap) as other:
        how: dict[str, Any] = {
            "group_id": name,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": protocols,
        }
        how["member_id"] = other.call(ApiKey.JOIN_GROUP, 5, **how).member_id
        assert other.call(ApiKey.JOIN_GROUP, 5, **how).generation_id == 1
        for offset in range(10, 13):
            assert commit(wire, body(name, name, offset)) == [ErrorCode.UNKNOWN_MEMBER_ID]
        other.call(ApiKey.LEAVE_GROUP, 2, group_id=name, member_id=how["member_id"])
    assert committed(wire, name, name) == {0: (3, 4, "")}
    assert commit(wire, body(name, name, 20)) == [0]
    assert committed(wire, name, name) == {0: (20, 21, "")}


def test_when_topics_have_changed_they_are_looked_up_again(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    for offset in range(4):
        assert commit(wire, body(name, name, offset)) == [0]
    wire.call(ApiKey.DELETE_TOPICS, 3, topic_names=[name], timeout_ms=5_000)
    for offset in range(4):
        assert commit(wire, body(name, name, offset)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    create_topic(wire, name)
    for offset in range(4):
        assert commit(wire, body(name, name, offset)) == [0]


def test_partitions_that_do_not_exist_are_refused_each_time(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    for offset in range(6):
        request = body(name, name, offset, offset)
        wire.socket.sendall(bytes(encode_request(9, 77, "wire", request)))
        (topic,) = wire.receive(COMMIT, 9, 77).topics
        assert [tuple(each) for each in topic.partitions] == [(1, 3), (0, 0)]
    assert committed(wire, name, name) == {0: (5, 6, "")}


def test_the_same_bytes_in_another_version_are_another_request(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    for offset in range(4):
        assert commit(wire, body(name, name, offset), 6) == [0]
    frame = bytearray(encode_request(6, 77, "wire", body(name, name, 9)))
    frame[7] = 7
    wire.socket.sendall(frame)
    assert wire.closed_by_broker(), "version 7 has an instance id, and cannot be read without"


def test_many_that_are_sent_together_are_answered_in_their_order(wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)
    frames = [encode_request(9, number, "wire", body(name, name, number, -number)) for number in range(500)]
    wire.socket.sendall(b"".join(map(bytes, frames)))
    for number in range(500):
        answer = wire.receive(COMMIT, 9, number)
        assert [each.error_code for each in answer.topics[0].partitions] == [0, 0]
    assert committed(wire, name, name) == {0: (499, 500, ""), 1: (-499, -498, "")}


class Resolver(NamedTuple):
    directory: TopicDirectory
    max_partitions: int

    def resolve(self, version: int, body: OffsetCommitRequest, /) -> CommitRequest:
        return resolve_commit(version, body, self.directory, self.max_partitions)


def test_where_learning_is_of_no_use_less_is_learnt() -> None:
    repeats, learnt = KnownCommits(), 0
    for number in range(3_000):
        request = body(f"g{number}", "t", 0)
        commit, known = repeats.read_commit(CODEC, frame_of(request), 0, "topics", Resolver(DIRECTORY, 10))
        assert known is None
        learnt += isinstance(commit, CommitRequest)
    assert learnt == 11


def learn(repeats: KnownCommits, request: OffsetCommitRequest) -> CommitRequest | None:
    commit, _ = repeats.read_commit(CODEC, frame_of(request), 0, "topics", Resolver(LARGE, 1_000))
    return commit if isinstance(commit, CommitRequest) else None


def test_one_that_is_too_long_or_names_a_topic_without_partitions_keeps_no_other_from_being_learnt() -> None:
    repeats = KnownCommits()
    assert learn(repeats, body("g", "t", 0)) is None
    for request in (body("g" * 5_000, "t", 0), body("g", "t")):
        assert learn(repeats, request) is None
        assert repeats.known is None
    assert learn(repeats, body("g", "t", 0)) is not None
    assert repeats.known is not None


@pytest.mark.parametrize(("topics", "partitions"), [(1, 50), (45, 1), (1, 200), (180, 1)])
def test_what_is_learnt_of_a_connection_is_bounded_in_bytes(topics: int, partitions: int) -> None:
    request = body("g", "t", *[0] * partitions)
    data = frame_of(request._replace(topics=[*request.topics] * topics))

    def held() -> int:
        repeats = KnownCommits()
        learn(repeats, body("g", "t", 0))
        tracemalloc.start()
        learn(repeats, CODEC.request(data, 0))
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert (repeats.known is not None) == (topics * partitions <= 50)
        return size

    # other threads of the process may ask for memory at the same time
    assert any(held() < 40_000 for _ in range(5))


def frame_of(request: OffsetCommitRequest) -> bytes:
    out = bytearray()
    CODEC.write_request(out, request, 9)
    return bytes(out)
