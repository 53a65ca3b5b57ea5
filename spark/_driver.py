"""The driver loop: a group's committed offsets are the only checkpoint of a Spark job.

    committed offsets -> planned range -> intent -> DataFrame -> the user's write -> commit of the range's end

The driver may crash at any arrow; the next one continues from there (``_intent.py``).
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Literal, Self
from uuid import UUID

from ..protocol import KohortError, TopicPartition
from ._client import Client
from ._collector import collect_less
from ._commit_size import split_commits
from ._dataframes import (
    OUR_JOBS,
    DriverFrames,
    DriverReading,
    application_of,
    count_cores,
    frame_by_tasks,
    make_active,
    name_jobs,
    readings_of,
    takes_arrow_tables,
)
from ._events import BatchCommitted, Listener, OffsetsLost, OffsetsReset, all_of
from ._fetch import ReadTask, TaskReading
from ._group import CommitRefusedError, GroupOffsets, GroupPositions, Patience
from ._idle import TOUCH_SECONDS, idle_pause
from ._intent import intents_of, outcomes_of, positions_of, remove_log
from ._log_keeper import LogKeeper, keep_log, row_of
from ._offsets import Committed, OffsetRange, Offsets, Plan, format_offsets
from ._options import AVAILABLE_NOW, GroupBatchesOptions, OptionsError, read_options
from ._plan import StartRules, plan_batch, refuse_gone, split_tasks, up_to

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ._batch_log import BatchLog
    from ._offsets import OffsetRange, Plan
    from ._read_metrics import Reading, Readings


log = logging.getLogger(__name__)


class UncommittedBatchError(KohortError):
    """The next batch was requested before the last one was committed."""


class GroupBatches:
    """Iterates over batches of records, from the offsets that a group has committed.

        with GroupBatches(spark, bootstrap="localhost:9092", group="etl", topics=["orders"]) as batches:
            for batch in batches:
                write(batch.df, batch.key)
                batch.commit()

    ``options`` are the fields of GroupBatchesOptions; OptionsError names each wrong one. ``on_event`` is one
    listener or several, such as ProgressBar and BatchMetrics. It is called with each BatchCommitted,
    CommitRefused, OffsetsLost and OffsetsReset, in the thread that caused it. Run only one driver at a time
    for a group.
    """

    def __init__(
        self, spark: SparkSession, *, on_event: Listener | Sequence[Listener] | None = None, **options: object
    ) -> None:
        self.options = read_options(GroupBatchesOptions, **options)
        self._spark = spark
        self._on_event = all_of(on_event)
        self._stopping = threading.Event()
        self._client = Client(self.options.connection)
        self._group = GroupOffsets(
            self._client, self.options, on_event=self._on_event, stopping=self._stopping
        )
        self._keeper = LogKeeper()
        self._rules = self.options.start_rules
        self._reached: Offsets = {}
        self._next_number = 0
        #: When there was a batch last, and processor seconds of the last look that found none.
        self._moved_at, self._look_cost = time.monotonic(), 0.0
        #: When an idle loop committed its offsets again.
        self._touched_at = self._moved_at
        #: What the last batch was planned from.
        self._seen: GroupPositions | None = None
        self._handed_out: Batch | None = None
        #: The thread in which this session was made the active one.
        self._thread: int | None = None
        self._readings: Readings | None = None
        self._frames: DriverFrames | None = None

    def __repr__(self) -> str:
        return f"GroupBatches(group {self.options.group!r} on {self.options.bootstrap}, {self._handed_out!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A batch that is not committed will be replayed by the next driver."""
        self._group.close()
        self._client.close()

    def stop(self) -> None:
        """End the iteration, or ``run``, before the next batch. From any thread or signal handler."""
        self._stopping.set()

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over batches as records arrive, until ``stop``."""
        while not self._stopping.is_set():
            batch = self.next_batch()
            if batch is not None:
                yield batch
            else:
                self._stopping.wait(self._idle_pause())

    def next_batch(self) -> Batch | None:
        """Plan and announce the next batch. Return None if there is nothing to read.

        Raises UncommittedBatchError, NoStartError, DataLossError (the committed offsets stay as they are),
        UnknownTopicError, CommitRefusedError, GroupTakenError, and the errors of the cluster client.
        """
        return self._next_batch(None)

    def run(
        self,
        handle: Callable[[Batch], object],
        *,
        trigger: Literal["available_now", "availableNow"] | None = None,
        every_seconds: float | None = None,
    ) -> int:
        """Call ``handle`` with each batch and commit it when it returns; return the number of batches.

        With ``trigger="available_now"`` it returns when all records that were there at the start are read.
        Otherwise it runs until ``stop``, or SIGTERM if it runs in the main thread; both let the current batch
        finish. ``every_seconds``: shortest time between the starts of two batches. If ``handle`` raises an
        exception, its batch stays uncommitted, and the next driver replays it. Raises OptionsError, and the
        errors of ``next_batch`` and of commits.
        """
        done = 0
        if trigger not in (None, *AVAILABLE_NOW):
            raise OptionsError(
                f"trigger={trigger!r}: write 'available_now', or leave it out; with every_seconds=10 a batch "
                "starts each ten seconds"
            )
        if every_seconds is not None and not every_seconds >= 0:
            raise OptionsError(f"every_seconds={every_seconds!r}: write seconds, not less than 0")
        with self._stop_on_sigterm():
            ends = None if trigger is None else self._ends_now()
            while not self._stopping.is_set():
                began = time.monotonic()
                batch = self._next_batch(ends)
                if batch is not None:
                    handle(batch)
                    batch.commit()
                    done += 1
                elif ends is not None:
                    break
                self._pause_between(began, every_seconds, idle=batch is None)
        return done

    # for Batch

    def frame(self, batch: Batch, plan: Plan) -> DataFrame:
        """Return the DataFrame of a batch."""
        options = self.options
        if self._thread != threading.get_ident():
            make_active(self._spark)
            self._thread = threading.get_ident()
        name_jobs(self._spark, f"{OUR_JOBS}{options.group}, {batch!r}")
        ahead, batch.ahead = batch.ahead, None
        if ahead is not None and (read := ahead.batches()) is not None:
            return self._frame_on_driver(batch, read, ahead)
        groups = split_tasks(
            plan.ranges,
            cores=count_cores(self._spark),
            min_tasks=options.min_tasks,
            records_per_task=options.records_per_task,
        )
        batch.tasks = len(groups)
        if self._readings is None:
            self._readings = readings_of(self._spark)
        tell = self._readings.teller(batch.key) if self._readings else None
        return frame_by_tasks(self._spark, [self._make_task(ranges) for ranges in groups], tell)

    def commit(self, batch: Batch, plan: Plan) -> None:
        """Commit a batch that this loop has returned."""
        began = time.monotonic()
        if batch.tasks and batch.reading is None and self._readings is not None:
            batch.reading = self._readings.take(batch.key, batch.tasks)
        event = self._event_of(batch, plan, began)
        under_way = self._keeper.log.under_way
        assert under_way is not None
        row = replace(row_of(event, under_way.started_ms, under_way.replays), commit_ms=None)
        ended = self._keeper.log.end(row)
        reset = self._commit_ends(plan, ended)
        took = time.monotonic() - began
        # the next commit tells how long this one took
        self._keeper.log = ended.amend(round(took * 1_000))
        batch.committed = True
        if batch.reading is not None:
            self._tell_lost(batch.reading.lost)
        self._reached |= {span.topic_partition: span.end for span in plan.ranges} | reset
        self._next_number = plan.number + 1
        self._group.end_batch()
        if "df" in vars(batch):
            name_jobs(self._spark, None)
        event = replace(event, commit_seconds=took)
        log.info("%s", event)
        self._on_event(event)

    def _event_of(self, batch: Batch, plan: Plan, began: float) -> BatchCommitted:
        """Return the event of a batch whose commit begins now."""
        reading = batch.reading
        newest_ms = None if reading is None else reading.newest_ms
        return BatchCommitted(
            group=self.options.group,
            number=plan.number,
            ranges=plan.ranges,
            replayed=plan.replayed,
            rows=reading and reading.rows,
            lag_before=plan.lag + plan.offsets,
            lag=plan.lag,
            plan_seconds=batch.plan_seconds,
            read_seconds=reading and reading.seconds,
            sink_seconds=began - batch.handed_out_at,
            commit_seconds=0.0,
            # clocks of producers may be ahead
            lag_seconds=None if newest_ms is None else max(0.0, time.time() - newest_ms / 1_000),
        )

    @collect_less()
    def _commit_ends(self, plan: Plan, ended: BatchLog) -> Offsets:
        """Commit where the batch ends. Return the partitions that somebody has reset, which are left out."""
        announced, ends, patience = intents_of(plan), outcomes_of(plan.number, plan.ranges), Patience()
        seen = self._seen
        assert seen is not None, "the batch was planned from it"
        while True:
            there = self._group.commits_of(ends)
            # ends that are there come from an attempt whose answer was lost
            reset = {p: c.offset for p, c in there.items() if remove_log(c) not in (announced[p], ends[p])}
            # an intent goes with its topic; the ends would be taken for those of a topic made again
            remade = self._group.find_remade(ends.keys() - there.keys(), seen.topic_ids)
            standing = {p: end for p, end in ends.items() if p not in reset and p not in remade}
            if self._group.try_commit(plan.number, self._keeper.carry(standing, ended), patience):
                break
        if reset:
            log.warning(
                "group %s: offsets were reset while batch %d was written, and stay so: %s",
                self.options.group,
                plan.number,
                format_offsets(reset),
            )
            self._on_event(OffsetsReset(self.options.group, plan.number, reset))
        return reset

    def _tell_lost(self, lost: tuple[OffsetRange, ...]) -> None:
        if lost:
            log.warning("group %s: lost %s", self.options.group, ", ".join(map(str, lost)))
            self._on_event(OffsetsLost(self.options.group, lost))

    def _frame_on_driver(self, batch: Batch, read: list[pa.RecordBatch], reading: DriverReading) -> DataFrame:
        from ..consumer.reading import arrow
        from ._read_metrics import NewestRecords, Reading, furthest_behind

        began = time.perf_counter()
        if self._frames is None:
            self._frames = DriverFrames(self._spark)
        schema = arrow.SCHEMA_WITH_HEADERS if self.options.include_headers else arrow.SCHEMA
        frame = self._frames.frame(read, schema)
        rows, newest = sum(part.num_rows for part in read), NewestRecords()
        for part in read:
            newest.add(part)
        behind = furthest_behind([newest.take()])
        batch.reading = Reading(rows, reading.seconds + time.perf_counter() - began, behind, reading.lost)
        return frame

    # planning

    def _next_batch(self, ends: Offsets | None) -> Batch | None:
        if self._handed_out is not None and not self._handed_out.committed:
            raise UncommittedBatchError(
                f"batch {self._handed_out.number} is not committed: call its commit() once it is written. "
                "To read it again, make a new GroupBatches"
            )
        began, patience, worked = time.monotonic(), Patience(), time.process_time()
        started_ms = round(time.time() * 1_000)
        state = self._group.look()
        if not self._keeper.is_loaded:
            self._keeper.load(state.committed, application_of(self._spark))
        plan = self._plan_batch(state, ends)
        ahead = self._fetch_ahead(plan)
        while not self._announce_batch(plan, state, ahead, patience, started_ms):
            state = self._group.look()
            # the group may take long to accept the commit: fetch the records after it
            plan, ahead = self._plan_batch(state, ends), None
        self._seen = state
        # a topic that is gone and made again later is read from its start
        self._reached = {p: at for p, at in self._reached.items() if p in state.bounds}
        self._tell_lost(plan.lost)
        if not plan.ranges:
            self._touch_offsets(state)
            self._look_cost = time.process_time() - worked
            return None
        self._moved_at = time.monotonic()
        ahead = ahead or self._fetch_ahead(plan)
        self._handed_out = Batch(self, plan, time.monotonic() - began, ahead, state.topic_ids)
        return self._handed_out

    def _touch_offsets(self, state: GroupPositions) -> None:
        """Commit the offsets of an idle loop again, now and then."""
        now = time.monotonic()
        if now - max(self._moved_at, self._touched_at) >= TOUCH_SECONDS:
            self._touched_at = now
            there = {p: commit for p, commit in state.committed.items() if p in state.bounds}
            with suppress(CommitRefusedError):
                self._group.commit_once(self._next_number, there)

    def _plan_batch(self, state: GroupPositions, ends: Offsets | None) -> Plan:
        bounds = state.bounds
        if ends is not None:
            # another client may have moved a commit forward since the start
            bounds = up_to({p: commit.offset for p, commit in state.committed.items()}, bounds, ends)
        remade = self._remade_partitions(state)
        gone = refuse_gone(self._ranges_gone(state, remade), self._rules)
        committed, reached = state.committed, self._reached
        if remade:
            # what the former topic had come to says nothing of this one
            committed = {p: at for p, at in committed.items() if not (p in remade and self._is_old(p, at))}
            reached = reached | {
                partition: bounds[partition].earliest for partition in remade & bounds.keys()
            }
        with collect_less():
            plan = plan_batch(
                committed,
                bounds,
                rules=self._rules,
                limits=self.options.limits,
                reached=reached,
                least_number=self._next_number,
                group=self.options.group,
            )
        return replace(plan, lost=plan.lost + gone) if gone else plan

    def _remade_partitions(self, state: GroupPositions) -> set[TopicPartition]:
        """Return the partitions whose topic was deleted since the last look, and made again."""
        seen = {} if self._seen is None else self._seen.topic_ids
        topics = {
            topic for topic, topic_id in state.topic_ids.items() if seen.get(topic, topic_id) != topic_id
        }
        return {partition for partition in state.bounds if partition.topic in topics} if topics else set()

    def _is_old(self, partition: TopicPartition, commit: Committed) -> bool:
        """Return whether a commit is one of a topic's that is made again: its last, or the last batch's."""
        assert self._seen is not None
        return commit.offset == self._reached.get(partition) or commit == self._seen.committed.get(partition)

    def _ranges_gone(self, state: GroupPositions, remade: Collection[TopicPartition]) -> list[OffsetRange]:
        """Return what was not read of partitions that were there at the last look and are no longer."""
        if self._seen is None:
            return []
        gone = []
        for partition, log_seen in self._seen.bounds.items():
            if partition not in state.bounds or partition in remade:
                commit = self._seen.committed.get(partition)
                at = self._reached.get(partition, log_seen.earliest if commit is None else commit.offset)
                gone.append(OffsetRange(*partition, at, max(at, log_seen.latest)))
        return sorted(gone)

    def _fetch_ahead(self, plan: Plan) -> DriverReading | None:
        """Start to fetch the records of a small batch to the driver; None for other batches."""
        if plan.offsets >= self.options.read_on_driver_below or not takes_arrow_tables():
            return None
        return DriverReading(TaskReading(self._make_task(plan.ranges), self._client))

    @collect_less()
    def _announce_batch(
        self,
        plan: Plan,
        state: GroupPositions,
        ahead: DriverReading | None,
        patience: Patience,
        started_ms: int,
    ) -> bool:
        """Commit the intent, and positions of partitions without a range, unless the group has them already.

        Records ``ahead`` are decoded meanwhile. Returns False if the coordinator refused the commit because
        the group has members: these may have moved its offsets. An existing intent is committed again, since
        the driver that wrote it may be one of those members.
        """
        announced, moved = intents_of(plan), positions_of(plan)
        wanted = announced | moved
        if plan.replayed or not all(_has_commit(state, place, commit) for place, commit in wanted.items()):
            noted = self._keeper.log
            if plan.ranges:
                noted = noted.announce(plan.number, started_ms, replayed=plan.replayed)
                announced = self._keeper.carry(announced, noted)
                moved |= self._keeper.clear_others(state.committed, wanted, state.bounds)
            else:
                moved = {p: keep_log(commit, state.committed.get(p)) for p, commit in moved.items()}
            meanwhile = None if ahead is None else ahead.gather
            for part in split_commits(self.options.group, moved, together=announced):
                if not self._group.try_commit(plan.number, part, patience, meanwhile):
                    return False
                meanwhile = None
            self._keeper.log = noted
        # the group has the position now, even if the options chose the start
        options = self.options
        self._rules = StartRules("committed", options.starting_offsets_fallback, options.fail_on_data_loss)
        return True

    def _ends_now(self) -> Offsets:
        return {partition: bounds.latest for partition, bounds in self._group.look().bounds.items()}

    def _make_task(self, ranges: tuple[OffsetRange, ...]) -> ReadTask:
        return ReadTask.from_options(self.options, self._client.options, ranges)

    def _idle_pause(self) -> float:
        """Return how long to wait for records, in seconds."""
        wanted = idle_pause(self._look_cost, time.monotonic() - self._moved_at)
        return max(self.options.poll_interval_ms / 1000, wanted)

    def _pause_between(self, began: float, every_seconds: float | None, *, idle: bool) -> None:
        rest = began + (every_seconds or 0.0) - time.monotonic()
        if idle:
            rest = max(rest, self._idle_pause())
        if rest > 0:
            self._stopping.wait(rest)

    @contextmanager
    def _stop_on_sigterm(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(_number: int, _frame: FrameType | None) -> None:
            log.info("SIGTERM: stopping after the batch under way")
            self.stop()

        before = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def _has_commit(state: GroupPositions, partition: TopicPartition, wanted: Committed) -> bool:
    there = state.committed.get(partition)
    return there is not None and remove_log(there) == wanted


class Batch:
    """One micro-batch: write ``df``, then call ``commit``.

    ``number`` counts the group's batches from 0, over all runs, as long as the group's commits exist.
    ``replayed``: an earlier driver announced this batch and did not commit it; ``key``, ``number`` and
    ``ranges`` are the same as then. ``lag``: number of offsets that are left to read after it. ``lost``:
    offsets that the logs no longer had. ``topic_ids``: the ids of its topics by name, where the brokers give
    topics ids (from Kafka 2.8 on); a topic that is deleted and made again has another.
    """

    def __init__(
        self,
        loop: GroupBatches,
        plan: Plan,
        plan_seconds: float,
        ahead: DriverReading | None,
        topic_ids: Mapping[str, UUID],
    ) -> None:
        self._loop = loop
        self._plan = plan
        self.number = plan.number
        self.ranges = plan.ranges
        self.replayed = plan.replayed
        self.lag = plan.lag
        self.lost = plan.lost
        self.topic_ids = {name: topic_ids[name] for span in plan.ranges if (name := span.topic) in topic_ids}
        #: The driver's own reading of the batch, which has started.
        self.ahead = ahead
        self.plan_seconds = plan_seconds
        self.handed_out_at = time.monotonic()
        self.committed = False
        #: Number of tasks that read the batch; figures of its reading.
        self.tasks = 0
        self.reading: Reading | None = None

    def __repr__(self) -> str:
        spans = ", ".join(map(str, self.ranges))
        return f"Batch({self.number}: {spans}{', replayed' if self.replayed else ''}, lag {self.lag})"

    @property
    def key(self) -> str:
        """A short text that identifies the batch: the same for a replay, different for all other batches.

        Use it in sinks that must not repeat a batch. ``number`` does not identify a batch: after offsets are
        reset, expire or are deleted, numbers may repeat.
        """
        return f"{self._plan.number}-{self._plan.token}"

    @cached_property
    def df(self) -> DataFrame:
        """The records, with the columns of Spark's Kafka source. See option ``read_on_driver_below``."""
        return self._loop.frame(self, self._plan)

    def commit(self) -> None:
        """Commit the ends of the ranges. Raises CommitRefusedError, KafkaError. Safe to call again."""
        if not self.committed:
            self._loop.commit(self, self._plan)
