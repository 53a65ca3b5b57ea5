"""A stateful Spark query that counts the records of each key in each minute; its progress is committed to a
group.

    python examples/spark_window.py localhost:9092 clicks --group clicks-a-minute --folder /data/clicks

Spark keeps the counts of recent minutes in its checkpoint. When a minute has been over for ``--late``, its
counts are written to Parquet, once. The group's committed offsets follow Spark's own log, so that every tool
shows the query's progress. Without ``--every`` it reads the records that are there now and ends.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kohort.spark import spark_session, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="host:port of a broker")
    parser.add_argument("topic")
    parser.add_argument("--group", default="windows")
    parser.add_argument("--folder", type=Path, default=Path("spark_window"))
    parser.add_argument("--window", default="1 minute")
    parser.add_argument("--late", default="30 seconds", help="how much later a record may come")
    parser.add_argument("--every", metavar="INTERVAL", help="go on, a batch each '10 seconds', say")
    args = parser.parse_args()

    spark = spark_session("kohort windows", **{"spark.log.level": "ERROR"})

    def counted(records: DataFrame) -> DataStreamWriter:
        from pyspark.sql.functions import window

        counts = (
            records.selectExpr("cast(key as string) as key", "timestamp")
            .withWatermark("timestamp", args.late)
            .groupBy(window("timestamp", args.window), "key")
            .count()
            .selectExpr("window.start as minute", "key", "count")
        )
        return counts.writeStream.format("parquet").option("path", str(args.folder / "counts"))

    trigger: dict[str, Any] = {"processingTime": args.every} if args.every else {"availableNow": True}
    query = stream(
        spark,
        checkpoint=str(args.folder / "checkpoint"),
        write=counted,
        trigger=trigger,
        bootstrap=args.bootstrap,
        group=args.group,
        topics=[args.topic],
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(args.folder / "counts")).selectExpr("count(*)", "sum(count)").collect()
    print(f"{rows[0][0]} counts of {rows[0][1] or 0} records in {args.folder / 'counts'}")


if __name__ == "__main__":
    main()
