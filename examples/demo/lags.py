"""How far a group is behind, as any group tool would see it."""

from __future__ import annotations

from data import PARTITIONS, TOPIC

from kohort.consumer import LATEST, Cluster
from kohort.protocol import TopicPartition


async def lag(bootstrap: str, group: str) -> int:
    """Records of the topic that the group has not committed."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    async with Cluster(bootstrap) as cluster:
        await cluster.metadata([TOPIC])
        ends = await cluster.list_offsets(dict.fromkeys(partitions, LATEST))
        committed = await cluster.committed(group, partitions)
    return sum(ends[p].offset - (committed[p].offset if p in committed else 0) for p in partitions)
