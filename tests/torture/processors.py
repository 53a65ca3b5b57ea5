"""Processes that consume, transform and produce in transactions, and what came of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

from tests.torture.exactly_once import TRANSACTION_MS

#: Files of the processors, by whose they are.
PROGRAMS = {"librdkafka": "exactly_once.py", "kohort": "exactly_once_service.py"}
PARTITIONS = 3
SETTLE_S = 90.0


class Processor:
    """A process that is started again when it has ended."""

    def __init__(self, number: int, errors: Path, program: str, *arguments: str) -> None:
        self._number, self._errors = number, errors
        #: For the next process.
        self.arguments = arguments
        self._program = str(Path(__file__).with_name(PROGRAMS[program]))
        self.begun = 0
        self._id = 0
        self._process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        """Start it, unless it runs."""
        if self._process is None or self._process.poll() is not None:
            name = f"processor-{self._number}-{self._id}"
            command = [sys.executable, self._program, *self.arguments, name]
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
    if program == "librdkafka":
        _commit_starts(*arguments)
    made = [Processor(number, errors, program, *arguments) for number in range(PARTITIONS)]
    try:
        yield made
    finally:
        for each in made:
            each.kill(forget=False)


def _commit_starts(bootstrap: str, source: str, _target: str, group: str, *_: str) -> None:
    """Have the group begin with commits. Where there is none, librdkafka (2.16 too) asks for the earliest
    offset. If the partition is taken away meanwhile and comes back, the answer sets a timer, which later has
    it begin there again, in the midst of reading.
    """
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    starts = [confluent_kafka.TopicPartition(source, number, 0) for number in range(PARTITIONS)]
    consumer.commit(offsets=starts, asynchronous=False)
    consumer.close()


def wait(seconds: float, tended: list[Processor]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for each in tended:
            each.tend()
        time.sleep(0.05)


def read_committed(
    bootstrap: str, topic: str, counts: list[int], tended: list[Processor], settle_s: float = SETTLE_S
) -> list[list[int]]:
    """The numbers of each partition, as far as ``counts`` of them, and what may follow a little later; after
    ``settle_s`` without another one, those that there are.
    """
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
    deadline = time.monotonic() + settle_s
    quiet_until = float("inf")
    while time.monotonic() < min(deadline, quiet_until):
        for message in consumer.consume(1_000, 0.2):
            if message.error() is None:
                found[message.partition()].append(int(message.value()))
                deadline = time.monotonic() + settle_s
        if [len(each) for each in found] == counts and quiet_until == float("inf"):
            # a zombie's second commit of the same would come now
            quiet_until = time.monotonic() + 3 * TRANSACTION_MS / 1_000
        wait(0.05, tended)
    consumer.close()
    return found


def unfinished(counts: Sequence[int], found: Sequence[Sequence[int]]) -> list[str]:
    """Which partitions have their first numbers, in order, and no others: processors stand still."""
    return [
        f"partition {partition}: {len(numbers)} of {count}"
        for partition, (count, numbers) in enumerate(zip(counts, found, strict=True))
        if len(numbers) < count and list(numbers) == list(range(len(numbers)))
    ]


def disorder(counts: Sequence[int], found: Sequence[Sequence[int]]) -> list[str]:
    """What is wrong with the numbers of each partition: 0, 1, 2 ... up to the partition's count are right."""
    told = []
    for partition, (count, numbers) in enumerate(zip(counts, found, strict=True)):
        if list(numbers) != list(range(count)):
            doubled = [number for number, times in Counter(numbers).items() if times > 1]
            missing = sorted(set(range(count)) - set(numbers))
            told.append(
                f"partition {partition} of {count}: twice {doubled[:10]}, missing {missing[:10]}, "
                f"{len(doubled)} and {len(missing)} in all"
            )
    return told
