"""Share consumers side by side: kohort's, confluent-kafka's and Apache Kafka's own; on both brokers.

``python -m benchmarks.share_consumers [--compare | --bootstrap HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures all clients on it, Apache Kafka's where there is Java; ``--compare``
starts an Apache Kafka too and measures them on both. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from . import _table
from ._brokers import ROOT, Contender, choose_contenders, java_classpath
from ._command import Begun, Command, effort_of, publish, say
from ._consume_more import produce_steadily
from ._consumer_rows import Row
from ._rows import Figures
from ._share_members import Filler, new_share_group, new_topic, wait_assigned
from .consumer import Measured, table

OURS: Final = "kohort"
CONFLUENT: Final = "confluent-kafka"
JAVA: Final = "Java"
CLIENTS: Final = (CONFLUENT, JAVA, OURS)
#: Of the topic that is read as quickly as can be, and the records of its batches.
PARTITIONS: Final = 2
BATCH: Final = 100
_JAVA_SOURCE: Final = Path(__file__).resolve().parent / "ShareConsumers.java"
_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    #: In the topic that is read as quickly as can be.
    records: int = 200_000
    #: At 1,000 a second; the first 500 are not counted.
    arrivals: int = 3_000


def _read(name: str, title: str, work: str, ours: str, goal: float) -> Row:
    works = {CONFLUENT: f"confluent_{work}", JAVA: work, OURS: ours}
    return Row(
        name,
        title,
        "records/s",
        works,
        {"per_second": ""},
        goal,
        more_is_better=True,
        topic="queue",
        beside=CONFLUENT,
    )


ROWS: Final = (
    _read("drain", "batches, accepted whole", "drain", "kohort_drain", 1.0),
    _read("one", "record by record, each accepted, `async for`", "one", "kohort_one", 1.5),
    _read("one_blocking", "record by record, each accepted, `for`", "one", "kohort_blocking_one", 1.5),
    Row(
        "latency",
        "produce to handler at 1,000 records/s, each accepted",
        "ms",
        {CONFLUENT: "confluent_latency", JAVA: "latency", OURS: "kohort_latency"},
        {"p50_ms": ", p50", "p99_ms": ", p99"},
        1.0,
        more_is_better=False,
        topic="arrivals",
        digits=2,
        beside=CONFLUENT,
        records="arrivals",
    ),
)


@cache
def _classpath() -> str | None:
    return java_classpath()


def _command(work: str, client: str, bootstrap: str, group: str, topic: str, records: int) -> list[str]:
    if client == JAVA:
        java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", str(_classpath())]
        return [*java, str(_JAVA_SOURCE), work, bootstrap, group, topic, str(records)]
    job = {
        "module": "_share_consume",
        "work": work,
        "bootstrap": bootstrap,
        "group": group,
        "topic": topic,
        "records": records,
    }
    return [sys.executable, "-m", "benchmarks._consume", json.dumps(job)]


def measure(row: Row, client: str, bootstrap: str, queue: str, effort: Effort) -> Figures:
    """One client's figures, from a process of its own. ``queue`` is the topic that is full already."""
    arrives = row.topic == "arrivals"
    group, topic = new_share_group(bootstrap), new_topic(bootstrap, 1) if arrives else queue
    records: int = getattr(effort, row.records)
    command = _command(row.works[client], client, bootstrap, group, topic, records)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            if arrives:
                wait_assigned(bootstrap, group, 1)
                produce_steadily({"bootstrap": bootstrap, "topic": topic, "records": records}, lambda: True)
            told, errors = process.communicate(timeout=_TIMEOUT_S)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(f"{client} did not do {row.name}:\n{errors}")
    figures: Figures = json.loads(told)
    return figures


def run(brokers: list[Contender], options: argparse.Namespace) -> tuple[Measured, list[str]]:
    """Every row with every client on every broker, the order of the clients changing from round to round."""
    rows = [row for row in ROWS if row.name in options.wanted]
    effort = effort_of(options, Effort())
    clients = [client for client in CLIENTS if client != JAVA or _classpath() is not None]
    measured: Measured = {
        broker.name: {row.name: {client: [] for client in clients} for row in rows} for broker in brokers
    }
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start()) for each in brokers}
        queues = {name: _fill(each.bootstrap, effort) for name, each in running.items()}
        for number in range(options.rounds):
            # what two rows do alike is done once
            known: dict[tuple[str, str], Figures] = {}
            for row in rows:
                for broker, at in running.items():
                    for client in clients[:: 1 if number % 2 == 0 else -1]:
                        what = broker, f"{client} {row.works[client]}"
                        if what not in known:
                            known[what] = measure(row, client, at.bootstrap, queues[broker], effort)
                            shown = "  ".join(f"{key} {value:,.2f}" for key, value in known[what].items())
                            say(f"round {number + 1}  {row.name:12} {broker:14} {client:16} {shown}")
                        measured[broker][row.name][client].append(known[what])
        return measured, [each.version for each in running.values() if each.version]


def _fill(bootstrap: str, effort: Effort) -> str:
    """Return a topic with the records that are read as quickly as can be."""
    topic = new_topic(bootstrap, PARTITIONS)
    filler = Filler(bootstrap, topic, BATCH)
    filler.fill(PARTITIONS, effort.records)
    filler.close()
    return topic


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    names, compare = [row.name for row in ROWS], "on Apache Kafka too; needs Java, Maven once"
    command = Command("share_consumers", __doc__, names, compare=compare)
    command.takes_a_broker()
    command.takes(Effort())
    options = command.parse(argv)
    if options.records % (PARTITIONS * BATCH):
        command.error(f"--records must be a multiple of {PARTITIONS * BATCH}")
    return options


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    begun = Begun()
    measured, versions = run(choose_contenders(options), options)
    facts = _table.environment(versions) | begun.facts()
    rows = [row for row in ROWS if row.name in options.wanted]
    publish(table(measured, CLIENTS, rows), measured, facts, options, "share-consumers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
