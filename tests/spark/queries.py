"""Queries on machines that are busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_SECONDS = 600
#: Spark gives a query's Python process ten seconds to start, which a busy machine may not keep; nothing has
#: happened by then.
TOO_SLOW = "failed to connect back"
_TRIES = 10


def run_to_end(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query and await its end. Raises what ended it."""
    query = begun(start)
    assert query.awaitTermination(PATIENCE_SECONDS)
    return query


def begun(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query that has planned its first batch, or failed."""
    for attempt in range(1, _TRIES + 1):
        query = start()
        await_that(lambda q=query: not q.isActive or q.lastProgress is not None)  # type: ignore[misc]
        failure = query.exception()
        if failure is None or TOO_SLOW not in str(failure) or attempt == _TRIES:
            break
    return query


def await_that(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
