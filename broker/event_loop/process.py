"""The process of a broker: its event loop, its garbage collector, and how many files it may open."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator

#: Thresholds of the garbage collector: allocations before the youngest generation is collected, and how many
#: such collections before the middle one is. Commits that wait for one write are some ten thousand objects,
#: none of them garbage: with Python's 700, each such burst is traversed several times, a tenth of the cost of
#: a commit. A collection takes 0.7 ms for the youngest generation, 2 ms with the middle one.
YOUNG_OBJECTS, YOUNG_LOOKS = 20_000, 1


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop if it is installed, which takes a third less CPU; None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


def settle_collector() -> None:
    """Exempt loaded objects from garbage collection, and collect less often. Only for a process that runs
    nothing but the broker.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_LOOKS, 25)


@contextlib.contextmanager
def pause_collector() -> Iterator[None]:
    """Collect no garbage in the block. What it makes is to stay, and would be traversed again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def allow_open_files() -> None:
    """Raise this process's limit of open files and connections to the hard limit, as a JVM does."""
    try:
        import resource
    except ImportError:
        return  # the platform has no such limit
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
