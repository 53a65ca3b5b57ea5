"""Reads what producers wrote."""

from __future__ import annotations

from kohort.client import LATEST, Cluster
from kohort.consumer import AsyncGroupConsumer, Record


async def read(bootstrap: str, topic: str, *, committed: bool = True) -> list[Record]:
    """Every record that is there when no transaction is open, by partition and offset."""
    async with Cluster(bootstrap) as cluster:
        await cluster.metadata([topic])
        places = dict.fromkeys(cluster.known_metadata.partitions(topic), LATEST)
        ends, stable = await cluster.list_offsets(places), None
        while committed and stable != ends:
            # markers are written after the answer to the end of a transaction
            stable = await cluster.list_offsets(places, read_committed=True)
            ends = await cluster.list_offsets(places)
    left = {partition for partition, end in ends.items() if end.offset > 0}
    records: list[Record] = []
    if not left:
        return records
    async with AsyncGroupConsumer(
        partitions=sorted(left),
        bootstrap=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_auto_commit=False,
    ) as consumer:
        while left:
            records += await consumer.getmany(timeout_ms=100)
            left = {p for p in left if (consumer.position(p) or 0) < ends[p].offset}
    return sorted(records, key=lambda record: (record.partition, record.offset))


async def read_values(bootstrap: str, topic: str, *, committed: bool = True) -> list[bytes | None]:
    return [record.value for record in await read(bootstrap, topic, committed=committed)]
