"""A planned batch as a Spark DataFrame: read by the driver when small, by tasks otherwise."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._fetch import ReadTask, read_task
from ._schema import COLUMNS, COLUMNS_WITH_HEADERS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ._readings import Readings, Teller

#: The first major version of PySpark whose ``createDataFrame`` takes an Arrow table.
_ARROW_TABLES_SINCE = 4

_DESCRIPTION = "spark.job.description"

#: How descriptions of ours begin.
OUR_JOBS = "kohort: "


def frame_by_tasks(spark: SparkSession, tasks: Sequence[ReadTask], tell: Teller | None = None) -> DataFrame:
    """One Spark task for each of ``tasks``. Each evaluation reads the same offsets from the brokers.

    A task that has read to its end says so by ``tell``.
    """
    columns = COLUMNS_WITH_HEADERS if tasks[0].include_headers else COLUMNS
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(_reader(tuple(tasks), tell), columns)


def make_active(spark: SparkSession) -> None:
    """Make this the session of the thread: Spark looks for ``format("kohort")`` there, and in no other."""
    try:
        jvm: Any = spark._jvm
        session = spark._jsparkSession
    except Exception:
        return  # a Spark Connect session has neither, see below
    jvm.SparkSession.setActiveSession(session)


def name_jobs(spark: SparkSession, words: str | None) -> None:
    """What Spark's pages say of this thread's jobs from here on; the user's own words stay."""
    try:
        context = spark.sparkContext
    except Exception:
        return  # a Spark Connect session has none, see below
    now = context.getLocalProperty(_DESCRIPTION)
    if not now or now.startswith(OUR_JOBS):
        # the stubs do not know that None takes a property away
        context.setLocalProperty(_DESCRIPTION, words)  # type: ignore[arg-type]


def readings_of(spark: SparkSession) -> Readings | None:
    """For what tasks tell; None where Spark has no accumulators, as in a Spark Connect session."""
    from ._readings import Readings

    try:
        return Readings(spark.sparkContext)
    except Exception:
        return None


def takes_arrow_tables() -> bool:
    """Whether this PySpark can make a DataFrame of an Arrow table."""
    import pyspark

    return int(pyspark.__version__.partition(".")[0]) >= _ARROW_TABLES_SINCE


def cores(spark: SparkSession) -> int:
    """How many tasks run at the same time."""
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except Exception:
        # a Spark Connect session has no context, and says so by an error of its own
        return os.cpu_count() or 1


def _reader(
    tasks: tuple[ReadTask, ...], tell: Teller | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                rows, seconds, began = 0, 0.0, time.perf_counter()
                for part in read_task(tasks[number]):
                    rows += part.num_rows
                    seconds += time.perf_counter() - began
                    yield part
                    began = time.perf_counter()
                if tell is not None:
                    tell(number, rows, seconds + time.perf_counter() - began)

    return read
