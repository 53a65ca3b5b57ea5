"""Consumer groups (KIP-848) under load: heartbeats, joins, and what a large target costs others.

``python -m benchmarks.consumer_groups [--compare | --beside HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures it; ``--compare`` starts an Apache Kafka too, ``--beside`` takes one
that runs already. Both are measured in turn. ``large`` has an assignor in Python and is kohort's alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kohort.assignors import RangeAssignor
from kohort.protocol import ApiKey, ErrorCode, decode_response, encode_request
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from . import _table
from . import _wire as wire
from ._brokers import APACHE_KAFKA, KOHORT, Contender, given, kohort
from ._command import Begun, Command, publish, say
from ._connection import Connection, WrongAnswerError, must, new_group, prepare
from ._load import checked_stream, percentile, pump
from ._rows import Figures, Metric, Part

CONNECTIONS, DEPTH = 8, 64
#: Connections that the members of a group share: Apache Kafka answers one request of a connection at a time.
CROWD_CONNECTIONS: Final = 50
VERSION: Final = 1
SMALL, SMALL_PARTITIONS = b"kohort-benchmark", 10
MIDDLE, MIDDLE_PARTITIONS = b"kohort-benchmark-1000", 1_000
#: Each with half of 20,000 partitions: a topic has 10,000 at most.
LARGE, LARGE_PARTITIONS, LARGE_MEMBERS = (b"kohort-benchmark-a", b"kohort-benchmark-b"), 10_000, 500
CHANGES: Final = 5
GROUP_RESOURCE: Final = 32
MODULE: Final = "benchmarks.consumer_groups"
PLUG_IN: Final = "spread"


class Spread(RangeAssignor):
    """An assignor as anybody could write one."""

    name = PLUG_IN


class Group:
    """Members of one group, who give up what they are told to give up."""

    def __init__(
        self, bootstrap: str, topics: Sequence[bytes], partitions: int, assignor: str | None = None
    ) -> None:
        self.topics, self.partitions = [topic.decode() for topic in topics], partitions
        self.assignor = assignor
        self.name, self.epoch = new_group("next").decode(), 1
        self.connections = [Connection(bootstrap) for _ in range(CROWD_CONNECTIONS)]
        self.of: dict[str, Connection] = {}
        self.epochs: dict[str, int] = {}
        self.has: dict[str, list[TopicPartitions]] = {}
        self.frames: dict[str, bytes] = {}
        config = [AlterableConfig("consumer.assignment.interval.ms", 0, "0")]
        resource = AlterConfigsResource(GROUP_RESOURCE, self.name, config)
        answer = self.connections[0].ask(_frame(IncrementalAlterConfigsRequest([resource])))
        must("IncrementalAlterConfigs", _told(44, answer).responses[0].error_code)

    def join(self, member: str) -> None:
        """Its first heartbeat."""
        connection = self.of[member] = self.connections[len(self.of) % len(self.connections)]
        request = ConsumerGroupHeartbeatRequest(
            self.name,
            member,
            rebalance_timeout_ms=600_000,
            subscribed_topic_names=self.topics,
            server_assignor=self.assignor,
            topic_partitions=[],
        )
        self._learn(member, connection.ask(_frame(request)))
        self.epoch += 1

    def leave(self, member: str) -> None:
        self.of.pop(member).ask(_frame(ConsumerGroupHeartbeatRequest(self.name, member, -1)))
        for known in (self.epochs, self.has, self.frames):
            del known[member]
        self.epoch += 1

    def settle(self) -> None:
        """Heartbeats until all are at the newest epoch and every partition has its reader."""
        give_up = time.monotonic() + 300
        while behind := self._behind():
            if time.monotonic() > give_up:
                raise WrongAnswerError(f"{len(behind)} members do not reach their target")
            for connection in self.connections:
                frames = [self.frames[member] for member in behind if self.of[member] is connection]
                if frames:
                    connection.socket.sendall(b"".join(frames))
            for member in behind:
                self._learn(member, self.of[member].next_answer())

    def close(self) -> None:
        for connection in self.connections:
            connection.socket.close()

    def _behind(self) -> list[str]:
        behind = [member for member, epoch in self.epochs.items() if epoch != self.epoch]
        if behind:
            return behind
        loads = {member: sum(len(row.partitions) for row in has) for member, has in self.has.items()}
        if sum(loads.values()) == self.partitions:
            return []
        return [member for member in self.epochs if loads.get(member, 0) <= self.partitions // len(self.of)]

    def _learn(self, member: str, answer: bytes) -> None:
        told = _told(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer)
        must("ConsumerGroupHeartbeat", told.error_code)
        if told.assignment is not None:
            self.has[member] = told.assignment.topic_partitions
        if told.assignment is not None or self.epochs.get(member) != told.member_epoch:
            self.epochs[member] = told.member_epoch
            owned = self.has.get(member, [])
            self.frames[member] = _frame(
                ConsumerGroupHeartbeatRequest(self.name, member, told.member_epoch, topic_partitions=owned)
            )


def _frame(request: Any, correlation_id: int = 0) -> bytes:
    return bytes(encode_request(VERSION, correlation_id, "benchmark", request))


def _told(key: int, answer: bytes) -> Any:
    return decode_response(key, VERSION, answer[4:])[1]


def _settled(
    bootstrap: str, members: int, topics: Sequence[bytes], partitions: int, assignor: str | None = None
) -> Group:
    group = Group(bootstrap, topics, partitions, assignor)
    for number in range(members):
        group.join(f"m{number:05d}")
        if number % 100 == 99:
            # those that came first must not fall silent
            group.settle()
    group.settle()
    return group


def _heartbeats_of(group: Group, connection: Connection) -> Any:
    """A stream of heartbeats of a group's only member."""
    (member,) = group.epochs
    beat = ConsumerGroupHeartbeatRequest(group.name, member, group.epochs[member])

    def check(answer: bytes) -> None:
        must("ConsumerGroupHeartbeat", _told(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer).error_code)

    return checked_stream(connection, partial(_frame, beat), check)


def heartbeats(bootstrap: str, _effort: float) -> float:
    """Answers a second: groups of one settled member each."""
    groups = [_settled(bootstrap, 1, [SMALL], SMALL_PARTITIONS) for _ in range(CONNECTIONS)]
    streams = [_heartbeats_of(group, Connection(bootstrap)) for group in groups]
    rate = pump(streams, DEPTH, 2 * _effort)
    for group, stream in zip(groups, streams, strict=True):
        stream.connection.socket.close()
        group.leave("m00000")
        group.close()
    return rate.per_second


def one_joins(members: int, bootstrap: str, _effort: float) -> float:
    """Milliseconds until all are at their target: the median of some joins."""
    group = _settled(bootstrap, members, [MIDDLE], MIDDLE_PARTITIONS)
    times = []
    for number in range(CHANGES):
        begin = time.perf_counter()
        group.join(f"n{number}")
        group.settle()
        times.append((time.perf_counter() - begin) * 1000)
        group.leave(f"n{number}")
        group.settle()
    for member in list(group.of):
        group.leave(member)
    group.close()
    return statistics.median(times)


def large(bootstrap: str, _effort: float) -> float:
    """Longest heartbeat in ms of a small group while one more joins a large one under the plug-in."""
    group = _settled(bootstrap, 1, [SMALL], SMALL_PARTITIONS)
    stream = _heartbeats_of(group, Connection(bootstrap))
    command = [sys.executable, "-m", MODULE, "--drive", bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        assert driver.stdout.readline() == "settled\n"
        driver.stdin.write("join\n")
        driver.stdin.flush()
        times = []
        while driver.poll() is None:
            begin = time.perf_counter()
            stream.send(1)
            while not stream.receive():
                pass
            times.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.0005)
    must("the driver", driver.returncode)
    p50, p999 = percentile(times, 0.5), percentile(times, 0.999)
    say(f"  {len(times)} heartbeats, p50 {p50:.2f}, p99.9 {p999:.1f} ms")
    stream.connection.socket.close()
    group.close()
    return max(times)


def drive(bootstrap: str) -> None:
    """The members of the large group, in a process of their own."""
    group = _settled(bootstrap, LARGE_MEMBERS, LARGE, len(LARGE) * LARGE_PARTITIONS, PLUG_IN)
    print("settled", flush=True)
    sys.stdin.readline()
    group.join("new")
    group.settle()
    group.close()


@dataclass(frozen=True, slots=True)
class Row(Part):
    """Its figure is measured on a broker that serves; ``effort`` scales how long rates take."""

    run: Callable[[str, float], float]


ROWS: Final = (
    Row(
        "heartbeats",
        (Metric("value", "heartbeats/s, 8 connections, 64 under way each", "/s", 1.5, True),),
        heartbeats,
    ),
    Row(
        "join_100",
        (Metric("value", "one joins 100 members, until all are at their target", "ms", 1.0),),
        partial(one_joins, 100),
    ),
    Row(
        "join_1000",
        (Metric("value", "one joins 1,000 members, until all are at their target", "ms", 1.0),),
        partial(one_joins, 1000),
    ),
    Row(
        "large",
        (
            Metric(
                "value", "longest heartbeat beside a plug-in that assigns 20,000 to 500", "ms", 20, own=True
            ),
        ),
        large,
    ),
)


def _create(bootstrap: str, topic: bytes, partitions: int) -> None:
    with Connection(bootstrap) as connection:
        answer = connection.ask(wire.create_topic(topic, partitions))
        must("CreateTopics", wire.created_error(answer), ErrorCode.TOPIC_ALREADY_EXISTS)


def measure(
    contenders: Sequence[Contender], rows: Sequence[Row], rounds: int, effort: float
) -> tuple[_table.Measured, list[str]]:
    """The figures of each round, and the brokers' versions."""
    measured: dict[str, dict[str, list[Figures]]] = {
        each.name: {row.name: [] for row in rows} for each in contenders
    }
    wanted = {row.name for row in rows}
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start()) for each in contenders}
        for name, broker in running.items():
            prepare(broker.bootstrap, SMALL, SMALL_PARTITIONS)
            if wanted & {"join_100", "join_1000"}:
                _create(broker.bootstrap, MIDDLE, MIDDLE_PARTITIONS)
            for topic in LARGE if "large" in wanted and name == KOHORT.name else ():
                _create(broker.bootstrap, topic, LARGE_PARTITIONS)
        for row in rows:
            for _ in range(rounds):
                for name, broker in running.items():
                    if name == KOHORT.name or row.name != "large":
                        value = row.run(broker.bootstrap, effort)
                        measured[name][row.name].append({"value": value})
                        say(f"{row.name:10} {name:14} {value:,.1f}")
        return measured, [broker.version for broker in running.values() if broker.version]


def main(arguments: list[str] | None = None) -> int:
    names = [row.name for row in ROWS]
    command = Command("consumer_groups", __doc__, names, compare="with Apache Kafka; needs Java, Maven once")
    command.which.add_argument("--beside", metavar="HOST:PORT", help="with an Apache Kafka that runs already")
    command.add_argument("--effort", type=float, default=1.0, help="how long rates are measured: 1 is 2 s")
    command.add_argument("--drive", help=argparse.SUPPRESS)
    options = command.parse(arguments)
    if options.drive:
        drive(options.drive)
        return 0
    begun = Begun()
    ours = replace(KOHORT, start=partial(kohort, {"group.consumer.assignors": f"uniform,{MODULE}.Spread"}))
    others = (
        [given(options.beside, APACHE_KAFKA.name)] if options.beside else [APACHE_KAFKA] * options.compare
    )
    rows = [row for row in ROWS if row.name in options.wanted]
    measured, versions = measure([*others, ours], rows, options.rounds, options.effort)
    facts = _table.environment(versions) | begun.facts()
    table = _table.table(measured, rows, ours.name, [each.name for each in others])
    publish(table, measured, facts, options, "consumer-groups")
    return 0


if __name__ == "__main__":
    sys.exit(main())
