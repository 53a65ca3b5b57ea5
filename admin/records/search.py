"""Finds records of a topic step by step, from its end or forwards, each step bounded.

A step reads windows of partitions, takes matching records in the order of their times, and ends with a
:class:`SearchCursor`, from which the next goes on. Windows are small at first and grow while little is found,
so that a page of a large topic costs little, and a search for something rare is not slow.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from ...client import EARLIEST, LATEST, Cluster
from ...consumer.record import Record
from ...protocol import ErrorCode, KafkaError, TopicPartition
from ..topics.requests import find_offsets, require_topics
from .reader import TopicReader

FoundT = TypeVar("FoundT")

#: Partitions that are read at a time. The order by time holds among them.
PARTITIONS_AT_ONCE: Final = 100
#: Times of records may be out of order by so much, in ms, until a search stops that has an end in time.
DISORDER_MS: Final = 3_600_000
#: A window is so many times as large as the one before, if that had little.
_GROWS: Final = 4
#: Bytes of a response: of all partitions, and the least of one.
_RESPONSE_BYTES: Final = 4 * 1024 * 1024
_LEAST_BYTES: Final = 16 * 1024
_MOST_BYTES: Final = 1024 * 1024
#: Most characters of a cursor, most bytes that it unpacks to.
_MOST_CURSOR: Final = 12_000
_MOST_UNPACKED: Final = 100_000
_MOST_NUMBER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """What to look for. ``partitions`` is None for all; ``offset`` is the first to look at; times are in ms
    since 1970, both included; ``matches`` decides on each record.
    """

    topic: str
    partitions: Sequence[int] | None = None
    newest_first: bool = True
    offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    read_committed: bool = False
    matches: Callable[[Record], bool] | None = None

    def takes(self, record: Record) -> bool:
        """Whether a record is looked for."""
        if self.since_ms is not None and record.timestamp_ms < self.since_ms:
            return False
        if self.until_ms is not None and record.timestamp_ms > self.until_ms:
            return False
        return self.matches is None or self.matches(record)


class StepBounds(NamedTuple):
    """Where a step ends at the latest: records found, records and bytes looked at, and seconds. A window that
    has been begun is read to its end.
    """

    found: int = 50
    records: int = 100_000
    size: int = 64 * 1024 * 1024
    seconds: float = 5.0


class OffsetSpan(NamedTuple):
    """Offsets of a partition that are left to look at, from ``low`` to before ``high``."""

    low: int
    high: int

    @property
    def width(self) -> int:
        """Number of offsets."""
        return max(0, self.high - self.low)


@dataclass(frozen=True, slots=True)
class SearchCursor:
    """Where a search goes on: what is left of the partitions that are being read, and the first that has not
    been begun. ``looked_at`` of ``total`` offsets are done; ``records`` were read, of ``size`` bytes.
    """

    spans: Mapping[int, OffsetSpan] = field(default_factory=dict)
    next_partition: int = 0
    looked_at: int = 0
    total: int = -1
    records: int = 0
    size: int = 0

    def text(self) -> str:
        """For an address."""
        spans = [[number, *span] for number, span in self.spans.items()]
        row = [spans, self.next_partition, self.looked_at, self.total, self.records, self.size]
        return base64.urlsafe_b64encode(zlib.compress(json.dumps(row).encode(), 9)).decode().rstrip("=")


def read_cursor(text: str) -> SearchCursor:
    """The cursor of a text. Raises ValueError for anything else."""
    refusal = "this is no place to go on from: search again"
    if len(text) > _MOST_CURSOR:
        raise ValueError(refusal)
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        spans, *numbers = json.loads(zlib.decompressobj().decompress(packed, _MOST_UNPACKED))
        flat = [number for row in spans for number in row] + numbers
        if not all(type(number) is int and -1 <= number <= _MOST_NUMBER for number in flat):
            raise ValueError(refusal)
        known = {number: OffsetSpan(low, high) for number, low, high in spans}
        next_partition, looked_at, total, records, size = numbers
    except (ValueError, TypeError, zlib.error, RecursionError):
        raise ValueError(refusal) from None
    if len(known) > PARTITIONS_AT_ONCE or min(known, default=0) < 0:
        raise ValueError(refusal)
    return SearchCursor(known, next_partition, looked_at, total, records, size)


class FoundRecords(NamedTuple, Generic[FoundT]):
    """The result of a step. ``cursor``: where to go on, if ``has_more``. ``notes`` say what could not be
    read.
    """

    found: list[FoundT]
    cursor: SearchCursor
    has_more: bool
    notes: list[str]


@dataclass(slots=True, eq=False)
class _Partition(Generic[FoundT]):
    """A partition that is being read: what is left, and what was found and not yet taken."""

    span: OffsetSpan
    chunk: int
    #: Time, offset and what was made of the record, in the order in which they are taken.
    found: deque[tuple[int, int, FoundT]] = field(default_factory=deque)


async def search_step(
    cluster: Cluster,
    search: RecordSearch,
    keep: Callable[[Record], FoundT],
    cursor: SearchCursor | None = None,
    bounds: StepBounds | None = None,
    patience_s: float = 15.0,
) -> FoundRecords[FoundT]:
    """Look for the next records. ``keep`` makes of a record what is kept of it; it and ``matches`` are called
    in a thread. Raises KafkaError, BrokerConnectionError, AuthenticationError.
    """
    step = _Step(cluster, search, keep, bounds or StepBounds(), patience_s)
    return await step.run(cursor)


@dataclass(slots=True, eq=False)
class _Step(Generic[FoundT]):
    cluster: Cluster
    search: RecordSearch
    keep: Callable[[Record], FoundT]
    bounds: StepBounds
    patience_s: float
    notes: list[str] = field(default_factory=list)
    partitions: dict[int, _Partition[FoundT]] = field(default_factory=dict)
    records: int = 0
    size: int = 0
    ends_at: float = 0.0

    async def run(self, cursor: SearchCursor | None) -> FoundRecords[FoundT]:
        """Take the step."""
        self.ends_at = asyncio.get_running_loop().time() + self.bounds.seconds
        known = await require_topics(self.cluster, [self.search.topic])
        numbers = [place.partition for place in known.partitions(self.search.topic)]
        numbers = _chosen(self.search, numbers)
        now = cursor or SearchCursor()
        gone = set(now.spans) - set(numbers)
        self._take_spans({number: span for number, span in now.spans.items() if number not in gone})
        left = [number for number in numbers if number >= now.next_partition]
        bounds_of: Mapping[int, OffsetSpan] = {}
        if left and (now.total < 0 or not self.partitions):
            bounds_of = await self._find_bounds(left)
        total = sum(span.width for span in bounds_of.values()) if now.total < 0 else now.total
        before = self._width_left()
        begun, next_partition = 0, now.next_partition
        found: list[FoundT] = []
        while True:
            found += await self._read_partitions(self.bounds.found - len(found))
            if len(found) >= self.bounds.found or self._is_spent() or self._width_left():
                break
            if left and not bounds_of:
                bounds_of = await self._find_bounds(left)
            wave = [number for number in left if number in bounds_of][:PARTITIONS_AT_ONCE]
            if not wave:
                left = []
                break
            left = [number for number in left if number > wave[-1]]
            next_partition = wave[-1] + 1
            self._take_spans({number: bounds_of[number] for number in wave})
            begun += sum(bounds_of[number].width for number in wave)
        still = {number: self._rest_of(each) for number, each in self.partitions.items()}
        still = {number: span for number, span in still.items() if span.width}
        looked_at = now.looked_at + before + begun - sum(span.width for span in still.values())
        behind = any(number in bounds_of for number in left) if bounds_of else bool(left)
        made = SearchCursor(
            *(still, next_partition, looked_at, max(total, looked_at)),
            *(now.records + self.records, now.size + self.size),
        )
        return FoundRecords(found, made, bool(still) or behind, self.notes)

    def _take_spans(self, spans: Mapping[int, OffsetSpan]) -> None:
        chunk = -(-self.bounds.found // max(1, len(spans)))
        self.partitions = {number: _Partition(span, chunk) for number, span in spans.items()}

    def _width_left(self) -> int:
        return sum(self._rest_of(each).width for each in self.partitions.values())

    def _is_spent(self) -> bool:
        is_late = asyncio.get_running_loop().time() >= self.ends_at
        return self.records >= self.bounds.records or self.size >= self.bounds.size or is_late

    def _rest_of(self, each: _Partition[FoundT]) -> OffsetSpan:
        """What the next step has to look at: what was found and not taken is found again."""
        if not each.found:
            return each.span
        _, offset, _ = each.found[0]
        if self.search.newest_first:
            return OffsetSpan(each.span.low, offset + 1)
        return OffsetSpan(offset, each.span.high)

    async def _find_bounds(self, numbers: Iterable[int]) -> dict[int, OffsetSpan]:
        """What there is to look at in partitions; empty ones are left out."""
        bounds, notes = await find_spans(self.cluster, self.search, numbers)
        self.notes += notes
        return bounds

    async def _read_partitions(self, wanted: int) -> list[FoundT]:
        """The next records of the partitions that are being read, in the order of their times."""
        taken: list[FoundT] = []
        rows = self.partitions.values()
        while len(taken) < wanted:
            dry = {number: each for number, each in self.partitions.items() if not each.found}
            dry = {number: each for number, each in dry.items() if each.span.width}
            if dry and not self._is_spent():
                await self._read_windows(dry)
                continue
            full = [each for each in rows if each.found]
            if not full:
                break
            pick = max if self.search.newest_first else min
            first = pick(full, key=lambda each: each.found[0][0])
            taken.append(first.found.popleft()[2])
        return taken

    async def _read_windows(self, dry: Mapping[int, _Partition[FoundT]]) -> None:
        windows = {number: self._window(each, len(dry)) for number, each in dry.items()}
        topic, hits = self.search.topic, {number: _Hits[FoundT](self.bounds.found) for number in windows}
        reader = TopicReader(
            self.cluster,
            {TopicPartition(topic, number): span.low for number, span in windows.items()},
            {TopicPartition(topic, number): span.high for number, span in windows.items()},
            read_committed=self.search.read_committed,
            patience_s=self.patience_s,
            remark=self.notes.append,
            pass_damage=True,
            response_bytes=_RESPONSE_BYTES,
            partition_bytes=self._bytes_of(windows.values()),
        )
        async with aclosing(reader.batches()) as batches:
            async for records in batches:
                # decoding and comparing take long
                await asyncio.to_thread(self._take_records, hits[records[0].partition], records)
        for number, each in dry.items():
            self._settle(each, windows[number], hits[number])

    def _bytes_of(self, windows: Collection[OffsetSpan]) -> int:
        """Bytes of one partition to ask for: not much more than these windows have."""
        if not self.records:
            wanted = _RESPONSE_BYTES // len(windows)
        else:
            wanted = 2 * self.size // self.records * max(span.width for span in windows)
        return min(max(wanted, _LEAST_BYTES), _MOST_BYTES)

    def _window(self, each: _Partition[FoundT], count: int) -> OffsetSpan:
        most = max(1, (self.bounds.records - self.records) // count)
        if self.size:
            mean = max(1, self.size // max(1, self.records))
            most = min(most, max(1, (self.bounds.size - self.size) // mean // count))
        width = min(each.chunk, most)
        low, high = each.span
        if self.search.newest_first:
            return OffsetSpan(max(low, high - width), high)
        return OffsetSpan(low, min(low + width, high))

    def _take_records(self, hits: _Hits[FoundT], records: Sequence[Record]) -> None:
        self.records += len(records)
        for record in records:
            self.size += size_of(record)
            if hits.is_full and not self.search.newest_first:
                continue
            if self.search.takes(record):
                hits.add(record.timestamp_ms, record.offset, self.keep(record), self.search.newest_first)

    def _settle(self, each: _Partition[FoundT], window: OffsetSpan, hits: _Hits[FoundT]) -> None:
        """Take in what a window had. Of too much the rest is read again."""
        low, high = each.span
        if self.search.newest_first:
            each.found = deque(reversed(hits.rows))
            high = hits.rows[0][1] if hits.is_cut else window.low
        else:
            each.found = deque(hits.rows)
            low = hits.rows[-1][1] + 1 if hits.is_full else window.high
        each.span = OffsetSpan(low, high)
        each.chunk *= _GROWS


class _Hits(Generic[FoundT]):
    """Records of a window that were found, oldest first: ``most`` of them."""

    def __init__(self, most: int) -> None:
        self.rows: deque[tuple[int, int, FoundT]] = deque()
        self.is_cut = False
        self._most = most

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more."""
        return len(self.rows) >= self._most

    def add(self, time_ms: int, offset: int, kept: FoundT, newest: bool) -> None:
        """Add a record; of too many the ``newest`` stay."""
        if self.is_full and newest:
            self.rows.popleft()
            self.is_cut = True
        self.rows.append((time_ms, offset, kept))


def _chosen(search: RecordSearch, numbers: Sequence[int]) -> list[int]:
    if search.partitions is None:
        return list(numbers)
    if missing := set(search.partitions) - set(numbers):
        text = f"topic {search.topic!r} has partitions 0 to {len(numbers) - 1}, not {min(missing)}"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return sorted(set(search.partitions))


async def find_spans(
    cluster: Cluster, search: RecordSearch, numbers: Iterable[int]
) -> tuple[dict[int, OffsetSpan], list[str]]:
    """Offsets of partitions in which the records of a search are, and notes on those that cannot be asked.
    Partitions without any are left out.
    """
    places = [TopicPartition(search.topic, number) for number in numbers]
    asked = [
        find_offsets(cluster, places, EARLIEST),
        find_offsets(cluster, places, LATEST, read_committed=search.read_committed),
    ]
    if search.since_ms is not None:
        asked.append(find_offsets(cluster, places, search.since_ms))
    if search.until_ms is not None:
        asked.append(find_offsets(cluster, places, search.until_ms + DISORDER_MS))
    (firsts, _), (lasts, errors), *times = await asyncio.gather(*asked)
    until = times.pop()[0] if search.until_ms is not None else {}
    since = times.pop()[0] if times else {}
    spans = {}
    for place in places:
        if place not in firsts or place not in lasts:
            continue
        low, high = firsts[place], lasts[place]
        if place in since:
            low = max(low, since[place]) if since[place] >= 0 else high
        if until.get(place, -1) >= 0:
            high = min(high, until[place])
        if search.offset is not None and search.newest_first:
            high = min(high, search.offset + 1)
        elif search.offset is not None:
            low = max(low, search.offset)
        if low < high:
            spans[place.partition] = OffsetSpan(low, high)
    if errors and not lasts:
        raise next(iter(errors.values()))
    notes = [f"{len(errors):,} partitions could not be read: {next(iter(errors.values()))}"] if errors else []
    return spans, notes


async def read_found(
    cluster: Cluster, search: RecordSearch, tell: Callable[[str], None], patience_s: float = 15.0
) -> AsyncGenerator[list[Record]]:
    """All records of a search, partition by partition in the order of their offsets: a list for each batch
    that was read, which may be empty. Memory is bounded whatever there is. ``tell`` is told what could not be
    read. Raises what ``search_step`` raises.
    """
    known = await require_topics(cluster, [search.topic])
    numbers = _chosen(search, [place.partition for place in known.partitions(search.topic)])
    spans, notes = await find_spans(cluster, search, numbers)
    for note in notes:
        tell(note)
    for number, span in spans.items():
        place = TopicPartition(search.topic, number)
        reader = TopicReader(
            *(cluster, {place: span.low}, {place: span.high}, search.read_committed, patience_s, tell),
            pass_damage=True,
            response_bytes=_RESPONSE_BYTES,
        )
        async with aclosing(reader.batches()) as batches:
            async for records in batches:
                yield await asyncio.to_thread(_matching_ones, search, records)


def _matching_ones(search: RecordSearch, records: Iterable[Record]) -> list[Record]:
    return [record for record in records if search.takes(record)]


def size_of(record: Record) -> int:
    """Bytes of a record's key, value and headers, uncompressed."""
    size = len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") for name, value in record.headers)
