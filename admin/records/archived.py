"""Records that a share group archived: members rejected them, or gave them back on their last delivery.

Only kohort's brokers tell of them, in events of the leaders of their partitions: in memory, the newest ones
of the group. The records themselves are in their topics.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...client import Cluster
from ...consumer.record import Record
from ...protocol import ErrorCode, EventName, KafkaError, TopicPartition
from ..errors import advise_error
from ..groups.requests import describe_group
from ..groups.results import SHARE, HistoryEntry
from ..groups.share_groups import ask_leaders
from ..topics.requests import ranges
from .reader import TopicReader

_REASONS: Final[dict[str, str]] = {
    EventName.SHARE_RECORDS_REJECTED: "rejected",
    EventName.SHARE_RECORDS_EXHAUSTED: "delivery-limit",
}
#: Offsets no further apart than this are read together.
_NEAR: Final = 500


class Archiving(NamedTuple):
    """How a record was archived: why, at which delivery, by which member, and when, in ms since 1970."""

    reason: str
    delivery_count: int
    member: str
    timestamp_ms: int


@dataclass(slots=True)
class ArchivedOffsets:
    """The archived offsets that brokers name. ``unnamed`` records were archived, too, and ``displaced``
    events may have named more; the brokers ``silent`` name nothing.
    """

    places: dict[TopicPartition, dict[int, Archiving]] = field(default_factory=dict)
    unnamed: int = 0
    displaced: int = 0
    silent: tuple[int, ...] = ()

    def note_event(self, event: HistoryEntry) -> None:
        """Take in an event of a share partition."""
        reason = _REASONS.get(event.kind)
        if reason is None:
            return
        said = event.details
        named = list(_offsets_in(said["offsets"]))
        how = Archiving(reason, said["delivery_count"], event.member, event.timestamp_ms)
        place = TopicPartition(said["topic"], said["partition"])
        self.places.setdefault(place, {}).update(dict.fromkeys(named, how))
        self.unnamed += said["records"] - len(named)


def _offsets_in(text: str) -> Iterable[int]:
    """Yield the offsets of ``2 5-7``."""
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


async def find_archived(cluster: Cluster, group: str) -> ArchivedOffsets:
    """Ask brokers what a share group archived. Raises KafkaError, if no broker can tell for example."""
    description = await describe_group(cluster, group)
    if description.group_type != SHARE:
        is_other = f"is no share group, it is of type {description.group_type!r}"
        text = f"group {group!r} {is_other if description.exists else 'does not exist'}"
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, text)
    told = await ask_leaders(cluster, group)
    if not told.answered:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"no broker tells what share group {group!r} archived: only kohort's brokers do. Apache Kafka "
            "keeps of such records no more than their state in __share_group_state, and that only until all "
            "records before them are done. Set records aside in a dead-letter topic before they are rejected",
        )
    found = ArchivedOffsets(displaced=told.displaced, silent=told.silent)
    for event in told.entries:
        found.note_event(event)
    return found


async def read_archived(
    cluster: Cluster, places: Mapping[TopicPartition, Collection[int]], patience_s: float
) -> AsyncGenerator[list[Record]]:
    """Yield the records at these offsets that their topics still have. Raises what TopicReader raises."""
    known = await cluster.metadata({place.topic for place in places})
    there = [place for place in places if place in known.partitions(place.topic)]
    starts, ends = await ranges(cluster, there, read_committed=True)
    spans = {
        place: _spans_of(offset for offset in places[place] if starts[place] <= offset < ends[place])
        for place in there
    }
    while spans := {place: parts for place, parts in spans.items() if parts}:
        now = {place: parts.pop() for place, parts in spans.items()}
        reader = TopicReader(
            cluster,
            {place: span[0] for place, span in now.items()},
            {place: span[1] for place, span in now.items()},
            read_committed=True,
            patience_s=patience_s,
        )
        async with aclosing(reader.batches()) as batches:
            async for records in batches:
                if wanted := [each for each in records if each.offset in places[each.topic_partition]]:
                    yield wanted


def _spans_of(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges with all of the offsets, their ends excluded; the first one last."""
    spans: list[tuple[int, int]] = []
    for offset in sorted(offsets):
        if spans and offset - spans[-1][1] < _NEAR:
            spans[-1] = spans[-1][0], offset + 1
        else:
            spans.append((offset, offset + 1))
    return spans[::-1]
