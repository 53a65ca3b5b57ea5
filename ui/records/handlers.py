"""Handlers of the pages of records: browsing, searching, one record, and export. Nothing is written."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ...admin import notation
from ...admin.errors import explain_error
from ...admin.records.consume_command import record_row
from ...admin.records.search import (
    FoundRecords,
    RecordSearch,
    SearchCursor,
    StepBounds,
    read_cursor,
    read_found,
    search_step,
    size_of,
)
from ...consumer.record import Record
from ...protocol import KafkaError, KohortError
from .. import layout
from ..fields import NO_TOPIC
from ..guard import is_same_origin
from ..layout import Frame
from ..observer import Observer
from . import pages as record_pages
from .pages import FIELDS, ShownRecord
from .values import BRIEF, WHOLE, DecodedBytes, ValueReader

KeptT = TypeVar("KeptT")

#: Searches and exports at a time; others wait so long, in seconds.
_SEARCHES: Final = 4
_EXPORTS: Final = 2
_WAIT_S: Final = 5.0
#: Records on one page, and headers that are shown of each.
_ROWS: Final = (50, 100, 200)
_MOST_HEADERS: Final = 20
_MOST_HEADERS_WHOLE: Final = 1_000
_MOST_OFFSET: Final = 2**63 - 2
#: A cell that begins with one of these is a formula for programs that open tables.
_FORMULA: Final = tuple("=+-@\t\r")
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "error")
_MEDIA: Final = {"json": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class RecordQuery:
    """What the address of a page asks for. ``given`` are its fields. Raises ValueError for odd ones."""

    def __init__(self, given: Mapping[str, str], values: ValueReader) -> None:
        #: The fields that are given, for the form and for links.
        self.given = {name: given[name].strip() for name in FIELDS if given.get(name, "").strip()}
        self._values = values
        if not self._field("name"):
            raise ValueError(NO_TOPIC)
        self.key, self.text = self._field("key"), self._field("text").casefold()
        self.where = self._field("in")
        if self.where not in record_pages.PLACES:
            raise ValueError(f"{self.where!r} is no part of a record")
        now_ms = round(time.time() * 1_000)
        since, until = self._field("since"), self._field("until")
        partition, offset = self._number("partition"), self._number("offset")
        self.search = RecordSearch(
            self._field("name"),
            None if partition is None else [partition],
            newest_first=self._field("order") != "oldest",
            offset=offset,
            since_ms=notation.moment_ms(since, now_ms) if since else None,
            until_ms=notation.moment_ms(until, now_ms, is_end=True) if until else None,
            read_committed="committed" in self.given,
            matches=self._matches if self.key or self.text else None,
        )
        rows = self._number("rows") or _ROWS[0]
        self.rows = min(rows, _ROWS[-1])
        self.cursor = read_cursor(given["from"]) if given.get("from") else None

    def _field(self, name: str) -> str:
        return self.given.get(name, "")

    def _number(self, name: str) -> int | None:
        text = self._field(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _MOST_OFFSET):
            raise ValueError(f"{text!r} is no {name}: give a whole number from 0 on")
        return int(text)

    def _matches(self, record: Record) -> bool:
        values, text = self._values, self.text
        if self.key and not values.equals(record.key, self.key):
            return False
        if not text:
            return True
        if self.where in ("", "key") and values.contains(record.key, text):
            return True
        if self.where in ("", "value") and values.contains(record.value, text):
            return True
        return self.where in ("", "headers") and any(
            text in name.casefold() or values.contains(value, text) for name, value in record.headers
        )


@dataclass(slots=True, eq=False)
class RecordPages:
    """The handlers. ``patience_s`` bounds the wait for records; ``frame_of`` is that of all pages."""

    observer: Observer
    patience_s: float
    frame_of: Callable[[Request], Frame]
    values: ValueReader
    searching: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_SEARCHES))
    exporting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_EXPORTS))

    async def records(self, request: Request) -> Response:
        """Records that are found, with the form to search."""
        given = dict(request.query_params)
        name, found, trouble, status = given.get("name", ""), None, "", 200
        try:
            query = RecordQuery(given, self.values)
            fields = query.given
            found = await self._search(query.search, query.cursor, StepBounds(query.rows), self._show)
        except ValueError as error:
            fields, trouble, status = given, str(error), 400
        except KafkaError as error:
            trouble, status = explain_error(error), 502
        except KohortError as error:
            trouble, status = str(error), 502
        body = record_pages.records(fields, found, _ROWS)
        frame = self.frame_of(request)
        return layout.page(frame, f"Records of {name}", body, at="Topics", trouble=trouble, status=status)

    async def record(self, request: Request) -> Response:
        """One record, as much of it as is fit to be shown."""
        query = self._single(request)
        kept = await self._find_one(query, lambda record: self._show(record, WHOLE, indent=2))
        body = record_pages.record(query.given, kept)
        title = f"Record {query.search.offset} of {query.search.topic}-{query.given.get('partition', '')}"
        return layout.page(self.frame_of(request), title, body, at="Topics")

    async def value(self, request: Request) -> Response:
        """All bytes of a record's value, or key, as a file."""
        query = self._single(request)
        part = "key" if request.query_params.get("part") == "key" else "value"
        data = await self._find_one(query, lambda record: record.key if part == "key" else record.value)
        if data is None:
            raise HTTPException(404, f"there is no such record, or its {part} is null")
        name = f"{query.search.topic}-{query.given['partition']}-{query.search.offset}-{part}.bin"
        return Response(data, media_type="application/octet-stream", headers=_as_file(name))

    async def export(self, request: Request) -> Response:
        """All records of a search, as JSON lines or as a table, streamed."""
        if not is_same_origin(request.headers):
            raise HTTPException(403, "an export begins from a page of kohort ui: open the search there")
        kind = request.query_params.get("format", "json")
        if kind not in _MEDIA:
            raise HTTPException(400, f"{kind!r} is no format: give json or csv")
        try:
            query = RecordQuery(request.query_params, self.values)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        if self.exporting.locked():
            raise HTTPException(503, f"{_EXPORTS} exports are being written: try again when one has ended")
        stream = self._write_found(query, _as_csv if kind == "csv" else _as_lines)
        # what keeps it from beginning is told by a page, not by a file that ends at once
        first = await anext(stream)

        async def all_of_it() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(stream):
                yield first
                async for part in stream:
                    yield part

        name = f"{query.search.topic}.{'csv' if kind == 'csv' else 'jsonl'}"
        return StreamingResponse(all_of_it(), media_type=_MEDIA[kind], headers=_as_file(name))

    async def _write_found(
        self, query: RecordQuery, write: Callable[[Sequence[dict[str, object]]], bytes]
    ) -> AsyncGenerator[bytes]:
        notes: list[str] = []
        has_begun = False
        async with self.exporting, self.observer.admin() as admin:
            stream = read_found(admin.cluster, query.search, notes.append, self.patience_s)
            async with contextlib.aclosing(stream):
                try:
                    async for records in stream:
                        rows = await asyncio.to_thread(self._rows_of, records)
                        if not has_begun:
                            has_begun = True
                            yield write(())
                        yield write([*_note_rows(notes), *rows])
                except KohortError as error:
                    if not has_begun:
                        raise
                    notes.append(f"the rest could not be read: {error}")
        if not has_begun:
            yield write(())
        yield write(_note_rows(notes))

    def _rows_of(self, records: Iterable[Record]) -> list[dict[str, object]]:
        return [self._row_of(record) for record in records]

    def _row_of(self, record: Record) -> dict[str, object]:
        row = record_row(record)
        for name, data in (("decoded", record.value), ("decoded_key", record.key)):
            decoded = self.values.decoded(data)
            if isinstance(decoded, DecodedBytes):
                row[name] = decoded.value
        return row

    def _single(self, request: Request) -> RecordQuery:
        """The query for one record. Raises HTTPException."""
        try:
            query = RecordQuery({**request.query_params, "order": "oldest"}, self.values)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        if query.search.partitions is None or query.search.offset is None:
            raise HTTPException(400, "give a partition and an offset")
        return query

    async def _find_one(self, query: RecordQuery, keep: Callable[[Record], KeptT]) -> KeptT | None:
        asked = query.search
        search = RecordSearch(
            *(asked.topic, asked.partitions, False, asked.offset),
            matches=lambda record: record.offset == asked.offset,
        )
        found = await self._search(search, None, StepBounds(1, 1), keep)
        return found.found[0] if found.found else None

    async def _search(
        self,
        search: RecordSearch,
        cursor: SearchCursor | None,
        bounds: StepBounds,
        keep: Callable[[Record], KeptT],
    ) -> FoundRecords[KeptT]:
        try:
            async with asyncio.timeout(_WAIT_S):
                await self.searching.acquire()
        except TimeoutError:
            raise HTTPException(503, f"{_SEARCHES} searches are under way: try again") from None
        try:
            async with self.observer.admin() as admin:
                return await search_step(admin.cluster, search, keep, cursor, bounds, self.patience_s)
        finally:
            self.searching.release()

    def _show(self, record: Record, most: int = BRIEF, *, indent: int | None = None) -> ShownRecord:
        shown = _MOST_HEADERS if indent is None else _MOST_HEADERS_WHOLE
        return ShownRecord(
            *(record.partition, record.offset, record.timestamp_ms),
            self.values.show(record.key, most, indent=indent),
            self.values.show(record.value, most, indent=indent),
            tuple((name[:most], self.values.show(value, most)) for name, value in record.headers[:shown]),
            len(record.headers),
            size_of(record),
        )


def _note_rows(notes: list[str]) -> list[dict[str, object]]:
    """What could not be read, each told once."""
    rows: list[dict[str, object]] = [{"error": note} for note in notes]
    notes.clear()
    return rows


def _as_lines(rows: Sequence[dict[str, object]]) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return "".join(lines).encode(errors="replace")


def _as_csv(rows: Sequence[dict[str, object]]) -> bytes:
    """Rows of a table. In front of all, which is asked for by (), are its headings."""
    out = io.StringIO()
    writer = csv.writer(out)
    if rows == ():
        writer.writerow(_COLUMNS)
    for row in rows:
        key, value = row.get("decoded_key", row.get("key")), row.get("decoded", row.get("value"))
        cells = {**row, "key": key, "value": value}
        writer.writerow([_cell(cells.get(name)) for name in _COLUMNS])
    return out.getvalue().encode(errors="replace")


def _cell(value: object) -> object:
    """A cell of a table: texts that a program would take for a formula begin with an apostrophe."""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) and not _is_number(value) else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii()


def _as_file(name: str) -> dict[str, str]:
    safe = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name)
    return {"content-disposition": f'attachment; filename="{safe}"'}
