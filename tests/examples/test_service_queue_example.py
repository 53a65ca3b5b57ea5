"""examples/service_queue.py as its readers run it: a process, a broker, SIGTERM."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from tests.broker_process import BrokerProcess
from tests.group_configs import set_group_configs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "service_queue.py"
MAILS = [{"to": "ann@example.org"}, {"to": "nobody"}, {"from": "bob"}, {"to": "eve@example.org"}]


@pytest.mark.clients
def test_it_sends_sets_aside_what_cannot_be_sent_and_ends_with_0(broker_process: BrokerProcess) -> None:
    bootstrap = broker_process.bootstrap
    set_group_configs(bootstrap, "mails", share_auto_offset_reset="earliest")
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        names = "mails", "mails.dlt"
        admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1} for name in names})
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for mail in MAILS:
            producer.send("mails", json.dumps(mail).encode())
        producer.flush()
    service = subprocess.Popen(
        [sys.executable, "-u", EXAMPLE, bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert service.stdout is not None
        sent = {service.stdout.readline() for _ in range(2)}
        letters = read_letters(bootstrap, 2)
        service.send_signal(signal.SIGTERM)
        _, log = service.communicate(timeout=30)
    finally:
        service.kill()
    assert service.returncode == 0, log
    assert sent == {"sent to ann@example.org at delivery 1\n", "sent to eve@example.org at delivery 1\n"}
    assert letters == {b'{"to": "nobody"}': b"4", b'{"from": "bob"}': b"1"}


def read_letters(bootstrap: str, count: int) -> dict[bytes, bytes]:
    """Values and attempts of the dead letters."""
    with KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=30_000) as consumer:
        consumer.assign([TopicPartition("mails.dlt", 0)])
        consumer.seek_to_beginning()
        found = [next(consumer) for _ in range(count)]
    return {letter.value: dict(letter.headers)["kohort.attempts"] for letter in found}
