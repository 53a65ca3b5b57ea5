"""A job in a Spark Connect session, with a server of its own: run by test_connect.py.

    python tests/spark/connect_job.py BOOTSTRAP TOPIC OUT FOLDER

It prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def summed(frame: DataFrame) -> list[int]:
    """Rows, and the sum of their values."""
    rows, total = frame.selectExpr("count(*)", "sum(cast(cast(value as string) as bigint))").collect()[0]
    return [rows, total]


def main(bootstrap: str, topic: str, out: str, folder: str) -> None:
    from kohort.spark import GroupBatches, OptionsError, spark_session, stream

    spark = spark_session("over the wire", **{"spark.remote": "local[2]"})
    server = {"kafka.bootstrap.servers": bootstrap}
    loop: list[list[int]] = []
    # one batch is read by the driver, the other by tasks
    for group, below in (("small", 10_000), ("large", 0)):
        with GroupBatches(
            spark, bootstrap=bootstrap, group=f"{topic}-{group}", topics=topic, read_on_driver_below=below
        ) as batches:
            batches.run(lambda batch: loop.append(summed(batch.df)), trigger="available_now")
    orders = spark.read.format("kohort").options(**server, subscribe=topic).load()
    writer = orders.select("value").write.format("kohort").mode("append").options(**server, topic=out)
    writer.options(ledgerGroup=f"{out}-ledger", batchKey="0").save()
    options: dict[str, Any] = {
        "checkpoint": f"{folder}/checkpoint",
        "write": lambda frame: frame.writeStream.format("parquet").option("path", f"{folder}/rows"),
        "trigger": "available_now",
        "bootstrap": bootstrap,
        "group": f"{topic}-query",
        "topics": topic,
    }
    refusal = ""
    try:
        stream(spark, **options)
    except OptionsError as error:
        refusal = str(error)
    stream(spark, start_state_path=f"{folder}/start.json", **options).awaitTermination()
    written = spark.read.format("kohort").options(**server, subscribe=out).load()
    found = {
        "session": type(spark).__module__,
        "loop": loop,
        "read": summed(orders),
        "written": summed(written),
        "query": summed(spark.read.parquet(f"{folder}/rows")),
        "refusal": refusal,
    }
    spark.stop()
    print("FOUND", json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
