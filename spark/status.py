"""State of a Spark job for tools, from its group's commits and intent records, or from its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..client import EARLIEST, LATEST, Cluster
from ..protocol import KohortError, TopicPartition
from ._batch_log import BatchRow, UnderWay
from ._intent import next_number, parse_mark
from ._log_keeper import find_newest, keep_log
from ._offsets import Commits, Committed, Offsets, OffsetsFormatError, parse_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..protocol import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition of a job. ``planned_end``: end of the current batch, None if there is none.

    ``batch``: number in the partition's last commit. ``state``: "done" after a batch, "under way" during one,
    "other" if the commit is not by a Spark job.
    """

    topic: str
    partition: int
    committed: int
    planned_end: int | None
    log_start: int
    log_end: int
    batch: int | None
    state: Literal["done", "under way", "other"]

    @property
    def lag(self) -> int:
        return max(0, self.log_end - self.committed)


@dataclass(frozen=True, slots=True)
class BatchHistory:
    """The batches that a job has done, as the log in its group's commits has them, oldest first.

    ``announced``: the batch under way, with the time of its first announcement and its replays; None if there
    is none, or the log does not have it. ``applications``: Spark's application by number of the run.
    ``unknown``: why nothing is known; "" if there is a log.
    """

    batches: tuple[BatchRow, ...] = ()
    announced: UnderWay | None = None
    runs: int = 0
    applications: Mapping[int, str] = field(default_factory=dict)
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """State of a job. ``batch``: number of the newest batch, -1 before the first. ``under_way``: whether it
    is not committed yet. ``lag``: offsets left to read, over all partitions. ``history``: its batches so far.
    """

    group: str
    batch: int
    under_way: bool
    lag: int
    partitions: tuple[PartitionStatus, ...]
    history: BatchHistory = BatchHistory()


async def job_status(cluster: Cluster, group: str) -> JobStatus:
    """Return a group's status; it has no partitions if the group has no commits.

    Raises KafkaError and BrokerConnectionError.
    """
    found = await cluster.committed(group)
    committed = {partition: Committed(at.offset, at.metadata) for partition, at in found.items()}
    if committed:
        await cluster.metadata({partition.topic for partition in committed})
    there = [p for p in committed if p in set(cluster.known_metadata.partitions(p.topic))]
    starts = await cluster.list_offsets(dict.fromkeys(there, EARLIEST)) if there else {}
    ends = await cluster.list_offsets(dict.fromkeys(there, LATEST)) if there else {}
    bounds = {p: (starts[p].offset, ends[p].offset) for p in there}
    return described(group, committed, bounds)


def described(group: str, committed: Commits, bounds: Mapping[TopicPartition, tuple[int, int]]) -> JobStatus:
    """Return the status from the brokers' answers; partitions that no longer exist are left out."""
    newest = next_number(committed) - 1
    rows = tuple(
        _partition(partition, commit, bounds[partition], newest)
        for partition, commit in sorted(committed.items())
        if partition in bounds
    )
    under_way = any(row.state == "under way" for row in rows)
    return JobStatus(group, newest, under_way, sum(row.lag for row in rows), rows, batch_history(committed))


def batch_history(committed: Commits) -> BatchHistory:
    """Return the batches that a group's commits tell of."""
    found = find_newest(committed)
    if found is None:
        return BatchHistory(unknown="no commit of the group carries a log of batches")
    if found.trouble:
        return BatchHistory(unknown=found.trouble)
    log, now = found.log, found.log.under_way
    marks = (parse_mark(commit.metadata) for commit in committed.values())
    # a reset may have called it off
    stands = now is not None and any(
        mark is not None and mark.end is not None and mark.batch == now.number for mark in marks
    )
    return BatchHistory(log.rows, now if stands else None, log.runs, log.applications)


def history_in(commits: Mapping[TopicPartition, str]) -> BatchHistory | None:
    """Return the same from the metadata of commits; None if no Spark job has written any of them."""
    committed = {partition: Committed(0, metadata) for partition, metadata in commits.items()}
    if find_newest(committed) is None and next_number(committed) == 0:
        return None
    return batch_history(committed)


def keep_history(metadata: str) -> str:
    """Return the metadata of a commit by which an operator resets a partition whose commit had ``metadata``:
    nothing, or the log of batches alone.
    """
    return keep_log(Committed(0), Committed(0, metadata)).metadata


def _partition(
    partition: TopicPartition, commit: Committed, bounds: tuple[int, int], newest: int
) -> PartitionStatus:
    mark = parse_mark(commit.metadata)
    announced = mark is not None and mark.end is not None and mark.batch == newest
    return PartitionStatus(
        topic=partition.topic,
        partition=partition.partition,
        committed=commit.offset,
        planned_end=mark.end if mark is not None and announced else None,
        log_start=bounds[0],
        log_end=bounds[1],
        batch=None if mark is None else mark.batch,
        state="other" if mark is None else "under way" if announced else "done",
    )


class CheckpointError(KohortError):
    """A folder is not the checkpoint of a query over topics, or has no finished batch."""


def read_checkpoint(folder: str | Path) -> tuple[int, Offsets]:
    """Return number and end offsets of the last batch that a query has finished. Raises CheckpointError."""
    folder = Path(folder)
    done = _numbers(folder / "commits") & _numbers(folder / "offsets")
    if not done:
        raise CheckpointError(
            f"{folder} has no batch that is done: give the folder of option checkpointLocation, which has "
            "folders offsets and commits"
        )
    number = max(done)
    offsets: Offsets = {}
    # lines: a version, the batch's settings, then one for each source
    for line in (folder / "offsets" / str(number)).read_text().splitlines()[2:]:
        try:
            offsets |= parse_offsets(line)
        except OffsetsFormatError:
            continue  # another kind of source
    if not offsets:
        raise CheckpointError(
            f"batch {number} of {folder} has no offsets of topics: no source of it is Kafka's"
        )
    return number, offsets


def _numbers(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.glob("*") if file.name.isdigit()} if folder.is_dir() else set()
