"""examples/service_kafka.py: killed three times, each bill is in its topic once."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from kohort.client import Cluster
from kohort.producer import Producer
from tests.broker_process import BrokerProcess
from tests.producer.reading import read_values

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: The example, but for a session that does not have to be waited for after each kill.
PROGRAM = """
import sys
from service_kafka import make_service
make_service(*sys.argv[1:], session_timeout_ms=3_000, heartbeat_interval_ms=500).run()
"""
ORDERS = 3_000


@pytest.mark.slow(15)
async def test_a_service_that_is_killed_writes_every_bill_once(broker_process: BrokerProcess) -> None:
    bootstrap = broker_process.bootstrap
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({"orders": 3, "bills": 2, "large-bills": 1, "orders.dlt": 1})
    done = 0
    for last in (800, 1_600, 2_400, ORDERS):
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(done, last):
                order = json.dumps({"id": number, "amount": 1 + number}).encode()
                await producer.send("orders", order, b"customer %d" % (number % 50))
            if last == ORDERS:
                await producer.send("orders", b"no order")
        service = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, bootstrap, cwd=EXAMPLES, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(120):
                found = letters = 0
                while found <= done if last < ORDERS else found < ORDERS or not letters:
                    assert service.returncode is None
                    await asyncio.sleep(0.02)
                    found = len(await read_values(bootstrap, "bills"))
                    letters = len(await read_values(bootstrap, "orders.dlt"))
        finally:
            service.send_signal(signal.SIGTERM if last == ORDERS else signal.SIGKILL)
            await service.wait()
        done = last
    assert service.returncode == 0
    billed = Counter(int((value or b"").split()[0]) for value in await read_values(bootstrap, "bills"))
    assert billed == Counter(range(ORDERS))
    large = [int(value or b"") for value in await read_values(bootstrap, "large-bills")]
    assert sorted(large) == list(range(999, ORDERS))
    assert await read_values(bootstrap, "orders.dlt") == [b"no order"]
