"""Processors that work in transactions are killed and stand still, the broker is killed, its disk runs full:
who reads committed records finds each once, in its order.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from tests.broker_process import QUICK_SETTINGS
from tests.reliability_report import table, write_section
from tests.torture.episode import machine
from tests.torture.exactly_once import TRANSACTION_MS
from tests.torture.history import History
from tests.torture.load import create_topic
from tests.torture.nemesis import Machine, Nemesis
from tests.torture.test_kill_under_load import Numbers, confluent_numbers

pytestmark = [pytest.mark.clients, pytest.mark.slow(30)]

#: Files of the processors, by whose they are.
PROGRAMS = {"librdkafka": "exactly_once.py", "kohort": "exactly_once_service.py"}
PARTITIONS = 3
FAULTS, SOAKED_FAULTS = 5, 100
#: Seconds between two faults.
SHORTEST_S, LONGEST_S = 0.2, 1.2
SETTLE_S = 90.0
#: Seconds between two records of a partition.
PACE_S = 0.01
SETTINGS = {
    **QUICK_SETTINGS,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.segment.bytes": "262144",
}

_INTRO = {
    "librdkafka": """
## Exactly once

Three processors (librdkafka) read numbers, write them to another topic and commit their offsets, in
transactions of up to 30 records. They are killed, suspended for longer than their transaction timeout, and
restarted under the same transactional id or a new one. Meanwhile the broker is killed and suspended, its disk
runs full and slow, its clock jumps, and connections to it are cut, held up and delayed. At the end the output
is read with read_committed: it must hold each number once and in order.
`make soak-transactions`, `tests/torture/test_exactly_once_killed.py`
""".strip(),
    "kohort": "The same with three of our services (`exactly_once(KafkaOutput())`):",
}


class Processor:
    """A process that is started again when it has ended."""

    def __init__(self, number: int, errors: Path, program: str, *arguments: str) -> None:
        self._number, self._errors, self._arguments = number, errors, arguments
        self._program = str(Path(__file__).with_name(PROGRAMS[program]))
        self.begun = 0
        self._id = 0
        self._process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        """Start it, unless it runs."""
        if self._process is None or self._process.poll() is not None:
            name = f"processor-{self._number}-{self._id}"
            command = [sys.executable, self._program, *self._arguments, name]
            with self._errors.open("ab") as errors:
                self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
            self.begun += 1

    def kill(self, *, forget: bool) -> None:
        """SIGKILL; who ``forget``s who it was is another producer when it comes back."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._id += forget

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)


@contextmanager
def processors(errors: Path, program: str, *arguments: str) -> Iterator[list[Processor]]:
    made = [Processor(number, errors, program, *arguments) for number in range(PARTITIONS)]
    try:
        yield made
    finally:
        for each in made:
            each.kill(forget=False)


def wait(seconds: float, tended: list[Processor]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for each in tended:
            each.tend()
        time.sleep(0.05)


def meet(broken: Machine, nemesis: Nemesis, tended: list[Processor], rng: random.Random) -> None:
    """Let one fault happen, to a processor or to the broker, its disk, its clock, its network."""
    kind = rng.choice(("kill", "pause", "nemesis", "nemesis"))
    processor = rng.choice(tended)
    if kind == "kill":
        processor.kill(forget=rng.random() < 0.3)
        nemesis.caused["SIGKILL of a processor"] += 1
    elif kind == "pause":
        processor.pause(rng.uniform(0.5, 3.0) * TRANSACTION_MS / 1_000)
        nemesis.caused["SIGSTOP of a processor"] += 1
    else:
        nemesis.once()
        if not broken.broker.alive:  # a full disk may end it
            broken.broker.start()


def read_committed(bootstrap: str, topic: str, counts: list[int], tended: list[Processor]) -> list[list[int]]:
    """The numbers of each partition, as far as ``counts`` of them, and what may follow a little later."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"read-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: list[list[int]] = [[] for _ in counts]
    deadline = time.monotonic() + SETTLE_S
    quiet_until = float("inf")
    while time.monotonic() < min(deadline, quiet_until):
        for message in consumer.consume(1_000, 0.2):
            if message.error() is None:
                found[message.partition()].append(int(message.value()))
        if [len(each) for each in found] == counts and quiet_until == float("inf"):
            # a zombie's second commit of the same would come now
            quiet_until = time.monotonic() + 3 * TRANSACTION_MS / 1_000
        wait(0.05, tended)
    consumer.close()
    return found


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_record_is_committed_once_whatever_is_killed(
    tmp_path: Path, program: str, soaks: bool, pytestconfig: pytest.Config
) -> None:
    rng = random.Random(21)
    with machine(tmp_path / "machine", 21, History(), SETTINGS) as broken:
        bootstrap = f"127.0.0.1:{broken.proxy.port}"
        for topic in ("source", "target"):
            create_topic(bootstrap, topic, PARTITIONS)
        feeders: list[Numbers] = [
            confluent_numbers(bootstrap, "source", number, "none", pause_s=PACE_S)
            for number in range(PARTITIONS)
        ]
        for feeder in feeders:
            feeder.start()
        nemesis = Nemesis(broken, 21)
        arguments = (bootstrap, "source", "target", "exactly-once")
        with processors(tmp_path / "errors", program, *arguments) as tended:
            for _ in range(SOAKED_FAULTS if soaks else FAULTS):
                wait(rng.uniform(SHORTEST_S, LONGEST_S), tended)
                meet(broken, nemesis, tended, rng)
            for feeder in feeders:
                feeder.stop()
            counts = [feeder.sent for feeder in feeders]
            found = read_committed(bootstrap, "target", counts, tended)
            begun = sum(each.begun for each in tended)
    for partition, count in enumerate(counts):
        doubled = [number for number, times in Counter(found[partition]).items() if times > 1]
        missing = sorted(set(range(count)) - set(found[partition]))
        told = f"partition {partition} of {count}, after {nemesis.story}"
        assert (doubled[:10], missing[:10]) == ([], []), told
        assert found[partition] == list(range(count)), told
    assert sum(counts) > 0
    report = pytestconfig.getoption("--report")
    if report is not None:
        rows: list[tuple[object, ...]] = [
            *sorted(nemesis.caused.items()),
            ("processes begun", begun),
            ("records, each committed once", sum(counts)),
        ]
        text = f"{_INTRO[program]}\n\n{table(('what', 'times'), rows)}"
        write_section(Path(report), f"exactly once, {program}", text)
