"""What a broker asks of its process: which event loop it runs on, and how many files it may open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed, None for asyncio's own: an answer to a lone request takes a third less
    of our time on it (docs/performance.md).
    """
    try:
        import uvloop
    except ImportError:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


def allow_open_files() -> None:
    """Let this process open as many files and connections as it may at most, as a JVM does."""
    try:
        import resource
    except ImportError:
        return  # where there is no such limit
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
