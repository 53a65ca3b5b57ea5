"""Three brokers that lose one of them, and what they replicate, kohort beside Apache Kafka.

``python -m benchmarks.cluster [--compare] [--only ROW,...] [--rounds 3]``

Three processes each: kohort's beside a ZooKeeper, Apache Kafka's with a vote each in their quorum. One side
runs at a time. Topics have three replicas and two of them have to be in sync. ``--session-ms``: a broker is
missed after so long, on both sides; otherwise by the defaults, kohort's 6 s and Apache Kafka's 9 s.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from kohort.client.cluster import Cluster
from kohort.client.pool import Channel
from kohort.protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition, build_batch
from kohort.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kohort.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest
from kohort.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from ._clusters import APACHE_KAFKA, KOHORT, NODES, Brokers, running
from ._comparison import compare
from ._load import percentile
from ._rows import Figures, Metric, Part

WAIT_S = 90.0
#: Between two attempts of whoever waits for a broker.
PAUSE_S = 0.01
#: Until an attempt that nobody answers is given up.
ATTEMPT_MS = 1_000
OFFSETS = "__consumer_offsets"
KILL, STOP = signal.SIGKILL, signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    #: A broker that is silent for so long is missed; 0: as long as each side's default is.
    session_ms: int = 0
    seconds: float = 5.0
    requests: int = 2_000
    partitions: int = 1_000


@dataclass(frozen=True, slots=True)
class Row(Part):
    """Measured on a cluster that serves."""

    run: Callable[[Brokers, Effort], Figures]


def client(brokers: Brokers) -> Cluster:
    return Cluster(
        brokers.bootstrap,
        request_timeout_ms=ATTEMPT_MS,
        default_api_timeout_ms=int(WAIT_S * 1_000),
        connect_timeout_ms=ATTEMPT_MS,
        retry_backoff_ms=int(PAUSE_S * 1_000),
        retry_backoff_max_ms=int(PAUSE_S * 1_000),
        reconnect_backoff_ms=int(PAUSE_S * 1_000),
        reconnect_backoff_max_ms=int(PAUSE_S * 1_000),
    )


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it is so; what cannot be asked is not."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(KohortError):
                if await is_so():
                    return
            await asyncio.sleep(PAUSE_S)


async def metadata(cluster: Cluster, topics: tuple[str, ...], node_id: int | None = None) -> Any:
    wanted = MetadataRequest([MetadataRequestTopic(name=name) for name in topics], False)
    return await cluster.request(node_id, ApiKey.METADATA, wanted)


async def whole(cluster: Cluster, topics: tuple[str, ...] = (), nodes: Collection[int] = NODES) -> None:
    """Wait until all brokers know all brokers, and all replicas of the topics are in sync."""

    async def is_so() -> bool:
        await cluster.metadata(topics)
        seen = [await metadata(cluster, topics, number) for number in nodes]
        return all(
            len(found.brokers) == len(nodes)
            and all(not topic.error_code and topic.partitions for topic in found.topics)
            and all(len(each.isr_nodes) == len(nodes) for topic in found.topics for each in topic.partitions)
            for found in seen
        )

    await until(is_so)


async def controller_of(cluster: Cluster) -> int:
    """The active controller; brokers of Apache Kafka name any of them in Metadata."""
    with suppress(KohortError):
        wanted = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]
        answer = await cluster.request(None, ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(wanted))
        return int(answer.topics[0].partitions[0].leader_id)
    return (await cluster.metadata([])).controller_id


async def new_topic(cluster: Cluster, leaders: list[int]) -> str:
    """A topic with a partition for each of these leaders."""
    name = f"cluster-{uuid.uuid4().hex[:8]}"
    places = [
        CreatableReplicaAssignment(number, [leader, *(each for each in NODES if each != leader)])
        for number, leader in enumerate(leaders)
    ]
    wanted = CreateTopicsRequest([CreatableTopic(name, -1, -1, places)], timeout_ms=30_000)
    answer = await cluster.request(None, ApiKey.CREATE_TOPICS, wanted, timeout_ms=40_000)
    if answer.topics[0].error_code:
        raise KafkaError(answer.topics[0].error_code, f"{name} could not be created")
    await whole(cluster, (name,))
    return name


async def elect(cluster: Cluster) -> None:
    """Let the first replica of every partition lead again."""
    answer = await cluster.request(
        None, ApiKey.ELECT_LEADERS, ElectLeadersRequest(0, None, 30_000), timeout_ms=40_000
    )
    if answer.error_code:
        raise KafkaError(answer.error_code, "leaders could not be elected")


async def group_at(cluster: Cluster, node_id: int) -> str:
    """A group that a broker coordinates."""
    for _ in range(1_000):
        name = f"group-{uuid.uuid4().hex[:8]}"
        if (await cluster.coordinator(name)).node_id == node_id:
            return name
    raise RuntimeError(f"broker {node_id} coordinates no group")


def batch(size: int) -> bytes:
    return bytes(build_batch([(None, bytes(size))], timestamp_ms=int(time.time() * 1_000)))


async def produce(cluster: Cluster, topic: str, records: bytes) -> None:
    """One attempt; the next one goes to whoever leads then."""
    leader = cluster.leader(TopicPartition(topic, 0))
    try:
        if leader is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "nobody leads")
        wanted = TopicProduceData(topic, partition_data=[PartitionProduceData(0, records)])
        body = ProduceRequest(acks=-1, timeout_ms=ATTEMPT_MS, topic_data=[wanted])
        # by name: of every version
        answer = await cluster.request(
            leader, ApiKey.PRODUCE, body, channel=Channel.DATA, timeout_ms=ATTEMPT_MS, max_version=12
        )
        code = answer.responses[0].partition_responses[0].error_code
        if code:
            raise KafkaError(code, "Produce is refused")
    except KohortError:
        await cluster.metadata([topic])
        raise


async def commit(cluster: Cluster, topic: str, group: str) -> None:
    await cluster.commit(group, {TopicPartition(topic, 0): 1})


class Silence:
    """Does the same again and again, and knows the longest time without success."""

    def __init__(self, once: Callable[[], Awaitable[None]]) -> None:
        self._once = once
        self._succeeded = 0
        self._longest_s = 0.0
        self._last = time.monotonic()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            with suppress(KohortError):
                await self._once()
                now = time.monotonic()
                self._longest_s = max(self._longest_s, now - self._last)
                self._last = now
                self._succeeded += 1
            await asyncio.sleep(PAUSE_S)

    async def _goes_on(self) -> None:
        """Wait until it has been done a few times again."""
        enough = self._succeeded + 20
        async with asyncio.timeout(WAIT_S):
            while self._succeeded < enough:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(PAUSE_S)

    async def begin(self) -> None:
        await self._goes_on()
        self._longest_s = 0.0

    async def end(self) -> float:
        await self._goes_on()
        self._task.cancel()
        return self._longest_s


async def loses(
    brokers: Brokers, how: signal.Signals, *, controller: bool = False, leads: bool = True
) -> Figures:
    """A broker that leads and coordinates, and may be controller, or only follows, goes: how long nothing was
    produced, or committed, and when its process had ended.
    """
    async with client(brokers) as cluster, client(brokers) as other:
        await whole(cluster)
        active = await controller_of(cluster)
        victim = next(each for each in NODES if (each == active) == controller)
        serving = victim if leads else next(each for each in NODES if each not in (victim, active))
        topic = await new_topic(cluster, [serving])
        await cluster.coordinator(topic)  # there are coordinators from now on
        await whole(cluster, (OFFSETS,))
        await elect(cluster)
        group = await group_at(cluster, serving)
        sending = Silence(lambda: produce(cluster, topic, batch(100)))
        committing = Silence(lambda: commit(other, topic, group))
        await asyncio.gather(sending.begin(), committing.begin())
        begun = time.monotonic()
        brokers.send(victim, how)
        while running(brokers.pids[victim]):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(PAUSE_S)
        ended_s = time.monotonic() - begun
        produce_s, commit_s = await asyncio.gather(sending.end(), committing.end())
        await asyncio.to_thread(brokers.start, victim)
        await whole(cluster, (topic, OFFSETS))
    return {"produce": produce_s, "commit": commit_s, "ended": ended_s}


def lost(how: signal.Signals, part: str, brokers: Brokers, _: Effort) -> Figures:
    """``part``: of the broker that goes."""
    work = loses(brokers, how, controller=part == "controller", leads=part != "follower")
    return asyncio.run(work)


def many(brokers: Brokers, effort: Effort) -> Figures:
    """One of the brokers that lead so many partitions is killed: from when it is missed until the others
    know who leads each of its partitions.
    """
    return asyncio.run(_many(brokers, effort.partitions))


async def _many(brokers: Brokers, partitions: int) -> Figures:
    async with client(brokers) as cluster:
        await whole(cluster)
        active = await controller_of(cluster)
        victim = next(each for each in NODES if each != active)
        topic = await new_topic(cluster, [NODES[number % len(NODES)] for number in range(partitions)])
        others = [each for each in NODES if each != victim]
        missed = 0.0
        begun = time.monotonic()
        brokers.send(victim, KILL)

        async def handled() -> bool:
            nonlocal missed
            seen = [await metadata(cluster, (topic,), number) for number in others]
            if not missed and any(len(found.brokers) < len(NODES) for found in seen):
                missed = time.monotonic()
            return all(each.leader_id in others for found in seen for each in found.topics[0].partitions)

        await until(handled)
        done = time.monotonic()
        await asyncio.to_thread(brokers.start, victim)
        await whole(cluster, (topic,))
        back_s = time.monotonic() - done
        await cluster.delete_topics([topic])
    return {"handled": done - (missed or done), "all": done - begun, "back": back_s}


def rate(size: int, brokers: Brokers, effort: Effort) -> Figures:
    """librdkafka's producer, as much as it gets rid of, over six partitions."""
    topic = asyncio.run(_topic(brokers, [*NODES, *NODES]))
    from confluent_kafka import Producer

    sender = Producer(
        {
            "bootstrap.servers": brokers.bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 100_000,
        }
    )
    told: list[Any] = []
    value = bytes(size)
    count = [0]

    def delivered(error: Any, _: Any) -> None:
        if error is None:
            count[0] += 1
        else:
            told.append(error)

    begun = cpu = 0.0
    # the first seconds are for what is made at the first use
    for seconds in (effort.seconds / 3, effort.seconds):
        sender.flush(WAIT_S)
        begun, count[0], cpu = time.perf_counter(), 0, brokers.cpu_s()
        until = begun + seconds
        while time.perf_counter() < until:
            try:
                for _ in range(100):
                    sender.produce(topic, value, on_delivery=delivered)
            except BufferError:
                sender.poll(0.01)
            sender.poll(0)
    sender.flush(WAIT_S)
    took_s = time.perf_counter() - begun
    if told:
        raise RuntimeError(f"records were not delivered: {told[0]}")
    return {"rate": count[0] / took_s, "cpu_us": (brokers.cpu_s() - cpu) / count[0] * 1e6}


def latency(brokers: Brokers, effort: Effort) -> Figures:
    """A record of 100 bytes after the other."""
    return asyncio.run(_latency(brokers, effort.requests))


async def _latency(brokers: Brokers, requests: int) -> Figures:
    topic = await _topic(brokers, [1])
    took_s: list[float] = []
    async with client(brokers) as cluster:
        await cluster.metadata([topic])
        for number in range(requests + requests // 10):
            records, begun = batch(100), time.perf_counter()
            await produce(cluster, topic, records)
            if number >= requests // 10:
                took_s.append(time.perf_counter() - begun)
    return {"p50_ms": percentile(took_s, 0.5) * 1_000, "p99_ms": percentile(took_s, 0.99) * 1_000}


async def _topic(brokers: Brokers, leaders: list[int]) -> str:
    async with client(brokers) as cluster:
        await whole(cluster)
        return await new_topic(cluster, leaders)


def _loss(name: str, title: str, run: Callable[[Brokers, Effort], Figures], *more: Metric) -> Row:
    metrics = (
        Metric("produce", f"{title}: no acks=all", "s", 1.0, digits=2),
        Metric("commit", f"{title}: no commits", "s", 1.0, digits=2),
    )
    return Row(name, metrics + more, run)


ROWS: tuple[Row, ...] = (
    *(
        Row(
            name,
            (
                Metric("rate", f"records of {title}, acks=all", "1/s", 0.7, more_is_better=True),
                Metric("cpu_us", "the brokers' time for each", "µs", 2.0, digits=1),
            ),
            partial(rate, size),
        )
        for name, title, size in (("small", "100 B", 100), ("large", "1 KB", 1_000))
    ),
    Row(
        "latency",
        (
            Metric("p50_ms", "one at a time, p50", "ms", 1.43, digits=2),
            Metric("p99_ms", "one at a time, p99", "ms", 1.43, digits=2),
        ),
        latency,
    ),
    _loss("killed", "leader and coordinator killed", partial(lost, KILL, "leader")),
    _loss("controller", "the same, controller too", partial(lost, KILL, "controller")),
    _loss("follower", "follower killed", partial(lost, KILL, "follower")),
    _loss(
        "stopped",
        "stopped by SIGTERM",
        partial(lost, STOP, "leader"),
        Metric("ended", "until its process has ended", "s", 1.0, digits=2),
    ),
    Row(
        "many",
        (
            Metric("handled", "1,000 partitions, from when a broker is missed", "s", 3.0, own=True, digits=2),
            Metric("all", "the same, from its kill", "s", 1.0, digits=2),
            Metric("back", "it is back, and all in sync", "s", 1.0, digits=2),
        ),
        many,
    ),
)


def main(argv: list[str] | None = None) -> int:
    def facts(options: argparse.Namespace) -> dict[str, str]:
        ms = options.session_ms
        missed = f"{ms / 1_000:g} s" if ms else "9 s (Apache Kafka), 6 s (kohort)"
        return {"clusters": f"3 replicas, min.insync.replicas 2; a broker is missed after {missed}"}

    return compare(
        "cluster",
        __doc__,
        [APACHE_KAFKA, KOHORT],
        ROWS,
        Effort(),
        argv,
        start=lambda side, options: side.start(options.session_ms),
        at_once=False,
        needs="with three brokers of Apache Kafka; needs Java, Maven once",
        facts=facts,
    )


if __name__ == "__main__":
    sys.exit(main())
