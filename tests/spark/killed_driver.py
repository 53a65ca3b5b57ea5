"""A Spark job from topic to topic, in batches, whose driver is to be killed at any moment.

    python -m tests.spark.killed_driver BOOTSTRAP MODE SOURCE TARGET FOLDER

MODE is ``loop`` or ``query``. It reads what is there and ends. It writes ``jvm`` into FOLDER, the process id
of the JVM, and adds a line to ``batches`` when a batch begins.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kohort.spark import GroupBatches, spark_session, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_ROWS = 200


def main(bootstrap: str, mode: str, source: str, target: str, place: str) -> None:
    folder = Path(place)
    settings = {"spark.log.level": "OFF", "spark.python.authenticate.socketTimeout": "10m"}
    spark = spark_session("to be killed", master="local[2]", **settings)
    jvm: Any = spark._jvm
    (folder / "jvm").write_text(str(jvm.ProcessHandle.current().pid()))

    def write(frame: DataFrame, key: str) -> None:
        with (folder / "batches").open("a") as file:
            file.write(f"{key}\n")
        # two tasks, with the same rows again when the batch is repeated
        rows = frame.selectExpr("key", "value").repartition(2, "key")
        options = {"kafka.bootstrap.servers": bootstrap, "topic": target, "ledgerGroup": f"{target}-ledger"}
        rows.write.format("kohort").mode("append").options(**options, batchKey=key).save()

    given: dict[str, Any] = {"bootstrap": bootstrap, "group": f"{source}-etl", "topics": source}
    if mode == "loop":
        with GroupBatches(spark, max_offsets=BATCH_ROWS, read_on_driver_below=0, **given) as batches:
            batches.run(lambda batch: write(batch.df, batch.key), trigger="available_now")
    else:
        query = stream(
            spark,
            checkpoint=str(folder / "checkpoint"),
            foreach_batch=lambda frame, number: write(frame, f"of the checkpoint: {number}"),
            trigger="available_now",
            max_offsets=BATCH_ROWS,
            **given,
        )
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:6])
