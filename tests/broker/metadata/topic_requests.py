"""Requests that change topics, and what groups have committed, in a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kohort.cluster import (
    DELETED_TOPICS,
    Create,
    Delete,
    FolderStore,
    TopicRecord,
    deleted_topic_path,
    topic_path,
)
from kohort.protocol import ApiKey
from tests.broker.wire import Wire, creatable, part

EARLIEST, LATEST = -2, -1


def delete_topics(wire: Wire, *names: str) -> list[int]:
    answer = wire.call(ApiKey.DELETE_TOPICS, 5, topic_names=list(names), timeout_ms=1_000)
    return [int(one.error_code) for one in answer.responses]


def create_topics(wire: Wire, names: list[str], partitions: int = 1) -> set[int]:
    """The error codes of the answer."""
    topics = [creatable(name, partitions) for name in names]
    answer = wire.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5_000, validate_only=False)
    return {one.error_code for one in answer.topics}


def grow(wire: Wire, name: str, count: int, *, validate_only: bool = False) -> Any:
    wanted = part(
        ApiKey.CREATE_PARTITIONS, 3, "CreatePartitionsTopic", name=name, count=count, assignments=None
    )
    answer = wire.call(
        ApiKey.CREATE_PARTITIONS, 3, topics=[wanted], timeout_ms=5_000, validate_only=validate_only
    )
    return answer.results[0]


def delete_records(wire: Wire, name: str, offset: int) -> int:
    row = part(
        ApiKey.DELETE_RECORDS,
        2,
        "DeleteRecordsTopic",
        "DeleteRecordsPartition",
        partition_index=0,
        offset=offset,
    )
    topic = part(ApiKey.DELETE_RECORDS, 2, "DeleteRecordsTopic", name=name, partitions=[row])
    answer = wire.call(ApiKey.DELETE_RECORDS, 2, topics=[topic], timeout_ms=1_000)
    return int(answer.topics[0].partitions[0].error_code)


def commit_fields(group: str, topic: str, offset: int) -> dict[str, Any]:
    one = part(
        ApiKey.OFFSET_COMMIT,
        5,
        "OffsetCommitRequestTopic",
        "OffsetCommitRequestPartition",
        partition_index=0,
        committed_offset=offset,
        committed_metadata="",
    )
    wanted = part(ApiKey.OFFSET_COMMIT, 5, "OffsetCommitRequestTopic", name=topic, partitions=[one])
    return {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": [wanted]}


def commit(wire: Wire, group: str, topic: str, offset: int) -> int:
    answer = wire.call(ApiKey.OFFSET_COMMIT, 5, **commit_fields(group, topic, offset))
    return int(answer.topics[0].partitions[0].error_code)


def committed(wire: Wire, group: str, topic: str) -> int:
    wanted = part(ApiKey.OFFSET_FETCH, 5, "OffsetFetchRequestTopic", name=topic, partition_indexes=[0])
    answer = wire.call(ApiKey.OFFSET_FETCH, 5, group_id=group, topics=[wanted])
    return int(answer.topics[0].partitions[0].committed_offset)


def mark_deleted(data: Path, name: str) -> None:
    """Keep in a data folder that a topic is deleted, as a broker does that dies right after."""
    store = FolderStore(data)
    entry = store.get(topic_path(name))
    assert entry is not None
    topic_id = TopicRecord.parse(entry.value).id
    store.commit_now(Delete(topic_path(name)), Create(deleted_topic_path(topic_id), name))


def deleted_topics(data: Path) -> list[str]:
    """The names of topics of which a data folder says that something may be left."""
    store = FolderStore(data)
    entries = [store.get(f"{DELETED_TOPICS}/{each}") for each in store.children(DELETED_TOPICS)]
    return [entry.value for entry in entries if entry is not None]
