"""A warning before the descriptors of this process run out."""

from __future__ import annotations

import logging
import os

from ..log import OPEN_FILES, process_limit

log = logging.getLogger("kohort.broker")

#: Share of the descriptors in use from which it is time to give the process more.
WARN_FROM = 0.8

_LISTS = ("/proc/self/fd", "/dev/fd")


class DescriptorWatch:
    """``look`` now and then; it warns once each time that four fifths are passed."""

    def __init__(self) -> None:
        self._warned = False

    def look(self) -> None:
        """Count the descriptors; takes a millisecond for some thousands."""
        used, limit = _used(), process_limit()
        over = used > limit * WARN_FROM
        if over and not self._warned:
            log.warning(
                "%d of %d descriptors are open, %d of them for log files, which give theirs to each other; "
                "the rest is for connections: raise the limit (ulimit -n, or LimitNOFILE= of the service)",
                used,
                limit,
                len(OPEN_FILES),
            )
        self._warned = over


def _used() -> int:
    for path in _LISTS:
        try:
            return len(os.listdir(path))
        except OSError:
            continue
    return len(OPEN_FILES)
