"""Ledger of every record of a schedule (produced, handled, finished, set aside, gone), which checks the
consumers' promises.

It never inspects a consumer: handlers report the records they get, the network reports commits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol, TypeAlias

from ....consumer import Record
from ....consumer.done import done_ahead
from ....consumer.reading.fetched_records import ChunkReader
from ....protocol import ApiKey, TopicPartition
from ....protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitResponse
from ..engine._network import SimulatedCall
from ..engine._schedule import Schedule
from ._plan import ServicePlan
from ._topics import SimulatedLog, SimulatedTopics

#: Key and value.
Row: TypeAlias = tuple[bytes | None, bytes | None]
#: From a topic and a source of chance to key and value.
MakeRecord = Callable[[str, Random], Row]

_ID: Final = re.compile(rb"#(\d+)#")
_KEYS: Final = 3
#: How long after a topic was created again, in addition to the age of metadata and the length of a release, a
#: commit may still be for the former topic: below v10 it has only the name.
_LATE_MS: Final = 600
#: Of OffsetCommit.
_TOPIC_ID_VERSION: Final = 10
_ORIGIN: Final = "kohort.origin."
#: A cancelled handler had its time if no more than this was missing.
_ROUNDING_MS: Final = 10
#: Length of a big value.
BIG_BYTES: Final = 1 << 20
_GZIP: Final = 1
_FLOOD: Final = 1_500
_FLOOD_BATCH: Final = 50


class ProcessNote(Protocol):
    """What the ledger knows of a process."""

    @property
    def name(self) -> str: ...
    @property
    def alive(self) -> bool: ...


class PartitionProgress:
    """Offsets of a partition at which a record was done; before ``prefix`` all were."""

    __slots__ = ("ahead", "prefix")

    def __init__(self) -> None:
        self.prefix = 0
        self.ahead: set[int] = set()

    def on_done(self, offset: int) -> None:
        if offset >= self.prefix:
            self.ahead.add(offset)
            while self.prefix in self.ahead:
                self.ahead.remove(self.prefix)
                self.prefix += 1

    def has(self, first: int, end: int) -> bool:
        return all(n < self.prefix or n in self.ahead for n in range(first, end))


@dataclass(slots=True, eq=False)
class HandledEntry:
    """One record, and how its handling goes: it takes ``work_ms``, ``fails`` this many times, is ``poison``,
    ``hangs``, or raises a CancelledError once.
    """

    number: int
    partition: TopicPartition
    offset: int
    made_ms: int
    work_ms: int = 0
    fails: int = 0
    poison: bool = False
    cancels: bool = False
    hangs: bool = False
    row: Row = (None, None)
    finished: int = 0
    aside: int = 0
    #: How often it went to a retry topic.
    postponed: int = 0
    gone: bool = False
    #: Its whole topic was deleted.
    deleted: bool = False
    #: It was handled in a batch that takes longer than a drain: its process may have left before it is done.
    outlasts: bool = False
    #: The process that handles it, and since when.
    running: dict[ProcessNote, int] = field(default_factory=dict)
    #: The start of its first attempt, failed ones included.
    begun: dict[ProcessNote, int] = field(default_factory=dict)

    @property
    def dealt_with(self) -> bool:
        return bool(self.finished or self.aside or self.gone)

    def __repr__(self) -> str:
        return f"record {self.number} ({self.partition.topic}-{self.partition.partition} at {self.offset})"


class ServiceLedger:
    """All records of a schedule. ``make_record`` makes those of a user's own service."""

    def __init__(
        self, schedule: Schedule[ServicePlan], topics: SimulatedTopics, make_record: MakeRecord | None
    ) -> None:
        self.entries: list[HandledEntry] = []
        self._schedule = schedule
        self._topics = topics
        self._make_record = make_record
        self._live: dict[TopicPartition, dict[int, HandledEntry]] = {}
        #: The records of users, whose values are theirs: by place, key and value.
        self._of_users: dict[tuple[TopicPartition, int, Row], HandledEntry] = {}
        self._progress: defaultdict[TopicPartition, PartitionProgress] = defaultdict(PartitionProgress)
        #: Offsets that OffsetCommits ask for.
        self._asked: dict[SimulatedCall, dict[TopicPartition, int]] = {}
        #: Acknowledged.
        self._committed: dict[TopicPartition, int] = {}
        #: Topics that were deleted; most are made again.
        self.remade: set[str] = set()
        #: Of the topics of that name that were before.
        self._before: defaultdict[TopicPartition, PartitionProgress] = defaultdict(PartitionProgress)
        self._late_until: dict[str, int] = {}
        self._passed_over: dict[TopicPartition, int] = {}
        self._first: dict[TopicPartition, int] = {}
        #: Where the group began, in partitions of plans that leave that to ``latest``.
        self._begun_at: dict[TopicPartition, int] = {}
        #: When the metadata of topics was first given to the present life of a process.
        self._sees: dict[str, int] = {}
        #: Records that are being handled.
        self.at_work: dict[HandledEntry, None] = {}
        #: When a process first began with the furthest record of a partition: rising times and offsets.
        self._furthest: dict[tuple[ProcessNote, TopicPartition], list[tuple[int, int]]] = {}
        #: When a record of each partition was last done.
        self.moved_ms: dict[TopicPartition, int] = {}
        #: Whether a process may begin with records of a partition now, where somebody knows that.
        self.owns: Callable[[ProcessNote, TopicPartition], bool] = lambda _process, _partition: True

    # --- records come and go ------------------------------------------------------------------------------

    def produce(
        self,
        partition: TopicPartition,
        log: SimulatedLog,
        count: int,
        *,
        hangs: bool = False,
        big: bool = False,
    ) -> None:
        """Add records, whose handling is drawn; ``big`` ones are long, and compressed."""
        schedule = self._schedule
        rng, work = schedule.rng, schedule.plan.work
        rows, live = [], self._live.setdefault(partition, {})
        for offset in range(log.end, log.end + count):
            entry = HandledEntry(len(self.entries), partition, offset, schedule.heap.now)
            self.entries.append(entry)
            live[offset] = entry
            if not schedule.healed and count < _FLOOD_BATCH:
                entry.work_ms = work.slow_ms if rng.random() < work.slow else rng.choice((0, 1, 1, 5, 20))
                entry.fails = rng.choice((1, 2)) if rng.random() < work.fails else 0
                entry.poison = rng.random() < work.poison
                entry.cancels = rng.random() < work.cancels
                entry.hangs = hangs and offset == log.end
            entry.row = self._row(entry, BIG_BYTES if big else schedule.plan.padding.get(partition.topic, 0))
            entry.gone = offset < self._passed_over.get(partition, 0)
            if self._make_record is not None:
                self._of_users[partition, offset, entry.row] = entry
            rows.append(entry.row)
        log.append(rows, _GZIP if big else 0)

    def _row(self, entry: HandledEntry, padding: int) -> Row:
        rng = self._schedule.rng
        if self._make_record is not None:
            return self._make_record(entry.partition.topic, rng)
        key = b"k%d" % rng.randrange(_KEYS) if rng.random() < 0.8 else None
        return key, b"#%d#%s" % (entry.number, bytes(padding))

    def flood(self, partition: TopicPartition, log: SimulatedLog) -> None:
        """Produce more records than any buffer holds."""
        for _ in range(_FLOOD // _FLOOD_BATCH):
            self.produce(partition, log, _FLOOD_BATCH)

    def cut(self, partition: TopicPartition, offset: int) -> None:
        """The log lost its records from this offset on."""
        live = self._live.get(partition, {})
        for gone in [n for n in live if n >= offset]:
            live.pop(gone).gone = True
        self._first[partition] = min(self._first.get(partition, 0), offset)

    def on_deleted(self, topic: str) -> None:
        """The topic was deleted with its records."""
        for partition in [p for p in self._live if p.topic == topic]:
            for entry in self._live[partition].values():
                entry.deleted = True
            self.cut(partition, 0)
            self._committed.pop(partition, None)
            self._begun_at.pop(partition, None)
            self._before[partition] = self._progress.pop(partition, PartitionProgress())
        self.remade.add(topic)

    def on_created(self, topic: str) -> None:
        plan = self._schedule.plan
        late_ms = plan.rebalance_ms + plan.config["metadata_max_age_ms"] + _LATE_MS
        self._late_until[topic] = self._schedule.heap.now + late_ms

    def on_healed(self) -> None:
        """No record takes long or fails any more."""
        for entry in self.entries:
            entry.work_ms = entry.fails = 0
            entry.hangs = entry.cancels = False

    def of(self, value: bytes | None) -> HandledEntry:
        """Return the record with this value."""
        found = _ID.search(value or b"")
        assert found is not None, value
        return self.entries[int(found[1])]

    def all_of(self, records: Iterable[Record]) -> list[HandledEntry]:
        """The entries of these records, whose offsets may belong to other records by now."""
        if self._make_record is None:
            return [self.of(record.value) for record in records]
        return [self._of_users[r.topic_partition, r.offset, (r.key, r.value)] for r in records]

    def rows(self) -> dict[TopicPartition, list[Row]]:
        return {partition: [entry.row for entry in live.values()] for partition, live in self._live.items()}

    # --- what handlers tell -------------------------------------------------------------------------------

    def begins(self, process: ProcessNote, entries: Iterable[HandledEntry]) -> None:
        """A handler gets these records."""
        now, plan = self._schedule.heap.now, self._schedule.plan
        entries = list(entries)
        outlasts = sum(entry.work_ms for entry in entries) > plan.drain_ms
        for entry in entries:
            if self._schedule.trace is not None:
                self._schedule.say(f"{process.name} begins {entry}, which takes {entry.work_ms} ms")
            # an offset in ZooKeeper says nothing of what is done behind it
            again = plan.protocol != "registry" or entry.offset < self._committed.get(entry.partition, 0)
            if entry.finished and plan.calm and again and not (entry.gone or entry.outlasts):
                self._schedule.found("S14", f"{process.name} is given {entry}, which was finished before")
            entry.outlasts = entry.outlasts or outlasts
            # a letter looks like its record, and is read by who owns the retry topic's partition
            if not entry.postponed and not self.owns(process, entry.partition):
                self._schedule.found("S4", f"{process.name} begins {entry} and is not the partition's owner")
            entry.running[process] = now
            furthest = self._furthest.setdefault((process, entry.partition), [])
            if not furthest or entry.offset > furthest[-1][1]:
                furthest.append((now, entry.offset))
            entry.begun.setdefault(process, now)
            self.at_work[entry] = None

    def ends(self, process: ProcessNote, entries: Iterable[HandledEntry], *, finished: bool) -> None:
        """A handler has returned, or failed."""
        for entry in entries:
            self._rests(process, entry)
            if self._schedule.trace is not None:
                self._schedule.say(f"{process.name} {'has finished' if finished else 'fails with'} {entry}")
            if finished:
                entry.begun.pop(process, None)
            if finished and process.alive:
                entry.finished += 1
                self._schedule.stats.records += 1
                self._on_done(entry)

    def on_cancelled(self, process: ProcessNote, entries: Iterable[HandledEntry]) -> None:
        schedule = self._schedule
        for entry in entries:
            since = self._rests(process, entry)
            if schedule.trace is not None and process.alive:
                schedule.say(f"{process.name} is cancelled while it is at {entry}")
            had_ms = schedule.heap.now - entry.begun.pop(process, since)
            short = entry.work_ms <= schedule.plan.drain_ms * 6 // 10 and not entry.hangs
            if (
                process.alive
                and schedule.plan.sound
                and short
                and had_ms < schedule.plan.drain_ms - _ROUNDING_MS
            ):
                if any(e.hangs for e in self.running(process)) or self._began_in_drain(process, entry):
                    continue
                text = f"{process.name} is cancelled {had_ms} ms after it began with {entry}"
                schedule.found(
                    "S13", f"{text}; it takes {entry.work_ms} ms, the drain is {schedule.plan.drain_ms}"
                )

    def _began_in_drain(self, process: ProcessNote, entry: HandledEntry) -> bool:
        """Return whether a drain that ends now began before this record, whose turn came in it.

        Of what waits, a drain drops only records behind all that had begun. So the record's turn came in the
        drain if a later one of its partition had begun before.
        """
        drain_began_ms = self._schedule.heap.now - self._schedule.plan.drain_ms + _ROUNDING_MS
        furthest = self._furthest.get((process, entry.partition), ())
        return any(at_ms <= drain_began_ms and offset > entry.offset for at_ms, offset in furthest)

    def set_aside(self, topic: str, data: bytes) -> None:
        """A dead letter was written to its topic."""
        for letter in ChunkReader(TopicPartition(topic, 0), data, 0).read():
            entry = self._origin(letter)
            entry.aside += 1
            self._on_done(entry)
            if not entry.poison and self._schedule.plan.calm and topic:
                self._schedule.found("S14", f"{entry} is set aside, which would have been handled")

    def on_postponed(self, data: bytes) -> None:
        """Letters were written to a retry topic: their records are done in their own, and to be handled."""
        for letter in ChunkReader(TopicPartition("", 0), data, 0).read():
            entry = self._origin(letter)
            entry.postponed += 1
            self._on_done(entry)

    def _origin(self, letter: Record) -> HandledEntry:
        """Return the record that a dead letter was made of."""
        if self._make_record is None:
            return self.of(letter.value)
        said = {name: (value or b"").decode() for name, value in letter.headers}
        topic, number, offset = (said[_ORIGIN + name] for name in ("topic", "partition", "offset"))
        return self._of_users[TopicPartition(topic, int(number)), int(offset), (letter.key, letter.value)]

    def on_gone(self, process: ProcessNote) -> None:
        """A process has ended, with its handlers."""
        self._sees.pop(process.name, None)
        self.gives_up(process, self.running(process))

    def running(self, process: ProcessNote) -> list[HandledEntry]:
        """Return the records that a process is handling."""
        return [entry for entry in self.at_work if process in entry.running]

    def gives_up(self, process: ProcessNote, entries: Iterable[HandledEntry]) -> None:
        """A handler was cancelled, as its program wanted it."""
        for entry in entries:
            self._rests(process, entry)

    def _rests(self, process: ProcessNote, entry: HandledEntry) -> int:
        since = entry.running.pop(process, self._schedule.heap.now)
        if not entry.running:
            self.at_work.pop(entry, None)
        return since

    def _on_done(self, entry: HandledEntry) -> None:
        progress = self._before if entry.deleted else self._progress
        progress[entry.partition].on_done(entry.offset)
        self.moved_ms[entry.partition] = self._schedule.heap.now

    # --- where a group begins -----------------------------------------------------------------------------

    def sees(self, name: str) -> None:
        """A process is given metadata."""
        self._sees.setdefault(name, self._schedule.heap.now)

    def fetches(self, name: str, partition: TopicPartition, offset: int) -> None:
        """A process asks for records: the group has begun there, and what follows is due."""
        if self._is_to_begin(partition):
            self._look_at_start(name, partition, offset)
            self._begins_at(partition, offset)

    def _is_to_begin(self, partition: TopicPartition) -> bool:
        return (
            self._schedule.plan.latest
            and partition not in self._begun_at
            and self._topics.log(partition) is not None
        )

    def _look_at_start(self, name: str, partition: TopicPartition, offset: int) -> None:
        """A process says where the group begins, by a commit or a fetch."""
        known = partition.topic in self._schedule.plan.topics and partition.topic not in self.remade
        made_ms = self._topics.made_ms(partition)
        if offset and known and self._sees.get(name, made_ms) < made_ms and self._knows_all():
            where = f"{partition.topic}-{partition.partition}"
            text = f"{name} begins at {offset} of {where}, which was made after it had looked"
            self._schedule.found("S11", text)

    def _knows_all(self) -> bool:
        """Return whether what a process was given is what its consumer knows."""
        plan = self._schedule.plan
        return plan.sound and plan.kind != "app" and not self._schedule.healed

    def _begins_at(self, partition: TopicPartition, offset: int) -> None:
        if self._schedule.plan.latest and partition not in self._begun_at:
            self._begun_at[partition] = offset
            self._pass_over(partition, offset)

    # --- what is committed --------------------------------------------------------------------------------

    def sending(self, process: ProcessNote, call: SimulatedCall) -> None:
        asked = self._asked[call] = {}
        for topic in call.body.topics:
            now_there = self._topics.topics.get(topic.name)
            # a commit for a topic that is gone, by its id, is refused however much was done there
            by_id = topic.topic_id is not None and topic.topic_id.int != 0
            is_for_former = by_id and (now_there is None or now_there.topic_id != topic.topic_id)
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                asked[partition] = row.committed_offset
                if self._schedule.trace is not None:
                    more = f", {row.committed_metadata}" if row.committed_metadata else ""
                    self._schedule.say(f"{process.name} commits {partition}: {row.committed_offset}{more}")
                if not is_for_former:
                    self._committing(process, partition, row)

    def on_answer(self, call: SimulatedCall, reply: OffsetCommitResponse) -> None:
        """The coordinator has answered an OffsetCommit."""
        asked = self._asked.get(call, {})
        for topic in reply.topics:
            for index, error in topic.partitions:
                partition = TopicPartition(topic.name, index)
                if not error and partition in asked:
                    self._on_acknowledged(partition, asked[partition])

    def on_stored(self, process: ProcessNote, partition: TopicPartition, offset: int) -> None:
        """An offset was committed elsewhere than with the coordinator."""
        self._schedule.say(f"{process.name} stores {partition}: {offset}")
        self._committing(process, partition, OffsetCommitRequestPartition(partition.partition, offset))
        self._on_acknowledged(partition, offset)

    def _committing(
        self, process: ProcessNote, partition: TopicPartition, row: OffsetCommitRequestPartition
    ) -> None:
        plan = self._schedule.plan
        if self._is_to_begin(partition):
            self._look_at_start(process.name, partition, row.committed_offset)
        if partition.topic not in plan.topics or (plan.latest and partition not in self._begun_at):
            return  # letters are done by records of other topics; or it says where the group begins
        progress = self._progress[partition]
        offset, name = row.committed_offset, f"{partition.topic}-{partition.partition}"
        if offset > progress.prefix:
            if self._is_late(partition, offset):
                return
            text = f"{process.name} commits {offset} of {name}, done is what is before {progress.prefix}"
            self._schedule.found("S11", text)
        for first, end in done_ahead.decode(offset, row.committed_metadata or ""):
            if not progress.has(first, end) and not self._is_late(partition, offset):
                text = f"{process.name} commits {first} to {end} of {name} as done, which is not"
                self._schedule.found("S11", text)

    def _is_late(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether it may be a commit for the topic that had this name before."""
        before = self._before.get(partition)
        now, until = self._schedule.heap.now, self._late_until.get(partition.topic, 0)
        return (
            before is not None
            and offset <= before.prefix
            and (now < until or partition.topic not in self._topics.topics)
        )

    def _on_acknowledged(self, partition: TopicPartition, offset: int) -> None:
        log = self._topics.log(partition)
        if log is None:
            return
        self._begins_at(partition, offset)
        if partition.topic in self.remade:
            progress = self._progress[partition]
            if offset > progress.prefix and self._is_late(partition, offset):
                if self._schedule.plan.versions[ApiKey.OFFSET_COMMIT] >= _TOPIC_ID_VERSION:
                    text = f"{offset} is committed for {partition.topic}, and was of the one before it"
                    self._schedule.found("S11", text)
                self._pass_over(partition, offset)
            return
        before = self._committed.get(partition, -1)
        # a process that has not heard of the truncation yet may commit former offsets
        if offset < before and (log.cut_at is None or before <= log.cut_at):
            name = f"{partition.topic}-{partition.partition}"
            self._schedule.found("S12", f"{name} is committed at {offset}, and was at {before}")
        self._committed[partition] = offset

    def _pass_over(self, partition: TopicPartition, offset: int) -> None:
        """Expect nothing before this offset to be read: it was committed for the topic before."""
        self._passed_over[partition] = offset
        progress = self._progress[partition]
        for before in range(offset):
            progress.on_done(before)
        for entry in self._live.get(partition, {}).values():
            entry.gone = entry.gone or entry.offset < offset

    # --- what is left -------------------------------------------------------------------------------------

    def left(self) -> list[HandledEntry]:
        """Return the first record of each partition that is neither done nor set aside."""
        return [entry for partition in self._live if (entry := self.oldest(partition)) is not None]

    def oldest(self, partition: TopicPartition) -> HandledEntry | None:
        """Return the first record of a partition that is neither done nor set aside."""
        live, offset = self._live.get(partition, {}), self._first.get(partition, 0)
        while (entry := live.get(offset)) is not None and entry.dealt_with:
            offset += 1
        self._first[partition] = offset
        return entry
