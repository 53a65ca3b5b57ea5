"""The share coordinator on this broker, and the way to those of other brokers (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from ...offsets_topic import OffsetsStore, partition_for
from ...protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    SharePartitionKey,
    TopicPartition,
    messages_of,
    response_type,
)
from ...share_state.shards import PruneLog
from ..node import Node
from ..partitions.local_logs import LocalLogs
from ..partitions.topic_names import SHARE_STATE_TOPIC
from ..reporting.log_lines import RateLimitedLog

if TYPE_CHECKING:
    from ...client.share_state import Found, ShareStateClient
    from ...cluster import TopicImage
    from ..metadata.cluster_node import ClusterNode

#: How long a coordinator may take beyond the time in which it writes, in milliseconds.
_ASK_MS: Final = 5_000

#: Stands for the topic id that a request lacks.
_NO_TOPIC: Final = UUID(int=0)

#: The structs of responses with the partitions of a topic.
_RESULTS: Final = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "InitializeStateResult",
    ApiKey.READ_SHARE_GROUP_STATE: "ReadStateResult",
    ApiKey.WRITE_SHARE_GROUP_STATE: "WriteStateResult",
    ApiKey.DELETE_SHARE_GROUP_STATE: "DeleteStateResult",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "ReadStateSummaryResult",
}

#: What replaces a state, or deletes it.
_OF_AN_EPOCH: Final = frozenset({ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE})

_not_pruned = RateLimitedLog()


async def start_share_state(node: Node) -> None:
    """Create the topic of a single broker's share coordinator if necessary, and start the coordinator. Raises
    KafkaError KAFKA_STORAGE_ERROR.
    """
    if node.topics.get(SHARE_STATE_TOPIC) is None:
        await node.control.create_internal(SHARE_STATE_TOPIC)
    topic = node.logs.topic(SHARE_STATE_TOPIC)
    assert topic is not None, "it was made just now, if it was not there"
    await node.share_states.start(
        OffsetsStore(topic.partitions, load_bytes=node.settings.share_coordinator_load_buffer_size)
    )


async def answer_request(node: Node, body: Any) -> Any:
    """The response of this broker's share coordinator to a request of APIs 83 to 87."""
    api = ApiKey(body.API_KEY)
    keys = [
        (SharePartitionKey(body.group_id, topic.topic_id or _NO_TOPIC, row.partition), row)
        for topic in body.topics
        for row in topic.partitions
    ]
    rows = iter(await node.share_states.answer(api, keys))
    result = getattr(messages_of(api), _RESULTS[api])
    return response_type(api)(
        [
            result(topic.topic_id, [next(rows) for _ in topic.partitions])
            for topic in body.topics
            if topic.partitions
        ]
    )


async def find_share_coordinators(node: Node, keys: Sequence[str]) -> Mapping[str, Found]:
    """Return the coordinator of each key; the first such request creates the topic. Raises KafkaError."""
    cluster = node.cluster
    if cluster is None:
        await start_share_state(node)
        return dict.fromkeys(keys, node.node_id)
    if node.topics.get(SHARE_STATE_TOPIC) is None:
        await cluster.create_internal(SHARE_STATE_TOPIC)
    count = node.topics.count_of(SHARE_STATE_TOPIC)
    if count is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{SHARE_STATE_TOPIC} is being created")
    leaders = {key: cluster.leader_of(SHARE_STATE_TOPIC, partition_for(key, count)) for key in keys}
    return {key: _NO_LEADER if leader < 0 else leader for key, leader in leaders.items()}


_NO_LEADER: Final = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no broker leads its partition now")


def share_state_client(node: Node) -> ShareStateClient:
    """The way to all share coordinators, from this broker: its own is asked without a connection."""

    async def find(keys: Sequence[str]) -> Mapping[str, Found]:
        return await find_share_coordinators(node, keys)

    async def ask(node_id: int, body: Any) -> Any:
        if node.cluster is None or node_id == node.node_id:
            return await answer_request(node, body)
        return await _ask_other(node, node.cluster, body)

    from ...client.share_state import ShareStateClient

    return ShareStateClient(find, ask)


async def _ask_other(node: Node, cluster: ClusterNode, body: Any) -> Any:
    count = node.topics.count_of(SHARE_STATE_TOPIC)
    assert count is not None, "its leader was found"

    def place_of(topic_id: UUID, partition: int) -> TopicPartition:
        key = SharePartitionKey(body.group_id, topic_id, partition)
        return TopicPartition(SHARE_STATE_TOPIC, partition_for(str(key), count))

    # all of the request's partitions have one leader: it is given up when the first has another
    place = place_of(body.topics[0].topic_id, body.topics[0].partitions[0].partition)
    if body.API_KEY in _OF_AN_EPOCH:
        body = _with_epochs(body, lambda *each: cluster.leader_epoch_of(*place_of(*each)))
    timeout_ms = node.settings.share_coordinator_write_timeout_ms + _ASK_MS
    return await cluster.ask_leader(place, body, timeout_ms=timeout_ms)


def _with_epochs(body: Any, epoch_of: Callable[[UUID, int], int]) -> Any:
    """Return a request with the epoch in which each of its share coordinators is asked: it must not take
    effect where it comes so late that there was another one since.
    """
    return body._replace(
        topics=[
            topic._replace(
                partitions=[
                    row._replace(coordinator_epoch=epoch_of(topic.topic_id, row.partition))
                    for row in topic.partitions
                ]
            )
            for topic in body.topics
        ]
    )


def prune_state(logs: LocalLogs, index: int, cut: PruneLog, now_ms: int) -> bool:
    """Delete records of ``__share_group_state`` that are needed no more; return whether that is done.

    Not while a replica may lack a snapshot that took the place of what goes: it might lead next, and this
    broker after it, whose log would have neither.
    """
    partition = logs.led(SHARE_STATE_TOPIC, index)
    if partition is None or partition.high_watermark < cut.end_offset:
        return False
    start = partition.log_start_offset
    try:
        partition.delete_records(cut.before_offset, now_ms=now_ms)
        if partition.log_start_offset != start:
            logs.write_log_starts([partition])
    except (KafkaError, OSError) as error:
        _not_pruned.say("%s-%d cannot be cut: %s", SHARE_STATE_TOPIC, index, error)
        return False
    return True


def partition_count(topic: TopicImage | None) -> int:
    """The number of partitions of a topic; 0 for none."""
    return 0 if topic is None else len(topic.partitions)


def largest_state(logs: LocalLogs) -> int:
    """Size in bytes of the largest batch that the coordinator's topic accepts."""
    topic = logs.topic(SHARE_STATE_TOPIC)
    assert topic is not None, "the coordinator has started"
    return min(topic.config.max_message_bytes, topic.config.segment_bytes)
