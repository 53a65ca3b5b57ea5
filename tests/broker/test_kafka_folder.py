"""A data folder that Apache Kafka 4.3.1 wrote, served by our broker: the answers are the same."""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.log.tools.verify import verify_folder
from kohort.protocol import ApiKey, iter_batches
from kohort.testing import running_broker
from tests.broker.wire import Wire, commit_fields, part

DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-data-folder"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text())
#: Groups of a later kind: their records are stepped over, and kept.
NEXT_GENERATION = {"next-gen-a"}


#: Groups that commit while the folder is ours, 100 times each.
MORE = [f"more-{number}" for number in range(10)]
SETTINGS: dict[str, Any] = {
    "offsets_topic_num_partitions": 5,
    "log_retention_ms": -1,
    "offsets_retention_minutes": 2_000_000_000,
}


def unpacked(folder: Path) -> Path:
    with tarfile.open(DATA / "data.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def used_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after 1,000 commits, a compaction and a stop."""
    folder = unpacked(tmp_path_factory.mktemp("used"))
    before = stored_records(folder)
    cleaner: dict[str, Any] = {"log_cleaner_min_cleanable_ratio": 0.01, "log_cleaner_backoff_ms": 50}
    with (
        running_broker(data=folder, offsets_topic_segment_bytes=16_384, **cleaner, **SETTINGS) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        for number in range(100):
            for group in MORE:
                assert commit(wire, group, number) == 0
        deadline = time.monotonic() + 20
        while stored_records(folder) >= before and time.monotonic() < deadline:
            time.sleep(0.05)
    assert stored_records(folder) < before
    return folder


def stored_records(folder: Path) -> int:
    """Records of the offsets topic, those that are out of date too."""
    partitions = verify_folder(folder).partitions
    return sum(each.records for each in partitions if each.topic == "__consumer_offsets")


def commit(wire: Wire, group: str, offset: int) -> int:
    fields = commit_fields(group, "orders-a", offset, partition=3)
    error: int = wire.call(ApiKey.OFFSET_COMMIT, 5, **fields).topics[0].partitions[0].error_code
    return error


@pytest.fixture(scope="module", params=["folder", "used_folder"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """A broker on Apache Kafka's folder: as it was left, and after much more has happened to it."""
    data = request.getfixturevalue(request.param)
    with running_broker(data=data, **SETTINGS) as broker, Wire(broker.bootstrap) as connection:
        yield connection


def offsets_of(wire: Wire, group: str) -> list[list[Any]]:
    asked = part(ApiKey.OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id=group, topics=None)
    (answer,) = wire.call(ApiKey.OFFSET_FETCH, 8, groups=[asked], require_stable=False).groups
    assert answer.error_code == 0
    return sorted(
        [topic.name, row.partition_index, row.committed_offset, row.committed_leader_epoch, row.metadata]
        for topic in answer.topics
        for row in topic.partitions
    )


def test_the_same_topics_are_there(wire: Wire) -> None:
    topics = {topic.name for topic in wire.call(ApiKey.METADATA, 8, topics=None).topics}
    assert topics == {*EXPECTED["topics"], "__consumer_offsets"}


def test_the_same_groups_are_listed(wire: Wire) -> None:
    listed = wire.call(ApiKey.LIST_GROUPS, 4, states_filter=[]).groups
    left_out = {*NEXT_GENERATION, *MORE}
    mine = sorted([group.group_id, group.protocol_type, group.group_state] for group in listed)
    theirs = [group for group in EXPECTED["list"] if group[0] not in NEXT_GENERATION]
    assert [group for group in mine if group[0] not in left_out] == sorted(theirs)


@pytest.mark.parametrize("group", sorted(set(EXPECTED["groups"]) - NEXT_GENERATION))
def test_each_group_is_described_with_the_same_members_and_offsets(wire: Wire, group: str) -> None:
    expected = EXPECTED["groups"][group]
    (described,) = wire.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group]).groups
    assert described.group_state == expected["state"]
    assert described.protocol_type == expected["protocol_type"]
    assert described.protocol_data == expected["protocol"]
    members = [
        [
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.member_metadata.hex(),
            member.member_assignment.hex(),
        ]
        for member in described.members
    ]
    assert sorted(members) == sorted(expected["members"])
    assert offsets_of(wire, group) == sorted(expected["offsets"])


@pytest.mark.parametrize("topic", EXPECTED["topics"])
def test_every_partition_begins_and_ends_at_the_same_offsets(wire: Wire, topic: str) -> None:
    for number, bounds in EXPECTED["records"][topic].items():
        found = []
        for timestamp in (-2, -1):
            asked = part(
                ApiKey.LIST_OFFSETS,
                5,
                "ListOffsetsTopic",
                "ListOffsetsPartition",
                partition_index=int(number),
                timestamp=timestamp,
            )
            topics = [part(ApiKey.LIST_OFFSETS, 5, "ListOffsetsTopic", name=topic, partitions=[asked])]
            answer = wire.call(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=0, topics=topics)
            found.append(answer.topics[0].partitions[0].offset)
        assert found == bounds


def test_a_reader_of_committed_records_is_told_of_the_aborted_transaction(wire: Wire) -> None:
    asked = part(
        ApiKey.FETCH,
        11,
        "FetchTopic",
        "FetchPartition",
        partition=2,
        fetch_offset=0,
        partition_max_bytes=1 << 20,
    )
    topics = [part(ApiKey.FETCH, 11, "FetchTopic", topic="clicks-a", partitions=[asked])]
    answer = wire.call(
        ApiKey.FETCH, 11, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=1, topics=topics
    )
    (row,) = answer.responses[0].partitions
    assert (row.error_code, row.last_stable_offset) == (0, 54)
    assert [(entry.producer_id, entry.first_offset) for entry in row.aborted_transactions] == [(1, 52)]
    assert [header.control for _, header in iter_batches(row.records)][-1]


@pytest.mark.parametrize("wire", ["used_folder"], indirect=True)
def test_commits_that_came_later_are_the_last_ones(wire: Wire) -> None:
    for group in MORE:
        assert offsets_of(wire, group) == [["orders-a", 3, 99, -1, ""]]


def test_a_new_producer_is_not_taken_for_one_of_apache_kafkas(tmp_path: Path) -> None:
    with running_broker(data=unpacked(tmp_path), **SETTINGS) as broker, Wire(broker.bootstrap) as connection:
        given = connection.call(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=1)
    # 0 and 1 wrote what is in the folder, and Apache Kafka had given away their block
    # nor for one that it makes when the folder is its own again
    assert given.producer_id == 1_000_000_000


def test_the_folder_is_whole_after_all_that(used_folder: Path) -> None:
    assert [finding for finding in verify_folder(used_folder).all_findings() if finding.level != "note"] == []
