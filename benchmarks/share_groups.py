"""Share groups (KIP-932): queues drained, records acknowledged and delivered, a member lost, memory.

``python -m benchmarks.share_groups [--compare] [--beside NAME=HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures it; ``--compare`` starts an Apache Kafka too, ``--beside`` takes one
that runs already (kfake serves them, too). All are measured in turn. Members are made of one connection
each, but for the rows of *confluent-kafka*, whose members are processes with its ShareConsumer. Memory is
kohort's alone.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from . import _share_memory, _table
from ._brokers import APACHE_KAFKA, KOHORT, Contender, Running, given
from ._command import Begun, Command, effort_of, publish, say
from ._connection import WrongAnswerError
from ._load import percentile
from ._rows import Figures, Metric, Part
from ._share_members import (
    Filler,
    Held,
    ShareMember,
    drain,
    join_all,
    new_share_group,
    new_topic,
    wait_assigned,
)

MODULE: Final = "benchmarks.share_groups"
#: Of the topics that are drained; with four members each partition has two of them.
PARTITIONS: Final = 2
#: Records of a record batch.
BATCH: Final = 100
#: Records that a lost member has.
LOST: Final = 100


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done in a round."""

    #: Drained by 500 and by one; by members of confluent-kafka.
    records: int = 200_000
    singles: int = 4_000
    client_records: int = 200_000
    #: Acknowledged, delivered one by one.
    requests: int = 1_000
    #: Members lost.
    losses: int = 5
    #: Share partitions, and records in each, whose memory is measured.
    share_partitions: int = 1_000
    in_flight: int = 1_000


@dataclass(frozen=True, slots=True)
class Row(Part):
    """Measured on a broker that serves; ``own``: on kohort only, once."""

    run: Callable[[Running, Effort], Figures]
    own: bool = False


def _filled(bootstrap: str, partitions: int, records: int, batch: int) -> str:
    topic = new_topic(bootstrap, partitions)
    filler = Filler(bootstrap, topic, batch)
    filler.fill(partitions, records)
    filler.close()
    return topic


def _leave_all(members: Sequence[ShareMember]) -> None:
    for member in members:
        member.leave()


def drain_by(count: int, running: Running, effort: Effort) -> Figures:
    """Records a second, each fetch up to 500."""
    records = effort.records // (PARTITIONS * BATCH) * PARTITIONS * BATCH
    topic = _filled(running.bootstrap, PARTITIONS, records, BATCH)
    members = join_all(running.bootstrap, topic, PARTITIONS, count)
    took_s = drain(members, records)
    _leave_all(members)
    return {"per_second": records / took_s}


def drain_singly(count: int, running: Running, effort: Effort) -> Figures:
    """Records a second, one in each fetch."""
    records = max(effort.singles // (PARTITIONS * BATCH), 1) * PARTITIONS * BATCH
    topic = _filled(running.bootstrap, PARTITIONS, records, BATCH)
    members = join_all(running.bootstrap, topic, PARTITIONS, count)
    took_s = drain(members, records, most=1, strict=True)
    _leave_all(members)
    return {"per_second": records / took_s}


def acknowledge(running: Running, effort: Effort) -> Figures:
    """Times of ShareAcknowledges of one record each, in random order."""
    topic = _filled(running.bootstrap, 1, -(-effort.requests // BATCH) * BATCH, BATCH)
    (member,) = members = join_all(running.bootstrap, topic, 1, 1)
    times: list[float] = []
    while len(times) < effort.requests:
        member.send_fetch()
        held = [each._replace(first=at, last=at) for each in member.receive() for at in _offsets_of(each)]
        random.Random(7).shuffle(held)
        for each in held:
            begin = time.perf_counter()
            member.acknowledge([each])
            times.append(time.perf_counter() - begin)
    _leave_all(members)
    return {"p50_us": percentile(times, 0.5) * 1e6, "p99_us": percentile(times, 0.99) * 1e6}


def _offsets_of(held: Held) -> range:
    return range(held.first, held.last + 1)


def deliver(running: Running, effort: Effort) -> Figures:
    """Times from a Produce of one record to its delivery in a fetch that waits."""
    topic = new_topic(running.bootstrap, 1)
    (member,) = members = join_all(running.bootstrap, topic, 1, 1)
    filler = Filler(running.bootstrap, topic, 1)
    held: list[Held] = []
    times: list[float] = []
    for _ in range(effort.requests):
        member.send_fetch(held, wait_ms=30_000)
        time.sleep(0.001)  # it waits by now, or is about to
        begin = time.perf_counter()
        filler.send()
        held = member.receive()
        times.append(time.perf_counter() - begin)
        filler.receive()
    _leave_all(members)
    filler.close()
    return {"p50_us": percentile(times, 0.5) * 1e6, "p99_us": percentile(times, 0.99) * 1e6}


def lose_member(running: Running, effort: Effort) -> Figures:
    """Milliseconds from a member's end to the delivery of what it had: the median of some members."""
    topic = new_topic(running.bootstrap, 1)
    filler = Filler(running.bootstrap, topic, LOST)
    survivor, *others = join_all(running.bootstrap, topic, 1, 1 + effort.losses)
    times = []
    for other in others:
        filler.fill(1, LOST)
        other.send_fetch(most=LOST)
        lost = other.receive()
        survivor.send_fetch(most=LOST)
        # at no certain moment of the survivor's wait
        time.sleep(random.uniform(0.01, 0.4))
        begin = time.perf_counter()
        other.connection.socket.close()
        while not (held := survivor.receive()):
            survivor.send_fetch(most=LOST)
        times.append((time.perf_counter() - begin) * 1e3)
        if [each[:4] for each in held] != [each[:4] for each in lost]:
            raise WrongAnswerError(f"{lost} were lost and {held} delivered")
        survivor.acknowledge(held)
    survivor.leave()
    filler.close()
    return {"ms": statistics.median(times)}


def consume_clients(count: int, running: Running, effort: Effort) -> Figures:
    """Records a second through members that are processes with confluent-kafka's ShareConsumer, which have
    their partitions before anything is produced.
    """
    batch = 10 * BATCH
    records = max(effort.client_records // (PARTITIONS * batch), 1) * PARTITIONS * batch
    topic, group = new_topic(running.bootstrap, PARTITIONS), new_share_group(running.bootstrap)
    command = [sys.executable, "-m", MODULE, "--consume", running.bootstrap, group, topic]
    told, tell = os.pipe()
    members = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=tell) for _ in range(count)]
    os.close(tell)
    with open(told) as lines:
        try:
            wait_assigned(running.bootstrap, group, count)
            filler = Filler(running.bootstrap, topic, batch)
            begin = time.monotonic()
            filler.fill(PARTITIONS, records)
            filler.close()
            ended = _read_until(lines, records)
        finally:
            for member in members:
                member.communicate(timeout=30)
    return {"per_second": records / (ended - begin)}


def _read_until(lines: Iterable[str], records: int) -> float:
    """Return when the members had so many records together; each line has a number, and the time."""
    for line in lines:
        count, at = line.split()
        records -= int(count)
        if records <= 0:
            return float(at)
    raise WrongAnswerError(f"the members have ended, and {records} records are missing")


def consume_client(bootstrap: str, group: str, topic: str) -> None:
    """One of these members: it accepts all that it gets, until its input ends."""
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 3})
    consumer.subscribe([topic])
    while not select.select([sys.stdin], [], [], 0)[0]:
        count = sum(message.error() is None for message in consumer.poll(0.2))
        if count:
            # in one piece: the members share the pipe
            os.write(sys.stdout.fileno(), b"%d %f\n" % (count, time.monotonic()))
    consumer.close()


def _drained(name: str, title: str, run: Callable[[Running, Effort], Figures]) -> Row:
    return Row(name, (Metric("per_second", title, "records/s", 1.0, more_is_better=True),), run)


def _timed(name: str, title: str, run: Callable[[Running, Effort], Figures]) -> Row:
    metrics = (
        Metric("p50_us", f"{title}, p50", "µs", 1.0),
        Metric("p99_us", f"{title}, p99", "µs", 1.0),
    )
    return Row(name, metrics, run)


ROWS: Final = (
    _drained("drain_1", "1 member drains 2 partitions, 500 a fetch", partial(drain_by, 1)),
    _drained("drain_4", "4 members drain 2 partitions, 500 a fetch", partial(drain_by, 4)),
    _drained("singly_1", "1 member, a record in each fetch", partial(drain_singly, 1)),
    _drained("singly_4", "4 members, a record in each fetch", partial(drain_singly, 4)),
    _drained("client_1", "1 member of confluent-kafka", partial(consume_clients, 1)),
    _drained("client_4", "4 members of confluent-kafka", partial(consume_clients, 4)),
    _timed("acknowledge", "a record acknowledged, in random order", acknowledge),
    _timed("deliver", "produce to delivered, a record", deliver),
    Row("loss", (Metric("ms", "a member's end to redelivery", "ms", 1.0),), lose_member),
    Row(
        "memory",
        (
            Metric("acquired", "memory, acquired as produced", "B/record", 10, own=True, digits=1),
            Metric("split", "memory, every other record acknowledged", "B/record", 500, own=True),
            Metric("core", "of it the core, acquired as produced", "B/record", 5, own=True, digits=1),
            Metric("core_random", "the core, acknowledged in random order", "B/record", 400, own=True),
        ),
        lambda _running, effort: _share_memory.measure(effort.share_partitions, effort.in_flight),
        own=True,
    ),
)


def measure(
    contenders: Sequence[Contender], options: argparse.Namespace
) -> tuple[dict[str, dict[str, list[Figures]]], list[str]]:
    """Every row on every broker, the order of the brokers changing from round to round."""
    rows = [row for row in ROWS if row.name in options.wanted]
    effort = effort_of(options, Effort())
    measured: dict[str, dict[str, list[Figures]]] = {
        each.name: {row.name: [] for row in rows} for each in contenders
    }
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start()) for each in contenders}
        for broker in running.values():
            _warm(broker)
        for number in range(options.rounds):
            for row in rows:
                for name in list(running)[:: 1 if number % 2 == 0 else -1]:
                    if row.own and (number or name != KOHORT.name):
                        continue
                    figures = row.run(running[name], effort)
                    measured[name][row.name].append(figures)
                    shown = "  ".join(f"{key} {value:,.2f}" for key, value in figures.items())
                    say(f"round {number + 1}  {row.name:11} {name:14} {shown}")
        return measured, [each.version for each in running.values() if each.version]


def _warm(broker: Running) -> None:
    """Have what is made or compiled at the first use."""
    few = Effort(records=20_000, singles=400, requests=300)
    for run in (partial(drain_by, 4), partial(drain_singly, 4), acknowledge, deliver):
        run(broker, few)


def main(argv: list[str] | None = None) -> int:
    command = Command(
        "share_groups",
        __doc__,
        [row.name for row in ROWS],
        compare="with Apache Kafka; needs Java, Maven once",
    )
    beside = "with one more broker, which runs already; may be given again"
    command.add_argument("--beside", metavar="NAME=HOST:PORT", action="append", default=[], help=beside)
    command.add_argument("--consume", nargs=3, help=argparse.SUPPRESS)
    command.takes(Effort())
    options = command.parse(argv)
    if options.consume:
        consume_client(*options.consume)
        return 0
    begun = Begun()
    others = [given(address, name) for name, _, address in (each.partition("=") for each in options.beside)]
    contenders = [*([APACHE_KAFKA] if options.compare else []), *others, KOHORT]
    measured, versions = measure(contenders, options)
    rows = [row for row in ROWS if row.name in options.wanted]
    facts = _table.environment(versions) | begun.facts()
    peers = [each.name for each in contenders[:-1]]
    table = _table.table(measured, rows, KOHORT.name, peers)
    publish(table, measured, facts, options, "share")
    return 0


if __name__ == "__main__":
    sys.exit(main())
