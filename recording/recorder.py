"""Records what happens to groups, behind whom it happens to: rows are queued, and a thread writes them.

Whatever is wrong with the disk or the file, no call raises or waits. What could not be recorded is counted,
and the count recorded once that is possible, so that a reader knows what is missing.
"""

from __future__ import annotations

import logging
import os
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
#: Samples that are written in the time of an event, about.
_SAMPLES_EACH: Final = 20
#: The thread rests for so many times as long as it has worked, and no longer than so many seconds: while it
#: works, requests take longer.
_RESTS: Final = 3.0
_MOST_REST_S: Final = 0.5

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
        self._hidden_ms = 0
        self._guard = threading.Lock()
        self._news = threading.Event()
        # somebody waits for what is written, and how many do
        self._hurry = threading.Event()
        self._in_hurry = 0
        # guards the numbers of the round of writing that began last, and of the one that ended last
        self._written = threading.Condition()
        self._begun = self._done = 0
        self._thread: threading.Thread | None = None
        self._ending = False
        self._store: Store | None = None
        self._file_id: tuple[int, int] | None = None
        self._lock: FileLock | None = None
        self._trouble = ""
        self._rows = self._lost_rows = self._bytes = 0
        # when a round ended well last
        self._lost_before = 0
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
        self._hurry.set()
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
        found = list(samples)
        if len(self._samples) + len(found) > _MOST_SAMPLES:
            self.count_lost("", len(found))
            return
        self._samples.extend(found)
        self._news.set()

    def count_lost(self, group: str, count: int) -> None:
        """Note that so many events of a group ("": of some groups) just now were not recorded."""
        now_ms = self._now_ms()
        with self._guard:
            self._add_lost(group, _Lost(now_ms, now_ms, count))
            self._lost_rows += count

    def _add_lost(self, group: str, more: _Lost) -> None:
        name = group if len(self._lost) < 100 else ""
        if (known := self._lost.get(name)) is not None:
            # the clock may have gone back
            first, last = min(known.from_ms, more.from_ms), max(known.until_ms, more.until_ms)
            more = _Lost(first, last, known.count + more.count)
        self._lost[name] = more

    def note_hidden(self) -> None:
        """Note that just now groups may have been hidden from who records."""
        self._hidden_ms = self._now_ms()
        self._news.set()

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
        with self._written:
            begun = self._begun
            self._in_hurry += 1
            self._hurry.set()
            self._news.set()
            try:
                return self._written.wait_for(lambda: self._done > begun, within_s) and not self._trouble
            finally:
                self._in_hurry -= 1
                if not self._in_hurry:
                    self._hurry.clear()

    # in the recorder's thread

    def _run(self) -> None:
        try:
            while not self._ending:
                if self._news.wait(ALIVE_S):
                    # what follows at once goes into the same batch
                    time.sleep(0 if self._ending else LINGER_S)
                self._work_once()
            self._work_once()
        finally:
            self._close_file()
            self._release_lock()

    def _work_once(self) -> None:
        """Write what waits, and keep the bounds. An error is told once, and tried again."""
        with self._written:
            self._begun += 1
            self._news.clear()
        try:
            if self._open_file():
                assert self._store is not None, "it is open"
                self._write_waiting(self._store)
                self._keep_bounds(self._store)
                self._end_trouble()
        except Exception as error:  # the next round may succeed
            self._begin_trouble(error)
        if self._trouble:
            self._drop_waiting()
        with self._written:
            self._done = self._begun
            self._written.notify_all()

    def _open_file(self) -> bool:
        """Open the file, if it is not open; return whether it is. Raises OSError and sqlite3.Error."""
        if self._store is not None:
            if self._file_id == _find_file(self._folder):
                return True
            # SQLite would go on in a file that no reader finds
            self._begin_trouble(FileNotFoundError("its file was removed"))
            self._release_lock()
            self._tried_at = float("-inf")
        now = time.monotonic()
        if now - self._tried_at < _RETRY_S:
            return False
        self._tried_at = now
        self._folder.mkdir(parents=True, exist_ok=True)
        # after a failure the folder may be another one, in which a lock of the first one keeps nobody out
        self._release_lock()
        self._lock = FileLock(self._folder)
        now_ms = self._now_ms()
        self._store = Store(open_writable(self._folder), now_ms)
        self._file_id = _find_file(self._folder)
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
                self._write_round(store)
                store.end_watch(scope, at_ms)
                self._watched.pop(scope, None)
            self._watches.popleft()
        if hidden_ms := self._hidden_ms:
            store.mark("hidden_ms", hidden_ms)
            if self._hidden_ms == hidden_ms:
                self._hidden_ms = 0
        self._write_round(store)

    def _write_round(self, store: Store) -> None:
        """Write what waits now, and nothing that comes meanwhile, so that a round has an end. Its last batch
        notes that everything until now is recorded: before, the process may be killed.
        """
        now_ms = self._now_ms()
        waiting = max(len(self._lasting), len(self._others), -(-len(self._samples) // _SAMPLES_EACH))
        for left in reversed(range(-(-waiting // _AT_ONCE) or 1)):
            begun = time.monotonic()
            self._write_batch(store, None if left else now_ms)
            if waiting and not self._ending:
                self._hurry.wait(min(_RESTS * (time.monotonic() - begun), _MOST_REST_S))

    def _write_batch(self, store: Store, alive_ms: int | None) -> None:
        """Write some of what waits; with ``alive_ms``, that everything was watched until then."""
        events = _take_some(self._lasting, _AT_ONCE) + _take_some(self._others, _AT_ONCE)
        samples = _take_some(self._samples, _SAMPLES_EACH * _AT_ONCE)
        rows = self._rows_of(events)
        with self._guard:
            lost, self._lost = self._lost, {}
        losses = [Loss(group, each.from_ms, each.until_ms, each.count) for group, each in lost.items()]
        try:
            store.write(sorted(rows, key=_time_of), samples, losses, alive_ms)
        except BaseException:
            with self._guard:
                # others may have counted meanwhile
                for group, each in lost.items():
                    self._add_lost(group, each)
            self.count_lost("", len(rows))
            raise
        self._rows += len(rows) + len(samples)

    def _rows_of(self, events: Iterable[E]) -> list[EventRow]:
        rows, failed = [], 0
        for event in events:
            # lets other threads go on: they would wait for several rows otherwise
            if not self._ending:
                time.sleep(0)
            try:
                row = self._row_of(event)
            except Exception:
                # the others are recorded all the same
                if not failed:
                    log.exception("an event cannot be recorded")
                failed += 1
                continue
            if row is not None:
                rows.append(row)
        if failed:
            self.count_lost("", failed)
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
            # else it is a mistake of ours
            is_of_disk = isinstance(error, sqlite3.Error | OSError | ValueError)
            words = "groups are not recorded in %s, which is tried again: %s"
            log.warning(words, self._folder, error, exc_info=None if is_of_disk else error)
        self._trouble = str(error) or type(error).__name__
        self._tried_at = time.monotonic()
        if self._close_file() and isinstance(error, sqlite3.Error) and is_damage(error):
            with suppress(OSError):
                set_aside(self._folder, error)
            self._tried_at = float("-inf")

    def _end_trouble(self) -> None:
        if self._trouble:
            self._trouble = ""
            lost = self._lost_rows - self._lost_before
            log.warning("groups are recorded again in %s; lost meanwhile: %d events", self._folder, lost)
        self._lost_before = self._lost_rows

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

    def _close_file(self) -> bool:
        """Close the file; return whether it was open."""
        store, self._store = self._store, None
        if store is None:
            return False
        with suppress(sqlite3.Error):
            store.connection.close()
        return True

    def _release_lock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def _find_file(folder: Path) -> tuple[int, int] | None:
    """Which file is recorded to, by its device and number."""
    try:
        found = os.stat(folder / FILE_NAME)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _take_some(waiting: deque[E], most: int) -> list[E]:
    """Take what is there now, and not what comes meanwhile."""
    return [waiting.popleft() for _ in range(min(len(waiting), most))]


def _time_of(row: EventRow) -> int:
    return row.timestamp_ms
