"""Topics of dead letters, found by what is in them: their newest records have the headers of letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...client import EARLIEST, LATEST, Cluster, FetchedPartition
from ...client.requests import NO_RIGHT
from ...consumer.reading.fetched_records import ChunkReader, end_of_run
from ...consumer.record import Record
from ...protocol import CorruptBatchError, TopicPartition
from ...service.letters.failed_records import DeadLetter, read_dead_letter, read_retry
from ..topics.requests import ListedTopic, list_topics, log_offsets

#: What most names of such topics have.
USUAL_NAMES: Final = re.compile("dlt|dlq|dead.?letter", re.IGNORECASE)
#: This many offsets at the end of a partition are read: the last of them may be markers of transactions.
_TAIL: Final = 10
#: Most bytes of a partition in a response, and of a response.
_PARTITION_BYTES: Final = 64 * 1024
_MOST_BYTES: Final = 4 * 1024 * 1024


class LetterTopic(NamedTuple):
    """A topic of dead letters: about how many records it has, the newest letter, and when it was written, in
    ms since 1970.
    """

    topic: str
    records: int
    newest: DeadLetter
    written_ms: int


@dataclass(slots=True, eq=False)
class LetterTopicFinder:
    """Finds topics of dead letters, again and again: a topic that holds other records is read once.

    With ``names`` only topics whose names have it are looked at. ``unreadable`` topics could not be read the
    last time, ``forbidden`` ones among them for want of a right.
    """

    names: re.Pattern[str] | None = None
    unreadable: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    _others: set[object] = field(default_factory=set)
    _known: dict[object, tuple[Mapping[TopicPartition, int], LetterTopic]] = field(default_factory=dict)

    async def find(self, cluster: Cluster) -> list[LetterTopic]:
        """The topics, by name. Topics of retries are left out. Raises KafkaError, BrokerConnectionError."""
        names = self.names
        rows = [
            row
            for row in await list_topics(cluster)
            if not row.internal and (names is None or names.search(row.topic))
        ]
        keys = {row.topic: row.topic_id or row.topic for row in rows}
        asked = [row for row in rows if keys[row.topic] not in self._others]
        starts, ends = await _log_ranges(cluster, asked)
        sizes = {row.topic: 0 for row in asked}
        for place, end in ends.items():
            sizes[place.topic] += end - starts[place]
        filled: dict[str, dict[TopicPartition, int]] = {}
        for place, end in ends.items():
            if end > starts[place]:
                filled.setdefault(place.topic, {})[place] = end
        found, changed = [], {}
        for topic, at in filled.items():
            known = self._known.get(keys[topic])
            if known is not None and known[0] == at:
                found.append(known[1]._replace(records=sizes[topic]))
            else:
                changed[topic] = at
        tails = {
            place: max(starts[place], end - _TAIL) for at in changed.values() for place, end in at.items()
        }
        newest, read, failed = await _read_tails(cluster, tails)
        self._known = {key: row for key, row in self._known.items() if key in keys.values()}
        self.unreadable = sorted(failed)
        self.forbidden = [topic for topic in self.unreadable if failed[topic] in NO_RIGHT]
        for topic, at in changed.items():
            if topic in newest:
                record, says = newest[topic]
                row = LetterTopic(topic, sizes[topic], says, record.timestamp_ms)
                self._known[keys[topic]] = at, row
                found.append(row)
            elif topic in read and topic not in failed:
                self._others.add(keys[topic])
        return sorted(found)


async def _log_ranges(
    cluster: Cluster, topics: list[ListedTopic]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    places = [TopicPartition(row.topic, number) for row in topics for number in range(row.partitions)]
    starts = await log_offsets(cluster, places, EARLIEST)
    ends = await log_offsets(cluster, starts, LATEST)
    return starts, ends


async def _read_tails(
    cluster: Cluster, tails: Mapping[TopicPartition, int]
) -> tuple[dict[str, tuple[Record, DeadLetter]], set[str], dict[str, int]]:
    """The newest letter of each topic that has one, the topics of which records were read, and the errors of
    those that could not be read.
    """
    newest: dict[str, tuple[Record, DeadLetter]] = {}
    read: set[str] = set()
    failed: dict[str, int] = {}
    left = dict(tails)
    while left:
        answer = await cluster.fetch(
            left,
            max_bytes=_MOST_BYTES,
            partition_max_bytes=_PARTITION_BYTES,
            max_wait_ms=0,
            read_committed=True,
        )
        failed |= {place.topic: each.error_code for place, each in answer.items() if each.error_code}
        # a response has room for some partitions: the others are asked again
        taken = {place: each for place, each in answer.items() if each.records and not each.error_code}
        if not taken:
            break
        for place, each in taken.items():
            for record in _records_in(place, each, left[place]):
                read.add(place.topic)
                says = None if read_retry(record) else read_dead_letter(record)
                if says is not None and (
                    place.topic not in newest or record.timestamp_ms >= newest[place.topic][0].timestamp_ms
                ):
                    newest[place.topic] = record, says
        left = {place: at for place, at in left.items() if place not in taken and place.topic not in failed}
    return newest, read, failed


def _records_in(place: TopicPartition, fetched: FetchedPartition, offset: int) -> list[Record]:
    assert fetched.records is not None, "only partitions with records are looked at"
    _, _, damage = end_of_run(fetched.records, offset)
    reader = ChunkReader(place, fetched.records, offset, aborted=fetched.aborted, damage=damage)
    found: list[Record] = []
    with suppress(CorruptBatchError):  # what is damaged is no letter
        while records := reader.read():
            found += records
    return found
