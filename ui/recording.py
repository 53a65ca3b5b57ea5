"""Records all groups of a cluster, of any make, while ``kohort ui`` runs: see ``kohort.recording``.

Once a minute one look at all groups together, which takes few requests, tells lags, and which groups have
changed. The past of those is read as ``kohort groups timeline`` reads it, and every group's once an hour: a
rebalance that changed nothing is found then.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ..admin import Generation, GroupAdmin, GroupHistory
from ..admin.groups.history.generations import FROM_RECORDING, from_events, is_before
from ..admin.groups.history.recorded import merge_entries, past_of, with_what_is_missing
from ..admin.pages.lanes import MOST_SAMPLES, Sample, keep_sample
from ..lag import GroupLag
from ..protocol import EventName, KohortError
from ..recording import END_OF_TIME, EventRow, LagSample, Recorder, RecordingBounds, read_group
from .observer import Observer

log = logging.getLogger("kohort.ui")

#: Seconds between two looks, and looks in which every group's past is read once.
EVERY_S: Final = 60.0
_LOOKS_OF_ALL: Final = 60
#: Groups whose past is read at the same time.
_AT_ONCE: Final = 4
#: Most generations of a group that are read after a change, and most offsets of __consumer_offsets.
_MOST_NEW: Final = 200
_MOST_OFFSETS: Final = 100_000
#: Most moves, and names of members, that are recorded of a generation.
_MOST_LISTED: Final = 200
#: Most generations that a page shows of a recording.
MOST_SHOWN: Final = 300
_DEAD: Final = "Dead"


class ClusterRecorder:
    """Looks at all groups through ``observer``, and records them in ``folder``."""

    def __init__(self, observer: Observer, folder: Path, bounds: RecordingBounds | None = None) -> None:
        self.folder = folder
        self._observer = observer
        self._recorder: Recorder[EventRow] = Recorder(folder, _as_it_is, bounds)
        self._seen: dict[str, int] = {}
        #: Time and number of the newest generation that is recorded, by group.
        self._newest: dict[str, tuple[int, int]] = {}
        self._looks = 0
        self._is_watching = False
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<ClusterRecorder: {len(self._seen)} groups, {self._recorder!r}>"

    def start(self) -> None:
        """Begin to look and to record."""
        self._recorder.start()
        self._task = asyncio.create_task(self._look_again())

    async def close(self) -> None:
        """Look no more, and write what waits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.to_thread(self._recorder.close)

    async def _look_again(self) -> None:
        while True:
            began = time.monotonic()
            try:
                async with self._observer.admin() as admin:
                    await self.look(admin)
            except Exception as error:  # the next look may succeed
                if self._is_watching or not self._looks:
                    log.warning("groups cannot be recorded, which is tried again: %s", error)
                self._looks = max(self._looks, 1)
                if self._is_watching:
                    self._recorder.end_watch()
                    self._is_watching = False
            await asyncio.sleep(max(1.0, EVERY_S - (time.monotonic() - began)))

    async def look(self, admin: GroupAdmin) -> None:
        """Look once. Raises KohortError."""
        groups = await admin.lag()
        if not self._is_watching:
            self._recorder.watch()
            self._is_watching = True
        self._recorder.record_samples(
            LagSample(found.group, found.timestamp_ms, found.records, found.age_ms, found.member_count)
            for found in groups
            if found.records is not None
        )
        gate = asyncio.Semaphore(_AT_ONCE)

        async def read(group: str) -> None:
            async with gate:
                await self._read_past(admin, group)

        await asyncio.gather(*map(read, self._find_due(groups)))
        self._looks += 1

    def _find_due(self, groups: Iterable[GroupLag]) -> list[str]:
        """Groups that have changed since the last look, those that are gone, and a part of the others."""
        due, there = [], set()
        for number, found in enumerate(groups):
            there.add(found.group)
            seen = _digest(found)
            is_new = self._seen.get(found.group) != seen
            self._seen[found.group] = seen
            if is_new or number % _LOOKS_OF_ALL == self._looks % _LOOKS_OF_ALL:
                due.append(found.group)
        gone = self._seen.keys() - there
        for group in gone:
            del self._seen[group]
        return [*due, *sorted(gone)]

    async def _read_past(self, admin: GroupAdmin, group: str) -> None:
        """Record the generations that are not recorded yet."""
        try:
            history = await admin.history(group, _MOST_NEW, max_offsets=_MOST_OFFSETS)
        except KohortError as error:
            log.debug("the past of group %r cannot be read: %s", group, error)
            self._seen.pop(group, None)
            return
        newest = self._newest.get(group)
        if newest is None:
            newest = await asyncio.to_thread(_newest_in, self.folder, group)
        for row in history.generations:
            # epochs may end in the same millisecond
            if (row.timestamp_ms, row.generation) > newest:
                self._recorder.record_event(row_of_generation(group, row), lasting=True)
                newest = row.timestamp_ms, row.generation
        self._newest[group] = newest

    async def with_recorded(self, history: GroupHistory) -> GroupHistory:
        """A history with what is recorded of older generations, with lags, and with what is not known."""
        try:
            found = await asyncio.to_thread(
                partial(read_group, self.folder, history.group, 0, END_OF_TIME, limit=MOST_SHOWN)
            )
        except sqlite3.Error as error:
            return replace(history, unknown=(*history.unknown, f"the recording cannot be read: {error}"))
        past = past_of(found)
        told = from_events(history.group, past.entries, MOST_SHOWN, FROM_RECORDING)
        first = history.generations[0] if history.generations else None
        older = [row for row in told.generations if first is None or is_before(row, first)]
        whole = replace(
            history,
            entries=merge_entries(past.entries, history.entries),
            generations=(*older, *history.generations)[-MOST_SHOWN:],
        )
        return with_what_is_missing(whole, past, None, round(time.time() * 1_000))


def samples_of(history: GroupHistory) -> list[Sample]:
    """Recorded lags, as a page draws them."""
    samples: list[Sample] = []
    step = -(-len(history.lag) // MOST_SAMPLES) or 1
    for at in range(0, len(history.lag), step):
        known = [each for each in history.lag[at : at + step] if each.records is not None]
        if known:
            highest = max(known, key=lambda each: each.records or 0)
            keep_sample(samples, Sample(highest.timestamp_ms, highest.records or 0))
    return samples


def row_of_generation(group: str, row: Generation) -> EventRow:
    """The row of a generation, as a broker's recording has it."""
    details = {
        "state": row.state,
        "members": row.members,
        "members_before": row.members_before,
        "duration_ms": row.duration_ms,
        "join_ms": row.join_ms,
        "protocol": row.protocol,
        "protocol_type": "share" if row.shared else "",
        "leader": row.leader,
        "slowest": row.slowest,
        "slowest_ms": row.slowest_ms,
        "partitions_moved": row.partitions_moved,
    }
    extras: dict[str, object] = {}
    for name, listed in (("joined", row.joined), ("left", row.left), ("moves", row.moves)):
        if listed is not None:
            extras[name] = listed[:_MOST_LISTED]
    return EventRow(
        group,
        row.timestamp_ms,
        EventName.GROUP_REMOVED if row.state == _DEAD and not row.members else EventName.REBALANCE_COMPLETED,
        row.generation,
        row.cause or "",
        row.member or "",
        row.client_id or "",
        row.client_host or "",
        lasting=True,
        details=json.dumps(details, separators=(",", ":")),
        extras=json.dumps(extras, separators=(",", ":")),
    )


def _digest(found: GroupLag) -> int:
    """A number that changes when owners, members or the state do."""
    owners = tuple((row.topic, row.partition, row.members) for row in found.partitions if row.members)
    return hash((found.state, found.member_count, owners))


def _newest_in(folder: Path, group: str) -> tuple[int, int]:
    with suppress(sqlite3.Error):
        for _, event in read_group(folder, group, 0, END_OF_TIME, limit=1, only_lasting=True).rows:
            return event.timestamp_ms, event.generation
    return -1, -1


def _as_it_is(row: EventRow) -> EventRow:
    return row
