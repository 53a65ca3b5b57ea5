"""The past of a group from recordings: those of kohort brokers, asked, or one in a folder, read.

Each broker of a cluster has recorded the groups that it coordinated, so all are asked. What several sources
tell is told once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....client import BrokerConnectionError, Cluster, ConfigError
from ....protocol import ApiKey, EventName, JsonObject, KafkaError, UnsupportedVersionError
from ....protocol.messages.describe_group_recording import (
    DescribeGroupRecordingRequest,
    DescribeGroupRecordingResponse,
)
from ... import notation
from ..results import GroupHistory, HistoryEntry, LagPoint, TimeStretch

if TYPE_CHECKING:
    from ....recording import GroupRecording

#: Most entries that are read of one recording, and of one answer.
_MOST_ENTRIES: Final = 100_000
_PER_ANSWER: Final = 1_000

#: A recording's end is as old as this at most while somebody records.
_STILL_WATCHED_MS: Final = 15_000

#: Most stretches that are named, one by one.
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class RecordedPast:
    """What recordings have of a group, oldest first. Nobody recorded outside ``watched``; ``lost`` has
    stretches with the number of events that are missing. Before ``details_from_ms`` only ends of generations
    are left, and before ``events_from_ms`` nothing. ``hidden_ms`` is when groups may last have been hidden
    from who recorded. ``silent`` brokers did not answer.
    """

    entries: tuple[HistoryEntry, ...] = ()
    watched: tuple[TimeStretch, ...] = ()
    lost: tuple[tuple[TimeStretch, int], ...] = ()
    samples: tuple[LagPoint, ...] = ()
    details_from_ms: int = 0
    events_from_ms: int = 0
    hidden_ms: int = 0
    is_recording: bool = True
    silent: tuple[int, ...] = ()

    def gaps(self, from_ms: int, until_ms: int) -> tuple[TimeStretch, ...]:
        """Parts of a stretch until now at most in which nobody recorded."""
        # opening a file takes longer than most commands, and needs no part of this
        from ....recording import Stretch, gaps_between

        watched = tuple(Stretch(*each) for each in self.watched)
        gaps = [TimeStretch(*each) for each in gaps_between(watched, from_ms, until_ms)]
        if gaps and gaps[-1].until_ms == until_ms and until_ms - gaps[-1].from_ms <= _STILL_WATCHED_MS:
            gaps.pop()
        return tuple(gaps)


async def ask_recordings(
    cluster: Cluster, group: str, stretch: TimeStretch, wanted: int, *, only_lasting: bool
) -> RecordedPast:
    """Ask every broker for what it has recorded: the newest ``wanted`` entries of a stretch, or some more."""

    async def ask(node: int) -> list[DescribeGroupRecordingResponse] | None:
        try:
            return await _ask_one(cluster, node, group, stretch, wanted, only_lasting)
        except (UnsupportedVersionError, BrokerConnectionError):
            return None

    nodes = sorted((await cluster.metadata([])).nodes)
    told = dict(zip(nodes, await asyncio.gather(*map(ask, nodes)), strict=True))
    found = merge_pasts([_past_in(answers) for answers in told.values() if answers])
    return replace(found, silent=tuple(node for node, answers in told.items() if answers is None))


async def _ask_one(
    cluster: Cluster, node: int, group: str, stretch: TimeStretch, wanted: int, only_lasting: bool
) -> list[DescribeGroupRecordingResponse]:
    """Answers of one broker, the newest first."""
    answers: list[DescribeGroupRecordingResponse] = []
    count, before = 0, (-1, -1)
    while count < min(wanted, _MOST_ENTRIES):
        body = DescribeGroupRecordingRequest(
            group, *stretch, min(_PER_ANSWER, wanted - count), only_lasting, *before
        )
        answer = await cluster.request(node, ApiKey.DESCRIBE_GROUP_RECORDING, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message or f"the recording of group {group!r}")
        answers.append(answer)
        if not answer.has_older or not answer.entries:
            break
        count += len(answer.entries)
        before = answer.entries[0].timestamp_ms, answer.entries[0].number
    return answers


def _past_in(answers: Sequence[DescribeGroupRecordingResponse]) -> RecordedPast:
    first = answers[0]
    return RecordedPast(
        tuple(
            HistoryEntry(
                -1,
                row.timestamp_ms,
                row.kind,
                row.generation,
                row.cause,
                row.member,
                row.client_id,
                row.client_host,
                _details_in(row.details, row.extras),
            )
            for answer in reversed(answers)
            for row in answer.entries
        ),
        tuple(TimeStretch(*row) for row in first.watched),
        tuple((TimeStretch(row.from_ms, row.until_ms), row.lost) for row in first.losses),
        tuple(
            LagPoint(row.timestamp_ms, *(None if value < 0 else value for value in row[1:]))
            for row in first.samples
        ),
        first.details_from_ms,
        first.events_from_ms,
        is_recording=first.is_recording,
    )


def read_folder(
    folder: str, group: str, stretch: TimeStretch, wanted: int, *, only_lasting: bool
) -> RecordedPast:
    """Read the recording in a folder. Raises ConfigError."""
    import sqlite3

    from ....recording import END_OF_TIME, FILE_NAME, group_names, read_group

    place = Path(folder)
    if not (place / FILE_NAME).is_file():
        raise ConfigError(f"there is no recording in {folder}: give the folder of 'kohort ui --record'")
    until_ms = END_OF_TIME if stretch.until_ms < 0 else stretch.until_ms
    try:
        found = read_group(
            place,
            group,
            stretch.from_ms,
            until_ms,
            scopes=None,
            limit=min(wanted, _MOST_ENTRIES),
            only_lasting=only_lasting,
        )
        if not (found.rows or found.samples) and group not in group_names(place):
            hidden = "; its user could not see every group" if found.hidden_ms else ""
            raise ConfigError(f"the recording in {folder} knows no group {group!r}{hidden}")
    except sqlite3.Error as error:
        raise ConfigError(f"the recording in {folder} cannot be read: {error}") from None
    return past_of(found)


def past_of(found: GroupRecording) -> RecordedPast:
    """What a recording has of a group."""
    return RecordedPast(
        tuple(
            HistoryEntry(-1, *event[1:8], _details_in(event.details, event.extras)) for _, event in found.rows
        ),
        tuple(TimeStretch(*each) for each in found.watched),
        tuple((TimeStretch(each.from_ms, each.until_ms), each.lost) for each in found.losses),
        tuple(LagPoint(*each[1:]) for each in found.samples),
        found.details_from_ms,
        found.events_from_ms,
        found.hidden_ms,
    )


def _details_in(details: str, extras: str) -> JsonObject:
    found: JsonObject = json.loads(details) if details else {}
    return {**found, **json.loads(extras)} if extras else found


def merge_pasts(pasts: Sequence[RecordedPast]) -> RecordedPast:
    """What several brokers have recorded of a group."""
    if not pasts:
        return RecordedPast(is_recording=False)
    return RecordedPast(
        merge_entries(*(past.entries for past in pasts)),
        tuple(sorted(stretch for past in pasts for stretch in past.watched)),
        tuple(sorted(loss for past in pasts for loss in past.lost)),
        tuple(sorted((sample for past in pasts for sample in past.samples), key=lambda each: each[0])),
        max(past.details_from_ms for past in pasts),
        max(past.events_from_ms for past in pasts),
        is_recording=any(past.is_recording for past in pasts),
    )


def merge_entries(*sources: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    """Entries of all sources in the order of time; of those that are in several, that of the last source."""
    found = {
        (entry.timestamp_ms, entry.kind, entry.generation, entry.member, entry.cause): entry
        for source in sources
        for entry in source
    }
    return tuple(sorted(found.values(), key=lambda entry: entry.timestamp_ms))


def cut_entries(entries: Iterable[HistoryEntry], stretch: TimeStretch) -> tuple[HistoryEntry, ...]:
    """Entries of a stretch of time."""
    return tuple(entry for entry in entries if stretch.has(entry.timestamp_ms))


def hidden_stretches(
    gaps: Iterable[TimeStretch], numbers: Iterable[tuple[int, int]]
) -> tuple[TimeStretch, ...]:
    """The gaps in which generations may have ended that nobody tells of. ``numbers`` has times and numbers of
    the known ones, oldest first: between two that follow each other nothing happened.
    """
    known = list(numbers)
    quiet = [(before[0], after[0]) for before, after in pairwise(known) if after[1] == before[1] + 1]
    return tuple(
        gap for gap in gaps if not any(begin <= gap.from_ms and gap.until_ms <= end for begin, end in quiet)
    )


def with_what_is_missing(
    told: GroupHistory, past: RecordedPast, stretch: TimeStretch | None, now_ms: int
) -> GroupHistory:
    """The history with lags, gaps, and what else is not known of ``stretch``; None: of what it tells."""
    if stretch is None or not stretch.from_ms:
        begins = [row.timestamp_ms for row in told.generations[:1]]
        begins += [entry.timestamp_ms for entry in told.entries[:1]]
        begins += [each.from_ms for each in past.watched[:1]]
        stretch = TimeStretch(min(begins, default=now_ms), -1 if stretch is None else stretch.until_ms)
    until_ms = now_ms if stretch.until_ms < 0 else min(stretch.until_ms, now_ms)
    gaps = past.gaps(stretch.from_ms, until_ms)
    numbers = [(row.timestamp_ms, row.generation) for row in told.generations]
    return replace(
        told,
        gaps=hidden_stretches(gaps, numbers),
        lag=past.samples,
        unknown=(*told.unknown, *words_of_what_is_missing(past, gaps, stretch)),
    )


def words_of_what_is_missing(
    past: RecordedPast, gaps: Sequence[TimeStretch], stretch: TimeStretch
) -> list[str]:
    """What is not known of a stretch of time, in words."""
    words = [f"nobody recorded this group from {_spoken(gap)}" for gap in gaps[-_MOST_NAMED:]]
    if len(gaps) > _MOST_NAMED:
        words.insert(0, f"nor in {len(gaps) - _MOST_NAMED} earlier stretches")
        words.append(words.pop(0))
    losses = [(when, count) for when, count in past.lost if when.until_ms >= stretch.from_ms]
    words += [
        f"{count} events could not be recorded, of this group or of others, from {_spoken(when)}"
        for when, count in losses[-_MOST_NAMED:]
    ]
    if past.hidden_ms and past.hidden_ms >= stretch.from_ms:
        words.append(
            f"until {notation.utc(past.hidden_ms)} the user of 'kohort ui' had no right to see every group: "
            "nothing was recorded of this one while it was hidden"
        )
    if (
        past.events_from_ms > stretch.from_ms
        and past.watched
        and past.watched[0].from_ms < past.events_from_ms
    ):
        words.append(
            f"what was recorded before {notation.utc(past.events_from_ms)} has made way for newer events"
        )
    if any(
        entry.kind == EventName.REBALANCE_COMPLETED and entry.timestamp_ms < past.details_from_ms
        for entry in past.entries
    ):
        words.append(
            f"of what was before {notation.utc(past.details_from_ms)} causes are kept, but not what moved"
        )
    if past.silent:
        named = ", ".join(map(str, past.silent))
        words.append(f"no recording was told by node {named}: it did not answer, or keeps none")
    return words


def _spoken(stretch: TimeStretch) -> str:
    return f"{notation.utc(stretch.from_ms)} to {notation.utc(stretch.until_ms)}"
