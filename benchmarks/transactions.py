"""Transactions of one producer, and of a consume-transform-produce loop, kohort beside Apache Kafka.

``python -m benchmarks.transactions [--compare] [--only ROW,...] [--rounds 3]``

The client is librdkafka's (confluent-kafka). Alone it starts a kohort and measures it; ``--compare`` starts
an Apache Kafka too and measures both in turn.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ._brokers import APACHE_KAFKA, KOHORT, Running
from ._comparison import compare
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

    run: Callable[[Running, Effort], Figures]


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


def transactions(records: int, broker: Running, effort: Effort) -> Figures:
    """One after another, of so many records over the partitions of a topic."""
    topic, sender = new_topic(broker.bootstrap), producer(broker.bootstrap)
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


def loop(broker: Running, effort: Effort) -> Figures:
    """Consume, transform, produce: each transaction has some records and their offsets."""
    from confluent_kafka import Consumer, Producer

    bootstrap = broker.bootstrap
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


def main(argv: list[str] | None = None) -> int:
    return compare(
        "transactions",
        __doc__,
        [APACHE_KAFKA, KOHORT],
        ROWS,
        Effort(),
        argv,
        start=lambda side, _: side.start(),
        at_once=True,
        needs="with Apache Kafka; needs Java, Maven once",
    )


if __name__ == "__main__":
    sys.exit(main())
