"""The driver's side of a query: reports each batch that Spark has done, and commits its offsets."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.streaming.listener import StreamingQueryListener

from ..protocol import KohortError
from ._batch_log import BatchRow, sum_up
from ._events import BatchCommitted, Event, OffsetsLost
from ._log_keeper import row_of
from ._offsets import OffsetRange, Offsets, from_document
from ._stream_plan import BatchReport, Reports

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Spark's report of one source of a query. Offsets are None if the source does not read topics."""

    rows: int
    start: Offsets | None
    end: Offsets | None
    newest: Offsets | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Spark's report of one trigger of a query, which began at ``started_ms`` (ms since 1970)."""

    run: str
    number: int
    started_ms: int
    took_ms: Mapping[str, int]
    sources: tuple[SourceProgress, ...]

    @classmethod
    def read(cls, report: str) -> Self:
        """Parse the JSON of a StreamingQueryProgress."""
        found = json.loads(report)
        sources = tuple(
            SourceProgress(
                rows=source.get("numInputRows") or 0,
                start=_parse_offsets(source.get("startOffset")),
                end=_parse_offsets(source.get("endOffset")),
                newest=_parse_offsets(source.get("latestOffset")),
            )
            for source in found["sources"] or ()
        )
        started_ms = round(datetime.fromisoformat(found["timestamp"]).timestamp() * 1_000)
        return cls(found["runId"], found["batchId"], started_ms, found.get("durationMs") or {}, sources)

    def of(self, report: BatchReport) -> SourceProgress | None:
        """Return Spark's report of the source that wrote ``report``; None if it is about none of them.

        A query may have several sources that read the same topics.
        """
        for source in self.sources:
            if source.end == report.end and source.start in (None, report.start):
                return source
        return None


class Follower(StreamingQueryListener):
    """Reports the progress of one query to the mirror.

    Events that arrive before ``follow`` has named the query are kept until then.
    """

    def __init__(self, teller: BatchTeller, mirror: OffsetMirror, reports: Reports) -> None:
        self.mirror = mirror
        self._teller = teller
        self._reports = reports
        #: Reports of batches that Spark has not reported as done.
        self._reported: list[BatchReport] = []
        self._run: str | None = None
        self._early: list[tuple[str, Progress | None]] = []
        self._lock = threading.Lock()
        #: Held while events are reported, as ``follow`` reports early ones from another thread.
        self._telling = threading.Lock()
        self._java: object = None

    def follow(self, run: str) -> None:
        """Take this run's reports, those that came before it was known included."""
        with self._lock:
            self._run = run
            early, self._early = self._early, []
        for of, progress in early:
            self._on_progress(of, progress)

    def on_report(self, report: str) -> None:
        """Take in a progress report, as JSON."""
        progress = Progress.read(report)
        self._on_progress(progress.run, progress)

    def on_end(self, run: str) -> None:
        """The run has ended: no report follows."""
        self._on_progress(run, None)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Does nothing: no batch is done yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """See pyspark's StreamingQueryListener."""
        self.on_report(event.progress.json)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """See pyspark's StreamingQueryListener."""
        self.on_end(str(event.runId))

    @property
    def _jlistener(self) -> object:
        """The object that a classic session (not Spark Connect) registers in its JVM: see _QuickListener."""
        if self._java is None:
            from pyspark import SparkContext

            jvm: Any = SparkContext._jvm
            self._java = jvm.PythonStreamingQueryListenerWrapper(_QuickListener(self))
        return self._java

    def _on_progress(self, run: str, progress: Progress | None) -> None:
        with self._lock:
            if self._run is None:
                self._early.append((run, progress))
                return
        if run == self._run:
            with self._telling:
                self._call_listeners(progress)

    def _call_listeners(self, progress: Progress | None) -> None:
        self._reported += self._reports.take()
        if progress is None:
            # the mirror first, since a user's listener may raise anything
            self.mirror.close()
            self._teller.report_lost(self._reported)
            return
        for nth, report in enumerate(self._reported):
            source = progress.of(report)
            if source is not None:
                told, self._reported = self._reported[: nth + 1], self._reported[nth + 1 :]
                event = self._teller.event_of(progress, source, report)
                # Spark does not say whether it planned the batch in an earlier run
                rows = () if event is None else (row_of(event, progress.started_ms, replays=None),)
                self.mirror.tell(Done(progress.number, report.end, rows))
                self._teller.report_lost(told)
                if event is not None:
                    log.info("%s", event)
                    self._teller.tell(event)
                return


class _QuickListener:
    """A listener for the JVM that takes each event as one JSON text.

    PySpark's own listener reads each field of an event with a call to the JVM, about a hundred calls: more
    work than everything else that the driver does for a batch.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def onQueryStarted(self, event: object) -> None:  # noqa: N802 - Spark's name
        """Does nothing: no batch is done yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._follower.on_report(event.progress().json())

    def onQueryIdle(self, event: object) -> None:  # noqa: N802 - Spark's name
        """Does nothing: no batch was done."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._follower.on_end(event.runId().toString())

    class Java:
        """Names the Java interface for py4j."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


class BatchTeller:
    """Makes the events of a query's batches from Spark's reports."""

    def __init__(self, group: str, tell: Callable[[Event], None]) -> None:
        self.tell = tell
        self._group = group

    def report_lost(self, reports: Sequence[BatchReport]) -> None:
        """Report ranges that the source skipped."""
        for report in reports:
            if report.lost:
                self.tell(OffsetsLost(self._group, report.lost))

    def event_of(
        self, progress: Progress, source: SourceProgress, report: BatchReport
    ) -> BatchCommitted | None:
        """Return the event of a finished batch; None if the progress report is not about one."""
        took, starts, ends = progress.took_ms, report.start, report.end
        ranges = tuple(
            OffsetRange(*partition, starts[partition], end)
            for partition, end in sorted(ends.items())
            if starts.get(partition, end) < end
        )
        if "addBatch" not in took or not ranges:
            return None
        newest = source.newest or ends
        lag = sum(max(0, newest.get(partition, end) - end) for partition, end in ends.items())
        return BatchCommitted(
            group=self._group,
            number=progress.number,
            ranges=ranges,
            replayed=False,
            rows=source.rows,
            lag_before=lag + sum(span.offsets for span in ranges),
            lag=lag,
            plan_seconds=_seconds_of(took, "latestOffset", "getBatch", "queryPlanning"),
            read_seconds=None,
            sink_seconds=_seconds_of(took, "addBatch"),
            commit_seconds=_seconds_of(took, "walCommit", "commitBatch", "commitOffsets"),
        )


def _seconds_of(took: Mapping[str, int], *phases: str) -> float:
    return sum(took.get(phase, 0) for phase in phases) / 1000


def _parse_offsets(told: object) -> Offsets | None:
    """Parse offsets of a progress report; None for a source that is not kohort's."""
    try:
        return from_document(json.loads(told) if isinstance(told, str) else told)  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


#: First and longest pause between attempts to commit.
_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Done:
    """Number and end offsets of a finished batch. ``rows``: those that are new in the log of batches."""

    number: int
    ends: Offsets
    rows: tuple[BatchRow, ...] = field(default=(), compare=False)


class OffsetMirror:
    """A thread that commits a query's progress to its group. A newer batch replaces one that waits, and takes
    over its rows.

    If ``commit`` raises an error, it is called again later. After ``close`` a pending commit is tried
    once more, then ``closed`` is called.
    """

    def __init__(self, commit: Callable[[Done], None], closed: Callable[[], None] = lambda: None) -> None:
        self._commit = commit
        self._closed = closed
        self._waiting: Done | None = None
        self._last: Done | None = None
        #: Rows that no commit has.
        self._rows: tuple[BatchRow, ...] = ()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="kohort-mirror", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"OffsetMirror(last {self._last}, waiting {self._waiting})"

    def tell(self, done: Done) -> None:
        """Commit this progress, unless it is the last one that was committed."""
        with self._changed:
            if done.ends != (self._waiting or self._last or Done(-1, {})).ends:
                self._waiting = done
                self._rows = sum_up((*self._rows, *done.rows))
                self._changed.notify()

    def close(self) -> None:
        """Let the thread try a pending commit once more and end. Returns at once."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, timeout_seconds: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        wait = _FIRST_WAIT_SECONDS
        while True:
            with self._changed:
                while self._waiting is None and not self._closing:
                    self._changed.wait()
                done, closing = self._waiting, self._closing
            if done is None:
                break
            if self._try_commit(done):
                wait = _FIRST_WAIT_SECONDS
                continue
            if closing:
                log.warning("batch %d is not committed: the group catches up at the next start", done.number)
                break
            with self._changed:
                self._changed.wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
        self._closed()

    def _try_commit(self, done: Done) -> bool:
        with self._changed:
            rows, self._rows = self._rows, ()
        try:
            self._commit(replace(done, rows=rows))
        except Exception as error:
            # also what a user's listener raises, who is told of refusals: nobody else would go on with this
            unexpected = None if isinstance(error, KohortError) else error
            log.warning("batch %d is done and not committed yet: %s", done.number, error, exc_info=unexpected)
            with self._changed:
                self._rows = sum_up((*rows, *self._rows))
            return False
        with self._changed:
            self._last = done
            if self._waiting is done:
                self._waiting = None
        return True
