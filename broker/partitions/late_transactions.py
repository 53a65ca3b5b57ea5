"""Transactions that are open for longer than any may be: their coordinator has lost or forgotten them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ..reporting.trouble import Trouble, name_some
from .partition import Partition

#: Beyond transaction.max.timeout.ms: a coordinator needs some time to end a transaction. As in Apache Kafka.
BUFFER_MS: Final = 300_000


class LateTransactions:
    """Counts the partitions with such transactions that this broker leads, and tells of them."""

    def __init__(self) -> None:
        self._trouble = Trouble(logging.ERROR)

    def __repr__(self) -> str:
        return f"LateTransactions({self._trouble})"

    def look(self, partitions: Iterable[Partition], max_timeout_ms: int, now_ms: int) -> None:
        """Tell if there are any, and when there are none any more."""
        late = find_late(partitions, max_timeout_ms, now_ms)
        if not late:
            self._trouble.on_absent("no transaction is open for too long any more")
            return
        names = [f"{each.topic.name}-{each.index}" for each in late]
        self._trouble.on_present(
            "%d partitions have a transaction open for longer than transaction.max.timeout.ms, and hold back "
            "readers of committed records: %s; kohort transactions abort finds and ends what hangs",
            len(late),
            name_some(names),
        )


def find_late(partitions: Iterable[Partition], max_timeout_ms: int, now_ms: int) -> list[Partition]:
    """Those that this broker leads whose oldest open transaction has had no record for so long."""
    since_ms = now_ms - max_timeout_ms - BUFFER_MS
    return [each for each in partitions if each.is_led and _is_silent_since(each, since_ms)]


def _is_silent_since(partition: Partition, since_ms: int) -> bool:
    oldest = None if partition.log is None else partition.log.producers.oldest_open
    return oldest is not None and oldest.seen_ms < since_ms
