"""Records that are deleted below an offset (DeleteRecords): what would go, and the requests that do it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ...client import Cluster, ClusterMetadata, ConfigError
from ...client.requests import leader_or_raise
from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ...protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ..errors import Outcome, outcome_of
from .requests import log_offsets, ranges, require_topics


@dataclass(frozen=True, slots=True)
class RecordDeletion:
    """What goes of a partition: all from ``start_offset`` up to ``new_start_offset``. ``note`` says why that
    differs from what was asked for; ``error_code`` and ``error`` are of the broker.
    """

    topic: str
    partition: int
    start_offset: int
    new_start_offset: int
    end_offset: int
    note: str = ""
    error_code: int = 0
    error: str | None = None

    @property
    def offsets(self) -> int:
        """The number of offsets that go; compaction and markers leave fewer records than that."""
        return self.new_start_offset - self.start_offset


async def plan_deletion(
    cluster: Cluster,
    topics: Mapping[str, Collection[int]],
    *,
    before_offset: int | None = None,
    before_ms: int | None = None,
    every: bool = False,
) -> list[RecordDeletion]:
    """What goes of these partitions (none given: all of the topic): offsets below one, all before the first
    record of a time or later (in ms since 1970), or every record there is now. Nothing is deleted.

    Raises ConfigError unless one of the three is given, KafkaError for a topic or partition that is not
    there.
    """
    if (before_offset is not None) + (before_ms is not None) + every != 1:
        raise ConfigError("say which records: before_offset, before_ms, or every=True; one of them")
    known = await require_topics(cluster, topics)
    places = [
        TopicPartition(topic, number)
        for topic, numbers in topics.items()
        for number in sorted(set(numbers)) or sorted(p.partition for p in known.partitions(topic))
    ]
    _check_partitions(places, known)
    starts, ends = await ranges(cluster, places)
    found = ends if before_ms is None else await log_offsets(cluster, places, before_ms)
    plan = []
    for place in places:
        start, end = starts[place], ends[place]
        asked = found.get(place, start) if before_offset is None else before_offset
        to = max(start, min(asked, end))
        note = "the log ends before that offset" if asked > end else ""
        note = note or ("the log begins behind that offset" if asked < start else "")
        plan.append(RecordDeletion(place.topic, place.partition, start, to, end, note))
    return plan


def _check_partitions(places: Iterable[TopicPartition], known: ClusterMetadata) -> None:
    for place in places:
        if place not in known.partitions(place.topic):
            words = f"topic {place.topic!r} has no partition {place.partition}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)


async def carry_out_deletion(cluster: Cluster, plan: Iterable[RecordDeletion]) -> list[RecordDeletion]:
    """Delete at the leaders what a plan says; each partition that has such offsets, with its outcome. Raises
    KafkaError.
    """
    some = [each for each in plan if each.offsets]
    by_leader: dict[int, list[RecordDeletion]] = defaultdict(list)
    await cluster.metadata({each.topic for each in some})
    for each in some:
        by_leader[leader_or_raise(cluster, TopicPartition(each.topic, each.partition))].append(each)
    parts = await asyncio.gather(*(_ask_leader(cluster, node, part) for node, part in by_leader.items()))
    outcomes = {key: outcome for part in parts for key, outcome in part.items()}
    return [
        replace(each, error_code=found.error_code, error=found.error)
        for each in some
        for found in (outcomes[each.topic, each.partition],)
    ]


async def _ask_leader(
    cluster: Cluster, node: int, plan: list[RecordDeletion]
) -> dict[tuple[str, int], Outcome]:
    by_topic: dict[str, list[DeleteRecordsPartition]] = defaultdict(list)
    for each in plan:
        by_topic[each.topic].append(DeleteRecordsPartition(each.partition, each.new_start_offset))
    rows = [DeleteRecordsTopic(topic, partitions) for topic, partitions in by_topic.items()]
    body = DeleteRecordsRequest(rows, cluster.request_timeout_ms)
    answer = await cluster.retrying(lambda: cluster.request(node, ApiKey.DELETE_RECORDS, body))
    return {
        (topic.name, each.partition_index): outcome_of(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }
