"""The reading half of a partition's log: where it begins and ends, look-ups, runs of batches."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

from ..protocol import ErrorCode, KafkaError
from ._config import LogConfig
from ._checkpoints import UNDEFINED
from ._errors import CorruptLogError, storage_error
from ._files import FileSystem
from ._flush import Flushing
from ._info import ReadInfo
from ._lookup import find_newest, find_timestamp
from ._names import parse_partition_folder
from ._recovery import Opened, RecoveryReport
from ._scan import Salvaged, salvage
from ._segments import EMPTY_RUN, Segments
from ._steps import Result, Steps, at_once


class ReadableLog:
    """What a log holds, and how it is read. ``PartitionLog`` adds how it changes."""

    def __init__(
        self, path: str, config: LogConfig, topic_id: uuid.UUID, opened: Opened, fs: FileSystem
    ) -> None:
        name = parse_partition_folder(os.path.basename(path))
        assert name is not None
        self.path = path
        self.config = config
        self.topic_id = topic_id
        self.topic, self.partition = name
        #: What opening the files found and did; for the caller to tell.
        self.recovery: RecoveryReport = opened.report
        self.offline = False
        self._fs = fs
        self._segments = Segments(fs, path, opened.segments)
        self._flushing = Flushing(fs, path)
        self._producers = opened.producers
        self._epochs = opened.epochs
        self.log_start_offset = self._segments.first.base_offset
        self.log_end_offset = opened.log_end_offset
        #: Offset below which records may be read. One replica is all there is: it follows the log's end or,
        #: with ``kohort.visibility=flushed``, the recovery point.
        self.high_watermark = opened.log_end_offset
        #: Offset below which everything is on the disk.
        self.recovery_point = opened.log_end_offset

    def __repr__(self) -> str:
        return (
            f"PartitionLog({self.topic}-{self.partition}, {self.log_start_offset}..{self.log_end_offset}, "
            f"{len(self._segments)} segments{', offline' if self.offline else ''})"
        )

    # -- what it holds ---------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Offset below which no transaction is open: where a reader of committed records has to stop."""
        first_open = self._producers.first_open_offset
        return self.high_watermark if first_open is None else min(first_open, self.high_watermark)

    @property
    def leader_epoch(self) -> int:
        return max(self._epochs.latest, 0)

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches, those below the log start that lie in a segment with live ones included."""
        return self._segments.size_bytes

    @property
    def is_damaged(self) -> bool:
        """Whether batches are known to be damaged: what lies before and behind them is served."""
        return any(segment.damage for segment in self._segments.all)

    # -- read ------------------------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        to_log_end: bool = False,
        at_least_one: bool = True,
        range_bytes: int | None = None,
    ) -> ReadInfo:
        """Whole batches from the one that holds ``offset`` on: up to ``max_bytes``, but the first one however
        large it is, unless ``at_least_one`` is False.

        They end at the high watermark, with ``committed`` at the last stable offset, with ``to_log_end`` at
        the log's end. Raises KafkaError OFFSET_OUT_OF_RANGE outside of log start .. log end, and
        CorruptLogError for an offset that is damaged; what lies before and behind damage is given. With
        ``range_bytes``, records of that many bytes or more are given as ``range``, unread, where the file
        system is the operating system's own.
        """
        self._require_online()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic}-{self.partition}: it holds {self.log_start_offset} to "
                f"{self.log_end_offset}",
            )
        limit = self.log_end_offset if to_log_end else self.high_watermark
        if committed:
            limit = self.last_stable_offset
        run = EMPTY_RUN
        while offset < limit:
            try:
                run = self._segments.read(
                    offset,
                    limit,
                    self.log_end_offset,
                    max_bytes,
                    at_least_one=at_least_one,
                    range_bytes=range_bytes,
                )
                break
            except CorruptLogError as error:
                if not self._segments.learn(error, self.log_end_offset):
                    raise
            except OSError as error:
                raise storage_error(self.path, error) from error
        return ReadInfo(
            run.records,
            self.high_watermark,
            self.last_stable_offset,
            self.log_start_offset,
            self._segments.aborted(offset, run.end_offset) if committed and run.end_offset > offset else [],
            run.file,
            run.position,
            run.range,
        )

    def salvage(self, offset: int) -> Iterator[Salvaged]:
        """Every whole batch from ``offset`` to the log's end, and what is damaged between them: for logs in
        which ``read`` met damage.
        """
        self._require_online()
        try:
            yield from salvage(self._segments.since(offset), offset)
        except OSError as error:
            raise storage_error(self.path, error) from error

    def find_timestamp(self, timestamp_ms: int) -> Steps[tuple[int, int, int] | None]:
        """Steps to the offset, timestamp and leader epoch of the first record that is not older; None if all
        are.
        """
        steps = find_timestamp(self._segments, timestamp_ms, self.log_start_offset, self.log_end_offset)
        return self._look_up(steps)

    def find_newest(self) -> Steps[tuple[int, int] | None]:
        """Steps to the offset and timestamp of the newest record; None if no record has a timestamp."""
        return self._look_up(find_newest(self._segments))

    def _look_up(self, steps: Steps[Result]) -> Steps[Result]:
        self._require_online()
        try:
            return (yield from steps)
        except OSError as error:
            self._require_online()
            raise storage_error(self.path, error) from error

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int, int] | None:
        """What ``find_timestamp`` finds, at once."""
        return at_once(self.find_timestamp(timestamp_ms))

    def max_timestamp(self) -> tuple[int, int] | None:
        """What ``find_newest`` finds, at once."""
        return at_once(self.find_newest())

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest leader epoch not after ``epoch`` and its end offset; (-1, -1) if that is not known."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch that wrote ``offset``; -1 if unknown."""
        epoch = self._epochs.epoch_at(offset)
        return epoch if epoch != UNDEFINED else -1

    def _require_online(self) -> None:
        if self.offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.path} is closed or its disk failed: look at the disk, then restart the broker",
            )
