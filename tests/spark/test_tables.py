"""The ledger of spark-tables.md on a PostgreSQL of its own, and the programs of spark-backfill.md.

test_killed_tables.py kills all programs of spark-tables.md.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from kafka import KafkaAdminClient

from kohort.spark import Batch, GroupBatches
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, announced
from tests.spark.snippets import snippet
from tests.spark.test_deleted_topics import deleted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class Orders:
    """A topic whose n-th record in a partition has key and value ``n``, and what is to be counted of it."""

    def __init__(self, side: Side, topic: str) -> None:
        self._side = side
        self.topic = topic
        self.sent: Counter[int] = Counter()

    def send(self, *counts: int) -> None:
        """Append to each partition; each call begins at ``n`` = 0 again."""
        self._side.produce(self.topic, dict(enumerate(counts)))
        for count in counts:
            self.sent.update(range(count))

    @property
    def totals(self) -> dict[str, tuple[int, int]]:
        return {str(n): (times, n * times) for n, times in self.sent.items()}


def test_the_ledger_counts_each_record_once(
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
    dsn: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orders, live, other = Orders(side, new_topic("orders", 2)), group("live"), group("other")
    topic = orders.topic
    of_page: dict[str, Any] = {}

    def run(of: str, **options: Any) -> int:
        given = {"bootstrap": side.bootstrap, "group": of, "topics": [topic], **options}
        with GroupBatches(spark, **given) as batches:
            return batches.run(of_page["add"], trigger="available_now")

    def totals() -> dict[str, tuple[int, int]]:
        with psycopg.connect(dsn) as database:
            found = database.execute("select customer, orders, cents from spent").fetchall()
        return {customer: (number, cents) for customer, number, cents in found}

    orders.send(20, 10)
    code = snippet(
        "spark-tables.md",
        "postgres_ledger",
        {
            "postgresql:///shop": dsn,
            "localhost:9092": side.bootstrap,
            '"orders"': f'"{topic}"',
            "spent-table": live,
        },
    )
    exec(code, of_page)
    assert capsys.readouterr().out == "batches: 1\n"
    assert totals() == orders.totals

    # killed between the transaction and the commit of the offsets: a replay
    side.commit(live, topic, {0: 0}, announced("0-f00d", end=20))
    assert run(live) == 1
    assert totals() == orders.totals

    # a rewind, in batches with other limits; a record that nobody can count
    side.commit(live, topic, {0: 3, 1: 0})
    orders.send(5, 0)
    side.send(topic, key=b"1", value=b"a lot", partition=1)
    assert run(live, max_offsets=20) == 2
    assert totals() == orders.totals

    # a job that began behind the first records does not keep another from counting those
    with psycopg.connect(dsn) as database:
        database.execute("truncate counted, spent")
    side.commit(live, topic, {0: 15, 1: 11})
    side.commit(other, topic, {0: 0, 1: 0})
    orders.send(0, 5)
    # both at once
    with ThreadPoolExecutor(2) as jobs:
        assert [job.result() for job in [jobs.submit(run, of) for of in (live, other)]] == [1, 1]
    assert totals() == orders.totals

    # the topic is made again, and its offsets begin at 0
    deleted(side, topic)
    make_topic(side, topic)
    orders.send(4, 0)
    assert run(group("later")) == 1
    assert totals() == orders.totals


def make_topic(side: Side, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)


def test_the_guide_replays_hours_by_their_records_times_and_a_group_of_its_own_ends(
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # the broker must not take records of that age for old ones
    topic, backfill = new_topic("orders", 2), group("backfill")
    day = datetime(2026, 11, 25, tzinfo=UTC)
    # hours since the day began; those of a partition are not in order
    for partition, hours in enumerate([(-0.1, 0.2, 1.1, 0.9, 2.0), (1.0, 1.9)]):
        for hour in hours:
            at = round((day.timestamp() + hour * 3600) * 1000)
            side.send(topic, value=b"%.1f" % hour, partition=partition, timestamp_ms=at)
    read: list[list[str]] = []

    def values(frame: DataFrame) -> list[str]:
        return sorted(bytes(row["value"]).decode() for row in frame.select("value").collect())

    names: dict[str, Any] = {"spark": spark}
    places = {"localhost:9092": side.bootstrap, '"orders"': f'"{topic}"'}
    code = snippet("spark-backfill.md", "backfill_day", places | {"range(24)": "range(2)"})
    exec(code, names | {"merge": lambda frame, _: read.append(values(frame))})
    assert read == [["0.2", "0.9"], ["1.0", "1.1", "1.9"]]
    assert capsys.readouterr().out == "2026-11-25 00:00 done\n2026-11-25 01:00 done\n"

    read.clear()
    places |= {"orders-backfill": backfill, "=10)": "=0)", "(1, 2,": "(0, 2,"}
    code = snippet("spark-backfill.md", "backfill_group", places)
    failures = [RuntimeError("conflict")]

    def write(batch: Batch) -> None:
        if failures:
            raise failures.pop()
        read.append(values(batch.df))

    exec(code, names | {"write": write})
    assert read == [["-0.1", "0.2", "0.9", "1.0", "1.1", "1.9", "2.0"]]
    assert side.lag(backfill, topic) == 0
