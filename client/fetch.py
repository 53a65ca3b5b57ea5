"""Fetch through a cluster: raw record bytes, whatever the isolation level leaves to the reader."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..protocol import ApiKey, ErrorCode, KafkaError, TopicPartition, request_class
from .fetch_answers import FetchAnswer, FetchedPartition
from .fetch_session import SESSION_ERRORS, FetchFrom, FetchSession, Plan
from .pool import Channel
from .requests import Requests, leader_or_raise

#: From v13 topics go by id (KIP-516); v17 and v18 add only what followers need.
_LAST_BY_NAME, _LAST_BY_ID = 12, 16


class FetchLimits(NamedTuple):
    max_bytes: int
    partition_max_bytes: int
    min_bytes: int
    max_wait_ms: int


async def fetch(
    cluster: Requests,
    start: Mapping[TopicPartition, int | FetchFrom],
    node_id: int | None,
    limits: FetchLimits,
    read_committed: bool,
    rack: str,
    session: FetchSession | None,
) -> dict[TopicPartition, FetchedPartition]:
    """See Cluster.fetch."""
    at = {p: where if isinstance(where, FetchFrom) else FetchFrom(where) for p, where in start.items()}
    if node_id is not None:
        return await _fetch_from(cluster, node_id, at, limits, read_committed, rack, session)
    if any(cluster.leader(partition) is None for partition in at):
        await cluster.metadata({partition.topic for partition in at})
    by_node: dict[int, dict[TopicPartition, FetchFrom]] = defaultdict(dict)
    for partition, where in at.items():
        by_node[leader_or_raise(cluster, partition)][partition] = where
    answers = await asyncio.gather(
        *(_fetch_from(cluster, node, part, limits, read_committed, rack) for node, part in by_node.items())
    )
    return {partition: row for answer in answers for partition, row in answer.items()}


async def _fetch_from(
    cluster: Requests,
    node: int,
    at: Mapping[TopicPartition, FetchFrom],
    limits: FetchLimits,
    read_committed: bool,
    rack: str,
    session: FetchSession | None = None,
) -> dict[TopicPartition, FetchedPartition]:
    names = {partition.topic for partition in at}
    ids = {name: topic.topic_id for name in names if (topic := cluster.topic(name)) and topic.topic_id}
    by_id = len(ids) == len(names)
    plan = Plan(0, -1, at) if session is None else session.plan(at, ids if by_id else {})
    try:
        response: FetchAnswer = await cluster.request(
            node,
            ApiKey.FETCH,
            _request(plan, ids, limits, read_committed, rack),
            channel=Channel.DATA,
            timeout_ms=cluster.request_timeout_ms + limits.max_wait_ms,
            max_version=_LAST_BY_ID if by_id else _LAST_BY_NAME,
        )
    except BaseException:
        if session is not None:
            session.lost()
        raise
    if session is not None:
        code = KafkaError(response.error_code).code if response.error_code else ErrorCode.NONE
        session.answered(code, response.session_id)
        if code in SESSION_ERRORS:
            return {}
    if response.error_code:
        raise KafkaError(response.error_code, f"node {node} refused Fetch")
    names_of = {name: name for name in names} | {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(names_of[topic], partition): fetched
        for topic, partition, fetched in response.rows
        if topic in names_of
    }


def _request(
    plan: Plan,
    ids: Mapping[str, Any],
    limits: FetchLimits,
    read_committed: bool,
    rack: str,
) -> Any:
    make = request_class(ApiKey.FETCH)
    topics = defaultdict(list)
    for partition, where in plan.named.items():
        topics[partition.topic].append(
            make.FetchTopic.FetchPartition(
                partition=partition.partition,
                current_leader_epoch=where.leader_epoch,
                fetch_offset=where.offset,
                last_fetched_epoch=where.last_fetched_epoch,
                log_start_offset=-1,
                partition_max_bytes=limits.partition_max_bytes,
            )
        )
    return make(
        replica_id=-1,
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=1 if read_committed else 0,
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=[make.FetchTopic(topic=t, topic_id=ids.get(t), partitions=rows) for t, rows in topics.items()],
        forgotten_topics_data=[
            make.ForgottenTopic(topic=t, topic_id=ids.get(t), partitions=numbers)
            for t, numbers in _numbers(plan.forgotten).items()
        ],
        rack_id=rack,
    )


def _numbers(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        numbers[topic].append(number)
    return numbers


#: Errors that renewed metadata may heal.
STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
