"""The descriptors of a broker's process: they are told before they run out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from ...log import OPEN_FILES, process_limit
from .trouble import Trouble

#: Share of descriptors in use at which to warn.
WARN_FROM: Final = 0.8

_DESCRIPTOR_FOLDERS: Final = ("/proc/self/fd", "/dev/fd")


class DescriptorWatch:
    """Warns before the descriptors of this process run out: when their use passes four fifths."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._scarce = Trouble(now=now)

    def count_descriptors(self) -> None:
        """Count the descriptors; takes a millisecond for some thousands."""
        used, limit = _count_descriptors(), process_limit()
        if used > limit * WARN_FROM:
            self._scarce.on_present(
                "%d of %d descriptors are open, %d of them for log files, which give theirs to each other; "
                "the rest is for connections: raise the limit (ulimit -n, or LimitNOFILE= of the service)",
                used,
                limit,
                len(OPEN_FILES),
            )
        else:
            self._scarce.on_absent(f"{used} of {limit} descriptors are open again")


def _count_descriptors() -> int:
    for path in _DESCRIPTOR_FOLDERS:
        try:
            return len(os.listdir(path))
        except OSError:
            continue
    return len(OPEN_FILES)
