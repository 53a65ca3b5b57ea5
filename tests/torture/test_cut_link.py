"""A cut link between real brokers, each in a network namespace, on a real ZooKeeper that all of them reach.

Covers: broker/metadata/broker_watch.py.
"""

from __future__ import annotations

import time
from pathlib import Path

import kafka
import pytest

from tests.torture.cluster_machine import NODES, SESSION_MS, cluster_machine
from tests.torture.history import History
from tests.torture.load import create_topic
from tests.torture.network import problem

#: Longer than anything takes on a busy machine; the link stays cut all that time if nobody else leads.
PATIENCE_S = 20 * SESSION_MS / 1_000


@pytest.mark.slow(60)
@pytest.mark.timeout(600)
@pytest.mark.skipif(problem() is not None, reason=str(problem()))
def test_who_is_cut_off_from_the_controller_alone_leads_no_more(tmp_path: Path) -> None:
    with cluster_machine(tmp_path, 1, History()) as machine:
        create_topic(machine.bootstrap, "orders", len(NODES), len(NODES))
        assert machine.become_whole()
        controller = machine.watch.image.controller_id
        led = {number: machine.watch.leader("orders", number) for number in range(len(NODES))}
        partition, leader = next((n, each) for n, each in led.items() if each != controller)
        for link in ((leader, controller), (controller, leader)):
            machine.network.cut(*link)
        deadline = time.monotonic() + PATIENCE_S
        while machine.watch.leader("orders", partition) in (leader, -1):
            assert time.monotonic() < deadline, machine.watch.image.topic("orders")
            time.sleep(0.05)
        sender = kafka.KafkaProducer(bootstrap_servers=machine.bootstrap, acks="all")
        sender.send("orders", b"through", partition=partition).get(timeout=PATIENCE_S)
        sender.close()
        assert machine.watch.image.controller_id == controller
        assert leader in machine.watch.image.brokers, "it reaches ZooKeeper all the time"
        for link in ((leader, controller), (controller, leader)):
            machine.network.join(*link)
        assert machine.become_whole()
