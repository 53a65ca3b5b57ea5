"""Topics: logs of real record batches, leaders, epochs; created, grown, truncated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from ....protocol import TopicPartition, build_batch, compress_batch, parse_batch_header, stamp_batch

#: The wall clock of records.
_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(slots=True)
class SimulatedBatch:
    """Some records that were appended together; ``end`` is the offset after them."""

    base: int
    end: int
    data: bytes


@dataclass(slots=True)
class SimulatedLog:
    """One partition. ``leader`` is -1 while it has none; ``epochs`` are (epoch, first offset), ascending."""

    leader: int
    epoch: int = 0
    end: int = 0
    batches: list[SimulatedBatch] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    #: When it last got a leader again.
    led_since_ms: int = 0
    made_ms: int = 0
    #: The lowest offset at which it was truncated.
    cut_at: int | None = None

    def append(self, records: list[tuple[bytes | None, bytes | None]], codec: int = 0) -> int:
        """Append a batch of records; return the offset of the first."""
        rows = [(key, value, ()) for key, value in records]
        data = build_batch(
            rows, timestamp_ms=_TIMESTAMP_MS + self.end, base_offset=self.end, leader_epoch=self.epoch
        )
        base, self.end = self.end, self.end + len(records)
        self.batches.append(
            SimulatedBatch(base, self.end, bytes(compress_batch(data, codec) if codec else data))
        )
        return base

    def append_batch(self, data: bytes) -> int:
        """Append a batch that a client made; return the offset of its first record."""
        base, placed = self.end, bytearray(data)
        stamp_batch(placed, 0, base_offset=base, leader_epoch=self.epoch)
        self.end += parse_batch_header(placed).record_count
        self.batches.append(SimulatedBatch(base, self.end, bytes(placed)))
        return base

    def on_elected(self, leader: int, now_ms: int) -> None:
        """Another leader, of the next epoch."""
        self.leader = leader
        self.epoch += 1
        self.epochs.append((self.epoch, self.end))
        self.led_since_ms = now_ms

    def cut(self, offset: int, leader: int, now_ms: int) -> None:
        """The leader died, and the new one has the log up to this offset only."""
        kept = [batch for batch in self.batches if batch.end <= offset]
        self.batches = kept
        self.end = kept[-1].end if kept else 0
        self.epochs = [row for row in self.epochs if row[1] < self.end] or [self.epochs[0]]
        self.cut_at = self.end if self.cut_at is None else min(self.cut_at, self.end)
        self.on_elected(leader, now_ms)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one on that has this offset; at least one, if there is one."""
        first = bisect_right(self.batches, offset, key=lambda batch: batch.base) - 1
        taken: list[bytes] = []
        size = 0
        for batch in self.batches[max(first, 0) :]:
            if taken and size + len(batch.data) > max_bytes:
                break
            taken.append(batch.data)
            size += len(batch.data)
        return b"".join(taken)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest epoch not above this one, and where it ends; (-1, -1) if there is none."""
        if epoch > self.epoch:
            return -1, -1
        found = [row for row in self.epochs if row[0] <= epoch]
        if not found:
            return -1, -1
        later = [row[1] for row in self.epochs if row[0] > epoch]
        return found[-1][0], later[0] if later else self.end


@dataclass(slots=True)
class SimulatedTopic:
    """A topic; one that is deleted and recreated is another one. ``readable`` False: nobody may read it."""

    name: str
    topic_id: UUID
    logs: list[SimulatedLog]
    made_ms: int
    readable: bool = True
    readable_since_ms: int = 0

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(len(self.logs))]


class SimulatedTopics:
    """All topics. ``grew`` is called with a log that has more records than before, or another leader."""

    def __init__(self, nodes: int) -> None:
        self.topics: dict[str, SimulatedTopic] = {}
        self.changed: Callable[[], None] = lambda: None
        self._nodes = nodes
        self._made = 0

    def make(self, name: str, partitions: int, now_ms: int) -> SimulatedTopic:
        self._made += 1
        logs = [SimulatedLog(self.leader_of(number), led_since_ms=now_ms) for number in range(partitions)]
        topic = self.topics[name] = SimulatedTopic(name, UUID(int=self._made), logs, now_ms)
        return topic

    def leader_of(self, partition: int) -> int:
        """Node that leads a partition when all is well."""
        return partition % self._nodes

    def grow(self, name: str, now_ms: int) -> None:
        topic = self.topics[name]
        topic.logs.append(SimulatedLog(self.leader_of(len(topic.logs)), led_since_ms=now_ms, made_ms=now_ms))

    def delete(self, name: str) -> None:
        self.topics.pop(name, None)
        self.changed()

    def log(self, partition: TopicPartition) -> SimulatedLog | None:
        """The log of a partition, if it exists."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.logs):
            return None
        return topic.logs[partition.partition]

    def made_ms(self, partition: TopicPartition) -> int:
        """When an existing partition was made."""
        topic = self.topics[partition.topic]
        return max(topic.made_ms, topic.logs[partition.partition].made_ms)

    def by_id(self, topic_id: UUID) -> SimulatedTopic | None:
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def ends(self) -> dict[TopicPartition, int]:
        """Every partition, and the offset after its last record."""
        return {p: topic.logs[p.partition].end for topic in self.topics.values() for p in topic.partitions()}
