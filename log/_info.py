"""What an append and a read answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._files import FileRange


class AppendInfo(NamedTuple):
    """What became of an append.

    ``log_append_time_ms`` is -1 unless the log stamps batches; of a duplicate, the time of the batch that was
    appended before.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool = False


class ReadInfo(NamedTuple):
    """Whole batches, the first one holding the offset asked for or, after compaction, the next one left.

    ``aborted`` lists (producer id, first offset) of the aborted transactions among the records; it is filled
    by a read of committed records alone.
    """

    records: bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[tuple[int, int]] = ()
    #: Where the records lie, for messages about them.
    file: str = ""
    position: int = 0
    #: Where a range was asked for and is given, the records are in it.
    range: FileRange | None = None
