"""Records what happens to groups, behind whom it happens to: rows are queued, and a thread writes them.

Whatever is wrong with the disk or the file, no call raises or waits. What could not be recorded is counted,
and the count recorded once that is possible, so that a reader knows what is missing.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from .file import FILE_NAME, FileLock, is_damage, open_writable, set_aside
from .rows import EventRow, LagSample, Loss
from .store import Store
from .thinning import RecordingBounds, thin_by_age, thin_by_size, used_bytes

E = TypeVar("E")

log = logging.getLogger("kohort.recording")

#: Most events that wait: lasting ones, and others. What comes when there is no room is lost.
MOST_LASTING: Final = 20_000
MOST_OTHERS: Final = 4_000
_MOST_SAMPLES: Final = 100_000

#: Events are written this long after the first of them, in seconds, together; at most so many at once.
LINGER_S: Final = 0.1
_AT_ONCE: Final = 500

#: Time in seconds between two notes that the recorder is there, between two looks at the size, and between
#: two at what is old; and until a file that cannot be written is tried again.
ALIVE_S: Final = 10.0
_SIZE_S: Final = 60.0
_AGE_S: Final = 900.0
_RETRY_S: Final = 10.0
_SIZE_ROWS: Final = 20_000


class RecorderFigures(NamedTuple):
    """``failing``: nothing can be written now. ``bytes`` of the file are in use."""

    rows: int = 0
    lost: int = 0
    bytes: int = 0
    failing: bool = False


@dataclass(slots=True)
class _Lost:
    from_ms: int
    until_ms: int
    count: int


class Recorder(Generic[E]):
    """Records in ``folder``. ``row_of`` makes a row of an event, in the recorder's thread; None: it is not
    recorded. ``now_ms`` is the wall clock.
    """

    def __init__(
        self,
        folder: Path,
        row_of: Callable[[E], EventRow | None],
        bounds: RecordingBounds | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._folder = folder
        self._row_of = row_of
        self._bounds = bounds or RecordingBounds()
        self._now_ms = now_ms
        self._lasting: deque[E] = deque()
        self._others: deque[E] = deque()
        self._samples: deque[LagSample] = deque()
        # (scope, begins, when)
        self._watches: deque[tuple[str, bool, int]] = deque()
        self._watched: dict[str, int] = {}
        self._lost: dict[str, _Lost] = {}
        self._guard = threading.Lock()
        self._news = threading.Event()
        self._written = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = self._is_busy = False
        self._store: Store | None = None
        self._lock: FileLock | None = None
        self._trouble = ""
        self._rows = self._lost_rows = self._bytes = 0
        self._tried_at = self._aged_at = self._sized_at = float("-inf")
        self._rows_sized = 0

    def __repr__(self) -> str:
        return f"<Recorder in {self._folder}: {self._rows} rows{', failing' if self._trouble else ''}>"

    @property
    def figures(self) -> RecorderFigures:
        """What was done so far."""
        return RecorderFigures(self._rows, self._lost_rows, self._bytes, bool(self._trouble))

    @property
    def folder(self) -> Path:
        """Where it records."""
        return self._folder

    @property
    def is_begun(self) -> bool:
        """Return whether there is a file to read."""
        return (self._folder / FILE_NAME).exists()

    def start(self) -> None:
        """Begin to write, in a thread that does not keep the process from ending."""
        self._thread = threading.Thread(target=self._run, name="kohort recording", daemon=True)
        self._thread.start()

    def close(self, within_s: float = 5.0) -> None:
        """Write what waits, and end. A disk that does not answer is waited for no longer than this."""
        self._ending = True
        self._news.set()
        if self._thread is not None:
            self._thread.join(within_s)
            self._thread = None

    def abandon(self) -> None:
        """End as if the process were killed: what waits is not written."""
        for waiting in (self._lasting, self._others, self._samples, self._watches):
            waiting.clear()
        self._watched = {}
        self.close()

    def record_event(self, event: E, *, lasting: bool) -> None:
        """Record an event. It is written a moment later; lasting ones have room of their own."""
        waiting, most = (self._lasting, MOST_LASTING) if lasting else (self._others, MOST_OTHERS)
        if len(waiting) >= most:
            self.count_lost("", 1)
            return
        waiting.append(event)
        if not self._news.is_set():
            self._news.set()

    def record_samples(self, samples: Iterable[LagSample]) -> None:
        """Record lags of groups."""
        if len(self._samples) < _MOST_SAMPLES:
            self._samples.extend(samples)
            self._news.set()

    def count_lost(self, group: str, count: int) -> None:
        """Note that so many events of a group ("": of some groups) just now were not recorded."""
        now_ms = self._now_ms()
        with self._guard:
            known = self._lost.setdefault(group if len(self._lost) < 100 else "", _Lost(now_ms, now_ms, 0))
            known.count += count
            known.until_ms = now_ms
            self._lost_rows += count

    def watch(self, scope: str = "") -> None:
        """From now on everything that happens in ``scope`` is recorded."""
        self._watches.append((scope, True, self._now_ms()))
        self._news.set()

    def end_watch(self, scope: str = "") -> None:
        """From now on nobody looks at ``scope``."""
        self._watches.append((scope, False, self._now_ms()))
        self._news.set()

    def flush(self, within_s: float = 5.0) -> bool:
        """Wait until everything that was recorded so far is in the file, in another thread than the event
        loop's; return whether it is.
        """
        self._news.set()
        with self._written:
            return self._written.wait_for(lambda: not self._has_waiting() and not self._trouble, within_s)

    # in the recorder's thread

    def _run(self) -> None:
        try:
            while not self._ending:
                if self._news.wait(ALIVE_S):
                    # what follows at once goes into the same batch
                    time.sleep(0 if self._ending else LINGER_S)
                self._is_busy = True
                self._news.clear()
                self._work_once()
            self._work_once()
        finally:
            self._close_file(self._now_ms())

    def _work_once(self) -> None:
        """Write what waits, and keep the bounds. An error is told once, and tried again."""
        try:
            if self._open_file():
                assert self._store is not None, "it is open"
                self._write_waiting(self._store)
                self._keep_bounds(self._store)
                self._end_trouble()
        except (sqlite3.Error, OSError, ValueError) as error:
            self._begin_trouble(error)
        if self._trouble:
            self._drop_waiting()
        with self._written:
            self._is_busy = False
            self._written.notify_all()

    def _open_file(self) -> bool:
        """Open the file, if it is not open; return whether it is. Raises OSError and sqlite3.Error."""
        if self._store is not None:
            return True
        now = time.monotonic()
        if now - self._tried_at < _RETRY_S:
            return False
        self._tried_at = now
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = FileLock(self._folder)
        now_ms = self._now_ms()
        self._store = Store(open_writable(self._folder), now_ms)
        for scope, from_ms in self._watched.items():
            # what was lost while the file could not be opened is not watched
            self._store.watch(scope, now_ms if self._trouble else from_ms)
        return True

    def _write_waiting(self, store: Store) -> None:
        while self._watches:
            scope, begins, at_ms = self._watches[0]
            if begins:
                store.watch(scope, at_ms)
                self._watched[scope] = at_ms
            else:
                # events of before come first
                self._write_batch(store)
                store.end_watch(scope, at_ms)
                self._watched.pop(scope, None)
            self._watches.popleft()
        while self._write_batch(store):
            pass

    def _write_batch(self, store: Store) -> bool:
        """Write some of what waits; return whether there was anything but the note that all is well."""
        events = _take_some(self._lasting, _AT_ONCE) + _take_some(self._others, _AT_ONCE)
        samples = _take_some(self._samples, 20 * _AT_ONCE)
        rows = self._rows_of(events)
        with self._guard:
            lost, self._lost = self._lost, {}
        losses = [Loss(group, each.from_ms, each.until_ms, each.count) for group, each in lost.items()]
        try:
            store.write(sorted(rows, key=_time_of), samples, losses, self._now_ms())
        except BaseException:
            with self._guard:
                self._lost = lost | self._lost
            self.count_lost("", len(rows))
            raise
        self._rows += len(rows) + len(samples)
        return bool(events or samples)

    def _rows_of(self, events: Iterable[E]) -> list[EventRow]:
        rows = []
        for event in events:
            # lets other threads go on: they would wait for several rows otherwise
            time.sleep(0)
            try:
                row = self._row_of(event)
            except Exception:
                # the others are recorded all the same
                log.exception("an event cannot be recorded")
                self.count_lost("", 1)
                continue
            if row is not None:
                rows.append(row)
        return rows

    def _keep_bounds(self, store: Store) -> None:
        now = time.monotonic()
        if now - self._aged_at >= _AGE_S:
            thin_by_age(store.connection, self._bounds, self._now_ms())
            store.forget_ids()
            self._aged_at = now
        if now - self._sized_at >= _SIZE_S or self._rows - self._rows_sized >= _SIZE_ROWS:
            thin_by_size(store.connection, self._bounds)
            store.forget_ids()
            self._bytes = used_bytes(store.connection)
            self._sized_at, self._rows_sized = now, self._rows

    def _begin_trouble(self, error: Exception) -> None:
        if not self._trouble:
            log.warning("groups are not recorded in %s, which is tried again: %s", self._folder, error)
        self._trouble = str(error) or type(error).__name__
        store, self._store = self._store, None
        self._tried_at = time.monotonic()
        if store is not None:
            with suppress(sqlite3.Error):
                store.connection.close()
            if isinstance(error, sqlite3.Error) and is_damage(error):
                with suppress(OSError):
                    set_aside(self._folder, error)
                self._tried_at = float("-inf")

    def _end_trouble(self) -> None:
        if self._trouble:
            self._trouble = ""
            log.warning("groups are recorded again in %s", self._folder)

    def _drop_waiting(self) -> None:
        """Give up what waits, and count it: nothing can be written for a while."""
        count = len(_take_some(self._lasting, MOST_LASTING)) + len(_take_some(self._others, MOST_OTHERS))
        _take_some(self._samples, _MOST_SAMPLES)
        for scope, begins, at_ms in _take_some(self._watches, len(self._watches)):
            if begins:
                self._watched[scope] = at_ms
            else:
                self._watched.pop(scope, None)
        if count:
            self.count_lost("", count)

    def _close_file(self, now_ms: int) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(sqlite3.Error):
                if self._watched:
                    store.stay_alive(now_ms)
                store.connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _has_waiting(self) -> bool:
        waiting = self._lasting or self._others or self._samples or self._watches
        return bool(waiting) or self._is_busy or self._news.is_set()


def _take_some(waiting: deque[E], most: int) -> list[E]:
    """Take what is there now, and not what comes meanwhile."""
    return [waiting.popleft() for _ in range(min(len(waiting), most))]


def _time_of(row: EventRow) -> int:
    return row.timestamp_ms
