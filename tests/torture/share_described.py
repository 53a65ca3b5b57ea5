"""What brokers tell of a share group: for the words of a test that fails because the group stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from kohort.admin.groups.share_groups import ask_leaders, share_starts
from kohort.admin.topics.requests import log_offsets
from kohort.client import LATEST
from kohort.client.cluster import Cluster
from kohort.client.metadata import ClusterMetadata
from kohort.offsets_topic import partition_for
from kohort.protocol import KohortError, SharePartitionKey, TopicPartition
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeRequest

STATES = "__share_group_state"
#: A broker may be cut off, or stand still.
_PATIENCE_S = 10.0

T = TypeVar("T")


async def describe_group(cluster: Cluster, group: str, topic: str) -> str:
    """Who is in the group and has which partitions; and of each partition its leader, the high watermark, and
    what the leader and the share coordinator have of it.
    """
    members, metadata, told, starts = await asyncio.gather(
        _or_error(_members(cluster, group)),
        _or_error(cluster.metadata([topic, STATES])),
        _or_error(ask_leaders(cluster, group)),
        _or_error(share_starts(cluster, group)),
    )
    lines = [f"members: {members}"]
    lines += [
        f"{what}: {each}" for what, each in (("leaders", told), ("stored", starts)) if isinstance(each, str)
    ]
    if isinstance(metadata, str):
        return "\n".join([*lines, f"metadata: {metadata}"])
    places = metadata.partitions(topic)
    ends = await _or_error(log_offsets(cluster, places, LATEST))
    for place in places:
        words = [f"led by {metadata.leader(place)}, its state by {_coordinator(metadata, group, place)}"]
        words.append(f"high watermark {ends if isinstance(ends, str) else ends.get(place)}")
        if not isinstance(starts, str):
            words.append(f"stored {starts.get(place)}")
        if not isinstance(told, str):
            words.append(f"at its leader {told.partitions.get(place, 'nothing, or it is loading')}")
        lines.append(f"{topic}-{place.partition}: {', '.join(words)}")
    return "\n".join(lines)


async def _or_error(told: Awaitable[T]) -> T | str:
    try:
        return await asyncio.wait_for(told, _PATIENCE_S)
    except (KohortError, TimeoutError) as error:
        return repr(error)


async def _members(cluster: Cluster, group: str) -> str:
    (told,) = (await cluster.request_coordinator(group, ShareGroupDescribeRequest([group]))).groups
    members = {
        f"{each.client_id} {each.member_id}": [place.partitions for place in each.assignment.topic_partitions]
        for each in told.members
    }
    return f"{told.group_state}: {members}"


def _coordinator(metadata: ClusterMetadata, group: str, place: TopicPartition) -> int | None:
    """The broker that stores the state of a share partition."""
    topic_id, states = metadata.topic_id(place.topic), metadata.partitions(STATES)
    if topic_id is None or not states:
        return None
    key = str(SharePartitionKey(group, topic_id, place.partition))
    return metadata.leader(states[partition_for(key, len(states))])
