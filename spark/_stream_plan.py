"""Plan of a streaming query, as pure functions of offsets in Spark's checkpoint; and reports of its batches.

Spark's checkpoint decides where a batch begins and ends, and the group follows it. So intents are not used
here, and a start that was written once is not chosen again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ..protocol import JsonObject
from ._offsets import Commits, Logs, OffsetRange, Offsets, from_document, to_document
from ._plan import DataLossError, Limits, StartRules, allocate_ranges, losses_of, refuse_losses, usable_offset

#: Metadata of the commit that keeps the start of a query until its first batch is done.
START_MARK = '{"start":true}'


def begin_new(start: Offsets, bounds: Logs, committed: Commits) -> Offsets:
    """Return ``start`` extended by new partitions, from their committed offset or else their first record."""
    new = {
        partition: committed[partition].offset if partition in committed else log.earliest
        for partition, log in bounds.items()
        if partition not in start
    }
    return dict(start) | new


def next_ends(
    start: Offsets, bounds: Logs, *, rules: StartRules, limits: Limits
) -> tuple[Offsets, tuple[OffsetRange, ...]]:
    """Return the end of a batch from ``start``, and the ranges that the logs no longer have.

    A partition in ``start`` that is no longer to be read keeps its offset. Raises DataLossError.
    """
    known = {partition: log for partition, log in bounds.items() if partition in start}
    lost = losses_of({partition: (start[partition], start[partition]) for partition in known}, known)
    refuse_losses(lost, rules)
    available = [
        OffsetRange(*partition, usable_offset(start[partition], log, rules), log.latest)
        for partition, log in sorted(known.items())
    ]
    ends = dict(start)
    # an offset after its log's end is replaced: the log was recreated
    ends |= {span.topic_partition: span.start for span in available if start[span.topic_partition] > span.end}
    ends |= {span.topic_partition: span.end for span in allocate_ranges(available, limits)}
    return ends, lost


def batch_ranges(start: Offsets, end: Offsets, bounds: Logs, *, fail_on_data_loss: bool) -> list[OffsetRange]:
    """Return the ranges between two offsets of the checkpoint.

    An end before the start was planned without ``fail_on_data_loss``, for a log that was recreated: without
    it the log is read from its first record; with it DataLossError is raised. Without it, offsets that the
    log no longer has are left out too. An end after the log's is a loss as well: the log was recreated since
    the batch was planned, and would be waited for in vain.
    """
    ranges = []
    for partition, last in sorted(end.items()):
        first = start[partition]
        log = bounds.get(partition)
        if first > last and fail_on_data_loss:
            lost = OffsetRange(*partition, last, first)
            raise DataLossError(
                [lost],
                f"the checkpoint has a batch that goes back over {lost}: it was planned with "
                "failOnDataLoss=false, for a topic that was recreated. Set that again to read it",
            )
        if log is not None and (last > max(first, log.latest) or not log.has(last)):
            refuse_losses(
                [OffsetRange(*partition, log.latest, last)], StartRules(fail_on_data_loss=fail_on_data_loss)
            )
            continue  # the next batch finds that its start is not in the log, and begins anew
        if log is not None and not fail_on_data_loss:
            first = log.earliest if first > last else max(first, log.earliest)
        if first < last:
            ranges.append(OffsetRange(*partition, first, last))
    return ranges


def read_ranges(
    start: Offsets, end: Offsets, bounds: Logs, *, rules: StartRules
) -> tuple[list[OffsetRange], tuple[OffsetRange, ...]]:
    """Return the ranges from ``start`` to ``end``, and those that the logs do not have. Raises DataLossError.

    If the end of a partition is before its start, there is nothing to read.
    """
    lost = losses_of({partition: (first, end[partition]) for partition, first in start.items()}, bounds)
    if lost and rules.fail_on_data_loss:
        raise DataLossError(
            lost,
            f"the logs do not have {', '.join(map(str, lost))}: retention took it, or it is not written yet. "
            "Give a start and an end that the logs have, or failOnDataLoss=false to read what is there",
        )
    ranges = []
    for partition, log in sorted(bounds.items()):
        first, last = usable_offset(start[partition], log, rules), min(end[partition], log.latest)
        if first < last:
            ranges.append(OffsetRange(*partition, first, last))
    return ranges, lost


def begun_at(end: Offsets, committed: Commits) -> Offsets | None:
    """Return the start of the query's first batch, which ended at ``end``, from the commits with START_MARK.

    Partitions that were new in this batch are left out. None if there are no such commits.
    """
    begun = {
        partition: commit.offset
        for partition, commit in committed.items()
        if partition in end and commit.metadata == START_MARK
    }
    return begun if begun and all(at <= end[partition] for partition, at in begun.items()) else None


def waiting_offsets(start: Offsets, bounds: Logs) -> int:
    """Return the number of offsets to read."""
    return sum(max(0, log.latest - start.get(partition, log.earliest)) for partition, log in bounds.items())


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch that the source has planned. If start and end are equal, it only reports its position."""

    start: Offsets
    end: Offsets
    lost: tuple[OffsetRange, ...] = ()


class Reports:
    """Reports of each batch from a query's source to the driver, as files in a folder.

    The source runs in a separate process on the driver's machine. It calls ``write``, and the driver
    ``take``. Spark's own reports do not say which source belongs to which reader, nor which offsets were
    lost.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, report: BatchReport) -> None:
        """Write a report. If that fails, a warning is logged, and the query continues."""
        lost = [[span.topic, span.partition, span.start, span.end] for span in report.lost]
        document = {"start": to_document(report.start), "end": to_document(report.end), "lost": lost}
        path = self._folder / f"{time.time_ns():020}.json"
        try:
            # the folder may be gone: systems remove unused temporary files after some days
            self._folder.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".new").write_text(json.dumps(document))
            os.replace(path.with_suffix(".new"), path)
        except OSError as error:
            log.warning("the driver is not told of the batch to %s: %s", document["end"], error)

    def take(self) -> list[BatchReport]:
        """Return the reports that have arrived, oldest first, and remove them."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            found.append(_parse_report(json.loads(path.read_text())))
            path.unlink()
        return found

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _parse_report(document: JsonObject) -> BatchReport:
    lost = tuple(OffsetRange(*row) for row in document["lost"])
    return BatchReport(from_document(document["start"]), from_document(document["end"]), lost)
