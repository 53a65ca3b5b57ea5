"""A planned batch as a Spark DataFrame: a small one is read by the driver, others by tasks.

For a batch that the driver has read, ``createDataFrame`` makes about forty calls to the JVM, which take
longer than all other work on a small batch. Here only the two necessary ones are made; they are the same in
PySpark 4.0 to 4.3. If they do not exist, or in a Spark Connect session, ``createDataFrame`` is used.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from ..settings import MAX_INT
from ._fetch import ReadTask, TaskFigures, TaskReading
from ._schema import COLUMNS, COLUMNS_WITH_HEADERS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from ._offsets import OffsetRange
    from ._read_metrics import Readings, Teller


#: The first major version of PySpark whose ``createDataFrame`` takes an Arrow table.
_ARROW_TABLES_SINCE = 4

_DESCRIPTION = "spark.job.description"

#: Prefix of kohort's job descriptions.
OUR_JOBS = "kohort: "


def frame_by_tasks(spark: SparkSession, tasks: Sequence[ReadTask], tell: Teller | None = None) -> DataFrame:
    """Return a DataFrame with one Spark task for each of ``tasks``.

    Each evaluation reads the same offsets from the brokers. A task that has read to its end calls ``tell``.
    """
    columns = COLUMNS_WITH_HEADERS if tasks[0].include_headers else COLUMNS
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(_make_reader(tuple(tasks), tell), columns)


def make_active(spark: SparkSession) -> None:
    """Make this the active session of the thread, where Spark looks for ``format("kohort")``."""
    jvm = jvm_of(spark)
    if jvm is not None:
        jvm.SparkSession.setActiveSession(spark._jsparkSession)


def jvm_of(spark: SparkSession) -> Any:
    """Return the session's JVM; None for a Spark Connect session, which has none and raises an error."""
    try:
        return spark._jvm
    except Exception:
        return None


def name_jobs(spark: SparkSession, words: str | None) -> None:
    """Set the description of this thread's jobs in Spark's UI (None: none), unless the user has set one."""
    context = context_of(spark)
    if context is None:
        return
    now = context.getLocalProperty(_DESCRIPTION)
    if not now or now.startswith(OUR_JOBS):
        # None removes the property, which the type stubs do not allow
        context.setLocalProperty(_DESCRIPTION, words)  # type: ignore[arg-type]


def readings_of(spark: SparkSession) -> Readings | None:
    """Return the accumulator of the tasks' figures; None in a Spark Connect session, which has none."""
    from ._read_metrics import Readings

    context = context_of(spark)
    return None if context is None else Readings(context)


def takes_arrow_tables() -> bool:
    """Return whether this PySpark can make a DataFrame from an Arrow table."""
    import pyspark

    return int(pyspark.__version__.partition(".")[0]) >= _ARROW_TABLES_SINCE


def count_cores(spark: SparkSession, *, for_good: bool = False) -> int:
    """Return the number of tasks that can run at the same time, on all executors that the session may have.

    They may not be there yet: with dynamic allocation Spark asks for more only while tasks wait for them.
    ``for_good``: the number is asked for once. So the executors of now do not count, and where the settings
    of a cluster do not tell how many there will be, there is no limit.
    """
    context = context_of(spark)
    now = (os.cpu_count() or 1) if context is None else context.defaultParallelism
    return most_tasks(now, lambda name: spark.conf.get(name, None), for_good=for_good)


def most_tasks(now: int, setting: Callable[[str], str | None], *, for_good: bool = False) -> int:
    """Return the number of tasks that can run at the same time, if ``now`` can run in the executors of now.

    ``setting`` returns a setting of Spark, or None. ``for_good`` as in ``count_cores``.
    """
    if (setting("spark.master") or "").startswith("local"):
        return max(1, now)
    each = int(setting("spark.executor.cores") or 0) // int(setting("spark.task.cpus") or 1)
    if setting("spark.dynamicAllocation.enabled") != "true":
        there = int(setting("spark.executor.instances") or 0) * each
        wanted = max(there, int(setting("spark.cores.max") or 0))
        return (wanted or MAX_INT) if for_good else max(1, now, wanted)
    most = setting("spark.dynamicAllocation.maxExecutors")
    if most is None or not each or int(most) >= MAX_INT:
        return MAX_INT
    return max(1, 0 if for_good else now, int(most) * each)


def context_of(spark: SparkSession) -> SparkContext | None:
    """Return the session's context; None for a Spark Connect session, which has none and raises an error."""
    try:
        return spark.sparkContext
    except Exception:
        return None


def application_of(spark: SparkSession) -> str | None:
    """Return the id of Spark's application; None if the session does not tell."""
    context = context_of(spark)
    return None if context is None else context.applicationId


def _make_reader(
    tasks: tuple[ReadTask, ...], tell: Teller | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    from ._read_metrics import NewestRecords

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                rows, seconds, began = 0, 0.0, time.perf_counter()
                newest = None if tell is None else NewestRecords()
                reading = TaskReading(tasks[number])
                for part in reading.batches():
                    rows += part.num_rows
                    if newest is not None:
                        newest.add(part)
                    seconds += time.perf_counter() - began
                    yield part
                    began = time.perf_counter()
                if tell is not None and newest is not None:
                    seconds += time.perf_counter() - began
                    tell(number, TaskFigures(rows, seconds, newest.take(), tuple(reading.lost)))

    return read


log = logging.getLogger(__name__)

#: A batch with more bytes is read by tasks, even if it has few records.
MAX_DRIVER_BYTES = 64 * 1024 * 1024

#: Setting with which the JVM expects other types in the Arrow batches.
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


class DriverReading:
    """A batch that the driver reads. Its Fetch requests are in flight; ``gather`` awaits and decodes them."""

    def __init__(self, reading: TaskReading) -> None:
        self._reading = reading
        self._batches: list[pa.RecordBatch] = []
        self._error: Exception | None = None
        self._gathered = self.too_large = False
        #: Seconds that ``gather`` took.
        self.seconds = 0.0

    def gather(self) -> None:
        """Await and decode the records. Stops after MAX_DRIVER_BYTES. Safe to call again.

        Errors are raised by ``batches``.
        """
        if self._gathered:
            return
        self._gathered = True
        began, size = time.perf_counter(), 0
        try:
            for batch in self._reading.batches():
                self._batches.append(batch)
                size += batch.nbytes
                if size > MAX_DRIVER_BYTES:
                    self.too_large = True
                    break
        except Exception as error:
            self._error = error
        self.seconds = time.perf_counter() - began

    @property
    def lost(self) -> tuple[OffsetRange, ...]:
        """What retention took before it was read."""
        return tuple(self._reading.lost)

    def batches(self) -> list[pa.RecordBatch] | None:
        """Return the batches; None if they are too large. Raises the errors of ``read_task``."""
        self.gather()
        if self._error is not None:
            raise self._error
        return None if self.too_large else self._batches


class DriverFrames:
    """Makes DataFrames in one session, from records that the driver has read."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._quick = _QuickWay.of(spark)

    def frame(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> DataFrame:
        """Return a DataFrame of the rows, which are sent to the JVM once."""
        import pyarrow as pa

        if self._quick is not None:
            try:
                return self._quick.frame(batches, schema)
            except Exception as error:
                # createDataFrame below raises the real error again
                log.info("createDataFrame is used from here on: %s", error)
                self._quick = None
        # Any, since older type stubs of createDataFrame do not allow Arrow tables
        create: Any = self._spark.createDataFrame
        frame: DataFrame = create(pa.Table.from_batches(batches, schema=schema))
        return frame


class _QuickWay:
    """Spark's own reader of Arrow streams, without the other JVM calls of ``createDataFrame``."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._spark = spark
        self._read_stream = jvm.PythonSQLUtils.readArrowStreamFromFile
        self._to_frame = jvm.PythonSQLUtils.toDataFrame
        # Spark deletes this folder when the session ends
        self._folder = spark.sparkContext._temp_dir
        #: Spark's types as JSON.
        self._types: dict[pa.Schema, str] = {}

    @classmethod
    def of(cls, spark: SparkSession) -> _QuickWay | None:
        """Return None for a Spark Connect session, a session that encrypts its files, and PySpark 3."""
        try:
            context: Any = context_of(spark)
            return None if context is None or context._encryption_enabled else cls(spark)
        except Exception:
            return None

    def frame(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> DataFrame:
        from pyspark.sql.classic.dataframe import DataFrame

        if self._spark.conf.get(_LARGE_TYPES, "false") == "true":
            raise RuntimeError(f"{_LARGE_TYPES} is on")
        stream = self._arrow_stream(batches, schema)
        frame = self._to_frame(stream, self._spark_types(schema), self._spark._jsparkSession)
        return DataFrame(frame, self._spark)

    def _arrow_stream(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> Any:
        import pyarrow as pa

        with NamedTemporaryFile(dir=self._folder) as file:
            with pa.ipc.new_stream(file, schema) as stream:
                for batch in batches:
                    stream.write_batch(batch)
            file.flush()
            return self._read_stream(file.name)

    def _spark_types(self, schema: pa.Schema) -> str:
        types = self._types.get(schema)
        if types is None:
            from pyspark.sql.pandas.types import from_arrow_schema

            types = self._types[schema] = from_arrow_schema(schema).json()
        return types
