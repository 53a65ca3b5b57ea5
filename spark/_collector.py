"""Fewer runs of Python's garbage collector while thousands of partitions are read and planned.

None of these objects is garbage, and looking through them again and again took half of the time of a look at
10,000 partitions.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects between two runs meanwhile. So many are there even while a broker does not answer for long.
_OBJECTS = 200_000


class _Threshold:
    """The collector's threshold, raised as long as any thread wants it so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted_by = 0
        self._before = (0, 0, 0)

    @contextmanager
    def raised(self) -> Iterator[None]:
        with self._lock:
            if not self._wanted_by:
                self._before = gc.get_threshold()
                # 0 is a collector that is switched off
                gc.set_threshold(max(_OBJECTS, self._before[0]) if self._before[0] else 0, *self._before[1:])
            self._wanted_by += 1
        try:
            yield
        finally:
            with self._lock:
                self._wanted_by -= 1
                if not self._wanted_by:
                    gc.set_threshold(*self._before)


_threshold = _Threshold()

#: Context manager: the collector runs seldom until its end. In any thread, several at a time.
collect_less = _threshold.raised
