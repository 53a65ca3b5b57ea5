"""``format("kohort")``: a Spark data source in Python, without a jar.

Spark makes readers in processes of its own and pickles them to executors: they hold options only, and the
rest is made when it is asked for. See ``_stream.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from ._fetch import ReadTask, read_task
from ._frames import COLUMNS, COLUMNS_WITH_HEADERS
from ._options import OptionsError
from ._source_options import SourceOptions, read_source_options
from ._stream import SourceOffsets
from ._stream_plan import from_document, to_document

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    #: PySpark 4.2 and newer ask for the end of a batch with its start and a limit.
    KNOWS_LIMITS = True
except ImportError:
    KNOWS_LIMITS = False

#: A limit in rows that is none: our own options may limit a batch in other ways.
_NO_ROW_LIMIT = 2**62


@dataclass
class Task(InputPartition):
    """What one Spark task reads."""

    task: ReadTask


class KohortDataSource(DataSource):
    """Topics, from a group's committed offsets on. Register it with ``kohort.spark.register(spark)``."""

    @classmethod
    def name(cls) -> str:
        return "kohort"

    def schema(self) -> str:
        options = {key.lower(): value for key, value in self.options.items()}
        headers = str(options.get("includeheaders", "false")).lower() == "true"
        return COLUMNS_WITH_HEADERS if headers else COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_source_options(_given(self.options), stream=False)
        _check_schema(schema, options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        options = read_source_options(_given(self.options), stream=True)
        _check_schema(schema, options)
        if KNOWS_LIMITS:
            return LimitedStreamReader(options)
        if options.max_offsets or options.max_offsets_per_partition or options.min_offsets:
            raise OptionsError(
                "maxOffsetsPerTrigger, maxOffsetsPerPartition and minOffsetsPerTrigger need PySpark 4.2 or "
                "newer: leave them out, or use kohort.spark.GroupBatches"
            )
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ._sink import BatchWriter
        from ._sink_options import check_columns, read_sink_options

        if overwrite:
            raise OptionsError("topics are only added to: use mode('append')")
        options = read_sink_options(_given(self.options))
        check_columns(schema, options)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from . import _sink
        from ._sink_options import check_columns, read_sink_options

        if not _sink.WRITES_STREAMS:
            raise OptionsError("writeStream needs PySpark 4.1 or newer: use foreachBatch and df.write")
        if overwrite:
            raise OptionsError("topics are only added to: use outputMode('append')")
        options = read_sink_options(
            {key: value for key, value in self.options.items() if key.lower() != "checkpointlocation"}
        )
        check_columns(schema, options)
        return _sink.StreamWriter(options)


class _Reader:
    """What both kinds of readers do."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # a read without partitions is one task of None
        if isinstance(partition, Task):
            yield from read_task(partition.task)

    @cached_property
    def offsets(self) -> SourceOffsets:
        return SourceOffsets(self.options)


class BatchReader(_Reader, DataSourceReader):
    """``spark.read``."""

    def partitions(self) -> list[InputPartition]:
        offsets = self.offsets
        return [Task(task) for task in offsets.tasks(offsets.batch_ranges())]


class StreamReader(_Reader, DataSourceStreamReader):
    """``spark.readStream`` before PySpark 4.2: each batch takes all there is."""

    def __init__(self, options: SourceOptions) -> None:
        if options.group_mode == "exclusive" and options.commits:
            raise OptionsError(
                "groupMode=exclusive needs a member that lives in the driver: start the query with "
                "kohort.spark.stream, or read with kohort.spark.GroupBatches"
            )
        super().__init__(options)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return to_document(self.offsets.initial())

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 - Spark's name
        return to_document(self.offsets.newest())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        ranges = self.offsets.ranges(from_document(start), from_document(end))
        return [Task(task) for task in self.offsets.tasks(ranges)]

    def commit(self, end: dict[str, Any]) -> None:
        self.offsets.follow(from_document(end))


if KNOWS_LIMITS:

    class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
        """``spark.readStream``: batches as large as the options allow, and several for AvailableNow."""

        def latestOffset(  # type: ignore[override]  # noqa: N802 - Spark's name
            self, start: dict[str, Any], limit: ReadLimit
        ) -> dict[str, Any]:
            rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            ends = self.offsets.latest(
                from_document(start), rows, all_of_it=isinstance(limit, ReadAllAvailable)
            )
            return to_document(ends)

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
            return ReadMaxRows(self.options.max_offsets or _NO_ROW_LIMIT)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
            self.offsets.aim()

        def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
            return to_document(self.offsets.newest())


def register(spark: SparkSession) -> None:
    """Make ``format("kohort")`` known to a session; ``spark_session`` has done so. Safe to call again."""
    spark.dataSource.register(KohortDataSource)


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return dict(options.items())


def _check_schema(schema: StructType, options: SourceOptions) -> None:
    """Refuse a schema of the user's: columns are what they are."""
    columns = COLUMNS_WITH_HEADERS if options.include_headers else COLUMNS
    # Spark reads a DDL text only where it has a session, and here there is none
    wanted = columns.replace(": ", ":").replace(", ", ",").replace(" ", ":")
    if schema.simpleString() != f"struct<{wanted}>":
        raise OptionsError(
            f"the schema is fixed: {columns}. Leave .schema() out, and select or cast columns afterwards"
        )
