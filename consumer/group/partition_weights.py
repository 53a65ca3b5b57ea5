"""Weights of partitions, measured on the cluster for leaders whose assignor asks for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from ...assignors import Measure, MeasuringAssignor
from ...client.cluster import Cluster
from ...client.offsets import LATEST
from ...protocol import KohortError, TopicPartition
from ..events import BrokerUnavailable, Event

#: The group waits for its leader, so a longer measurement is abandoned.
MEASURE_TIMEOUT_MS: Final = 3_000


async def measure_weights(
    cluster: Cluster, group: str, measure: Measure, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, float]:
    """Records by partition: not read yet (lag), or written in the last ``window_ms`` (throughput).

    Partitions without a leader are left out and, for lag, those without a committed offset. Throughput is
    computed by the records' own timestamps. Raises KafkaError, or BrokerConnectionError if no broker answers.
    """
    there = [partition for partition in partitions if cluster.leader(partition) is not None]
    ends = await cluster.list_offsets(dict.fromkeys(there, LATEST))
    if measure.kind == "lag":
        committed = await cluster.committed(group, there, require_stable=False)
        begins = {partition: offset.offset for partition, offset in committed.items()}
    else:
        since = round(time.time() * 1_000) - measure.window_ms
        found = await cluster.list_offsets(dict.fromkeys(there, since))
        # -1: no record is that young
        begins = {p: row.offset if row.offset >= 0 else ends[p].offset for p, row in found.items()}
    return {p: float(max(0, ends[p].offset - begin)) for p, begin in begins.items()}


async def tell_weights(
    assignor: MeasuringAssignor | None,
    cluster: Cluster,
    group: str,
    topics: Iterable[str],
    report: Callable[[Event], None],
) -> None:
    """Measure what the assignor asks for; a failure is reported, and the group goes on without weights."""
    if assignor is None or assignor.measure is None:
        return
    known = (cluster.topic(name) for name in topics)
    partitions = [TopicPartition(topic.name, n) for topic in known if topic for n in topic.partitions]
    try:
        async with asyncio.timeout(MEASURE_TIMEOUT_MS / 1_000):
            weights = await measure_weights(cluster, group, assignor.measure, partitions)
    except (KohortError, TimeoutError) as error:
        report(BrokerUnavailable("measuring the weights of partitions", error))
    else:
        assignor.measured(weights)
