"""examples/service.py as its readers run it: a process, a broker, SIGTERM."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from tests.broker_process import BrokerProcess

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "service.py"


@pytest.mark.clients
def test_it_bills_sets_poison_aside_and_ends_with_0_after_a_commit(broker_process: BrokerProcess) -> None:
    bootstrap = broker_process.bootstrap
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({"orders": {"num_partitions": 3, "replication_factor": 1}})
    orders = [
        (b"ann", {"id": 1, "amount": 10}),
        (b"bob", {"id": 2, "amount": -5}),
        (b"ann", {"id": 3, "amount": 7}),
    ]
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for customer, order in orders:
        producer.send("orders", json.dumps(order).encode(), customer)
    producer.flush()
    producer.close()

    service = subprocess.Popen(
        [sys.executable, "-u", EXAMPLE, bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert service.stdout is not None
        billed = [service.stdout.readline() for _ in range(2)]
        (letter,) = _letters(bootstrap, 1)
        service.send_signal(signal.SIGTERM)
        _, log = service.communicate(timeout=30)
    finally:
        service.kill()

    assert service.returncode == 0, log
    assert billed == ["billed order 1: 10 to b'ann'\n", "billed order 3: 7 to b'ann'\n"]
    headers = dict(letter.headers)
    assert json.loads(letter.value) == {"id": 2, "amount": -5}
    assert headers["kohort.origin.topic"] == b"orders"
    assert b"amount" in headers["kohort.error.message"]
    assert _committed(bootstrap) == 3


def _letters(bootstrap: str, count: int) -> list[Any]:
    consumer = KafkaConsumer(
        "orders.dlt", bootstrap_servers=bootstrap, auto_offset_reset="earliest", metadata_max_age_ms=500
    )
    letters: list[Any] = []
    deadline = time.monotonic() + 20
    while len(letters) < count and time.monotonic() < deadline:
        letters += [record for records in consumer.poll(200).values() for record in records]
    consumer.close()
    return letters


def _committed(bootstrap: str) -> int:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id="billing")
    offsets = [consumer.committed(TopicPartition("orders", number)) for number in range(3)]
    consumer.close()
    return sum(offset or 0 for offset in offsets)
