"""Views of topics: partitions, sizes, rates between two looks, who reads them, and what is wrong.

The first look asks for metadata only, so that a page is there at once; the next one, without a pause, asks
for what takes longer. What the user may not see is unknown, and said in ``notes``.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ...admin import GroupAdmin
from ...admin.errors import explain_error
from ...admin.notation import to_sentence
from ...admin.topics.replica_sizes import ReplicaSizes, read_replica_sizes
from ...admin.topics.requests import (
    Config,
    find_offsets,
    replication_of,
    topic_configs,
    topic_rows,
)
from ...admin.visibility import ask_hidden_groups, ask_hidden_topics
from ...client import EARLIEST, LATEST, Cluster
from ...lag import GroupLag, LagTracker
from ...lag.groups import sum_known
from ...problems import (
    ClusterSeen,
    FoundProblem,
    PartitionSeen,
    find_in_cluster,
    find_in_groups,
)
from ...protocol import KafkaError, KohortError, TopicPartition
from ...protocol.messages.metadata import MetadataResponseTopic
from ..observer import View

#: Least time between two looks at the lag of all groups, which views share.
_LAGS_EVERY_S: Final = 9.0
_MIN_IN_SYNC: Final = "min.insync.replicas"


class SharedLags:
    """The lag of all groups, for several views: asked for again when it is old."""

    def __init__(self) -> None:
        self._tracker = LagTracker()
        self._lags: list[GroupLag] = []
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def look(self, admin: GroupAdmin) -> list[GroupLag]:
        """The lag of all groups, with rates from the second look on. Raises KohortError."""
        async with self._asking:
            if self._asked_at is None or time.monotonic() - self._asked_at >= _LAGS_EVERY_S:
                self._lags = self._tracker.track(await admin.lag())
                self._asked_at = time.monotonic()
            return self._lags


class TopicReading(NamedTuple):
    """A group that reads a topic: unread records, the age of the oldest in ms, partitions of the topic that
    it has offsets or members for, and members that have some. None is unknown.
    """

    group: str
    state: str | None
    records: int | None
    age_ms: int | None
    partitions: int
    members: int


class PartitionLook(NamedTuple):
    """What one look tells of a partition: offsets, and bytes of its leader's replica. None is unknown."""

    start: int | None
    end: int | None
    size: int | None

    @property
    def records(self) -> int | None:
        """Offsets in the log. Compaction and transactions leave some of them without a record."""
        return None if self.start is None or self.end is None else max(0, self.end - self.start)


class Growth(NamedTuple):
    """What was written between two looks, per second; None where it is not known."""

    records: float | None = None
    bytes: float | None = None


_NOTHING: Final = Growth()


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in the list. ``size`` has one replica of each partition, ``disk_size`` all of them, in bytes;
    None is unknown. ``lag`` is that of the group that has most unread.
    """

    topic: str
    topic_id: uuid.UUID | None
    partitions: int
    replication_factor: int
    internal: bool
    offline: int
    lacking: int
    size: int | None = None
    disk_size: int | None = None
    records: int | None = None
    growth: Growth = _NOTHING
    readings: tuple[TopicReading, ...] | None = None
    problems: tuple[FoundProblem, ...] = ()

    @property
    def lag(self) -> int | None:
        """Unread records of the group that has most of them."""
        return max((each.records for each in self.readings or () if each.records is not None), default=None)


class PartitionRow(NamedTuple):
    """A partition of a topic; ``leader`` is None where it has none."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    look: PartitionLook


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """What a look that takes longer has found. ``lags`` is None where they may not be seen, ``notes`` say
    what is not known, and why; ``at_s`` is the time of the look.
    """

    looks: Mapping[TopicPartition, PartitionLook]
    sizes: ReplicaSizes
    lags: Sequence[GroupLag] | None
    notes: tuple[str, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic on its own page. ``configs`` is None where they are not known."""

    row: TopicRow
    partitions: tuple[PartitionRow, ...]
    configs: tuple[Config, ...] | None
    notes: tuple[str, ...]


class TopicsView(View):
    """All topics."""

    every_s = 10.0

    def __init__(self, lags: SharedLags | None = None) -> None:
        super().__init__()
        self.rows: list[TopicRow] = []
        self.notes: tuple[str, ...] = ()
        self._lags = lags or SharedLags()
        self._before: TopicDetails | None = None
        self._is_known = False

    @property
    def partition_count(self) -> int:
        """Partitions of all topics."""
        return sum(row.partitions for row in self.rows)

    async def look(self, admin: GroupAdmin) -> None:
        """Read the metadata first, which is quick, and from the second look on all the rest."""
        topics = await topic_rows(admin.cluster, None)
        details = None
        if self._is_known:
            details = await _learn_details(admin, topics, self._lags)
        else:
            self._is_known = True
            self.look_now()
        rows = _make_rows(topics, details, self._before)
        notes = [to_sentence(words) for words in await ask_hidden_topics(admin.cluster)]
        notes += [] if details is None else details.notes
        self._before = details
        if (rows, notes) != (self.rows, [*self.notes]) or not self.version:
            self.rows, self.notes = rows, tuple(notes)
            self.tell("page", None)


class TopicView(View):
    """A topic; None if it does not exist."""

    def __init__(self, topic: str, lags: SharedLags | None = None) -> None:
        super().__init__()
        self.topic = topic
        self.found: SeenTopic | None = None
        self._lags = lags or SharedLags()
        self._before: TopicDetails | None = None

    @property
    def partition_count(self) -> int:
        """Partitions of the topic; 0 while they are not known."""
        return 0 if self.found is None else self.found.row.partitions

    async def look(self, admin: GroupAdmin) -> None:
        try:
            topics = await topic_rows(admin.cluster, [self.topic])
        except KohortError:
            self.found = None
            raise
        notes: tuple[str, ...] = ()
        if self.found is None:
            details, configs = None, None
            self.look_now()
        else:
            details, (configs, refusal) = await asyncio.gather(
                _learn_details(admin, topics, self._lags), _read_configs(admin.cluster, self.topic)
            )
            notes = (*details.notes, *refusal)
        found = _describe_topic(topics[self.topic], details, self._before, configs, notes)
        self._before = details
        if found != self.found:
            self.found = found
            self.tell("page", None)


# --- what is asked ------------------------------------------------------------------------------------------


async def _learn_details(
    admin: GroupAdmin, topics: Mapping[str, MetadataResponseTopic], lags: SharedLags
) -> TopicDetails:
    """Offsets, sizes and lags of these topics, as far as the user may see them."""
    numbers = {name: [each.partition_index for each in row.partitions] for name, row in topics.items()}
    places = [TopicPartition(name, number) for name, all_of_it in numbers.items() for number in all_of_it]
    nodes = {node for row in topics.values() for each in row.partitions for node in each.replica_nodes}
    at_s = time.monotonic()
    (starts, _), (ends, errors), sizes, read, hidden = await asyncio.gather(
        find_offsets(admin.cluster, places, EARLIEST),
        find_offsets(admin.cluster, places, LATEST),
        read_replica_sizes(admin.cluster, nodes, numbers),
        _read_lags(admin, lags),
        ask_hidden_groups(admin.cluster),
    )
    leaders = {
        TopicPartition(name, each.partition_index): each.leader_id
        for name, row in topics.items()
        for each in row.partitions
    }
    looks = {
        place: PartitionLook(starts.get(place), ends.get(place), sizes.size_at(place, leaders[place]))
        for place in places
    }
    notes = []
    if errors:
        notes.append(f"Offsets of {len(errors):,} partitions are not known: {_first(errors.values())}.")
    if sizes.errors:
        notes.append(f"Sizes are not all known: {_first(sizes.errors.values())}.")
    if isinstance(read, KohortError):
        notes.append(f"Who reads is not known: {read}.")
    notes += [f"Not all who read are known: {words}." for words in hidden]
    known = None if isinstance(read, KohortError) else read
    return TopicDetails(looks, sizes, known, tuple(notes), at_s)


async def _read_lags(admin: GroupAdmin, lags: SharedLags) -> Sequence[GroupLag] | KohortError:
    try:
        return await lags.look(admin)
    except KohortError as error:
        return error


async def _read_configs(cluster: Cluster, topic: str) -> tuple[tuple[Config, ...] | None, tuple[str, ...]]:
    """All configs of a topic, and why they are not known."""
    try:
        found = await topic_configs(cluster, [topic], all_configs=True)
    except KafkaError as error:
        return None, (f"Configs are not known: {explain_error(error)}.",)
    return tuple(found[topic]), ()


def _first(errors: Iterable[KohortError]) -> KohortError:
    return next(iter(errors))


# --- what is made of it -------------------------------------------------------------------------------------


def measure_growth(
    before: Mapping[TopicPartition, PartitionLook],
    now: Mapping[TopicPartition, PartitionLook],
    seconds: float,
) -> Growth:
    """What was written between two looks at these partitions. Where retention or compaction has removed
    something meanwhile, new records count with the mean size of those that are there.
    """
    records, written, any_known, sizes_known = 0, 0.0, False, True
    for place, look in now.items():
        old = before.get(place)
        if old is None or old.end is None or look.end is None or look.end < old.end:
            continue
        any_known = True
        records += look.end - old.end
        grown = _grown_bytes(old, look)
        if grown is None:
            sizes_known = False
        else:
            written += grown
    if not any_known or seconds <= 0:
        return _NOTHING
    return Growth(records / seconds, written / seconds if sizes_known else None)


def _grown_bytes(old: PartitionLook, now: PartitionLook) -> float | None:
    if old.size is None or now.size is None or old.end is None or now.end is None:
        return None
    if old.start == now.start and now.size >= old.size:
        return now.size - old.size
    return now.size / now.records * (now.end - old.end) if now.records else 0.0


def readings_of(lags: Iterable[GroupLag]) -> dict[str, list[TopicReading]]:
    """Who reads each topic, the one with most unread first."""
    found: dict[str, list[TopicReading]] = defaultdict(list)
    for group in lags:
        rows = defaultdict(list)
        for row in group.partitions:
            rows[row.topic].append(row)
        for topic, own in rows.items():
            records = [row.records for row in own if row.records is not None]
            ages = [row.age_ms for row in own if row.age_ms is not None]
            members = {member for row in own for member in row.members}
            reading = TopicReading(
                *(group.group, group.state, sum(records) if records else None, max(ages, default=None)),
                *(len(own), len(members)),
            )
            found[topic].append(reading)
    for readings in found.values():
        readings.sort(key=lambda each: (-(each.records or 0), each.group))
    return found


def _make_rows(
    topics: Mapping[str, MetadataResponseTopic], details: TopicDetails | None, before: TopicDetails | None
) -> list[TopicRow]:
    readings, wrong = _sort_lags(details)
    return [_make_row(row, details, before, readings, wrong) for row in topics.values()]


def _sort_lags(
    details: TopicDetails | None,
) -> tuple[dict[str, list[TopicReading]] | None, dict[str, FoundProblem]]:
    """Who reads each topic, None where that is not known, and the problems of groups by their names."""
    lags = None if details is None else details.lags
    if lags is None:
        return None, {}
    wrong = {each.about.removeprefix("group "): each for each in find_in_groups(lags)}
    return readings_of(lags), wrong


def _make_row(
    topic: MetadataResponseTopic,
    details: TopicDetails | None,
    before: TopicDetails | None,
    readings: Mapping[str, Sequence[TopicReading]] | None,
    wrong: Mapping[str, FoundProblem],
    least_in_sync: int | None = None,
) -> TopicRow:
    name = topic.name or ""
    seen = [
        PartitionSeen(
            *(name, each.partition_index, None if each.leader_id < 0 else each.leader_id),
            *(each.replica_nodes, each.isr_nodes, least_in_sync),
        )
        for each in topic.partitions
    ]
    ailing = [each for each in seen if each.leader is None or len(each.in_sync) < len(each.replicas)]
    own = None if readings is None else tuple(readings.get(name, ()))
    problems = find_in_cluster(ClusterSeen((), ailing), time.time())
    problems += [wrong[each.group] for each in own or () if each.group in wrong]
    row = TopicRow(
        *(name, topic.topic_id, len(seen), replication_of(topic), topic.is_internal),
        offline=sum(each.leader is None for each in ailing),
        lacking=len(ailing),
        readings=own,
        problems=tuple(problems),
    )
    return row if details is None else _add_details(row, seen, details, before)


def _add_details(
    row: TopicRow, seen: Iterable[PartitionSeen], details: TopicDetails, before: TopicDetails | None
) -> TopicRow:
    places = [TopicPartition(row.topic, each.partition) for each in seen]
    looks = {place: details.looks[place] for place in places}
    disk = [size for place in places for size in details.sizes.bytes_of.get(place, {}).values()]
    growth = _NOTHING
    if before is not None:
        growth = measure_growth(before.looks, looks, details.at_s - before.at_s)
    return replace(
        row,
        size=sum_known(look.size for look in looks.values()),
        disk_size=sum(disk) if disk else None,
        records=sum_known(look.records for look in looks.values()),
        growth=growth,
    )


def _describe_topic(
    topic: MetadataResponseTopic,
    details: TopicDetails | None,
    before: TopicDetails | None,
    configs: tuple[Config, ...] | None,
    notes: tuple[str, ...],
) -> SeenTopic:
    readings, wrong = _sort_lags(details)
    least = next((each.value for each in configs or () if each.name == _MIN_IN_SYNC), None)
    row = _make_row(topic, details, before, readings, wrong, int(least) if least else None)
    partitions = [
        PartitionRow(
            *(each.partition_index, None if each.leader_id < 0 else each.leader_id),
            *(tuple(each.replica_nodes), tuple(each.isr_nodes)),
            _look_in(details, TopicPartition(row.topic, each.partition_index)),
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    ]
    return SeenTopic(row, tuple(partitions), configs, notes)


def _look_in(details: TopicDetails | None, place: TopicPartition) -> PartitionLook:
    return PartitionLook(None, None, None) if details is None else details.looks[place]
