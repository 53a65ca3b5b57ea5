"""A Spark job that starts from a group's committed offsets and writes topics to Parquet, each record once.

    python examples/spark_job.py localhost:9092 orders --group etl --folder /data/orders

It reads the records that are there now and ends. With ``--every 10`` it continues until SIGTERM, with a batch
every 10 seconds. Kill it at any time and start it again: each batch has its own folder, named by
``batch.key``, and a batch that was written but not committed is read again with the same offsets and
overwritten.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from kohort.spark import Batch, GroupBatches, java_home, spark_session


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bootstrap", help="host:port of a broker")
    parser.add_argument("topics", nargs="+")
    parser.add_argument("--group", default="etl")
    parser.add_argument("--folder", type=Path, default=Path("spark_job.parquet"))
    parser.add_argument("--max-offsets", type=int, default=500_000, help="offsets in a batch, at most")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="go on; default: end when caught up")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    print(f"Spark on {java_home()}")
    spark = spark_session("kohort example", **{"spark.log.level": "ERROR"})

    def write(batch: Batch) -> None:
        records = batch.df.selectExpr(
            "cast(key as string) as key",
            "cast(value as string) as value",
            "topic",
            "partition",
            "offset",
            "timestamp",
        )
        records.write.mode("overwrite").parquet(str(args.folder / f"batch={batch.key}"))

    with GroupBatches(
        spark,
        bootstrap=args.bootstrap,
        group=args.group,
        topics=args.topics,
        max_offsets=args.max_offsets,
    ) as batches:
        if args.every is None:
            done = batches.run(write, trigger="available_now")
        else:
            done = batches.run(write, every_seconds=args.every)
    print(f"{done} batches written to {args.folder}")


if __name__ == "__main__":
    main()
