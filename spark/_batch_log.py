"""The log of a job's batches, kept in the metadata of its group's commits. No I/O here.

The driver commits twice for each batch anyhow (``_intent.py``). One partition's commit carries the log beside
the mark: ``{"b":3,"l":"eJy..."}``. So it needs no topic, no file and no request of its own, works on any
broker, and is where the job's position is. Brokers take 4,096 bytes of metadata
(``offset.metadata.max.bytes``), and the text of a log has MAX_LOG_CHARS at most.

The newest SINGLE_BATCHES batches have a row each. Older ones are summed up in rows of 1, 2, 4, 8, ...
batches, at most two of each size: figures of long ago become coarse, and no batch is left out of the counts.

The text is base64 of deflated JSON with these fields:

=====  ===========================================================================================
field  content
=====  ===========================================================================================
``v``  1: the format
``w``  how many texts were made of the log before
``r``  how often the job has started
``a``  Spark's application of the runs that have a row, by number of the run
``n``  the batch under way: its number, when it was announced, how often again; null
``d``  rows, the fields of :class:`BatchRow` in their order, but: ``started_ms`` is the difference
       to the row before, ``first`` how far it is below ``number``
=====  ===========================================================================================
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self

from ..protocol import JsonObject, KohortError
from ..settings import MAX_LONG

#: Longest text of a log. Marks beside it, and what else future versions note, fit into 4,096 bytes.
MAX_LOG_CHARS = 3_900

#: Newest batches that have a row each, and most rows that sum up older ones.
SINGLE_BATCHES = 32
_MOST_SUMS = 28

#: Longest JSON of a log. Anybody may write to a group, and deflated text can be a thousand times as long.
_MAX_JSON_BYTES = 65_536

#: Longest name of an application that is kept; Spark's own ids have 40 characters at most.
_MAX_APPLICATION_CHARS = 100

#: The last time that has a date, in ms since 1970: 9999-12-31.
_LAST_MS = 253_402_300_799_999

_FORMAT = 1
_PER_MILLE = 1_000


class BatchLogError(KohortError, ValueError):
    """The text is no log of batches, or that of a newer version."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch, or the sum of ``batches`` that followed each other. What is not known is None.

    ``first``, ``number``: numbers of the first and the last batch. ``started_ms``: when the first one was
    planned, in ms since 1970 by the driver's clock. ``partitions``, ``largest_part``, ``lag`` and ``lag_ms``
    are the largest of all batches; ``largest_part`` is the part of the offsets that came from one partition,
    in thousandths. ``lag``: offsets left to read after it. ``lag_ms``: age of the newest record of the
    partition that was furthest behind, when the batch was committed. ``replays``: how often it was announced
    again. ``run``: number of the job's start, that of the last batch.
    """

    number: int
    started_ms: int
    offsets: int
    partitions: int
    largest_part: int
    rows: int | None = None
    plan_ms: int | None = None
    read_ms: int | None = None
    sink_ms: int | None = None
    commit_ms: int | None = None
    lag: int | None = None
    lag_ms: int | None = None
    replays: int | None = None
    run: int | None = None
    batches: int = 1
    first: int = -1

    def __post_init__(self) -> None:
        if self.first < 0:
            object.__setattr__(self, "first", self.number)

    def add(self, later: Self) -> Self:
        """Return the sum of both."""
        both: JsonObject = {name: _sum(getattr(self, name), getattr(later, name)) for name in _SUMMED}
        both |= {name: _largest(getattr(self, name), getattr(later, name)) for name in _GREATEST}
        count = self.batches + later.batches
        return replace(later, batches=count, first=self.first, started_ms=self.started_ms, **both)


_SUMMED = ("offsets", "rows", "plan_ms", "read_ms", "sink_ms", "commit_ms", "replays")
_GREATEST = ("partitions", "largest_part", "lag", "lag_ms")

#: Order of a row in JSON. ``started_ms`` is written as the difference to the row before.
_COLUMNS = tuple(each.name for each in fields(BatchRow))
_KNOWN = frozenset(("number", "started_ms", "offsets", "partitions", "largest_part", "batches", "first"))


def _sum(one: int | None, other: int | None) -> int | None:
    """Add two figures. A sum of which a part is not known would be too small: it is not known either."""
    return None if one is None or other is None else one + other


def _largest(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def largest_part(sizes: Iterable[int]) -> int:
    """Return what part of all the largest one is, in thousandths; 0 of nothing."""
    counted = list(sizes)
    total = sum(counted)
    return max(counted) * _PER_MILLE // total if total else 0


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The batch that is announced: when first, in ms since 1970, and how often it was announced again."""

    number: int
    started_ms: int
    replays: int = 0


@dataclass(frozen=True, slots=True)
class BatchLog:
    """Rows of batches, oldest first. ``writes`` counts the texts made of it: of two logs of a group the one
    with more is newer. ``runs`` counts the job's starts; ``applications`` names Spark's application of those
    that have a row.
    """

    rows: tuple[BatchRow, ...] = ()
    under_way: UnderWay | None = None
    writes: int = 0
    runs: int = 0
    applications: Mapping[int, str] = field(default_factory=dict)

    @property
    def batches(self) -> int:
        """Number of batches that ended."""
        return sum(row.batches for row in self.rows)

    def begin_run(self, application: str | None) -> BatchLog:
        """Return the log of the job's next start."""
        runs = self.runs + 1
        named = {} if application is None else {runs: application[:_MAX_APPLICATION_CHARS]}
        return replace(self, runs=runs, applications={**self.applications, **named})

    def announce(self, number: int, now_ms: int, *, replayed: bool) -> BatchLog:
        """Return the log with a batch under way.

        Of a batch that was announced by a version without a log, only the replays since are counted.
        """
        known = self.under_way
        if not replayed:
            return replace(self, under_way=UnderWay(number, now_ms))
        first = known if known is not None and known.number == number else UnderWay(number, now_ms)
        return replace(self, under_way=replace(first, replays=first.replays + 1))

    def end(self, row: BatchRow) -> BatchLog:
        """Return the log with one more row, of this run, and with nothing under way."""
        rows = sum_up((*self.rows, replace(row, run=self.runs)))
        shown = {each.run for each in rows} | {self.runs}
        kept = {run: name for run, name in self.applications.items() if run in shown}
        return replace(self, rows=rows, under_way=None, applications=kept)

    def amend(self, commit_ms: int) -> BatchLog:
        """Return the log with the time that the commit of the last batch took. It is known after it."""
        if not self.rows or self.rows[-1].batches > 1:
            return self
        return replace(self, rows=(*self.rows[:-1], replace(self.rows[-1], commit_ms=commit_ms)))


def sum_up(rows: Sequence[BatchRow], singles: int = SINGLE_BATCHES) -> tuple[BatchRow, ...]:
    """Sum up all but the newest batches: no more than two rows of each size, sizes being powers of two.

    It keeps counts and order, and takes rows that are summed up already.
    """
    newest = 0
    while newest < min(singles, len(rows)) and rows[-1 - newest].batches == 1:
        newest += 1
    older, kept = list(rows[: len(rows) - newest]), tuple(rows[len(rows) - newest :])
    size = 1
    while older and size <= max(row.batches for row in older):
        # sizes grow towards the past, so the rows of one size stand together
        same = [nth for nth, row in enumerate(older) if size <= row.batches < 2 * size]
        while len(same) > 2:
            first = same.pop(0)
            older[first : first + 2] = [older[first].add(older[first + 1])]
            same = [nth - 1 for nth in same[1:]]
        size *= 2
    while len(older) > _MOST_SUMS:
        older[:2] = [older[0].add(older[1])]
    return (*older, *kept)


def encode_log(log: BatchLog, most_chars: int = MAX_LOG_CHARS) -> str:
    """Encode a log. Where its text would be longer than that, more batches are summed up, the oldest first.

    "" if not even one row has room.
    """
    rows = log.rows
    while True:
        text = _encode(replace(log, rows=rows))
        if len(text) <= most_chars:
            return text
        if len(rows) > 1:
            # a step takes a quarter of the singles: each attempt deflates all that is left
            singles = sum(row.batches == 1 for row in rows)
            fewer = sum_up(rows, singles * 3 // 4)
            rows = fewer if len(fewer) < len(rows) else (rows[0].add(rows[1]), *rows[2:])
        elif log.applications:
            log = replace(log, applications={})
        else:
            return ""


def _encode(log: BatchLog) -> str:
    runs = {row.run for row in log.rows} | {log.runs}
    now = log.under_way
    document = {
        "v": _FORMAT,
        "w": log.writes,
        "r": log.runs,
        "a": {run: name for run, name in log.applications.items() if run in runs},
        "n": None if now is None else [now.number, now.started_ms, now.replays],
        "d": list(_to_cells(log.rows)),
    }
    plain = json.dumps(document, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(plain, 9)).decode()


def _to_cells(rows: Iterable[BatchRow]) -> Iterator[list[int | None]]:
    before = 0
    for row in rows:
        cells: list[int | None] = [getattr(row, name) for name in _COLUMNS]
        cells[1] = row.started_ms - before
        cells[-1] = row.number - row.first
        before = row.started_ms
        yield cells


def decode_log(text: str) -> BatchLog:
    """Decode a text of ``encode_log``. Raises BatchLogError."""
    try:
        stream = zlib.decompressobj()
        plain = stream.decompress(base64.b64decode(text, validate=True), _MAX_JSON_BYTES)
        if not stream.eof:
            raise BatchLogError("the log of batches is cut off or too long")
        document = json.loads(plain)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise BatchLogError(f"the log of batches cannot be decoded: {error}") from error
    if not isinstance(document, dict) or document.get("v") != _FORMAT:
        raise BatchLogError("the log of batches has another format: a newer version of kohort has written it")
    try:
        return _from_document(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BatchLogError(f"the log of batches has a wrong value: {error!r}") from error


def _from_document(document: JsonObject) -> BatchLog:
    now = document["n"]
    return BatchLog(
        rows=tuple(_from_cells(document["d"])),
        under_way=None if now is None else _under_way(*now),
        writes=_count(document["w"]),
        runs=_count(document["r"]),
        # JSON may have halves of surrogate pairs, which cannot be printed
        applications={
            int(run): str(name).encode(errors="replace").decode() for run, name in document["a"].items()
        },
    )


def _under_way(number: object, started_ms: object, replays: object) -> UnderWay:
    return UnderWay(_count(number), _count(started_ms, most=_LAST_MS), _count(replays))


def _from_cells(rows: Iterable[Sequence[object]]) -> Iterator[BatchRow]:
    before = 0
    for cells in rows:
        named = dict(zip(_COLUMNS, cells, strict=True))
        for name, value in named.items():
            if name in _KNOWN or value is not None:
                named[name] = _count(value, least=-MAX_LONG if name in ("started_ms", "first") else 0)
        before = _count(before + named["started_ms"], most=_LAST_MS)  # type: ignore[operator]
        first = _count(named["number"] - named["first"])  # type: ignore[operator]
        _count(named["batches"], least=1)
        yield BatchRow(**named | {"started_ms": before, "first": first})  # type: ignore[arg-type]


def _count(value: object, least: int = 0, most: int = MAX_LONG) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r:.40} is no number that a log can have")
    return value
