"""A Spark job that keeps the newest value of each key in SQLite. Each record counts once, whatever is killed.

    python examples/spark_upsert.py localhost:9092 balances --group accounts --database accounts.sqlite

It reads the records that are there now and ends. With ``--every 10`` it continues until SIGTERM, with a batch
every 10 seconds. A batch's rows and its key are written to the database in one transaction, so a batch that
was written but not committed to the group is recognized when it is repeated. A record without a value (a
tombstone) deletes its key.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from kohort.spark import Batch, GroupBatches, spark_session

SCHEMA = """
create table if not exists newest (
    key blob primary key, value blob, partition integer, at integer, updates integer
);
create table if not exists batches (key text primary key, rows integer);
"""
UPSERT = """
insert into newest values (?, ?, ?, ?, ?)
on conflict (key) do update set
    value = excluded.value, partition = excluded.partition, at = excluded.at,
    updates = updates + excluded.updates
"""


def newest_of_each_key(batch: Batch) -> Iterator[tuple[bytes, bytes | None, int, int, int]]:
    """Find the newest record of each key in Spark, so that the driver gets only one row for each key.

    All records of a key are in one partition.
    """
    batch.df.where("key is not null").createOrReplaceTempView("batch")
    rows = batch.df.sparkSession.sql(
        "select key, max_by(value, offset) as value, max_by(partition, offset) as partition, "
        "max(offset) as at, count(*) as updates from batch group by key"
    )
    for row in rows.toLocalIterator():
        value = None if row["value"] is None else bytes(row["value"])
        yield bytes(row["key"]), value, row["partition"], row["at"], row["updates"]


def apply(batch: Batch, database: sqlite3.Connection) -> None:
    """Write the batch, or nothing if the database has it already."""
    with database:
        rows = sum(span.offsets for span in batch.ranges)
        noted = database.execute("insert or ignore into batches values (?, ?)", (batch.key, rows))
        if noted.rowcount:
            database.executemany(UPSERT, newest_of_each_key(batch))
            database.execute("delete from newest where value is null")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="host:port of a broker")
    parser.add_argument("topic")
    parser.add_argument("--group", default="upserts")
    parser.add_argument("--database", default="spark_upsert.sqlite")
    parser.add_argument("--max-offsets", type=int, default=100_000, help="offsets in a batch, at most")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="go on; default: end when caught up")
    args = parser.parse_args()

    spark = spark_session("kohort upserts", **{"spark.log.level": "ERROR"})
    with (
        closing(sqlite3.connect(args.database)) as database,
        GroupBatches(
            spark,
            bootstrap=args.bootstrap,
            group=args.group,
            topics=[args.topic],
            max_offsets=args.max_offsets,
        ) as batches,
    ):
        database.executescript(SCHEMA)
        if args.every is None:
            done = batches.run(lambda batch: apply(batch, database), trigger="available_now")
        else:
            done = batches.run(lambda batch: apply(batch, database), every_seconds=args.every)
        keys, updates = database.execute("select count(*), total(updates) from newest").fetchone()
    print(f"{done} batches applied; {keys} keys, {updates:.0f} updates of them in {args.database}")


if __name__ == "__main__":
    main()
