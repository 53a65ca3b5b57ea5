"""What a query's source tells the driver of each batch: from a process of Spark's own, by files in a folder.

Spark reports offsets of a query's sources, but not which source is whose, and nothing of what was lost. Both
processes run on the driver's machine.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..protocol import TopicPartition
from ._ranges import OffsetRange
from ._stream_plan import Offsets, from_document, to_document

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch that is to be read; start and end are alike where the source only tells where it stands."""

    start: Mapping[TopicPartition, int]
    end: Offsets
    lost: tuple[OffsetRange, ...] = ()


class Reports:
    """``write`` in one process, ``take`` in the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, report: BatchReport) -> None:
        """A report that cannot be written is a warning: the query goes on."""
        lost = [[span.topic, span.partition, span.start, span.end] for span in report.lost]
        document = {"start": to_document(report.start), "end": to_document(report.end), "lost": lost}
        path = self._folder / f"{time.time_ns():020}.json"
        try:
            # folders for temporary files are emptied of what nobody has used for days
            self._folder.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".new").write_text(json.dumps(document))
            os.replace(path.with_suffix(".new"), path)
        except OSError as error:
            log.warning("the driver is not told of the batch to %s: %s", document["end"], error)

    def take(self) -> list[BatchReport]:
        """Those that have come, oldest first, once."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            found.append(_parsed(json.loads(path.read_text())))
            path.unlink()
        return found

    def close(self) -> None:
        """Nothing is told any more."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _parsed(document: Mapping[str, Any]) -> BatchReport:
    lost = tuple(OffsetRange(*row) for row in document["lost"])
    return BatchReport(from_document(document["start"]), from_document(document["end"]), lost)
