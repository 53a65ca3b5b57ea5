"""Readers of ``format("kohort")``.

Spark creates readers in separate processes. They hold the options and create the rest on demand
(``_stream.py``).
"""

from __future__ import annotations

from functools import cached_property

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from ..protocol import JsonObject
from ._offsets import from_document, to_document
from ._options import OptionsError
from ._source_options import SourceOptions
from ._stream import SourceOffsets
from ._task import Task, TaskReader

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    #: Whether PySpark (4.2 and newer) passes the start and a limit when it asks for the end of a batch.
    KNOWS_LIMITS = True
except ImportError:
    KNOWS_LIMITS = False

#: Stands for no limit in rows; kohort's options may limit a batch in other ways.
_NO_ROW_LIMIT = 2**62


class _Reader(TaskReader):
    """Common part of both readers."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def __reduce__(self) -> tuple[type[TaskReader], tuple[()]]:
        # an executor only reads: it needs neither the options nor the modules that check them
        return TaskReader, ()

    @cached_property
    def offsets(self) -> SourceOffsets:
        return SourceOffsets(self.options)


class BatchReader(_Reader, DataSourceReader):
    """``spark.read``."""

    def partitions(self) -> list[InputPartition]:
        """See pyspark's DataSourceReader: a task for each part of the ranges."""
        offsets = self.offsets
        return [Task(task) for task in offsets.tasks(offsets.batch_ranges())]


class StreamReader(_Reader, DataSourceStreamReader):
    """``spark.readStream`` before PySpark 4.2: each batch has all records that are there."""

    def __init__(self, options: SourceOptions) -> None:
        if options.group_mode == "exclusive" and options.commits:
            raise OptionsError(
                "groupMode=exclusive needs a member that lives in the driver: start the query with "
                "kohort.spark.stream, or read with kohort.spark.GroupBatches"
            )
        super().__init__(options)

    def initialOffset(self) -> JsonObject:  # noqa: N802 - Spark's name
        """See pyspark's DataSourceStreamReader."""
        return to_document(self.offsets.initial())

    def latestOffset(self) -> JsonObject:  # type: ignore[override]  # noqa: N802 - Spark's name
        """See pyspark's DataSourceStreamReader."""
        return to_document(self.offsets.newest())

    def partitions(self, start: JsonObject, end: JsonObject) -> list[InputPartition]:
        """See pyspark's DataSourceStreamReader."""
        ranges = self.offsets.ranges(from_document(start), from_document(end))
        return [Task(task) for task in self.offsets.tasks(ranges)]

    def commit(self, end: JsonObject) -> None:
        """See pyspark's DataSourceStreamReader. Commits for the group, so that others see the progress."""
        self.offsets.follow(from_document(end))


if KNOWS_LIMITS:

    class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
        """``spark.readStream`` from PySpark 4.2 on: limits the size of batches, also with AvailableNow."""

        def latestOffset(  # type: ignore[override]  # noqa: N802 - Spark's name
            self, start: JsonObject, limit: ReadLimit
        ) -> JsonObject:
            """See pyspark's DataSourceStreamReader: the end of the batch that the limit allows."""
            rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            ends = self.offsets.latest(
                from_document(start), rows, all_of_it=isinstance(limit, ReadAllAvailable)
            )
            return to_document(ends)

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
            """See pyspark's SupportsAdmissionControl: ``maxOffsetsPerTrigger``."""
            return ReadMaxRows(self.options.max_offsets or _NO_ROW_LIMIT)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
            """See pyspark's SupportsTriggerAvailableNow: the query ends at today's ends."""
            self.offsets.aim()

        def reportLatestOffset(self) -> JsonObject:  # noqa: N802 - Spark's name
            """See pyspark's SupportsAdmissionControl: the ends of the logs, for metrics."""
            return to_document(self.offsets.newest())


def stream_reader(options: SourceOptions) -> StreamReader:
    """Return a reader for this version of PySpark. Raises OptionsError for options it does not support."""
    if KNOWS_LIMITS:
        return LimitedStreamReader(options)
    if options.max_offsets or options.max_offsets_per_partition or options.min_offsets:
        raise OptionsError(
            "maxOffsetsPerTrigger, maxOffsetsPerPartition and minOffsetsPerTrigger need PySpark 4.2 or "
            "newer: leave them out, or use kohort.spark.GroupBatches"
        )
    return StreamReader(options)
