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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ..admin import Generation, GroupAdmin, GroupHistory
from ..admin.groups.history.generations import FROM_RECORDING, from_events, is_before
from ..admin.groups.history.recorded import merge_entries, past_of, with_what_is_missing
from ..admin.groups.results import TimeStretch
from ..admin.pages.lanes import MOST_SAMPLES, Sample, keep_sample
from ..admin.visibility import ask_hidden_groups
from ..client import ConfigError
from ..lag import GroupLag
from ..protocol import EventName, KohortError
from ..recording import END_OF_TIME, EventRow, LagSample, Recorder, RecordingBounds, read_group
from .observer import Observer

log = logging.getLogger("kohort.ui")

#: Seconds between two looks, and looks in which every group's past is read once.
EVERY_S: Final = 60.0
_LOOKS_OF_ALL: Final = 60
#: For how long rebalances are counted, in ms.
RECENT_MS: Final = 600_000
#: Groups whose past is read at the same time.
_AT_ONCE: Final = 4
#: Most generations of a group that are read after a change, and most offsets of __consumer_offsets.
_MOST_NEW: Final = 200
_MOST_OFFSETS: Final = 100_000
#: Most generations that are remembered of a time when a broker's clock was ahead.
_MOST_AHEAD: Final = 1_000
#: Most moves, and names of members, that are recorded of a generation.
_MOST_LISTED: Final = 200
#: Most generations that a page shows of a recording.
MOST_SHOWN: Final = 300
_DEAD: Final = "Dead"
#: The file in the folder that has the id of the cluster.
_CLUSTER_FILE: Final = "cluster.id"


@dataclass(slots=True)
class _Recorded:
    """Which generations of a group are recorded, by time and number: all until ``newest``, and those of
    ``ahead``, which a broker whose clock is ahead has stamped.
    """

    newest: tuple[int, int]
    ahead: set[tuple[int, int]]

    def settle(self, now_ms: int) -> None:
        """Count what is no longer in the future among what is recorded until ``newest``."""
        past = {each for each in self.ahead if each[0] <= now_ms}
        self.newest = max({self.newest, *past})
        self.ahead -= past


class ClusterRecorder:
    """Looks at all groups through ``observer``, and records them in ``folder``."""

    def __init__(self, observer: Observer, folder: Path, bounds: RecordingBounds | None = None) -> None:
        self.folder = folder
        self._observer = observer
        self._recorder: Recorder[EventRow] = Recorder(folder, _as_it_is, bounds)
        self._seen: dict[str, int] = {}
        self._recorded: dict[str, _Recorded] = {}
        #: When the last generations ended, by group.
        self._recent: dict[str, list[int]] = {}
        #: Why nothing is recorded here, and nothing shown of it.
        self._foreign = ""
        self._looks = 0
        self._is_watching = self._is_told_hidden = False
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
        found = await asyncio.to_thread(_claim_folder, self.folder, admin.cluster.known_metadata.cluster_id)
        self._foreign = found
        if found:
            raise ConfigError(found)
        self._note_hidden(await ask_hidden_groups(admin.cluster))
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
        for group in self._recorded.keys() - self._seen.keys():
            del self._recorded[group]
        self.count_rebalances()  # forgets older ones
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
        now_ms = time.time_ns() // 1_000_000
        known = self._recorded.get(group)
        # if it is in the future, this machine's clock was ahead
        if known is None or known.newest[0] > now_ms:
            known = self._recorded[group] = await asyncio.to_thread(
                _find_recorded, self.folder, group, now_ms
            )
        for row in history.generations:
            # epochs may end in the same millisecond
            key = row.timestamp_ms, row.generation
            if key > known.newest and key not in known.ahead:
                self._recorder.record_event(row_of_generation(group, row), lasting=True)
                known.ahead.add(key)
                self._recent.setdefault(group, []).append(min(row.timestamp_ms, now_ms))
        known.settle(now_ms)

    def _note_hidden(self, hidden: Sequence[str]) -> None:
        for words in hidden:
            self._recorder.note_hidden()
            if not self._is_told_hidden:
                log.warning("not all groups are recorded in %s: %s", self.folder, words)
        self._is_told_hidden = bool(hidden)

    def count_rebalances(self) -> dict[str, int]:
        """How many rebalances of each group have ended in the last ten minutes, as far as it has looked."""
        since_ms = round(time.time() * 1_000) - RECENT_MS
        late = {group: [at for at in times if at >= since_ms] for group, times in self._recent.items()}
        self._recent = {group: times for group, times in late.items() if times}
        return {group: len(times) for group, times in self._recent.items()}

    async def with_recorded(
        self, history: GroupHistory, stretch: TimeStretch | None = None, limit: int = MOST_SHOWN
    ) -> GroupHistory:
        """A history with what is recorded of older generations, with lags, and with what is not known: of
        ``stretch``, or of all, with ``limit`` generations at most.
        """
        if self._foreign:
            return replace(history, unknown=(*history.unknown, self._foreign))
        from_ms, until_ms = (0, -1) if stretch is None else stretch
        try:
            found = await asyncio.to_thread(
                partial(
                    read_group,
                    self.folder,
                    history.group,
                    from_ms,
                    END_OF_TIME if until_ms < 0 else until_ms,
                    limit=limit,
                )
            )
        except sqlite3.Error as error:
            return replace(history, unknown=(*history.unknown, f"the recording cannot be read: {error}"))
        past = past_of(found)
        told = from_events(history.group, past.entries, limit, FROM_RECORDING)
        first = history.generations[0] if history.generations else None
        older = [row for row in told.generations if first is None or is_before(row, first)]
        whole = replace(
            history,
            entries=merge_entries(past.entries, history.entries),
            generations=(*older, *history.generations)[-limit:],
        )
        return with_what_is_missing(whole, past, stretch, round(time.time() * 1_000))


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


def _claim_folder(folder: Path, cluster_id: str | None) -> str:
    """Note whose groups are recorded in a folder; return what is wrong if they are another cluster's."""
    file = folder / _CLUSTER_FILE
    with suppress(OSError):  # the recorder says so if the folder cannot be written to
        if file.exists():
            owner = file.read_text("utf-8", "replace").strip()
            if cluster_id not in (None, owner):
                return f"{folder} has the recording of cluster {owner}, and this is {cluster_id}"
        elif cluster_id is not None:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(cluster_id, "utf-8")
    return ""


def _find_recorded(folder: Path, group: str, now_ms: int) -> _Recorded:
    newest = _read_newest(folder, group, 0, now_ms, 1)
    return _Recorded(
        max(newest, default=(-1, -1)), _read_newest(folder, group, now_ms + 1, END_OF_TIME, _MOST_AHEAD)
    )


def _read_newest(folder: Path, group: str, from_ms: int, until_ms: int, limit: int) -> set[tuple[int, int]]:
    with suppress(sqlite3.Error):
        rows = read_group(folder, group, from_ms, until_ms, limit=limit, only_lasting=True).rows
        return {(event.timestamp_ms, event.generation) for _, event in rows}
    return set()


def _as_it_is(row: EventRow) -> EventRow:
    return row
