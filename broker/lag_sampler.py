"""The lag of the groups that this broker coordinates, looked at now and then, beside the path of requests.

The coordinator knows what is committed. Where a partition ends is asked of its leader, those of another
broker in one request; when the oldest unread record was written is read from the replica here, or fetched
from the leader. What was read is remembered: as long as a group's offset stays, nothing is read again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from ..coordinator.groups.groups import CommittedGroup
from ..lag import (
    GroupLag,
    LagTracker,
    Looked,
    PartitionLag,
    Unread,
    catch_up_ms,
    find_oldest,
    measure_unread,
)
from ..log import CorruptLogError, PartitionLog
from ..protocol import ApiKey, KafkaError, KohortError, RequestContext, TopicPartition
from ..protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ..protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ..protocol.named_tuples import NamedTuple
from .coordinators.share_groups import describe_offsets
from .event_loop.stopwatch import Stopwatch
from .event_loop.time_slices import WORK_SLICE_S, Slices
from .log_ends import find_ends
from .metrics import LagFigures
from .node import Node

if TYPE_CHECKING:
    from .metadata.cluster_node import ClusterNode

T = TypeVar("T")

log = logging.getLogger("kohort.broker")

#: A look is followed by a pause this many times as long as the work on it: it takes 1 % of the time at most.
_REST: Final = 100
#: Partitions between two looks whether it is time for other work.
_PER_LOOK: Final = 16
#: Most batches that are passed to find a record, of markers and gaps.
_MOST_STEPS: Final = 16
#: Partitions in one Fetch to another broker, bytes of each and of all, and how long other brokers may take.
_FETCHED_AT_ONCE: Final = 1_000
_PARTITION_BYTES: Final = 64 << 10
_FETCHED_BYTES: Final = 8 << 20
_ASK_MS: Final = 5_000
_SHARE: Final = "share"


class _GroupPlace(NamedTuple):
    """Where a group is in a partition, since when at least; ``records`` are unread where that is known."""

    place: TopicPartition
    offset: int | None
    since_ms: int = 0
    records: int | None = None


class _PlacedGroup(NamedTuple):
    group_id: str
    type: str
    state: str
    member_count: int
    positions: Sequence[_GroupPlace]


class LagSampler:
    """Looks at the lag of all groups that this broker coordinates. ``figures`` are those of the last look;
    ``listeners`` are called with the groups after each.
    """

    def __init__(self, node: Node) -> None:
        self.figures = LagFigures()
        self.listeners: list[Callable[[Sequence[GroupLag]], None]] = []
        self._node = node
        self._tracker = LagTracker()
        # what is found behind an offset, by the partition and the id of its topic
        self._oldest: dict[tuple[TopicPartition, UUID | None], dict[int, Looked]] = defaultdict(dict)
        self._topic_ids: dict[str, UUID | None] = {}
        self._slices = Slices(WORK_SLICE_S)
        self._every_s = math.inf
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<LagSampler: {len(self.figures.groups)} groups>"

    def start(self, every_ms: int, *, at_once: bool = False) -> None:
        """Look every so many milliseconds, first now or after that time; not if the settings want no looks.
        Who asks for more frequent looks than there are gets them.
        """
        if not self._node.settings.kohort_lag_interval_ms:
            return
        if self._task is not None:
            self._task.cancel()
        self._every_s = min(every_ms / 1_000, self._every_s)
        self._task = asyncio.create_task(self._look_again(0.0 if at_once else self._every_s))

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _look_again(self, pause_s: float) -> None:
        while True:
            await asyncio.sleep(pause_s)
            work_s = self.figures.work_s
            try:
                await self.look()
            except Exception:  # whatever it is: the figures grow old, and the next look may succeed
                log.exception("the lag of groups could not be looked at")
            pause_s = max(self._every_s, _REST * (self.figures.work_s - work_s))

    async def look(self) -> None:
        """Look once."""
        watch = Stopwatch(self._find_lag())
        groups = await watch
        most, spent_s = self._node.settings.kohort_lag_metrics_max, self.figures.work_s + watch.running_s
        self.figures = LagFigures(groups, self._node.now_ms(), spent_s, most)
        for listener in self.listeners:
            listener(groups)

    async def _find_lag(self) -> list[GroupLag]:
        node = self._node
        self._topic_ids, self._slices = {}, Slices(WORK_SLICE_S)
        groups = [self._of_commits(found) async for found in self._paced(node.coordinator.positions())]
        groups = await self._with_starts(groups)
        groups = [group for group in groups if group.positions]
        places = {position.place for group in groups for position in group.positions}
        ends = await find_ends(node, places)
        unread = {
            (position.place, position.offset): measure_unread(
                position.offset, self._log_start(position.place), ends.get(position.place)
            )
            async for position in self._paced(position for group in groups for position in group.positions)
        }
        await self._find_oldest(unread)
        measured = [await self._measure_group(group, unread, ends) for group in groups]
        self._tracker.end_look()
        return measured

    async def _measure_group(
        self,
        group: _PlacedGroup,
        unread: Mapping[tuple[TopicPartition, int | None], Unread],
        ends: Mapping[tuple[str, int], int],
    ) -> GroupLag:
        now_ms = self._node.now_ms()
        found = [
            self._row_of(position, unread[position.place, position.offset], ends, now_ms)
            async for position in self._paced(group.positions)
        ]
        rows = tuple([self._tracker.take(group.group_id, now_ms, row) async for row in self._paced(found)])
        return GroupLag(
            group.group_id,
            group.type,
            group.state,
            now_ms,
            rows,
            group.member_count,
            catch_up_ms=catch_up_ms(rows),
        )

    def _of_commits(self, found: CommittedGroup) -> _PlacedGroup:
        """A group with its committed offsets, without those of an earlier topic of the same name."""
        positions = []
        for place, entry in found.offsets:
            topic_id = self._id_of(place.topic)
            if topic_id is not None and entry.is_of(topic_id.bytes):
                positions.append(_GroupPlace(place, entry.offset, entry.commit_timestamp_ms))
        return _PlacedGroup(found.group_id, found.type, found.state, found.member_count, positions)

    def _id_of(self, topic: str) -> UUID | None:
        """The id of a topic, as it was when this look began; None if there is no such topic."""
        if topic not in self._topic_ids:
            self._topic_ids[topic] = self._node.topics.id_of(topic)
        return self._topic_ids[topic]

    async def _paced(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items; after a slice of work others get their turn."""
        for nth, item in enumerate(items):
            yield item
            if nth % _PER_LOOK == 0:
                await self._slices.end_if_due()

    async def _with_starts(self, groups: Sequence[_PlacedGroup]) -> list[_PlacedGroup]:
        """The groups, share groups with their start offsets; not of those that take too long to tell."""
        loop, placed = asyncio.get_running_loop(), []
        until_s = loop.time() + _ASK_MS / 1_000
        for group in groups:
            if group.type == _SHARE:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(until_s):
                        group = await self._of_shares(group)
            placed.append(group)
        return placed

    async def _of_shares(self, group: _PlacedGroup) -> _PlacedGroup:
        """A share group with its start offsets, which share coordinators keep."""
        asked = DescribeShareGroupOffsetsRequestGroup(group.group_id, None)
        body = DescribeShareGroupOffsetsRequest([asked])
        api = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
        found = await self._node.coordinator.handle(api, 1, body, RequestContext())
        described = [await describe_offsets(self._node, each) for each in found]
        positions = [
            _GroupPlace(
                TopicPartition(topic.topic_name, row.partition_index),
                None if row.start_offset < 0 else row.start_offset,
                records=None if row.lag < 0 else row.lag,
            )
            for each in described
            for topic in each.topics
            for row in topic.partitions
        ]
        return group._replace(positions=positions)

    def _row_of(
        self, position: _GroupPlace, unread: Unread, ends: Mapping[tuple[str, int], int], now_ms: int
    ) -> PartitionLag:
        place, records, age_ms, standing_ms = position.place, unread.records, None, None
        if records and position.records is not None:
            records = position.records
        if unread.first is not None and records:
            looked = self._oldest[place, self._id_of(place.topic)].get(unread.first)
            if looked is not None and not looked.is_found and looked.offset >= ends[place]:
                records = 0
            elif looked is not None and looked.timestamp_ms is not None:
                age_ms = max(now_ms - looked.timestamp_ms, 0)
                standing_ms = min(age_ms, max(now_ms - position.since_ms, 0))
        return PartitionLag(
            place.topic,
            place.partition,
            position.offset,
            ends.get(place),
            records,
            0 if records == 0 else age_ms,
            unread.deleted,
            note=unread.note,
            standing_ms=standing_ms if position.since_ms else None,
        )

    # -- logs ------------------------------------------------------------------------------------------------

    def _log_of(self, place: TopicPartition) -> PartitionLog | None:
        """The replica on this broker, led or not; None if there is none, or it is not open."""
        topic = self._node.logs.topic(place.topic)
        partition = None if topic is None else topic.partitions.get(place.partition)
        return None if partition is None or partition.damage is not None else partition.log

    def _log_start(self, place: TopicPartition) -> int | None:
        found = self._log_of(place)
        return None if found is None else found.log_start_offset

    def _may_be_gone(self, place: TopicPartition, known: Looked, replica: PartitionLog | None) -> bool:
        """Return whether compaction may have removed a record that was found."""
        if replica is not None:
            return known.offset < replica.cleaner_offset
        topic = self._node.image.topic(place.topic)
        return topic is not None and "compact" in self._node.topics.config(topic.configs).cleanup_policy

    async def _find_oldest(self, unread: Mapping[tuple[TopicPartition, int | None], Unread]) -> None:
        """Find the first record behind each offset that has any, in as far as it is not known yet."""
        before, self._oldest = self._oldest, defaultdict(dict)
        elsewhere: dict[TopicPartition, list[int]] = defaultdict(list)
        async for (place, _), found in self._paced(unread.items()):
            first = found.first
            if first is None or not found.records:
                continue
            key = place, self._id_of(place.topic)
            known = before[key].get(first) if key in before else None
            replica = self._log_of(place)
            if known is not None and known.is_found and not self._may_be_gone(place, known, replica):
                self._oldest[key][first] = known
            elif replica is not None and first < replica.high_watermark:
                self._oldest[key][first] = _read_oldest(replica, first)
            elif self._node.cluster is not None:
                elsewhere[place].append(first)
        if self._node.cluster is not None and elsewhere:
            await self._ask_leaders(self._node.cluster, elsewhere)

    async def _ask_leaders(
        self, cluster: ClusterNode, wanted: Mapping[TopicPartition, Sequence[int]]
    ) -> None:
        """Fetch what is behind the lowest of these offsets of each partition; the others have their turn when
        it is known.
        """
        by_leader: dict[int, list[tuple[TopicPartition, int]]] = defaultdict(list)
        for place, offsets in wanted.items():
            leader = cluster.leader_of(*place)
            if leader >= 0 and len(by_leader[leader]) < _FETCHED_AT_ONCE:
                by_leader[leader].append((place, min(offsets)))
        asked = (self._ask_leader(cluster, leader, rows) for leader, rows in by_leader.items())
        await asyncio.gather(*asked)

    async def _ask_leader(
        self, cluster: ClusterNode, leader: int, wanted: Sequence[tuple[TopicPartition, int]]
    ) -> None:
        names: dict[UUID | None, str] = {}
        topics: dict[str, list[FetchPartition]] = defaultdict(list)
        for place, offset in wanted:
            topic_id = self._id_of(place.topic)
            if topic_id is not None:
                names[topic_id] = place.topic
                topics[place.topic].append(
                    FetchPartition(place.partition, -1, offset, -1, -1, partition_max_bytes=_PARTITION_BYTES)
                )
        rows = [FetchTopic(name, topic_id, topics[name]) for topic_id, name in names.items()]
        body = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=_FETCHED_BYTES, topics=rows)
        offsets = dict(wanted)
        with suppress(KohortError, OSError):
            answer = await cluster.ask(leader, body, timeout_ms=_ASK_MS)
            for fetched in answer.responses:
                for row in fetched.partitions:
                    place = TopicPartition(names[fetched.topic_id], row.partition_index)
                    looked = find_oldest(row.records or b"", offsets[place], quick=True)
                    self._oldest[place, self._id_of(place.topic)][offsets[place]] = looked


def _read_oldest(replica: PartitionLog, first: int) -> Looked:
    """The first record behind an offset of a log that has more."""
    looked = Looked(first)
    with suppress(KafkaError, CorruptLogError):
        for _ in range(_MOST_STEPS):
            read = replica.read(looked.offset, 1)
            looked = find_oldest(read.records, looked.offset, quick=True)
            if looked.is_found or not read.records:
                break
    return looked
