"""The part of ``format("kohort")`` that executors load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ._fetch import ReadTask, read_task

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Task(InputPartition):
    """What one Spark task reads, as a partition of Spark's data source."""

    task: ReadTask


class TaskReader:
    """Reads tasks. This is the only part of a reader that Spark sends to executors."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See pyspark's DataSourceReader. Runs in an executor's process."""
        # for a read without partitions Spark runs one task with None
        if isinstance(partition, Task):
            yield from read_task(partition.task)
