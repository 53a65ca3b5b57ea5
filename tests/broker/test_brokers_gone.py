"""Who may still read and write when one or two of three brokers are gone: the table of operators' page.

Covers: broker/replicas/replicas.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from kohort.client import Cluster
from kohort.protocol import KohortError
from kohort.testing import RunningCluster, running_cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operating-a-cluster.md"
#: Rows of the table, and what tries them.
WORK: dict[str, Callable[[str], Awaitable[object]]] = {}
#: Clients retry what is refused for as long as they are let.
REFUSED_AFTER_S = 3.0


def row(words: str) -> Callable[[Callable[[str], Awaitable[object]]], None]:
    def keep(work: Callable[[str], Awaitable[object]]) -> None:
        WORK[words] = work

    return keep


async def produce(bootstrap: str, topic: str, acks: Any) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks=acks, request_timeout_ms=2_000, retry_backoff_ms=50
    ) as sender:
        await sender.send_and_wait(topic, b"value", partition=0)


@row("write with `acks=all`, `min.insync.replicas=2`")
async def _(bootstrap: str) -> None:
    await produce(bootstrap, "two", "all")


@row("write with `acks=all`, `min.insync.replicas=1`")
async def _(bootstrap: str) -> None:
    await produce(bootstrap, "one", "all")


@row("write with `acks=1`")
async def _(bootstrap: str) -> None:
    await produce(bootstrap, "two", 1)


@row("read what is committed")
async def _(bootstrap: str) -> None:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition("two", 0)])
        assert (await reader.getone()).value == b"first"


async def grouped(bootstrap: str, group: str, work: Callable[[Any], Awaitable[object]]) -> None:
    options: dict[str, Any] = {"group_id": group, "enable_auto_commit": False}
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, **options) as reader:
        reader.assign([TopicPartition("two", 0)])
        await work(reader)


@row("read offsets that a group has committed")
async def _(bootstrap: str) -> None:
    async def read(reader: Any) -> None:
        assert await reader.committed(TopicPartition("two", 0)) == 1

    await grouped(bootstrap, "before", read)


@row("commit offsets, `min.insync.replicas=2` of `__consumer_offsets`")
async def _(bootstrap: str) -> None:
    await grouped(bootstrap, "now", lambda reader: reader.commit({TopicPartition("two", 0): 1}))


@row("transactions, which need two replicas in sync")
async def _(bootstrap: str) -> None:
    async with (
        AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id="t", request_timeout_ms=2_000, retry_backoff_ms=50
        ) as sender,
        sender.transaction(),
    ):
        await sender.send_and_wait("one", b"value", partition=0)


@row("make a topic with three replicas")
async def _(bootstrap: str) -> None:
    await made(bootstrap, 3)


@row("make a topic with one replica")
async def _(bootstrap: str) -> None:
    await made(bootstrap, 1)


async def made(bootstrap: str, replicas: int) -> None:
    async with Cluster(bootstrap, default_api_timeout_ms=2_000) as client:
        await client.create_topics({f"new-{replicas}-{id(client)}": 1}, replication_factor=replicas)


async def outcomes(bootstrap: str, expected: dict[str, str]) -> dict[str, str]:
    """What works, each thing by itself, all at once. What is to work may take its time."""

    async def tried(words: str, work: Callable[[str], Awaitable[object]]) -> str:
        try:
            async with asyncio.timeout(60 if expected[words] == "yes" else REFUSED_AFTER_S):
                await work(bootstrap)
        except (KafkaError, KohortError, TimeoutError):
            return "no"
        return "yes"

    found = await asyncio.gather(*(tried(*each) for each in WORK.items()))
    return dict(zip(WORK, found, strict=True))


@pytest.mark.slow(8)
def test_what_works_is_what_the_table_says() -> None:
    lines = re.findall(r"^\| ([^|]+) \| (yes|no) \| (yes|no)[^|]*\|$", PAGE.read_text(), re.MULTILINE)
    assert [words for words, *_ in lines] == list(WORK)

    async def begin(cluster: RunningCluster) -> None:
        await produce(cluster.bootstrap, "one", "all")
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as sender:
            await sender.send_and_wait("two", b"first", partition=0)
        await grouped(
            cluster.bootstrap, "before", lambda reader: reader.commit({TopicPartition("two", 0): 1})
        )

    expected = [{words: each[at] for words, *each in lines} for at in (0, 1)]
    # transactions as brokers with zookeeper.connect have them
    with running_cluster(3, min_insync_replicas="2", transaction_state_log_min_isr=2) as cluster:
        cluster.create_topic("two")
        cluster.create_topic("one", min_insync_replicas="1")
        asyncio.run(begin(cluster))
        assert set(asyncio.run(outcomes(cluster.bootstrap, dict.fromkeys(WORK, "yes"))).values()) == {"yes"}
        for each in expected:
            cluster.kill(cluster.controller)
            assert cluster.controller
            left = next(iter(cluster.brokers.values()))
            assert asyncio.run(outcomes(left.bootstrap, each)) == each
