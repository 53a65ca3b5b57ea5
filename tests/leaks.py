"""Whether compiled code releases what it takes."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

from kohort.protocol import TopicPartition


def require_no_leak(work: Callable[[], object], kept: Iterable[Any], times: int) -> None:
    """Run ``work``; fail if it keeps memory, or references to what is in ``kept`` or to TopicPartition."""
    kept = list(kept)
    work()
    gc.collect()
    references, of_the_type = list(map(sys.getrefcount, kept)), sys.getrefcount(TopicPartition)
    # other threads of the process may ask for memory at the same time, and have TopicPartitions of their own
    assert any(_bytes_kept(work, times) < 10_000 for _ in range(5))
    assert list(map(sys.getrefcount, kept)) == references
    assert abs(sys.getrefcount(TopicPartition) - of_the_type) < 300


def _bytes_kept(work: Callable[[], object], times: int) -> int:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(times):
            work()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before
