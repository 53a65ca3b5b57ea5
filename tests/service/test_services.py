"""Several services in one process.

Covers: service/_services.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kafka import KafkaProducer

from kohort.client.errors import ConfigError
from kohort.consumer import Cluster, Record
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService, HandlerFailedError, Services
from tests.service.fakes import make_service, until

pytestmark = pytest.mark.kafka


class Two:
    """Two groups that read one topic."""

    def __init__(self, bootstrap: str, topic: str, names: tuple[str, str], **options: Any) -> None:
        self.bootstrap, self.topic, self.names = bootstrap, topic, names
        self.seen: dict[str, list[bytes | None]] = {name: [] for name in names}
        self.services = Services(*map(self._service, names), **options)

    def _service(self, name: str) -> ConsumerService:
        service = ConsumerService(bootstrap=self.bootstrap, group=name, auto_offset_reset="earliest")

        @service.handler(self.topic)
        async def handle(record: Record) -> None:
            if record.value == b"bad" and name == self.names[0]:
                raise ValueError("bad")
            self.seen[name].append(record.value)

        return service

    async def committed(self) -> list[int]:
        async with Cluster(self.bootstrap) as cluster:
            partition = TopicPartition(self.topic, 0)
            return [(await cluster.committed(name, [partition]))[partition].offset for name in self.names]


@pytest.fixture
def two(bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]) -> Two:
    topic = new_topic("orders", partitions=1)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"good")
    return Two(bootstrap, topic, (group("billing"), group("shipping")), health_port=0)


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_one_stop_and_one_health_port_for_all(two: Two) -> None:
    task = asyncio.create_task(two.services.serve())
    await until(lambda: two.services.health_port is not None)
    port = two.services.health_port
    assert port is not None
    await until(lambda: two.services.ready and all(two.seen.values()))
    assert await asyncio.to_thread(_get, port, "/readyz") == (200, "ready\n")
    assert await asyncio.to_thread(_get, port, "/healthz") == (200, "ok\n")
    _, metrics = await asyncio.to_thread(_get, port, "/metrics")
    for name in two.names:
        assert f'kohort_service_live{{group="{name}"}} 1.0' in metrics
    assert metrics.count("# TYPE kohort_service_live gauge") == 1
    two.services.services[1].stop()
    await until(lambda: two.services.services[1].probed is None)
    assert await asyncio.to_thread(_get, port, "/readyz") == (503, "1 of 2 services run\n")
    assert not task.done()
    two.services.stop()
    await asyncio.wait_for(task, 30)
    assert await two.committed() == [1, 1]


async def test_a_block_that_ends_at_once_ends_them_also_the_second_time(two: Two) -> None:
    for _ in range(2):
        async with asyncio.timeout(30), two.services.keep_serving():
            pass
    assert all(not service.ready for service in two.services.services)


async def test_when_one_fails_the_others_end_in_order_and_its_error_is_raised(two: Two) -> None:
    task = asyncio.create_task(two.services.serve())
    await until(lambda: all(two.seen.values()))
    with KafkaProducer(bootstrap_servers=two.bootstrap) as producer:
        producer.send(two.topic, b"bad")
    with pytest.raises(HandlerFailedError):
        await asyncio.wait_for(task, 30)
    first, second = await two.committed()
    assert first == 1
    assert second == len(two.seen[two.names[1]])


def test_one_signal_ends_all(two: Two) -> None:
    signalled = False

    async def send_signal() -> None:
        await until(lambda: all(two.seen.values()))
        nonlocal signalled
        signalled = True
        os.kill(os.getpid(), signal.SIGTERM)

    first = two.services.services[0]

    @first.lifespan
    async def life() -> AsyncIterator[None]:
        sending = asyncio.create_task(send_signal())
        yield
        await sending

    two.services.run()
    assert signalled


def test_what_they_are_made_of_is_checked() -> None:
    with pytest.raises(ConfigError, match="one or more ConsumerServices"):
        Services()
    with pytest.raises(ConfigError, match="two of them are of group 'billing'"):
        Services(make_service(), make_service())
    with pytest.raises(ConfigError, match="health_port"):
        Services(make_service(), health_port=-1)


async def test_one_without_a_handler_is_refused_before_anything_connects() -> None:
    with pytest.raises(ConfigError, match="no handler"):
        await Services(make_service()).serve()
