"""For the tests of group administration: an admin client, members, records, and the command itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from kohort.admin import GroupAdmin
from kohort.cli import main
from kohort.consumer import AsyncGroupConsumer
from kohort.protocol import ApiKey
from tests.broker.wire import Wire
from tests.consumer.members import Maker


@pytest.fixture
def new_topic(new_topic: Callable[..., str]) -> Callable[..., str]:
    """Topics of records of any time: by default a broker deletes old ones, at any moment."""
    return partial(new_topic, retention_ms="-1")


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[GroupAdmin]:
    async with GroupAdmin(bootstrap, timeout_ms=20_000) as client:
        yield client


@pytest.fixture
def produce(bootstrap: str) -> Callable[..., None]:
    """``produce(topic, {0: 20, 1: 10})``: so many records to each partition, one each 1,000 ms of time."""
    from kafka import KafkaProducer

    def send(topic: str, counts: dict[int, int], *, first_ms: int = 1_700_000_000_000) -> None:
        with KafkaProducer(bootstrap_servers=bootstrap) as producer:
            for partition, count in counts.items():
                for number in range(count):
                    when = first_ms + number * 1_000
                    producer.send(topic, b"value", partition=partition, timestamp_ms=when)

    return send


@pytest.fixture
async def member(bootstrap: str) -> AsyncIterator[Maker]:
    """``await member(topic, group=...)`` is a consumer that has started; closed after the test."""
    async with AsyncExitStack() as stack:

        async def make(*topics: str, **config: Any) -> AsyncGroupConsumer:
            settings = {
                "bootstrap": bootstrap,
                "session_timeout_ms": 6_000,
                "heartbeat_interval_ms": 100,
                "fetch_max_wait_ms": 100,
                "auto_offset_reset": "earliest",
            }
            consumer = AsyncGroupConsumer(*topics, **{**settings, **config})
            return await stack.enter_async_context(consumer)

        yield make


async def stable(admin: GroupAdmin, group: str, members: int) -> None:
    """Wait until so many members share the group."""
    async with asyncio.timeout(20):
        while True:
            found = (await admin.describe([group]))[group]
            if found.state == "Stable" and len(found.members) == members:
                return
            await asyncio.sleep(0.05)


class Ran(NamedTuple):
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    def rows(self) -> list[list[str]]:
        """The words of each line that is not empty."""
        return [line.split() for line in self.out.splitlines() if line.strip()]


Groups = Callable[..., Ran]


@pytest.fixture
def groups(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Groups:
    """``groups("describe", "billing")``: ``kohort groups`` on the tests' cluster."""

    def run(*words: Any, to: str = bootstrap) -> Ran:
        return ran(capsys, ["groups", "--bootstrap", to, "--timeout", "20", *map(str, words)])

    return run


def ran(capsys: pytest.CaptureFixture[str], words: Iterable[str]) -> Ran:
    """Run the command in this process."""
    capsys.readouterr()
    try:
        code = main(list(words))
    except SystemExit as left:
        code = int(left.code or 0)
    return Ran(code, *capsys.readouterr())


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    with Wire(bootstrap, timeout_s=30) as made:
        yield made


@pytest.fixture
def jobs(new_topic: Callable[..., str], produce: Callable[..., None]) -> str:
    """A topic for share groups: two partitions with 20 and 10 records, one each second of time."""
    name = new_topic("jobs", partitions=2)
    produce(name, {0: 20, 1: 10})
    return name


@pytest.fixture
def queue(jobs: str, group: Callable[[str], str], groups: Groups) -> str:
    """A share group without members that goes on at the start of both partitions of ``jobs``."""
    name = group("queue")
    made = groups("reset-offsets", name, "--to-earliest", "--topic", jobs, "--share", "--execute")
    assert made.code == 0, made.err
    return name


def id_of(wire: Wire, topic: str) -> UUID:
    answer = wire.call(
        ApiKey.METADATA,
        12,
        topics=[{"name": topic, "topic_id": None}],
        include_topic_authorized_operations=False,
        allow_auto_topic_creation=False,
    )
    (row,) = answer.topics
    found: UUID = row.topic_id
    return found
