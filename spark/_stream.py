"""The part of ``format("kohort")`` that sends requests to brokers: starts and ends of reads, and commits.

It runs in a Python process that Spark starts beside its JVM and ends by a signal, so nothing here may depend
on being closed. A batch is committed to the group only after Spark's own log has it: Spark calls ``latest``
with the end of the last such batch.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..client import BrokerConnectionError
from ..protocol import KafkaError, KohortError, TopicPartition
from ._client import Client, process_client
from ._fetch import ReadTask
from ._group import CommitRefusedError, GroupOffsets, GroupPositions
from ._idle import TOUCH_SECONDS, idle_pause
from ._log_keeper import keep_log
from ._offsets import (
    EARLIEST,
    LATEST,
    Commits,
    Committed,
    Logs,
    OffsetRange,
    Offsets,
    format_offsets,
    parse_offsets,
    to_document,
)
from ._plan import Limits, choose_starts, losses_of, refuse_gone, refuse_unread, split_tasks, up_to
from ._source_options import SourceOptions
from ._stream_plan import (
    START_MARK,
    BatchReport,
    Reports,
    batch_ranges,
    begin_new,
    begun_at,
    next_ends,
    read_ranges,
    waiting_offsets,
)

log = logging.getLogger(__name__)


class StartStateError(KohortError):
    """A query's start is not known: the file that keeps it cannot be used, or the group does not have it."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """End of the last planned batch, and the state from which it was planned."""

    ends: Offsets
    state: GroupPositions
    lost: tuple[OffsetRange, ...]


class SourceOffsets:
    """Starts, ends and commits of one read or one query. Connections are opened by the first request."""

    def __init__(self, options: SourceOptions, client: Client | None = None) -> None:
        self._options = options
        self._client = client or process_client(options.connection)
        # a source cannot be a member, because Spark ends its process without a call that could leave
        outside = options.group_options.model_copy(update={"group_mode": "standalone"})
        self._group = GroupOffsets(self._client, outside, on_event=lambda _: None, stopping=threading.Event())
        self._initial: Offsets | None = None
        #: Whether the start will be the same when another process chooses it.
        self._is_kept = True
        #: Whether this process has begun a batch: the driver commits what this run has done.
        self._has_begun = False
        #: Start and end of the first batch, if an earlier process has planned it.
        self._first_batch: tuple[Offsets, Offsets] | None = None
        self._planned: _Planned | None = None
        #: The group's commits, when they were last asked for.
        self._seen: Commits = {}
        self._reports = None if options.report_folder is None else Reports(Path(options.report_folder))
        #: The last report to the driver.
        self._reported = BatchReport({}, {})
        self._target: Offsets | None = None
        self._moved_at = self._committed_at = self._look_again_at = time.monotonic()
        #: Where a look found nothing to read, until ``_look_again_at``.
        self._idle_at: Offsets | None = None

    # a batch read

    def batch_ranges(self) -> list[OffsetRange]:
        """Return the ranges of a batch read. Raises NoStartError, DataLossError, UnknownTopicError."""
        state = self._group.look()
        ranges, lost = read_ranges(
            self._start_offsets(state), self._end_offsets(state), state.bounds, rules=self._options.rules
        )
        self._log_lost(lost)
        return ranges

    # a query

    def initial(self) -> Offsets:
        """Return the start of the query's first batch: chosen once, and kept in ``startStatePath``."""
        if self._initial is None:
            path = self._options.start_state_path
            self._initial = (
                self._choose_start() if path is None else pin_offsets(Path(path), self._choose_start)
            )
            self._is_kept = self._is_kept or path is not None
        return self._initial

    def latest(self, start: Offsets, max_offsets: int | None, *, all_of_it: bool) -> Offsets:
        """Return the end of the batch that begins at ``start``; ``start`` itself if there is nothing to read.

        Spark has finished everything before ``start``, so this offset is committed. ``all_of_it``: ignore
        limits. An idle query asks every few milliseconds: most of these calls do not look. Raises
        DataLossError, UnknownTopicError, and the errors of the cluster client.
        """
        if start == self._idle_at and not all_of_it and time.monotonic() < self._look_again_at:
            return dict(start)
        worked = time.process_time()
        state = self._look()
        if self._is_kept:
            self._follow_done(start, state)
        self._keep_start()
        gone = self._partitions_gone(start, state)
        left = {partition: at for partition, at in start.items() if partition not in gone}
        begun = begin_new(left, state.bounds, state.committed)
        bounds = state.bounds if self._target is None else up_to(begun, state.bounds, self._target)
        ends, lost = dict(start), tuple[OffsetRange, ...]()
        if all_of_it or not self._too_little(begun, bounds):
            limits = Limits() if all_of_it else Limits(max_offsets, self._options.max_offsets_per_partition)
            unread = refuse_gone(list(gone.values()), self._options.rules)
            ends, lost = next_ends(begun, bounds, rules=self._options.rules, limits=limits)
            lost += unread
            self._log_lost(lost)
        self._planned = _Planned(ends, state, lost)
        self._idle_at = None
        if ends != start:
            self._moved_at = time.monotonic()
            return ends
        if self._reported.end != start:
            self._report_batch(BatchReport(start, dict(start)))
        if self._target is None and not waiting_offsets(begun, bounds):
            now = time.monotonic()
            pause = idle_pause(time.process_time() - worked, now - self._moved_at)
            self._idle_at, self._look_again_at = dict(start), now + pause
        return ends

    def aim(self) -> None:
        """Let the query end at the current ends of the logs."""
        self._target = {p: bounds.latest for p, bounds in self._group.look().bounds.items()}

    def newest(self) -> Offsets:
        """Return the ends of the logs, as they were when the last batch was planned."""
        self._keep_start()
        state = self._look() if self._planned is None else self._planned.state
        return {p: bounds.latest for p, bounds in state.bounds.items()}

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """Return the ranges of the batch between two offsets of the checkpoint.

        Raises DataLossError, StartStateError, UnknownTopicError.
        """
        self._has_begun = True
        # a batch that an earlier process planned is checked again
        planned = self._planned if self._planned is not None and self._planned.ends == end else None
        state = self._group.look() if planned is None else planned.state
        if not self._is_kept and start == self._initial:
            # this process has planned nothing since it chose the start: an earlier one has planned this batch
            self._first_batch = self._find_begin(end, state), dict(end)
            self._is_kept = True
        begun = start
        if self._first_batch is not None and (start, end) == (self._initial, self._first_batch[1]):
            begun = self._first_batch[0]
        there = {partition: log for partition, log in state.bounds.items() if partition in end}
        begun = begin_new(begun, there, state.committed)
        gone = self._partitions_gone(
            {p: begun[p] for p, at in end.items() if p in begun and begun[p] < at}, state
        )
        refuse_gone(list(gone.values()), self._options.rules)
        known = {p: offset for p, offset in end.items() if p in begun and p not in gone}
        strict = self._options.fail_on_data_loss
        ranges = batch_ranges(begun, known, state.bounds, fail_on_data_loss=strict)
        lost = tuple[OffsetRange, ...]() if planned is None else planned.lost
        if planned is None and not strict:
            lost = losses_of({p: (begun[p], known[p]) for p in known if p in state.bounds}, state.bounds)
            self._log_lost(lost)
        self._report_batch(BatchReport(start, dict(end), lost))
        return ranges

    def _look(self) -> GroupPositions:
        state = self._group.look()
        self._seen = state.committed
        return state

    def _partitions_gone(self, start: Offsets, state: GroupPositions) -> dict[TopicPartition, OffsetRange]:
        """Return the partitions of a start that are no longer there, with what was not read of them."""
        seen = {} if self._planned is None else self._planned.state.bounds
        return {
            p: OffsetRange(*p, at, max(at, seen[p].latest if p in seen else at))
            for p, at in sorted(start.items())
            if p not in state.bounds and self._group.reads(p)
        }

    def follow(self, done: Offsets) -> None:
        """Commit what Spark has finished. Errors are logged or, with ``failOnCommitError``, raised."""
        if not self._options.commits or self._options.group_mode != "standalone":
            return
        if self._has_begun and self._reports is not None and not self._options.fail_on_commit_error:
            # the driver commits it, with the batch's row: a commit from here might come later, without it
            return
        self._attempt_commit({p: keep_log(Committed(at), self._seen.get(p)) for p, at in done.items()})

    # tasks

    def tasks(self, ranges: list[OffsetRange]) -> list[ReadTask]:
        """Split the ranges into tasks by number of records and cores, not by partition."""
        options = self._options
        groups = split_tasks(
            ranges,
            cores=options.cores or os.cpu_count() or 1,
            min_tasks=options.min_tasks,
            records_per_task=options.records_per_task,
        )
        return [ReadTask.from_options(options, options.connection, group) for group in groups]

    # starts and ends

    def _choose_start(self) -> Offsets:
        """Return the start that the options choose. It is committed too, so that tools show it."""
        state = self._look()
        starts = self._start_offsets(state)
        missing = any(state.committed.get(p) is None for p in starts)
        self._is_kept = not (self._options.chooses_anew or (missing and self._options.falls_back_to_latest))
        if missing and self._is_kept:
            self.follow(starts)
        return starts

    def _keep_start(self) -> None:
        """Commit the start of a query if the options might choose another start later.

        Spark does not keep the start: after a restart, a first batch that was not done begins at ``initial``.
        """
        if not self._is_kept and self._initial is not None and self._options.commits:
            self._commit_offsets(self._initial, START_MARK)
        self._is_kept, self._first_batch = True, None

    def _find_begin(self, end: Offsets, state: GroupPositions) -> Offsets:
        """Return the start of the first batch, which an earlier process planned. Raises StartStateError."""
        begun = begun_at(end, state.committed) if self._options.commits else None
        if begun is None:
            raise StartStateError(
                f"the checkpoint has a first batch, to {format_offsets(end)}, that was not done, and group "
                f"{self._options.group!r} does not tell where it began: the options would choose another "
                "start now. Give it as JSON in startingOffsets for this run; from the beginning, "
                "startStatePath keeps it, as kohort.spark.stream does"
            )
        return begun

    def _start_offsets(self, state: GroupPositions) -> Offsets:
        starts = choose_starts(state.bounds, state.committed, self._options.rules, {})
        times = self._options.times("starting")
        if times is None:
            return starts
        must_be_there = self._options.by_timestamp_strategy == "error"
        return starts | self._group.offsets_at(times, state.bounds, must_be_there=must_be_there)

    def _end_offsets(self, state: GroupPositions) -> Offsets:
        times = self._options.times("ending")
        ends = {partition: bounds.latest for partition, bounds in state.bounds.items()}
        if times is not None:
            return ends | self._group.offsets_at(times, state.bounds)
        named = self._options.ending_offsets or "latest"
        if named == "latest":
            return ends
        if named == "committed":
            return {
                p: state.committed[p].offset if p in state.committed else b.earliest
                for p, b in state.bounds.items()
            }
        wanted = parse_offsets(named)
        refuse_unread("ending", wanted, state.bounds)
        return ends | _named_ends(wanted, state.bounds)

    def _too_little(self, start: Offsets, bounds: Logs) -> bool:
        """Return whether to wait for more records. A query that ends at the current ends does not wait."""
        least = self._options.min_offsets
        if least is None or self._target is not None:
            return False
        waited = time.monotonic() - self._moved_at
        return waiting_offsets(start, bounds) < least and waited < self._options.max_trigger_delay

    # commits

    def _follow_done(self, done: Offsets, state: GroupPositions) -> None:
        there = {p: at for p, at in done.items() if p in state.bounds or p in state.committed}
        if any(p not in state.committed or state.committed[p].offset != at for p, at in there.items()):
            self.follow(there)
        elif time.monotonic() - self._committed_at >= TOUCH_SECONDS and self._options.commits:
            self._attempt_commit({p: state.committed[p] for p in there})

    def _commit_offsets(self, offsets: Offsets, metadata: str) -> None:
        self._attempt_commit({partition: Committed(at, metadata) for partition, at in offsets.items()})

    def _attempt_commit(self, commits: Commits) -> None:
        self._committed_at = time.monotonic()
        try:
            self._group.commit_once(-1, commits)
        except (CommitRefusedError, KafkaError, BrokerConnectionError) as error:
            if self._options.fail_on_commit_error:
                raise
            log.warning("the group %r does not follow yet: %s", self._options.group, error)

    def _report_batch(self, report: BatchReport) -> None:
        """Report a batch to the driver, unless it was the last one reported."""
        if self._reports is not None and self._reported != report:
            self._reports.write(report)
        self._reported = report

    def _log_lost(self, lost: tuple[OffsetRange, ...]) -> None:
        if lost:
            total = sum(span.offsets for span in lost)
            log.warning(
                "group %s: lost %d offsets: %s", self._options.group or "-", total, ", ".join(map(str, lost))
            )


def pin_offsets(path: Path, choose: Callable[[], Offsets]) -> Offsets:
    """Return the offsets in the file; if it does not exist, choose and write them. Raises StartStateError."""
    try:
        if not path.exists():
            _write_once(path, json.dumps(to_document(choose())))
        return parse_offsets(path.read_text())
    except (OSError, ValueError) as error:
        raise StartStateError(
            f"startStatePath={path}: {error}; give a file that driver and restarts share, in a folder that "
            "can be written"
        ) from error


def _write_once(path: Path, text: str) -> None:
    """Write the whole file or nothing. A file that another process wrote meanwhile is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        log.info("%s was written by somebody else: its start counts", path)
    finally:
        temporary.unlink()


def _named_ends(named: Offsets, bounds: Logs) -> Offsets:
    return {
        partition: {EARLIEST: bounds[partition].earliest, LATEST: bounds[partition].latest}.get(
            offset, offset
        )
        for partition, offset in named.items()
    }
