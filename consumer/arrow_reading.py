"""A consumer's records as Arrow batches: the part of the consumer that needs numpy and pyarrow."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from ..client.errors import ConfigError
from .assembly import Parts
from .decode import off_the_loop

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

#: Rows of one batch at most; a fetched chunk makes one batch or several.
ROWS_PER_BATCH = 20_000


class ArrowReading(ABC):
    """Base of AsyncGroupConsumer; see there."""

    _closed: bool

    @abstractmethod
    async def _poll(self, take: Callable[[Parts], list[T]], timeout_ms: float | None) -> list[T]:
        """What ``take`` gives once it gives something."""

    @abstractmethod
    def _running(self, *, closing: bool = False) -> Parts:
        """The parts; ConsumerClosedError unless it runs."""

    @abstractmethod
    def _was_done(self, parts: Parts) -> None:
        """Something was done."""

    async def arrow_batches(
        self, *, include_headers: bool = False, max_rows: int = ROWS_PER_BATCH
    ) -> AsyncIterator[pa.RecordBatch]:
        """Arrow batches, each of one partition, until the consumer is closed; ``done_batch`` for each.

        Columns: key, value, topic, partition, offset, timestamp, timestampType (0: the producer's, 1: the
        broker's), and headers if wanted. Raises what ``getmany`` raises, and ConfigError without pyarrow.
        """
        arrow = await off_the_loop(_prepared)
        if max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}: ask for 1 or more")
        ready: deque[pa.RecordBatch] = deque()
        while not self._closed:
            if not ready:
                ready.extend(
                    await self._poll(lambda parts: _take(arrow, parts, include_headers, max_rows), None)
                )
                continue
            batch = ready.popleft()
            if arrow.covered(batch).session_id in self._running().tracker.sessions:
                yield batch

    def done_batch(self, batch: pa.RecordBatch) -> None:
        """All records of a batch from ``arrow_batches`` have been dealt with.

        The batch may have been sliced, filtered or cast meanwhile, as long as its schema's metadata is there:
        what was delivered as one is done as one. Raises StaleRecordError as ``done`` does.
        """
        parts = self._running(closing=True)
        parts.tracker.done_batch(*_arrow().covered(batch))
        self._was_done(parts)


def _take(arrow: ModuleType, parts: Parts, include_headers: bool, max_rows: int) -> list[pa.RecordBatch]:
    taken: list[pa.RecordBatch] = parts.delivery.take_chunk(
        lambda chunk: arrow.batches_of(chunk, include_headers, max_rows)
    )
    return taken


def _prepared() -> ModuleType:
    arrow = _arrow()
    arrow.prepare()
    return arrow


def _arrow() -> ModuleType:
    try:
        return importlib.import_module(".arrow_batches", __package__)
    except ImportError as error:
        raise ConfigError(
            f"Arrow batches need numpy and pyarrow ({error}): pip install 'kohort[arrow]'"
        ) from error
