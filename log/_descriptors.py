"""The file descriptors of log files: how many may be open, and which one is closed to make room.

A file is opened when it is used. Log files take at most half of the process's descriptors. To open one file
more, the one that was unused for longest is closed.

Connections leave a quarter free. The system always gives out the lowest free number, so that nothing has to
be counted: as long as connections take no number in the last quarter, it is there for files. Log files keep
away from the last numbers, which are for what is opened now and then: metadata, checkpoints, modules.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger("kohort.log")

#: Share of the process's descriptors that log files may have.
SHARE = 0.5

#: Part of the descriptors that connections leave free, and the least number of them unless that is over half.
LEFT_BY_CONNECTIONS, LEAST_LEFT = 4, 64

#: Part of these that log files leave free, too.
LEFT_BY_LOG_FILES = 4

#: Most log files closed in one go to make room for connections.
CLOSED_AT_ONCE = 32

#: The limit to assume on a system that sets none.
UNLIMITED = 1 << 20

#: Seconds between two log lines that say that no descriptor is left.
QUIET_S = 10.0

_NONE_LEFT = (errno.EMFILE, errno.ENFILE)


class Descriptor:
    """An open file descriptor, closed when its last user drops it, in any thread."""

    __slots__ = ("number",)

    def __init__(self, path: str, flags: int, mode: int) -> None:
        self.number = -1
        self.number = os.open(path, flags, mode)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # an argument, because the module's globals may be gone when the process ends
        if self.number >= 0:
            close(self.number)


class Holder(Protocol):
    """A file that can be given a descriptor and lose it again. ``used`` is set with each use."""

    used: bool
    descriptor: Descriptor | None


def process_limit() -> int:
    """Return how many descriptors this process may have."""
    try:
        import resource
    except ImportError:
        return UNLIMITED  # where there is no such limit
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return UNLIMITED if limit == resource.RLIM_INFINITY else limit


def left_by_connections(limit: int) -> int:
    """Return how many of ``limit`` descriptors are not for connections."""
    return max(limit // LEFT_BY_CONNECTIONS, min(LEAST_LEFT, limit // 2))


def _lowest_free(number: int) -> int:
    """Return the lowest free descriptor; ``number`` is any open one. Raises OSError if none is free."""
    found = os.dup(number)
    os.close(found)
    return found


def is_reserved(number: int) -> bool:
    """Return whether a descriptor is one of those that connections leave free."""
    limit = process_limit()
    return number >= limit - left_by_connections(limit)


def _is_for_others(number: int) -> bool:
    limit = process_limit()
    return number >= limit - left_by_connections(limit) // LEFT_BY_LOG_FILES


class OpenFiles:
    """The files that have a descriptor; safe for threads. It keeps no file alive."""

    def __init__(self) -> None:
        self._holders: OrderedDict[weakref.ref[Holder], None] = OrderedDict()
        self._lock = threading.Lock()
        self._told_s = -QUIET_S

    def __repr__(self) -> str:
        return f"OpenFiles({len(self)} of {self.limit})"

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def limit(self) -> int:
        """The most files that may be open at a time."""
        return max(1, int(process_limit() * SHARE))

    def open(self, holder: Holder, path: str, flags: int, mode: int) -> Descriptor:
        """Open a file for a holder. Raises OSError, which names the limit if no descriptor is left."""
        with self._lock:
            while len(self._holders) >= self.limit:
                self._close_idle()
            while True:
                try:
                    opened = Descriptor(path, flags, mode)
                    if not self._holders or not _is_for_others(opened.number):
                        break
                    del opened
                except OSError as error:
                    if error.errno not in _NONE_LEFT:
                        raise
                    if not self._holders:
                        raise self._exhaustion_error(error, path) from None
                # others have taken more than their part
                self._close_idle()
            self._holders[weakref.ref(holder, self._forget_file)] = None
            holder.used = False
            holder.descriptor = opened
            return opened

    def close(self, holder: Holder) -> None:
        """Take a holder's descriptor back."""
        with self._lock:
            self._holders.pop(weakref.ref(holder), None)
            holder.descriptor = None

    def make_room(self, number: int, share: float = 1.0) -> bool:
        """Return whether a connection may be opened, given any open descriptor's number: whether it would
        leave ``share`` of the descriptors free that are not for connections. Log files below these are
        closed for it; when they are used again, they are opened there.
        """
        limit = process_limit()
        left = int(left_by_connections(limit) * share)
        with self._lock:
            while True:
                try:
                    if _lowest_free(number) < limit - left:
                        return True
                except OSError as error:
                    if error.errno not in _NONE_LEFT:
                        raise
                if not self._close_below(limit - left):
                    return False

    def _close_below(self, number: int) -> bool:
        """Close some of the files whose descriptors are below ``number``, those unused for longest first.
        Returns whether there were any.
        """
        found = [(key, holder) for key in list(self._holders) if (holder := key())]
        low = [each for each in found if each[1].descriptor and each[1].descriptor.number < number]
        closing = sorted(low, key=lambda each: each[1].used)[:CLOSED_AT_ONCE]
        for key, holder in closing:
            self._holders.pop(key, None)
            holder.descriptor = None
        return bool(closing)

    def _forget_file(self, gone: weakref.ref[Holder]) -> None:
        # without the lock: this runs in any thread that drops the file, even in one that holds the lock
        self._holders.pop(gone, None)

    def _close_idle(self) -> None:
        """Close the file that was unused for longest, skipping those used since the last check."""
        while self._holders:
            key, _ = self._holders.popitem(last=False)
            holder = key()
            if holder is None:
                return
            if not holder.used:
                holder.descriptor = None
                return
            holder.used = False
            self._holders[key] = None

    def _exhaustion_error(self, error: OSError, path: str) -> OSError:
        text = (
            f"no descriptor is left, this process may have {process_limit()}: raise the limit "
            "(ulimit -n, or LimitNOFILE= of the service)"
        )
        now_s = time.monotonic()
        if now_s - self._told_s >= QUIET_S:
            self._told_s = now_s
            log.error("%s cannot be opened: %s", path, text)
        return OSError(error.errno, text, path)


#: The open log files of this process.
OPEN_FILES = OpenFiles()
