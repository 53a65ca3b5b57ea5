"""When the oldest unread records were written: the batches behind offsets, fetched from their leaders.

Many groups may stand at different offsets of a partition, and a Fetch names a partition once. So each round
asks for the lowest offset that is not known yet; the batches of the answer often have the next ones, too.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ...client import EARLIEST, BrokerConnectionError, Cluster, FetchedPartition
from ...client.fetch import STALE_METADATA
from ...client.requests import leader_or_raise, partition_name
from ...lag import Looked, find_oldest
from ...protocol import ErrorCode, KafkaError, KohortError, TopicPartition

#: Partitions in one Fetch, and bytes of its response.
_AT_ONCE: Final = 1_000
_MOST_BYTES: Final = 16 << 20
#: Bytes of a partition at first, and how many times more where a batch does not fit; up to the last.
_FIRST_BYTES, _GROWTH, _LAST_BYTES = 4 << 10, 16, 64 << 20
#: How often a partition is asked for whose leader has moved.
_TRIES: Final = 3


@dataclass(slots=True)
class FirstRecords:
    """The first record behind each offset of a partition, by offset; ``is_found`` False if there is none.
    Records below ``start`` are not in the log any more. ``error`` is why what is missing is not known.
    """

    found: dict[int, Looked] = field(default_factory=dict)
    start: int | None = None
    error: str | None = None


class _RecordSearch:
    """The search in one partition with records up to ``end``."""

    def __init__(self, place: TopicPartition, end: int, offsets: Collection[int]) -> None:
        self.place = place
        self.result = FirstRecords()
        self.most_bytes = _FIRST_BYTES
        #: The log begins behind the offset: it has to be asked where.
        self.is_below_start = False
        self._end = end
        self._tries = 0
        #: Its leader is to be looked up again.
        self.is_stale = False
        # where to look next, and for which offset; the lowest comes last
        self._left = sorted(((offset, offset) for offset in offsets), reverse=True)

    @property
    def is_over(self) -> bool:
        return not self._left

    @property
    def next_at(self) -> int:
        return self._left[-1][0]

    def take(self, fetched: FetchedPartition) -> None:
        """Take in what was fetched at ``next_at``."""
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.result.start is None:
            self.is_below_start = True
        elif fetched.error_code:
            error = KafkaError(fetched.error_code, f"reading {partition_name(self.place)}")
            self.fail(error, for_good=error.code not in STALE_METADATA)
        else:
            if fetched.log_start_offset >= 0:
                self.begin_at(fetched.log_start_offset)
            self._look_into(fetched.records)

    def begin_at(self, start: int) -> None:
        """Look for nothing before the start of the log."""
        self.is_below_start = False
        self.result.start = start
        while self._left and self._left[-1][0] < start:
            _, offset = self._left.pop()
            self._go_on(start, offset)

    def fail(self, error: KohortError, *, for_good: bool) -> None:
        self._tries += 1
        self.is_stale = True
        if for_good or self._tries >= _TRIES:
            self.result.error = str(error)
            self._left.clear()

    def _look_into(self, records: bytes | memoryview) -> None:
        is_further = False
        while self._left:
            at, offset = self._left[-1]
            looked = find_oldest(records, at)
            if not looked.is_found and looked.offset == at:
                break
            is_further = True
            self._left.pop()
            if looked.is_found:
                self.result.found[offset] = looked
            else:
                self._go_on(looked.offset, offset)
        if is_further:
            self.most_bytes = _FIRST_BYTES
        elif self._left:
            self.most_bytes *= _GROWTH
            if self.most_bytes > _LAST_BYTES:
                self.fail(KohortError(f"no record could be read at {self.next_at}"), for_good=True)

    def _go_on(self, at: int, offset: int) -> None:
        if at >= self._end:
            self.result.found[offset] = Looked(at)
        else:
            insort(self._left, (at, offset), key=lambda row: (-row[0], -row[1]))


async def find_first_records(
    cluster: Cluster, wanted: Mapping[TopicPartition, Collection[int]], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, FirstRecords]:
    """Find the first record behind each of these offsets, which lie before the ends of their partitions.
    Raises nothing that is about single partitions.
    """
    searches = {
        place: _RecordSearch(place, ends[place], offsets) for place, offsets in wanted.items() if offsets
    }
    left = list(searches.values())
    while left:
        by_leader: dict[int, list[_RecordSearch]] = defaultdict(list)
        for search in left:
            try:
                by_leader[leader_or_raise(cluster, search.place)].append(search)
            except KafkaError as error:
                search.fail(error, for_good=not error.retriable)
        asked = (_ask_leader(cluster, leader, rows) for leader, rows in by_leader.items())
        await asyncio.gather(*asked)
        await _find_starts(cluster, [search for search in left if search.is_below_start])
        left = [search for search in left if not search.is_over]
        stale = {search.place.topic for search in left if search.is_stale}
        if stale:
            await cluster.metadata(stale)
            for search in left:
                search.is_stale = False
    return {place: search.result for place, search in searches.items()}


async def _ask_leader(cluster: Cluster, leader: int, searches: Iterable[_RecordSearch]) -> None:
    """Fetch once what each of these searches needs next."""
    # the first partition of a response has a whole batch, however large
    rows = sorted(searches, key=lambda search: -search.most_bytes)
    for begun in range(0, len(rows), _AT_ONCE):
        part = rows[begun : begun + _AT_ONCE]
        try:
            answer = await cluster.fetch(
                {search.place: search.next_at for search in part},
                node_id=leader,
                max_bytes=_MOST_BYTES,
                partition_max_bytes=max(search.most_bytes for search in part),
                min_bytes=0,
                max_wait_ms=0,
            )
        except KohortError as error:
            for search in part:
                search.fail(error, for_good=not isinstance(error, BrokerConnectionError))
            continue
        for search in part:
            if search.place in answer:
                search.take(answer[search.place])
            else:
                search.fail(KohortError(f"no answer about {partition_name(search.place)}"), for_good=False)


async def _find_starts(cluster: Cluster, searches: Iterable[_RecordSearch]) -> None:
    by_place = {search.place: search for search in searches}
    if not by_place:
        return
    errors: dict[TopicPartition, KohortError] = {}
    starts = await cluster.list_offsets(dict.fromkeys(by_place, EARLIEST), errors=errors)
    for place, search in by_place.items():
        if place in starts:
            search.begin_at(starts[place].offset)
        else:
            search.fail(errors[place], for_good=True)
