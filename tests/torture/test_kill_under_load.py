"""kill -9 at any moment, clients that never stop: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import kafka
import pytest

from tests.broker_process import BrokerProcess
from tests.reliability_report import table, write_section
from tests.torture.load import Committer, committed, create_topic, read_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow(30)]

PARTITIONS = 3
#: Of a leg, and seconds between two records of a producer; with ``--soak`` as many as they can send.
KILLS, PAUSE_S = 8, 0.004
SOAKED_KILLS, SOAKED_PAUSE_S = 20, 0.0005

#: Seconds between a restart and the next kill: some fall into the producers' coming back.
SHORTEST_S, LONGEST_S = 0.1, 1.2


class Numbers:
    """Sends 0, 1, 2 ... to one partition from a thread of its own and never gives one up.

    ``acknowledged`` counts those that are known to be stored. ``hear`` lets the client tell of them.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        finish: Callable[[], None],
        *,
        hear: Callable[[], object] = lambda: None,
        pause_s: float,
    ) -> None:
        self.sent = 0
        self.acknowledged = 0
        self._send = send
        self._finish = finish
        self._hear = hear
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def note(self, *_: object) -> None:
        self.acknowledged += 1

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            self._hear()
            # what is on its way is bounded, as in a client that means to live for long
            if self.sent - self.acknowledged < 2_000:
                self._send(b"%d" % self.sent)
                self.sent += 1

    def stop(self) -> None:
        """Return once everything that was sent is acknowledged."""
        self._stop.set()
        self._thread.join()
        self._finish()


def confluent_numbers(bootstrap: str, topic: str, partition: int, codec: str, *, pause_s: float) -> Numbers:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "delivery.timeout.ms": 3_600_000,
            "reconnect.backoff.max.ms": 300,
            "log_level": 0,
        }
    )

    def delivered(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        assert error is None, error
        numbers.note()

    def send(value: bytes) -> None:
        producer.produce(topic, value, partition=partition, on_delivery=delivered)

    def finish() -> None:
        assert producer.flush(60) == 0

    numbers = Numbers(send, finish, hear=lambda: producer.poll(0), pause_s=pause_s)
    return numbers


def kafka_python_numbers(bootstrap: str, topic: str, partition: int, *, pause_s: float) -> Numbers:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        delivery_timeout_ms=3_600_000,
        reconnect_backoff_max_ms=300,
    )

    def send(value: bytes) -> None:
        producer.send(topic, value, partition=partition).add_callback(numbers.note)

    def finish() -> None:
        producer.flush(60)
        producer.close()

    numbers = Numbers(send, finish, pause_s=pause_s)
    return numbers


@dataclass(slots=True)
class Tally:
    """What the legs of a long run come to."""

    legs: int = 0
    kills: int = 0
    records: int = 0
    commits: int = 0

    def report(self) -> str:
        """The section of the report."""
        rows: list[tuple[object, ...]] = [
            ("SIGKILL of the broker, at any moment", self.kills),
            ("records acknowledged to idempotent producers of two makes", self.records),
            ("commits acknowledged, of two groups", self.commits),
        ]
        counts = table(("what", "times"), rows)
        return f"{_INTRO}\n\n{self.legs} legs, each on a topic of its own, passed.\n\n{counts}"


_INTRO = """
## SIGKILL under load

Producers and committers keep running while the broker is killed and restarted. After each restart the groups'
offsets are compared with the acknowledged ones. At the end of a leg the log is read: it must hold each record
that was sent once and in order, and no offset without a record. Any difference ends the run.
`tests/torture/test_kill_under_load.py`
""".strip()


def require_kept(bootstrap: str, topic: str, committer: Committer, group: str) -> None:
    """The committed offset is one that was acknowledged, or the one that is on its way."""
    before = committer.acknowledged
    kept = committed(bootstrap, group, topic)
    assert before <= kept <= committer.acknowledged + 1, group


def leg(broker: BrokerProcess, topic: str, rng: random.Random, tally: Tally, *, soaks: bool) -> None:
    """Kills under load, then everything is read."""
    kills, pause_s = (SOAKED_KILLS, SOAKED_PAUSE_S) if soaks else (KILLS, PAUSE_S)
    bootstrap = broker.bootstrap
    create_topic(bootstrap, topic, PARTITIONS)
    producers = [
        confluent_numbers(bootstrap, topic, 0, "none", pause_s=pause_s),
        confluent_numbers(bootstrap, topic, 1, "gzip", pause_s=pause_s),
        kafka_python_numbers(bootstrap, topic, 2, pause_s=pause_s),
    ]
    groups = {name: Committer(bootstrap, name, topic, 0) for name in (f"billing-{topic}", f"audit-{topic}")}
    for producer in producers:
        producer.start()
    for _ in range(kills):
        time.sleep(rng.uniform(SHORTEST_S, LONGEST_S))
        broker.kill()
        broker.start()
        for group, committer in groups.items():
            require_kept(bootstrap, topic, committer, group)
    for producer in producers:
        producer.stop()
    for group, committer in groups.items():
        committer.stop()
        require_kept(bootstrap, topic, committer, group)
        assert committer.acknowledged > 0

    found = read_topic(bootstrap, topic, PARTITIONS)
    for partition, producer in enumerate(producers):
        assert producer.acknowledged == producer.sent > 0
        values = [found.get((partition, offset)) for offset in range(producer.sent)]
        assert values == [b"%d" % number for number in range(producer.sent)]
    assert len(found) == sum(producer.sent for producer in producers)
    tally.legs += 1
    tally.kills += kills
    tally.records += len(found)
    tally.commits += sum(committer.acknowledged for committer in groups.values())


@pytest.mark.timeout(14_400)
def test_producers_and_groups_that_go_on_through_kills_lose_nothing_and_repeat_nothing(
    broker_process: BrokerProcess, soaks: bool, pytestconfig: pytest.Config
) -> None:
    rng, tally = random.Random(20), Tally()
    end = time.monotonic() + (pytestconfig.getoption("--soak") or 0)
    report = pytestconfig.getoption("--report")
    while not tally.legs or time.monotonic() < end:
        topic = f"orders-{tally.legs}"
        leg(broker_process, topic, rng, tally, soaks=soaks)
        with kafka.KafkaAdminClient(bootstrap_servers=broker_process.bootstrap) as admin:
            admin.delete_topics([topic])
        if report is not None:
            write_section(Path(report), "kills under load", tally.report())
    assert broker_process.stop() == 0
