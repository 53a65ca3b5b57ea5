"""Process: the Spark job of group "etl", which writes micro-batches from the group's committed offsets to
Parquet.

Each batch has its own folder, named by the batch's key and overwritten if the batch is replayed. So a job
that is killed between write and commit writes the same rows to the same place again.
"""

from __future__ import annotations

import argparse
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from child_side import end_with_the_demo, say
from data import SPARK_GROUP, TOPIC

from kohort.spark import Batch, GroupBatches, java_home, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLIGHT = "carrier string, origin string, month int, dep_delay int"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("folder", type=Path, help="where the Parquet files go")
    parser.add_argument("scratch", type=Path, help="Spark's own files")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument(
        "--wait-before-commit-of", type=int, default=-1, metavar="BATCH", help="wait to be killed"
    )
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s etl %(levelname)s %(message)s")
    end_with_the_demo()
    java = java_home()
    spark = spark_session(
        "kohort demo",
        master="local[2]",
        **{
            "spark.log.level": "ERROR",
            # the job takes seconds: the optimizing compiler would take longer than it could save
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.local.dir": str(args.scratch),
            "spark.sql.warehouse.dir": str(args.scratch / "warehouse"),
        },
    )
    say(spark=spark.version, java=str(java))

    def handle(batch: Batch) -> None:
        rows = sum(span.end - span.start for span in batch.ranges)
        write(batch.df, args.folder / f"batch={batch.key}")
        say(batch=batch.number, rows=rows, replayed=batch.replayed, lag=batch.lag)
        if batch.number == args.wait_before_commit_of:
            signal.pause()  # written but not committed: the worst moment to be killed

    with GroupBatches(
        spark,
        bootstrap=args.bootstrap,
        group=SPARK_GROUP,
        topics=[TOPIC],
        starting_offsets_fallback="earliest",
        max_offsets=args.batch_size,
    ) as batches:
        batches.run(handle, trigger="available_now")
    spark.stop()


def write(records: DataFrame, folder: Path) -> None:
    """Write a batch to Parquet: one row for each flight, with partition and offset of its record."""
    from pyspark.sql import functions as f

    flight = f.from_json(f.col("value").cast("string"), FLIGHT).alias("flight")
    rows = records.select("partition", "offset", flight).select("partition", "offset", "flight.*")
    rows.write.mode("overwrite").parquet(str(folder))


if __name__ == "__main__":
    main()
