"""Views of dead letters: topics that have some, and the newest letters of a topic or of a share group."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from ...admin import GroupAdmin
from ...admin.notation import bytes_as_json
from ...admin.records.letter_topics import LetterTopic, LetterTopicFinder
from ...admin.records.letters import (
    Letter,
    LetterFilter,
    letter_ranges,
    progress_group,
    read_archived_letters,
    read_letters,
)
from ...admin.visibility import ask_hidden_topics
from ...client import Cluster
from ...protocol import KafkaError, TopicPartition
from ...service.letters.failed_records import DeadLetter
from ..observer import View

#: Most letters of a topic that are shown, and most characters of a key or a value.
MOST_LETTERS: Final = 1_000
_SHOWN: Final = 400
#: Most characters of a stack, of which the end says most, and of each other text of a letter. Services write
#: no more; whoever else writes letters may.
_STACK_SHOWN: Final = 8_000
_TEXT_SHOWN: Final = 1_000
#: Longest wait for records, in seconds, before a look is given up.
_PATIENCE_S: Final = 15.0


class LetterRow(NamedTuple):
    """A letter as it is shown. ``replayed``: a replay of all letters of its topic has written it."""

    place: str
    partition: TopicPartition
    offset: int
    timestamp_ms: int
    says: DeadLetter
    key: str
    value: str
    replayed: bool = False


class LetterTopicsView(View):
    """Topics of dead letters."""

    every_s = 10.0

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[LetterTopic] = []
        self.unreadable: list[str] = []
        self.hidden: tuple[str, ...] = ()
        self._finder = LetterTopicFinder()

    async def look(self, admin: GroupAdmin) -> None:
        """Find the topics of letters; those that are known are not read again."""
        found_topics = await self._finder.find(admin.cluster)
        rows = [row._replace(newest=_brief_letter(row.newest)) for row in found_topics]
        found = (rows, self._finder.unreadable, await ask_hidden_topics(admin.cluster))
        if found != (self.rows, self.unreadable, self.hidden) or not self.version:
            self.rows, self.unreadable, self.hidden = found
            self.tell("page", None)


class LettersView(View):
    """The newest letters of a topic, the newest first; ``older`` records before them were not read."""

    every_s = 5.0

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.rows: list[LetterRow] = []
        self.notes: list[str] = []
        self._read_to: dict[TopicPartition, int] = {}
        self._topic_id: object = None

    async def look(self, admin: GroupAdmin) -> None:
        """Read the letters that have come since the last look; all of them if the topic was made anew."""
        cluster = admin.cluster
        topic_id = (await cluster.metadata([self.name])).topic_id(self.name)
        starts, ends = await letter_ranges(cluster, self.name)
        # brokers of old do not tell ids
        if topic_id != self._topic_id or any(
            ends.get(place, -1) < offset for place, offset in self._read_to.items()
        ):
            self.rows, self._read_to = [], {}  # another topic has its name now
        self._topic_id = topic_id
        begun = {
            place: max(starts[place], self._read_to.get(place, end - MOST_LETTERS))
            for place, end in ends.items()
        }
        rows = [row for row in self.rows if row.offset >= starts[row.partition]]
        async for letters in read_letters(cluster, begun, ends, _PATIENCE_S):
            rows = _newest_rows([*rows, *_rows_of(letters)])
        self._read_to = dict(ends)
        done = await _replayed_to(cluster, self.name, starts)
        rows = [row._replace(replayed=row.offset < done.get(row.partition, 0)) for row in rows]
        self._show_rows(rows, _notes_on(rows, sum(ends[place] - starts[place] for place in ends)))

    def _show_rows(self, rows: list[LetterRow], notes: list[str]) -> None:
        if (rows, notes) != (self.rows, self.notes) or not self.version:
            self.rows, self.notes = rows, notes
            self.tell("page", None)


class ArchivedView(LettersView):
    """What a share group archived, the newest records first."""

    every_s = 10.0

    async def look(self, admin: GroupAdmin) -> None:
        """Read what brokers have told as archived, and cannot say of what was dropped."""
        notes: list[str] = []
        rows: list[LetterRow] = []
        read = read_archived_letters(admin.cluster, self.name, LetterFilter(), _PATIENCE_S, notes.append)
        async for letters in read:
            rows = _newest_rows([*rows, *_rows_of(letters)])
        self._show_rows(rows, notes)


def _rows_of(letters: Iterable[Letter]) -> Iterable[LetterRow]:
    for letter in letters:
        record = letter.record
        if letter.says is not None:
            yield LetterRow(
                letter.place,
                record.topic_partition,
                record.offset,
                record.timestamp_ms,
                _brief_letter(letter.says),
                _brief_text(record.key),
                _brief_text(record.value),
            )


def _newest_rows(rows: list[LetterRow]) -> list[LetterRow]:
    rows.sort(key=lambda row: (-row.timestamp_ms, row.partition, -row.offset))
    return rows[:MOST_LETTERS]


def _notes_on(rows: list[LetterRow], records: int) -> list[str]:
    if records <= len(rows):
        return []
    return [
        f"The newest letters are shown, {MOST_LETTERS:,} at most. The topic has about {records:,} records."
    ]


def _brief_letter(says: DeadLetter) -> DeadLetter:
    stack = says.error_stack
    return says._replace(
        topic=_cut(says.topic),
        group=_cut(says.group),
        error_class=_cut(says.error_class),
        error_message=_cut(says.error_message),
        error_stack=stack if len(stack) <= _STACK_SHOWN else f"...{stack[3 - _STACK_SHOWN :]}",
    )


def _cut(text: str, most: int = _TEXT_SHOWN) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _brief_text(given: bytes | None) -> str:
    if given is None:
        return ""
    shown = bytes_as_json(given)
    text = shown if isinstance(shown, str) else json.dumps(shown)
    return _cut(text, _SHOWN)


async def _replayed_to(
    cluster: Cluster, topic: str, places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where the next replay of all letters begins; nothing where there was none, or it may not be seen."""
    try:
        found = await cluster.committed(progress_group(topic), places)
    except KafkaError:
        return {}
    return {place: at.offset for place, at in found.items()}
