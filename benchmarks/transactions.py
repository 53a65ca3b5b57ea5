"""Transactions of one producer, and of a consume-transform-produce loop, kohort beside Apache Kafka.

``python -m benchmarks.transactions [--compare] [--only ROW,...] [--rounds 3]``

The client is librdkafka's (confluent-kafka). Alone it starts a kohort and measures it; ``--compare`` starts
an Apache Kafka too and measures both in turn.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import _table
from ._brokers import APACHE_KAFKA, KOHORT, Contender
from ._command import Begun, Command, effort_of, publish, say
from ._load import percentile
from ._rows import Figures, Metric, Part

WAIT_S = 60.0
PARTITIONS = 4
VALUE = bytes(100)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    seconds: float = 5.0
    #: Of the consume-transform-produce loop, and in one of its transactions.
    records: int = 100_000
    together: int = 500


@dataclass(frozen=True, slots=True)
class Row(Part):
    """Measured on a broker that serves."""

    run: Callable[[str, Effort], Figures]


def new_topic(bootstrap: str, partitions: int = PARTITIONS) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"transactions-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        made.result(WAIT_S)
    return name


def producer(bootstrap: str) -> Any:
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"id-{uuid.uuid4().hex[:8]}"}
    made = Producer({**settings, "linger.ms": 0, "queue.buffering.max.messages": 1_000_000})
    made.init_transactions(WAIT_S)
    return made


def transactions(records: int, bootstrap: str, effort: Effort) -> Figures:
    """One after another, of so many records over the partitions of a topic."""
    topic, sender = new_topic(bootstrap), producer(bootstrap)
    took_s: list[float] = []
    begun = 0.0
    # the first seconds are for what is made at the first use
    for seconds in (effort.seconds / 5, effort.seconds):
        took_s.clear()
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            sender.begin_transaction()
            for number in range(records):
                sender.produce(topic, VALUE, partition=number % PARTITIONS)
            commit = time.perf_counter()
            sender.commit_transaction(WAIT_S)
            took_s.append(time.perf_counter() - commit)
    elapsed_s = time.perf_counter() - begun
    return {
        "per_second": len(took_s) / elapsed_s,
        "p50_ms": percentile(took_s, 0.5) * 1_000,
        "p99_ms": percentile(took_s, 0.99) * 1_000,
    }


def loop(bootstrap: str, effort: Effort) -> Figures:
    """Consume, transform, produce: each transaction has some records and their offsets."""
    from confluent_kafka import Consumer, Producer

    source, target = new_topic(bootstrap), new_topic(bootstrap)
    plain = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    for number in range(effort.records):
        plain.produce(source, VALUE, partition=number % PARTITIONS)
    plain.flush(WAIT_S)
    sender = producer(bootstrap)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"group-{source}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    done, begun = 0, 0.0
    while done < effort.records:
        messages = consumer.consume(effort.together, 1.0)
        if not messages:
            continue
        begun = begun or time.perf_counter()  # the group has formed
        sender.begin_transaction()
        for message in messages:
            sender.produce(target, message.value(), partition=message.partition())
        places = consumer.position(consumer.assignment())
        sender.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), WAIT_S)
        sender.commit_transaction(WAIT_S)
        done += len(messages)
    elapsed_s = time.perf_counter() - begun
    consumer.close()
    return {"per_second": done / elapsed_s}


def _row(records: int) -> Row:
    one = "a record" if records == 1 else f"{records} records"
    metrics = (
        Metric("per_second", f"transactions of {one}", "1/s", 1.0, more_is_better=True),
        Metric("p50_ms", f"their commits, p50 of {one}", "ms", 1.0, digits=2),
        Metric("p99_ms", f"their commits, p99 of {one}", "ms", 1.0, digits=2),
    )
    return Row(f"of_{records}", metrics, partial(transactions, records))


ROWS: tuple[Row, ...] = (
    *map(_row, (1, 10, 100)),
    Row(
        "loop",
        (Metric("per_second", "consume, transform, produce", "records/s", 1.0, more_is_better=True),),
        loop,
    ),
)


def measure(
    contenders: list[Contender], options: argparse.Namespace
) -> tuple[dict[str, dict[str, list[Figures]]], list[str]]:
    """Every row on every broker, the order of the brokers changing from round to round."""
    rows = [row for row in ROWS if row.name in options.wanted]
    effort = effort_of(options, Effort())
    measured: dict[str, dict[str, list[Figures]]] = {
        each.name: {row.name: [] for row in rows} for each in contenders
    }
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start()) for each in contenders}
        for number in range(options.rounds):
            for row in rows:
                for name in list(running)[:: 1 if number % 2 == 0 else -1]:
                    figures = row.run(running[name].bootstrap, effort)
                    measured[name][row.name].append(figures)
                    shown = "  ".join(f"{key} {value:,.2f}" for key, value in figures.items())
                    say(f"round {number + 1}  {row.name:8} {name:14} {shown}")
        return measured, [each.version for each in running.values()]


def main(argv: list[str] | None = None) -> int:
    command = Command(
        "transactions",
        __doc__,
        [row.name for row in ROWS],
        compare="with Apache Kafka; needs Java, Maven once",
    )
    command.takes(Effort())
    options = command.parse(argv)
    begun = Begun()
    contenders = [APACHE_KAFKA, KOHORT] if options.compare else [KOHORT]
    measured, versions = measure(contenders, options)
    rows = [row for row in ROWS if row.name in options.wanted]
    facts = _table.environment(versions) | begun.facts()
    peers = [each.name for each in contenders[:-1]]
    table = _table.table(measured, rows, KOHORT.name, peers)
    publish(table, measured, facts, options, "transactions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
