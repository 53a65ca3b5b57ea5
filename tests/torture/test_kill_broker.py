"""kill -9 of the broker, again and again: what was acknowledged is there, members come back by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.broker_process import BrokerProcess
from tests.clients.drivers import DRIVERS, RANGE
from tests.clients.members import Member, shared_out, wait_for_records, wait_until
from tests.torture.load import Committer, committed, create_topic, read_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow(6)]

ROUNDS = 3
PARTITIONS = 6


class Writer:
    """Sends numbered values from a thread of its own; remembers where each acknowledged one was put."""

    def __init__(self, bootstrap: str, topic: str, prefix: str) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._topic = topic
        self._prefix = prefix
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            self.acknowledged[message.partition(), message.offset()] = message.value()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.001):
            value = f"{self._prefix}-{number}".encode()
            self._producer.produce(self._topic, value, value, on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1

    def stop(self) -> None:
        """Give up what was not acknowledged."""
        self._stop.set()
        self._thread.join()
        self._producer.poll(0)
        self._producer.purge()
        self._producer.flush(10)


def busy_enough(writer: Writer, committer: Committer, last_commit: int) -> bool:
    return len(writer.acknowledged) >= 500 and committer.acknowledged >= last_commit + 20


def test_every_acknowledged_record_and_commit_outlives_the_kill(broker_process: BrokerProcess) -> None:
    """Killed while both are under way; what was sent but not acknowledged may be there or not."""
    create_topic(broker_process.bootstrap, "orders", PARTITIONS)
    acknowledged: dict[tuple[int, int], bytes] = {}
    last_commit = 0
    for number in range(ROUNDS):
        writer = Writer(broker_process.bootstrap, "orders", f"round-{number}")
        committer = Committer(broker_process.bootstrap, "billing", "orders", last_commit)
        wait_until(partial(busy_enough, writer, committer, last_commit), "500 records and 20 commits")
        broker_process.kill()
        writer.stop()
        committer.stop()
        acknowledged |= writer.acknowledged
        last_commit = committer.acknowledged
        broker_process.start()

        found = read_topic(broker_process.bootstrap, "orders", PARTITIONS)
        lost = {place: value for place, value in acknowledged.items() if found.get(place) != value}
        assert lost == {}
        kept = committed(broker_process.bootstrap, "billing", "orders")
        assert last_commit <= kept <= last_commit + 1
        last_commit = kept
    assert broker_process.stop() == 0


def commits(member: Member) -> bool:
    """Whether a commit is accepted; the member may still be on its way back into the group."""
    try:
        member.commit()
    except (kafka.errors.KafkaError, aiokafka.errors.KafkaError, confluent_kafka.KafkaException):
        return False
    return True


def test_members_of_every_client_come_back_by_themselves(
    broker_process: BrokerProcess, group: Callable[[str], str]
) -> None:
    create_topic(broker_process.bootstrap, "orders", PARTITIONS)
    group_id = group("billing")
    sent: set[bytes] = set()
    with ExitStack() as stack:
        members = [
            stack.enter_context(Member(driver, broker_process.bootstrap, group_id, "orders", RANGE))
            for driver in DRIVERS.values()
        ]
        wait_until(lambda: shared_out(members, PARTITIONS), "the members share the partitions", members)
        for number in range(ROUNDS):
            broker_process.kill()
            time.sleep(0.3)
            broker_process.start()

            values = {b"round-%d-%03d" % (number, at) for at in range(120)}
            DRIVERS["aiokafka"].produce(broker_process.bootstrap, "orders", values)
            sent |= values
            wait_for_records(members, len(sent))
            wait_until(lambda: shared_out(members, PARTITIONS), "the members share them again", members)
            for member in members:
                wait_until(partial(commits, member), "a commit", members)
        assert {record.value for member in members for record in member.got} == sent
    # What they committed before they left is what the next member goes on from.
    with Member(DRIVERS["confluent-kafka"], broker_process.bootstrap, group_id, "orders") as late:
        DRIVERS["aiokafka"].produce(broker_process.bootstrap, "orders", [b"the last"])
        assert [record.value for record in wait_for_records([late], 1)] == [b"the last"]
