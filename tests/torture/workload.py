"""What runs while the faults happen: producers, readers, a group of four makes, a committer, an observer.

Each is a thread with a client of its own; a client that gives up is replaced by a new one, as a supervisor
would. Everything they are told goes into the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import kafka

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, commit_fields
from tests.torture import clients
from tests.torture.clients import MEMBERS, READERS, Client
from tests.torture.history import NOWHERE, Commit, History, Seen, Sent, value_of

GROUP, SIMPLE_GROUP = "billing", "audit"
RETRY_S = 0.2
PACE_S = 0.01
#: Records of one producer that may be on their way.
ON_THE_WAY = 2_000
ASK_TIMEOUT_S = 2.0
JOIN_TIMEOUT_S = 90.0


class Worker(ABC):
    """A thread that uses a client until it is stopped. ``failures`` counts clients that gave up, by error,
    and hanging ones.
    """

    #: Seconds between two records or commits of a worker.
    pace_s = PACE_S

    def __init__(self, name: str, history: History) -> None:
        self.name = name
        self.history = history
        self.failures: dict[str, int] = defaultdict(int)
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; ``join`` waits for it."""
        self.stopping.set()

    @property
    def call(self) -> str:
        """The call of its client that it is in: that of one that hangs stays the same."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None and frame.f_code.co_filename != clients.__file__:
            frame = frame.f_back
        return "" if frame is None else frame.f_code.co_name

    def join(self) -> None:
        self._thread.join(JOIN_TIMEOUT_S)
        if self._thread.is_alive():
            self.failures["hangs"] += 1

    @abstractmethod
    def work(self) -> None:
        """Use one client until ``stopping``; what it raises ends the client, not the worker."""

    def _run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.work()
            except Exception as error:
                self.failures[type(error).__name__] += 1
                self.stopping.wait(RETRY_S)


class ConfluentProducer(Worker):
    """Idempotent; never gives a record up."""

    def __init__(self, name: str, history: History, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(name, history)
        self._topic, self._partitions = topic, partitions
        self._random = random.Random(name)
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 2,
                "delivery.timeout.ms": 3_600_000,
                "reconnect.backoff.max.ms": 300,
                # why it took another epoch, for whoever looks for the cause of a duplicate
                "debug": "eos",
            },
            logger=logging.getLogger(f"torture.{name}"),
        )

    def work(self) -> None:
        while not self.stopping.wait(self.pace_s):
            number = self.history.tried[self.name]
            if len(self._producer) < ON_THE_WAY:
                self.history.tried[self.name] = number + 1
                self._producer.produce(
                    self._topic,
                    value_of(self.name, number),
                    partition=self._random.randrange(self._partitions),
                    on_delivery=lambda error, message, number=number: self._told(number, error, message),
                )
            self._producer.poll(0)
        left = self._producer.flush(JOIN_TIMEOUT_S / 2)
        assert not left, f"{left} records of {self.name} were not acknowledged"

    def _told(self, number: int, error: Any, message: Any) -> None:
        if error is not None:
            self.history.refused[f"{self.name}: {error.name()}"] += 1
        else:
            # a batch that is stored since long is acknowledged without its offset
            offset = message.offset()
            place = (message.partition(), NOWHERE if offset is None else offset)
            self.history.sent[self.name].append(Sent(number, *place))


class KafkaPythonProducer(Worker):
    """Idempotent; never gives a record up."""

    def __init__(self, name: str, history: History, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(name, history)
        self._topic, self._partitions = topic, partitions
        self._random = random.Random(name)
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            delivery_timeout_ms=3_600_000,
            request_timeout_ms=5_000,
            reconnect_backoff_max_ms=300,
        )

    def work(self) -> None:
        history, name = self.history, self.name
        while not self.stopping.wait(self.pace_s):
            number = history.tried[name]
            if number - len(history.sent[name]) < ON_THE_WAY:
                history.tried[name] = number + 1
                partition = self._random.randrange(self._partitions)
                future = self._producer.send(self._topic, value_of(name, number), partition=partition)
                future.add_callback(self._stored, number).add_errback(self._refused)
        self._producer.flush(JOIN_TIMEOUT_S / 2)
        self._producer.close()

    def _stored(self, number: int, told: Any) -> None:
        self.history.sent[self.name].append(Sent(number, told.partition, told.offset))

    def _refused(self, error: BaseException) -> None:
        self.history.refused[f"{self.name}: {type(error).__name__}"] += 1


class Reader(Worker):
    """Reads every partition, and now and then anew from a place behind where it was."""

    SESSION_S = 8.0
    BEHIND = 150

    def __init__(self, make: str, history: History, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(f"reader {make}", history)
        self._make = READERS[make]
        self._bootstrap, self._topic = bootstrap, topic
        self._next = dict.fromkeys(range(partitions), 0)

    def work(self) -> None:
        at = {number: max(0, offset - self.BEHIND) for number, offset in self._next.items()}
        client = self._make(self._bootstrap, self._topic, f"nobody-{self.name}", at)
        session = self.history.session(self.name)
        end = time.monotonic() + self.SESSION_S
        try:
            while not self.stopping.is_set() and time.monotonic() < end:
                for partition, offset, value in client.poll():
                    session.got[partition].append((offset, value))
                    self._next[partition] = max(self._next[partition], offset + 1)
        finally:
            _close(client)


class GroupMember(Worker):
    """A member of the group: what it is given it has handled at once, and commits."""

    def __init__(
        self, make: str, history: History, bootstrap: str, topic: str, group: str = GROUP, **settings: Any
    ) -> None:
        super().__init__(f"member {make}" if group == GROUP else f"member {make} of {group}", history)
        self.held: set[int] = set()
        self.renew = threading.Event()
        self.group = group
        self._make, self._settings = MEMBERS[make], settings
        self._bootstrap, self._topic = bootstrap, topic

    def work(self) -> None:
        client = self._make(self._bootstrap, self._topic, self.group, **self._settings)
        self.renew.clear()
        group = self.history.group(self.group)
        try:
            while not (self.stopping.is_set() or self.renew.is_set()):
                last: dict[int, int] = {}
                for partition, offset, _ in client.poll():
                    group.handled[partition].add(offset)
                    last[partition] = offset + 1
                self.held = client.held()
                last = {partition: offset for partition, offset in last.items() if partition in self.held}
                if last:
                    self._commit(client, last)
        finally:
            _close(client)

    def _commit(self, client: Client, offsets: dict[int, int]) -> None:
        try:
            client.commit(offsets)
        except Exception as error:
            # a commit that fails is the rule while everything breaks; the member goes on
            self.failures[f"commit: {type(error).__name__}"] += 1
            if "Timeout" in type(error).__name__ and not self.history.group(self.group).steady:
                # some clients go on trying behind our back, and put an old offset over a newer one
                self.renew.set()
            return
        tick = self.history.tick()
        self.history.group(self.group).acknowledged += [Commit(tick, *pair) for pair in offsets.items()]


class SimpleCommitter(Worker):
    """Commits 1, 2, 3 ... for a group without members; only the next one once the last is acknowledged."""

    def __init__(self, history: History, bootstrap: str, topic: str) -> None:
        super().__init__("committer", history)
        self._group = history.group(SIMPLE_GROUP, follows_records=False)
        self._bootstrap, self._topic = bootstrap, topic
        self._offset = 0

    def work(self) -> None:
        with coordinator(self._bootstrap, SIMPLE_GROUP) as (_, wire):
            while not self.stopping.wait(self.pace_s):
                error = self._commit(wire, self._offset + 1)
                if error:
                    self.failures[f"commit: {ErrorCode(error).name}"] += 1
                    if error in _ASK_ANOTHER:
                        return
                    continue
                self._offset += 1
                self._group.acknowledged.append(Commit(self.history.tick(), 0, self._offset))

    def _commit(self, wire: Wire, offset: int) -> int:
        fields = commit_fields(SIMPLE_GROUP, self._topic, offset)
        answer = wire.call(ApiKey.OFFSET_COMMIT, 8, **fields)
        return int(answer.topics[0].partitions[0].error_code)


class Observer(Worker):
    """Asks for the offsets of all groups, again and again."""

    PAUSE_S = 0.3

    def __init__(self, history: History, bootstrap: str) -> None:
        super().__init__("observer", history)
        self._bootstrap = bootstrap

    def work(self) -> None:
        while not self.stopping.wait(self.PAUSE_S):
            for group in [name for name, found in list(self.history.groups.items()) if found.acknowledged]:
                with contextlib.suppress(OSError, EOFError):
                    self.ask(group)

    def ask(self, name: str, timeout_s: float = ASK_TIMEOUT_S) -> dict[int, int]:
        """The group's offsets, which go into the history too; none while they cannot be had."""
        with coordinator(self._bootstrap, name, timeout_s) as (broker, wire):
            asked = self.history.tick()
            answer = wire.call(ApiKey.OFFSET_FETCH, 5, group_id=name, topics=None)
            answered = self.history.tick()
        if answer.error_code:
            return {}
        found = {
            row.partition_index: row.committed_offset
            for topic in answer.topics
            for row in topic.partitions
            if row.error_code == 0 and row.committed_offset >= 0
        }
        # a partition that is not in the answer has no offset
        known = {commit.partition for commit in self.history.group(name).acknowledged}
        rows = {**dict.fromkeys(known, -1), **found}
        self.history.group(name).seen += [Seen(asked, answered, *pair, broker) for pair in rows.items()]
        return found

    def ask_once(self, name: str) -> dict[int, int]:
        return self.ask(name, 10 * ASK_TIMEOUT_S)


#: Errors of a broker that does not coordinate the group, or not yet.
_ASK_ANOTHER = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@contextlib.contextmanager
def coordinator(bootstrap: str, group: str, timeout_s: float = ASK_TIMEOUT_S) -> Iterator[tuple[int, Wire]]:
    """The node id of a group's coordinator and a connection to it, found by any broker. OSError if there is
    none.
    """
    with Wire(random.choice(bootstrap.split(",")), timeout_s=timeout_s) as wire:
        found = wire.call(ApiKey.FIND_COORDINATOR, 2, key=group, key_type=0)
    if found.error_code:
        raise ConnectionError(f"no coordinator: {ErrorCode(found.error_code).name}")
    with Wire(f"{found.host}:{found.port}", timeout_s=timeout_s) as wire:
        yield found.node_id, wire


def read_all(bootstrap: str, topic: str, partitions: int) -> dict[tuple[int, int], bytes]:
    """Every record of the topic by its place, as a reader finds them in the end."""
    client = READERS["confluent-kafka"](bootstrap, topic, "final", dict.fromkeys(range(partitions), 0))
    ends = end_offsets(bootstrap, topic, partitions)
    found: dict[tuple[int, int], bytes] = {}
    reached = dict.fromkeys(range(partitions), 0)
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while any(reached[number] < end for number, end in ends.items()):
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end: {reached}, {ends}"
        for partition, offset, value in client.poll():
            found[partition, offset] = value
            reached[partition] = offset + 1
    client.close()
    return found


def end_offsets(bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    ends = consumer.end_offsets([kafka.TopicPartition(topic, number) for number in range(partitions)])
    consumer.close()
    return {place.partition: offset for place, offset in ends.items()}


def _close(client: Client) -> None:
    # it may not reach the broker to say goodbye
    with contextlib.suppress(Exception, asyncio.CancelledError):
        client.close()
