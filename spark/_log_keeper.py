"""A driver's log of batches: loaded from the group's commits once, and carried by those that follow."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from ..protocol import TopicPartition
from ._batch_log import BatchLog, BatchLogError, BatchRow, decode_log, encode_log, largest_part, sum_up
from ._events import BatchCommitted
from ._intent import add_log, find_log, remove_log
from ._offsets import Commits, Committed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The newest log in a group's commits. ``trouble`` says why it cannot be read, if so."""

    carrier: TopicPartition
    log: BatchLog
    trouble: str = ""


def find_newest(committed: Commits) -> FoundLog | None:
    """Return the newest log of a group; None if no commit carries one.

    Unreadable ones count only if there is no other.
    """
    found = [_read_log(partition, text) for partition, text in _carriers(committed)]
    return max(found, key=lambda each: (not each.trouble, each.log.writes), default=None)


def _read_log(partition: TopicPartition, text: str) -> FoundLog:
    try:
        return FoundLog(partition, decode_log(text))
    except BatchLogError as error:
        return FoundLog(partition, BatchLog(), f"{error} (commit of {partition.topic}-{partition.partition})")


def _carriers(committed: Commits) -> Iterator[tuple[TopicPartition, str]]:
    for partition, commit in committed.items():
        if (text := find_log(commit.metadata)) is not None:
            yield partition, text


class LogKeeper:
    """``log`` is the log as the group has it, or will have it with the driver's next commit.

    The driver's own log counts, as long as it runs: a reset that takes the metadata of the carrying commit
    takes nothing from it.
    """

    def __init__(self) -> None:
        self.log = BatchLog()
        self.is_loaded = False
        self._writes = 0
        self._carrier: TopicPartition | None = None

    def load(self, committed: Commits, application: str | None) -> None:
        """Take over the group's log, at the first call. Rows that were added before come after its own."""
        if self.is_loaded:
            return
        self.is_loaded = True
        found = find_newest(committed)
        if found is not None and found.trouble:
            log.warning("a new log of batches begins: %s", found.trouble)
        begun = (BatchLog() if found is None else found.log).begin_run(application)
        own = (replace(row, run=begun.runs) for row in self.log.rows)
        self.log = replace(begun, rows=sum_up((*begun.rows, *own)))
        self._writes = begun.writes
        self._carrier = None if found is None else found.carrier

    def carry(self, commits: Commits, log: BatchLog) -> Commits:
        """Return the commits, one of which carries ``log``: that of the partition which has it already, or
        else of the first one.
        """
        if not commits:
            return commits
        if self._carrier not in commits:
            self._carrier = min(commits)
        # counted on even if the commit is refused: of two logs of a group the one with more is newer
        self._writes += 1
        text = encode_log(replace(log, writes=self._writes))
        commit = commits[self._carrier]
        return commits | {self._carrier: replace(commit, metadata=add_log(commit.metadata, text))}

    def clear_others(self, committed: Commits, commits: Commits, read: Container[TopicPartition]) -> Commits:
        """Return commits that take logs away from partitions of ``read`` which are not in ``commits``.

        Else each partition that ever carried the log would keep an old one. Those that the job no longer
        reads keep it: it may have lost its right to commit them.
        """
        return {
            partition: remove_log(committed[partition])
            for partition, _ in _carriers(committed)
            if partition not in commits and partition in read
        }


def keep_log(commit: Committed, before: Committed | None) -> Committed:
    """Return a commit that carries the log which the partition's commit before it had, if that had one."""
    text = None if before is None else find_log(before.metadata)
    return commit if text is None else replace(commit, metadata=add_log(commit.metadata, text))


def row_of(event: BatchCommitted, started_ms: int, replays: int | None) -> BatchRow:
    """Return the row of a batch."""
    sizes = [span.offsets for span in event.ranges]
    return BatchRow(
        number=event.number,
        started_ms=started_ms,
        offsets=sum(sizes),
        partitions=len(sizes),
        largest_part=largest_part(sizes),
        rows=event.rows,
        plan_ms=_to_ms(event.plan_seconds),
        read_ms=_to_ms(event.read_seconds),
        sink_ms=_to_ms(event.sink_seconds),
        commit_ms=_to_ms(event.commit_seconds),
        lag=event.lag,
        lag_ms=_to_ms(event.lag_seconds),
        replays=replays,
    )


def _to_ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(0, round(seconds * 1_000))
