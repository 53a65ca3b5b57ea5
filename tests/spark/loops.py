"""What the tests of the driver loop say often."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.spark import Batch, GroupBatches
from kohort.spark._intent import Mark, format_mark
from kohort.spark._offsets import Commits, Committed

if TYPE_CHECKING:
    from tests.spark.conftest import Side

#: Only ``Batch.df`` needs a session.
NO_SPARK: Any = None

Driver = Callable[..., GroupBatches]
NewTopic = Callable[..., str]
Named = Callable[[str], str]


def next_of(batches: GroupBatches) -> Batch:
    batch = batches.next_batch()
    assert batch is not None, "nothing to read"
    return batch


def bounds(batch: Batch) -> dict[int, tuple[int, int]]:
    return {span.partition: (span.start, span.end) for span in batch.ranges}


def commits_of(side: Side, group: str) -> Commits:
    """All of a group's commits, with their metadata."""
    found = side.client.run(lambda cluster: cluster.committed(group))
    return {partition: Committed(at.offset, at.metadata) for partition, at in found.items()}


def announced(key: str, end: int) -> str:
    """The metadata of an intent, for a batch of this key."""
    number, _, token = key.partition("-")
    return format_mark(Mark(int(number), end, token))
