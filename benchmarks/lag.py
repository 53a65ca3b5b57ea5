"""The lag of 1,000 groups with 10,000 partitions: what a command waits, and what it costs a broker to look.

``python -m benchmarks.lag [--bootstrap HOST:PORT ...] [--groups 1000]``

Without ``--bootstrap`` a kohort broker in this process is asked, which also looks itself, as it does for its
metrics. On the clusters given, such as an Apache Kafka, only the command's question is timed. All partitions
have unread records, at offsets that few groups share.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import uuid

from kohort.admin import GroupAdmin
from kohort.broker import Broker
from kohort.client import Cluster, CommittedOffset
from kohort.producer import Producer
from kohort.protocol import TopicPartition

TOPICS, PARTITIONS, RECORDS, LOOKS = 20, 10, 60, 5


async def fill(bootstrap: str, groups: int) -> list[str]:
    """Make topics, records in batches of three, and groups that have read a part of them."""
    run = uuid.uuid4().hex[:8]
    topics = [f"lag-{run}-{number}" for number in range(TOPICS)]
    names = [f"lag-{run}-{number}" for number in range(groups)]
    async with Cluster(bootstrap) as cluster, Producer(bootstrap=bootstrap) as producer:
        await cluster.create_topics(dict.fromkeys(topics, PARTITIONS))
        for number in range(RECORDS):
            for topic in topics:
                for partition in range(PARTITIONS):
                    await producer.send(topic, b"v" * 100, partition=partition)
            if number % 3 == 2:
                await producer.flush()
        gate = asyncio.Semaphore(16)

        async def commit(number: int) -> None:
            offset = CommittedOffset(number % RECORDS)
            places = (TopicPartition(topics[number % TOPICS], partition) for partition in range(PARTITIONS))
            async with gate:
                await cluster.commit(names[number], dict.fromkeys(places, offset))

        await asyncio.gather(*map(commit, range(groups)))
    return names


async def ask(bootstrap: str, names: list[str]) -> None:
    """Time ``GroupAdmin.lag``, over a connection that is open."""
    async with GroupAdmin(bootstrap) as admin:
        taken = []
        for _ in range(LOOKS):
            begun = time.perf_counter()
            found = await admin.lag(names)
            taken.append(time.perf_counter() - begun)
            assert all(group.error is None and group.records for group in found)
    partitions = sum(len(group.partitions) for group in found)
    print(f"{bootstrap}: {len(found):,} groups, {partitions:,} partitions in {min(taken):.2f} s", flush=True)


async def look(broker: Broker) -> None:
    """Time the broker's own looks: the first reads every partition, the others what has changed: nothing."""
    costs = []
    for _ in range(LOOKS):
        begun = time.process_time()
        await broker.look_at_lag()
        costs.append(time.process_time() - begun)
    first, later = costs[0], min(costs[1:])
    print(f"the broker's look: {first * 1_000:.0f} ms of a core, {later * 1_000:.0f} ms where nothing moves")


async def run(bootstraps: list[str], groups: int) -> None:
    for bootstrap in bootstraps:
        await ask(bootstrap, await fill(bootstrap, groups))
    if not bootstraps:
        async with Broker() as broker:
            names = await fill(broker.bootstrap, groups)
            await look(broker)
            await ask(broker.bootstrap, names)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lag", description=__doc__)
    parser.add_argument("--bootstrap", action="append", default=[], metavar="HOST:PORT")
    parser.add_argument("--groups", type=int, default=1_000)
    given = parser.parse_args()
    asyncio.run(run(given.bootstrap, given.groups))


if __name__ == "__main__":
    main()
