"""Leader epochs of a partition and the offset at which each began (KIP-101)."""

from __future__ import annotations

from bisect import bisect_right

from ._checkpoints import read_epochs, write_epochs
from ._files import FileSystem

#: Epoch and offset of an answer that knows neither.
UNDEFINED = -1


class LeaderEpochs:
    """The epochs in memory and in leader-epoch-checkpoint, which is written at every change."""

    __slots__ = ("_entries", "_fs", "_path")

    def __init__(self, fs: FileSystem, path: str, entries: list[tuple[int, int]] | None = None) -> None:
        self._fs = fs
        self._path = path
        self._entries = entries if entries is not None else read_epochs(fs, path)

    def __repr__(self) -> str:
        return f"LeaderEpochs({self._entries})"

    @property
    def latest(self) -> int:
        """The newest epoch; UNDEFINED before the first."""
        return self._entries[-1][0] if self._entries else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that ``epoch`` writes from ``start_offset`` on; nothing if it is not newer. Raises OSError."""
        if epoch > self.latest:
            self._replace([*(e for e in self._entries if e[1] < start_offset), (epoch, start_offset)])

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The newest epoch not after ``epoch`` and the offset behind its last record (KIP-101, KIP-320).

        (UNDEFINED, UNDEFINED) for an epoch that is newer than any here.
        """
        if epoch == self.latest != UNDEFINED:
            return epoch, log_end_offset
        after = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        if epoch < 0 or after == len(self._entries):
            return UNDEFINED, UNDEFINED
        floor = self._entries[after - 1][0] if after else epoch
        return floor, self._entries[after][1]

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote ``offset``; UNDEFINED before the first."""
        after = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[after - 1][0] if after else UNDEFINED

    def may_have_written(self, epoch: int, offset: int) -> bool:
        """Whether ``epoch`` can be that of a batch at ``offset``: it is the one that is known to have written
        there, or the one after the newest, which is not noted yet.
        """
        due = self.epoch_at(offset)
        return due in (UNDEFINED, epoch) or (due == self.latest and epoch == due + 1)

    def cut_start(self, log_start_offset: int) -> None:
        """Forget epochs that end at or before ``log_start_offset``. Raises OSError."""
        after = bisect_right(self._entries, log_start_offset, key=lambda entry: entry[1])
        if not after:
            return
        oldest = (self._entries[after - 1][0], log_start_offset)
        if self._entries[0] != oldest:
            self._replace([oldest, *self._entries[after:]])

    def cut_end(self, log_end_offset: int) -> None:
        """Forget epochs that begin behind the log's end. Raises OSError."""
        kept = [entry for entry in self._entries if entry[1] <= log_end_offset]
        if len(kept) < len(self._entries):
            self._replace(kept)

    def _replace(self, entries: list[tuple[int, int]]) -> None:
        write_epochs(self._fs, self._path, entries)
        self._entries = entries
