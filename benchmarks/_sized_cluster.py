"""What a broker costs with 0 to 8 others beside it, and what it takes when one of them is killed."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kohort.protocol import ApiKey, KafkaError
from kohort.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

from ._clusters import Brokers, kohort
from .cluster import client, controller_of, whole
from .cluster_growth import Stored, until

REPLICAS = 3
#: As long as nothing happens.
_IDLE_S = 10.0


class ClusterStep(NamedTuple):
    """A number of brokers and of partitions. Of each broker: MiB, and the share of a processor that it takes
    while nothing happens. When one is killed: seconds until all partitions are led again, and seconds of
    processors of all others until then.
    """

    brokers: int
    partitions: int
    mib: float
    idle: float
    led_s: float
    led_cpu_s: float


def grow_cluster(counts: Sequence[int], partitions: int) -> Iterable[ClusterStep]:
    """Clusters of so many brokers, each with partitions of up to three replicas."""
    for count in counts:
        replicas = str(min(REPLICAS, count))
        more = {
            "default.replication.factor": replicas,
            "min.insync.replicas": "1",
            "offsets.topic.replication.factor": replicas,
        }
        with kohort(0, nodes=range(1, count + 1), more=more) as brokers:
            stored = Stored(brokers.metadata_port)
            try:
                yield asyncio.run(_measure(brokers, stored, partitions))
            finally:
                stored.close()


async def _measure(brokers: Brokers, stored: Stored, partitions: int) -> ClusterStep:
    count = len(brokers.pids)
    async with client(brokers) as cluster:
        # a topic can have as many replicas as its controller knows brokers
        await whole(cluster, nodes=brokers.pids)
        body = CreateTopicsRequest([CreatableTopic("sizing", partitions, -1)], timeout_ms=60_000)
        answer = await cluster.request(None, ApiKey.CREATE_TOPICS, body, timeout_ms=70_000)
        if answer.topics[0].error_code:
            raise KafkaError(answer.topics[0].error_code, "the topic could not be created")
        await until(lambda: stored.all_led() and stored.all_in_sync(min(REPLICAS, count)))
        active = await controller_of(cluster)
    await asyncio.sleep(_IDLE_S / 2)
    before = brokers.cpu_s()
    await asyncio.sleep(_IDLE_S)
    idle = (brokers.cpu_s() - before) / _IDLE_S / count
    mib = sum(map(_resident_mib, brokers.pids.values())) / count
    if count == 1:
        return ClusterStep(count, partitions, mib, idle, 0.0, 0.0)
    victim = next(each for each in brokers.pids if each != active)
    brokers.send(victim, signal.SIGKILL)
    del brokers.pids[victim]
    begun, before = time.monotonic(), brokers.cpu_s()
    await until(partial(stored.all_led, victim))
    return ClusterStep(count, partitions, mib, idle, time.monotonic() - begun, brokers.cpu_s() - before)


def _resident_mib(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None, "it runs"
    return int(found[1]) / 1024
