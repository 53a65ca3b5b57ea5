"""Where partitions end, asked of their leaders."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..protocol import KafkaError, KohortError
from ..protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from .event_loop.time_slices import in_slices
from .node import Node

if TYPE_CHECKING:
    from .metadata.cluster_node import ClusterNode

#: How long another broker may take to tell where its partitions end, in milliseconds.
_ASK_MS: Final = 10_000
_LATEST, _NO_REPLICA = -1, -1


async def find_ends(node: Node, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The ends of partitions as their leaders know them; without those that cannot be reached or read."""
    ends: dict[tuple[str, int], int] = {}
    elsewhere: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    async for place in in_slices(places):
        name, number = place
        partition = node.logs.led(name, number)
        if partition is not None:
            with suppress(KafkaError):
                ends[place] = partition.high_watermark
        elif node.cluster is not None:
            elsewhere[node.cluster.leader_of(name, number)][name].append(number)
    cluster = node.cluster
    if cluster is not None:
        known = (_ask_ends(cluster, leader, rows) for leader, rows in elsewhere.items() if leader >= 0)
        for told in await asyncio.gather(*known):
            ends |= told
    return ends


async def _ask_ends(
    cluster: ClusterNode, leader: int, rows: Mapping[str, list[int]]
) -> dict[tuple[str, int], int]:
    topics = [
        ListOffsetsTopic(name, [ListOffsetsPartition(number, timestamp=_LATEST) for number in numbers])
        for name, numbers in rows.items()
    ]
    try:
        answer = await cluster.ask(leader, ListOffsetsRequest(_NO_REPLICA, topics=topics), timeout_ms=_ASK_MS)
    except (KohortError, OSError):
        return {}
    return {
        (topic.name, row.partition_index): row.offset
        for topic in answer.topics
        for row in topic.partitions
        if not row.error_code
    }
