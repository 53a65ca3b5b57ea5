"""examples/service_postgres.py on a PostgreSQL of its own: killed three times, each bill is there once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.broker_process import BrokerProcess

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: The example, but for a session that does not have to be waited for after each kill.
PROGRAM = """
import sys
from service_postgres import make_service
make_service(*sys.argv[1:], session_timeout_ms=3_000, heartbeat_interval_ms=500).run()
"""
ORDERS = 600


@pytest.mark.clients
def test_a_service_that_is_killed_writes_every_bill_once(broker_process: BrokerProcess, dsn: str) -> None:
    bootstrap = broker_process.bootstrap
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({"orders": {"num_partitions": 3, "replication_factor": 1}})
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(ORDERS):
        order = json.dumps({"id": number, "amount": 1 + number % 7}).encode()
        producer.send("orders", order, key=b"ann", partition=number % 3)
    producer.flush()
    producer.close()

    # killed three times among the bills, then left alone
    for done in (ORDERS // 6, ORDERS // 3, ORDERS // 2, ORDERS):
        command = [sys.executable, "-c", PROGRAM, bootstrap, dsn]
        service = subprocess.Popen(command, cwd=EXAMPLES, stderr=subprocess.PIPE, text=True)
        try:
            _wait_for(dsn, done, service)
            last = done == ORDERS
            service.send_signal(signal.SIGTERM if last else signal.SIGKILL)
            _, log = service.communicate(timeout=120)
        finally:
            service.kill()
    assert service.returncode == 0, log
    with psycopg.connect(dsn) as connection:
        billed = Counter(row[0] for row in connection.execute("SELECT order_id FROM bills"))
    assert billed == Counter(range(ORDERS))


def _wait_for(dsn: str, bills: int, service: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    with psycopg.connect(dsn, autocommit=True) as connection:
        while time.monotonic() < deadline:
            assert service.poll() is None, service.communicate()[1]
            known = connection.execute("SELECT to_regclass('bills')").fetchone()
            if known and known[0]:
                counted = connection.execute("SELECT count(*) FROM bills").fetchone()
                if counted and counted[0] >= bills:
                    return
            time.sleep(0.02)
    raise AssertionError(f"{bills} bills were not written in time")
