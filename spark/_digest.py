"""A digest of a task's rows, by which a repeated task shows that it has the same ones."""

from __future__ import annotations

from array import array
from zlib import crc32

from ..protocol.rows import sum_rows
from ._rows import TopicRows

_MASK = (1 << 64) - 1


class RowDigest:
    """Sums up rows in any order: a shuffle gives a task the same rows in another one.

    Only what the caller gives counts: not the partition or time that the sink fills in.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0

    def add(self, rows: TopicRows) -> None:
        """Add a row."""
        count = rows.columns.row_count
        if rows.asked is None:
            seeds = array("I", [_seed(rows.topic, None)]) * count
        else:
            asked = rows.asked.to_pylist()
            by_partition = {partition: _seed(rows.topic, partition) for partition in set(asked)}
            seeds = array("I", map(by_partition.__getitem__, asked))
        self._sum = (self._sum + sum_rows(rows.columns, seeds)) & _MASK
        self._rows += count

    @property
    def value(self) -> int:
        """The digest of all rows so far, of 32 bits."""
        return crc32(b"%d/%d" % (self._rows, self._sum))


def _seed(topic: str, partition: int | None) -> int:
    return crc32(f"{topic}/{partition}".encode())
