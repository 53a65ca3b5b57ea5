"""OffsetCommit: who may commit, what is refused partition by partition, and when it is acknowledged."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kohort.coordinator import CommitRefused
from kohort.coordinator.offsets.commit import resolve_commit
from kohort.coordinator.settings import GroupSettings
from kohort.offsets_topic import OffsetCommitted, decode
from kohort.protocol import ApiKey, ErrorCode, TopicPartition
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from tests.coordinator.bodies import DIRECTORY, TOPIC_IDS, commit_body
from tests.coordinator.driver import World, errors_of

#: Partitions in one request, by default.
MOST = GroupSettings().kohort_commit_max_partitions


@pytest.mark.parametrize("version", [2, 9, 10])
def test_a_record_has_the_id_of_its_topic_whatever_the_request_says(version: int) -> None:
    world = World()
    world.commit("g", {("t", 0): 1, ("u", 1): 2}, version=version)
    world.commit("g", {("t", 0): 3}, version=version, retention_ms=5 if version == 2 else -1)
    records = [decode(*pair) for pair in world.log]
    ids = [each.topic_id for each in records if isinstance(each, OffsetCommitted)]
    last = b"" if version == 2 else TOPIC_IDS["t"].bytes
    assert ids == [TOPIC_IDS["t"].bytes, TOPIC_IDS["u"].bytes, last]


def test_all_offsets_of_a_topic_share_the_bytes_of_its_id() -> None:
    world = World()
    for group in "gh":
        world.commit(group, {("t", 0): 1})
    first, second = (world.shard.state.durable.offset(group, TopicPartition("t", 0)) for group in "gh")
    assert first is not None
    assert second is not None
    assert first.topic_id is second.topic_id


@pytest.mark.row("3.7/2", "3.1/OffsetCommit-v9")
@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_rule_2_a_generation_of_a_missing_group(version: int, error: ErrorCode) -> None:
    assert World().commit_errors("missing", None, "m", 1, version=version) == [error]


@pytest.mark.row("3.7/4")
def test_rule_4_an_empty_group_takes_a_commit_without_generation_from_anyone() -> None:
    world = World()
    (a,) = world.stable()
    world.leave("g", (a, None))
    assert world.commit_errors("g", None, "whoever", -1, instance="whatever") == [0]


@pytest.mark.row("3.7/5", "3.7/6", "3.7/8")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"member": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member": "nobody", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member": "c-1"}, ErrorCode.ILLEGAL_GENERATION),
        ({"member": "c-1", "generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member": "c-1", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member": "c-1", "generation": 1}, ErrorCode.NONE),
    ],
)
def test_rules_5_to_8_in_a_stable_group(options: dict[str, Any], error: ErrorCode) -> None:
    world = World()
    world.stable()
    assert world.commit_errors("g", None, **options) == [error]


def test_a_refused_commit_writes_nothing_and_is_noted() -> None:
    world = World()
    world.stable()
    before = len(world.log)
    world.commit_errors("g", {("t", 0): 5, ("t", 1): 6}, "nobody", 1)
    assert len(world.log) == before
    refused = world.notes[-1]
    assert isinstance(refused, CommitRefused)
    assert (refused.group, refused.member, refused.claimed_generation) == ("g", "nobody", 1)
    assert (refused.error_code, refused.cause) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "member nobody is not in the group",
    )


@pytest.mark.row("3.7/partitions")
def test_partitions_that_do_not_exist_are_refused_alone() -> None:
    world = World()
    (a,) = world.stable()
    offsets = {("t", 7): 1, ("t", 8): 1, ("t", -1): 1, ("nothing", 0): 1}
    assert world.commit_errors("g", offsets, a, 1) == [3, 3, 0, 3]
    assert world.fetch() == {("t", 7): 1}


@pytest.mark.row("3.7/partitions")
def test_if_none_exists_the_group_is_not_even_looked_at() -> None:
    assert World().commit_errors("missing", {("nothing", 0): 1}, "m", 1) == [3]


def test_what_does_not_exist_is_answered_first_and_each_topic_once() -> None:
    body = two_entries_of_t()
    call = World().send(ApiKey.OFFSET_COMMIT, 9, resolve_commit(9, body, DIRECTORY, MOST))
    answered = [
        (t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in call.reply.topics
    ]
    assert answered == [("nothing", [(0, 3)]), ("t", [(9, 3), (0, 0), (1, 0)])]


def test_if_all_exists_the_answer_is_in_the_order_asked_but_for_topics_without_partitions() -> None:
    body = two_entries_of_t()
    first, _, _, last = body.topics
    body = body._replace(topics=[first, last, OffsetCommitRequestTopic("u", TOPIC_IDS["u"])])
    call = World().send(ApiKey.OFFSET_COMMIT, 9, resolve_commit(9, body, DIRECTORY, MOST))
    answered = [(t.name, [p.partition_index for p in t.partitions]) for t in call.reply.topics]
    assert answered == [("t", [0]), ("t", [1])]


def two_entries_of_t() -> OffsetCommitRequest:
    offsets = {("t", 0): 1, ("nothing", 0): 1, ("t", 9): 1, ("t", 1): 1}
    return commit_body("s", offsets, "", -1, None, "", -1)


@pytest.mark.row("3.7/partitions")
def test_an_error_of_the_group_is_told_on_every_other_partition() -> None:
    world = World()
    world.stable()
    assert world.commit_errors("g", {("nothing", 0): 1, ("t", 0): 1}, "nobody", 1) == [3, 25]


@pytest.mark.row("3.7/metadata", "4/offset.metadata.max.bytes", "1.5/metadata")
@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (None, 0),
        ("x" * 10, 0),
        ("x" * 11, 12),
        ("ä" * 10, 0),
        ("ä" * 11, 12),
        # beyond the basic plane a character counts twice, as in Java
        ("\U0001f600" * 5, 0),
        ("\U0001f600" * 6, 12),
        ("\U0001f600" * 5 + "x", 12),
        ("\U0001f600" + "x" * 9, 12),
        ("\uffff" * 10, 0),
    ],
)
def test_metadata_is_limited_in_utf_16_units(metadata: str | None, error: int) -> None:
    world = World(offset_metadata_max_bytes=10)
    assert world.commit_errors("s", None, metadata=metadata) == [error]
    assert world.fetch("s") == ({} if error else {("t", 0): 1})


@pytest.mark.row("3.7/atomic", "5.4/commit")
def test_all_offsets_of_a_request_are_one_write_and_the_answer_waits_for_it() -> None:
    world = World()
    world.hold_writes = True
    call = world.commit("s", {("t", n): n for n in range(5)})
    assert (call.parked, world.held_writes) == (True, 1)
    world.write()
    assert errors_of(call) == [0] * 5


@pytest.mark.row("3.0/append")
@pytest.mark.parametrize(
    ("refused", "answered"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.PRODUCER_FENCED, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_a_failed_write_is_told_on_the_partitions_that_were_good(
    refused: ErrorCode, answered: ErrorCode
) -> None:
    world = World()
    world.fail_next_write = refused
    assert world.commit_errors("s", {("t", 0): 1, ("nothing", 0): 1}) == [3, answered]
    assert world.fetch("s") == {}


def test_what_is_written_is_what_was_sent() -> None:
    world = World()
    world.commit("s", {("t", 3): 42}, metadata="m", epoch=7)
    assert decode(*world.log[-1]) == OffsetCommitted(
        "s", "t", 3, 42, 7, "m", world.now, -1, TOPIC_IDS["t"].bytes
    )


@pytest.mark.row("1.5/expire-time", "3.1/OffsetCommit-v2")
def test_a_retention_in_the_request_becomes_an_expiry() -> None:
    world = World()
    world.commit("s", retention_ms=5_000, version=2)
    record = decode(*world.log[-1])
    assert isinstance(record, OffsetCommitted)
    assert record.expire_timestamp_ms == world.now + 5_000


def test_a_retention_beyond_the_end_of_time_ends_there() -> None:
    world = World()
    world.commit("s", retention_ms=2**63 - 1, version=2)
    record = decode(*world.log[-1])
    assert isinstance(record, OffsetCommitted)
    assert record.expire_timestamp_ms == 2**63 - 1


@pytest.mark.row("3.1/OffsetCommit-v10")
def test_from_version_10_topics_go_by_id() -> None:
    world = World()
    call = world.commit("s", {("t", 0): 9}, version=10)
    assert errors_of(call) == [0]
    assert call.reply.topics[0].topic_id == TOPIC_IDS["t"]
    assert world.shard.state.durable.offset("s", TopicPartition("t", 0)) is not None


def test_an_unknown_topic_id_is_refused_by_its_own_name() -> None:
    call = World().commit("s", {("nothing", 0): 9}, version=10)
    assert errors_of(call) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert call.reply.topics[0].topic_id == uuid.UUID(int=1)


def test_10000_partitions_are_the_most_in_one_request() -> None:
    world = World()
    body = commit_body("s", {("t", 0): 1}, "", -1, None, "", -1)
    (topic,) = body.topics
    for count, error in ((10_000, ErrorCode.NONE), (10_001, ErrorCode.INVALID_REQUEST)):
        many = body._replace(topics=[topic._replace(partitions=[*topic.partitions] * count)])
        answer = world.send(ApiKey.OFFSET_COMMIT, 9, resolve_commit(9, many, DIRECTORY, MOST))
        assert set(errors_of(answer)) == {error}


@pytest.mark.row("3.0/group-id")
def test_an_empty_group_id_is_a_group_like_any_other() -> None:
    world = World()
    assert world.commit_errors("", {("t", 0): 4}) == [0]
    assert world.fetch("") == {("t", 0): 4}
