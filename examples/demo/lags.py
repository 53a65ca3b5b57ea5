"""Lag of groups, computed as any group tool does."""

from __future__ import annotations

from data import PARTITIONS, SERVICES_GROUP, SPARK_GROUP, TOPIC
from screen import Screen

from kohort.consumer import LATEST, Cluster
from kohort.protocol import TopicPartition


async def lag(bootstrap: str, group: str) -> int:
    """Return the number of the topic's records that the group has not committed."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    async with Cluster(bootstrap) as cluster:
        await cluster.metadata([TOPIC])
        ends = await cluster.list_offsets(dict.fromkeys(partitions, LATEST))
        committed = await cluster.committed(group, partitions)
    return sum(ends[p].offset - (committed[p].offset if p in committed else 0) for p in partitions)


async def show_lags(screen: Screen, bootstrap: str) -> None:
    """Show the lag of the services and of the Spark job."""
    lags = [f"{group} {await lag(bootstrap, group):,}" for group in (SERVICES_GROUP, SPARK_GROUP)]
    screen.line(f"records the groups have not committed: {', '.join(lags)}")
