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
    """Partition of a read: what one Spark task reads."""

    task: ReadTask


class TaskReader:
    """Reads tasks; all that Spark sends of a reader to an executor."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # a read without partitions is one task of None
        if isinstance(partition, Task):
            yield from read_task(partition.task)
