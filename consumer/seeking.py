"""Where a consumer reads on, and what it leaves alone for a while."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod

from ..client.offsets import EARLIEST, LATEST
from ..client.waiting import Signal
from ..protocol import TopicPartition
from .assembly import Parts

#: What an int64 holds.
_MOST = 2**63 - 1


class Seeking(ABC):
    """Base of AsyncGroupConsumer; see there."""

    _built: Parts
    _more: Signal

    @abstractmethod
    def _running(self, *, closing: bool = False) -> Parts:
        """The parts; ConsumerClosedError unless it runs."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver nothing of these partitions until ``resume``; membership goes on. KeyError if not owned."""
        self._running().positions.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Deliver them again."""
        parts = self._running()
        parts.positions.resume(partitions)
        parts.fetcher.wake()
        self._more.fire()

    def paused(self) -> frozenset[TopicPartition]:
        return self._built.positions.paused()

    def seek(self, partition: TopicPartition, offset: int, *, leader_epoch: int = -1) -> None:
        """Read on at ``offset``; records from before can no longer be marked done. KeyError if not owned.

        With the ``leader_epoch`` of the record before it, the log is first asked whether it still has that.
        ValueError for what is no offset: a whole number from 0 on, or EARLIEST (-2) or LATEST (-1).
        """
        offset = _whole(offset, EARLIEST, f"seek {partition}: an offset is a whole number, 0 or more")
        parts = self._running()
        parts.positions.seek(partition, offset, leader_epoch)
        if offset not in (EARLIEST, LATEST):
            position = parts.positions.get(partition)
            assert position is not None, "seek has just found it"
            parts.delivery.start(position)
        else:
            parts.delivery.drop([partition])
        parts.fetcher.wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self.seek(partition, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self.seek(partition, LATEST)

    def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> None:
        """Read on at the first record that is not older than this; at the end if there is none.

        ValueError for what is no time in milliseconds since 1970.
        """
        timestamp_ms = _whole(timestamp_ms, 0, "a time is a whole number of milliseconds since 1970")
        parts = self._running()
        parts.positions.seek_to_time(partition, timestamp_ms)
        parts.delivery.drop([partition])
        parts.fetcher.wake()

    def rewind(self, timestamp_ms: int) -> None:
        """``seek_to_time`` for every partition that this consumer has now."""
        for partition in self._built.membership.owned:
            self.seek_to_time(partition, timestamp_ms)


def _whole(given: object, least: int, what: str) -> int:
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= _MOST:
        raise ValueError(f"{what}, and not {given!r}")
    return number
