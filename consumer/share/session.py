"""The share session with one broker: its epoch, and which partitions the broker knows (KIP-932). No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from ...protocol import AcknowledgeType
from ...protocol.messages.share_acknowledge import AcknowledgementBatch as AcknowledgedBatch
from ...protocol.messages.share_acknowledge import AcknowledgePartition, AcknowledgeTopic
from ...protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
)
from .records import PartitionId
from .verdicts import Said

#: Epochs: of a session that a fetch opens, and of one that closes; in between they go up by one.
OPENING, CLOSING = 0, -1
_LAST = 2**31 - 1
_OFFSET = attrgetter("offset")


class Range(NamedTuple):
    """Offsets ``first`` to ``last``, both included, of which the same is said."""

    first: int
    last: int
    verdict: AcknowledgeType


#: What is acknowledged in a request.
Acknowledged = Mapping[PartitionId, Sequence[Range]]


def ranges_of(part: Sequence[Said]) -> list[Range]:
    """Join neighbouring offsets of one verdict. The offsets are distinct, in any order."""
    if not part:
        return []
    offsets, verdicts = [said.offset for said in part], [said.verdict for said in part]
    newest, oldest, only = max(offsets), min(offsets), verdicts[0]
    if only is not None and newest - oldest == len(part) - 1 and verdicts.count(only) == len(part):
        return [Range(oldest, newest, only)]  # as most are
    ranges: list[Range] = []
    first = last = -2
    verdict: AcknowledgeType | None = None
    for said in sorted(part, key=_OFFSET):
        offset = said.offset
        if offset == last + 1 and said.verdict is verdict:
            last = offset
            continue
        if verdict is not None:
            ranges.append(Range(first, last, verdict))
        first, last, verdict = offset, offset, said.verdict
        assert verdict is not None, "something was said of it"
    if verdict is not None:
        ranges.append(Range(first, last, verdict))
    return ranges


@dataclass(slots=True, eq=False)
class PeerSession:
    """One request at a time: fetches and acknowledgements share one sequence of epochs."""

    epoch: int = OPENING
    #: The partitions that the broker serves in this session.
    known: set[PartitionId] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Whether the broker has a session: acknowledgements need one."""
        return self.epoch != OPENING

    def name_partitions(
        self, wanted: Collection[PartitionId], said: Acknowledged
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return the topics of the next ShareFetch: what is new in the session or acknowledged, and what is
        to be forgotten. What is acknowledged is named, and so served, too, unless it is forgotten.
        """
        named = {place: said.get(place, ()) for place in wanted if place not in self.known}
        named |= {place: ranges for place, ranges in said.items() if ranges}
        gone = (self.known | named.keys()) - set(wanted)
        self.known = set(wanted)
        topics = [
            FetchTopic(
                topic,
                [
                    FetchPartition(
                        place.partition, [AcknowledgementBatch(*part) for part in _wire(named[place])]
                    )
                    for place in places
                ],
            )
            for topic, places in _by_topic(named)
        ]
        forgotten = [
            ForgottenTopic(topic, [p.partition for p in places]) for topic, places in _by_topic(gone)
        ]
        return topics, forgotten

    def on_answered(self) -> None:
        """The broker has taken the request."""
        self.epoch = 1 if self.epoch == _LAST else self.epoch + 1

    def on_lost(self) -> None:
        """The broker knows no such session, or it is not certain: the next fetch opens one."""
        self.epoch = OPENING
        self.known.clear()


def acknowledged_topics(said: Acknowledged) -> list[AcknowledgeTopic]:
    """Return the topics of a ShareAcknowledge."""
    return [
        AcknowledgeTopic(
            topic,
            [
                AcknowledgePartition(
                    place.partition, [AcknowledgedBatch(*part) for part in _wire(said[place])]
                )
                for place in places
            ],
        )
        for topic, places in _by_topic(said)
    ]


def _wire(ranges: Iterable[Range]) -> Iterator[tuple[int, int, list[int]]]:
    return ((first, last, [int(verdict)]) for first, last, verdict in ranges)


def _by_topic(places: Iterable[PartitionId]) -> Iterable[tuple[UUID, list[PartitionId]]]:
    topics: dict[UUID, list[PartitionId]] = defaultdict(list)
    for place in sorted(places):
        topics[place.topic_id].append(place)
    return topics.items()
