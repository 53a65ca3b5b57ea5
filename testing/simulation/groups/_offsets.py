"""Requests about offsets, and the expected committed offsets, derived from requests and responses alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ....client.offsets import CommittedOffset
from ....coordinator.groups.durable import Durable, OffsetEntry
from ....offsets_topic import ConsumerGroupRecord, GroupDeleted, GroupRecordType, OffsetDeleted, decode
from ....protocol import TopicPartition
from ....protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ....protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ..engine._violation import Violation

#: Offset and metadata; None for nothing.
Value: TypeAlias = tuple[int, str] | None
Key: TypeAlias = tuple[str, TopicPartition]

_UNSEEN: Final = object()
_NO_ENTRIES: Final[dict[TopicPartition, OffsetEntry | bytes]] = {}


@dataclass(slots=True)
class _Expected:
    """``last`` was acknowledged, at ``last_ms`` of the coordinator's clock; any of ``maybe``, asked for since
    and not answered, may have come after it.
    """

    last: Value = None
    last_ms: int = -1
    maybe: list[tuple[object, Value, int]] = field(default_factory=list)
    #: What was the last before it, and until which event.
    before: list[tuple[int, Value]] = field(default_factory=list)
    #: The entry that was found good last time.
    seen: object = _UNSEEN

    def allows(self, value: Value) -> bool:
        return value == self.last or any(value == other for _, other, _ in self.maybe)


class Book:
    """Every offset that clients committed or removed, as far as it is known from outside."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self._expected: dict[Key, _Expected] = {}

    def on_request(
        self, token: object, group: str, value_of: dict[TopicPartition, Value], now_ms: int
    ) -> None:
        """Note a request for these values; whether it is accepted is not known yet."""
        for partition, value in value_of.items():
            expected = self._expected.get((group, partition))
            if expected is None:
                expected = self._expected[group, partition] = _Expected()
            expected.maybe.append((token, value, now_ms))

    def on_confirmed(self, token: object, group: str, partition: TopicPartition, event: int) -> None:
        """The request of this token is acknowledged, so all requests before it have been decided.

        ``event`` numbers what happens, for reads that began before.
        """
        expected = self._expected[group, partition]
        for index, (other, value, now_ms) in enumerate(expected.maybe):
            if other is token:
                past = [expected.last, *(value for _, value, _ in expected.maybe[:index])]
                expected.before = [*expected.before[-8:], *((event, value) for value in past)]
                expected.last, expected.last_ms = value, now_ms
                del expected.maybe[: index + 1]
                expected.seen = _UNSEEN
                self.acknowledged += 1
                return

    def on_refused(self, token: object, group: str, partition: TopicPartition) -> None:
        """The request of this token was refused, and nothing was written."""
        expected = self._expected[group, partition]
        expected.maybe = [entry for entry in expected.maybe if entry[0] is not token]
        expected.seen = _UNSEEN

    def on_gone(self, group: str, topic: str | None = None) -> None:
        """Note that a group's offsets (of a topic) may be removed from now on without a client's request."""
        for (name, partition), expected in self._expected.items():
            if name == group and topic in (None, partition.topic):
                expected.maybe.append((None, None, -1))
                expected.seen = _UNSEEN

    def partitions(self, group: str, topic: str | None = None) -> list[TopicPartition]:
        """Partitions of a group with a commit."""
        return [p for name, p in self._expected if name == group and topic in (None, p.topic)]

    def groups(self) -> list[str]:
        """Groups with a commit."""
        return list(dict.fromkeys(group for group, _ in self._expected))

    def may_be_gone(self, group: str, partition: TopicPartition) -> bool:
        """Return whether a removal was requested."""
        expected = self._expected.get((group, partition))
        return expected is None or expected.allows(None)

    def age_ms(self, durable: Durable, group: str, partition: TopicPartition, now_ms: int) -> int:
        """Time since the commit that the coordinator has, on its clock."""
        expected = self._expected[group, partition]
        value = _value(durable.offsets.get(group, {}).get(partition), durable, group, partition)
        made = [made_ms for _, other, made_ms in expected.maybe if other == value]
        return now_ms - min([*made, expected.last_ms] if value == expected.last else made, default=now_ms)

    def check(self, durable: Durable, where: str) -> None:
        """Compare with the coordinator's state. Raises Violation."""
        offsets = durable.offsets
        for (group, partition), expected in self._expected.items():
            entry = offsets.get(group, _NO_ENTRIES).get(partition)
            if entry is not expected.seen:
                value = _value(entry, durable, group, partition)
                if not expected.allows(value):
                    raise self.violation(group, partition, value, where)
                expected.seen = entry

    def check_read(self, group: str, partition: TopicPartition, value: Value, since: int) -> None:
        """Compare with the response to a request that came in at event ``since``. Raises Violation."""
        expected = self._expected.get((group, partition))
        good = value is None if expected is None else expected.allows(value)
        overtaken = expected is not None and any(
            event >= since and value == before for event, before in expected.before
        )
        if not good and not overtaken:
            raise self.violation(group, partition, value, "an OffsetFetch is answered with")

    def violation(self, group: str, partition: TopicPartition, value: Value, where: str) -> Violation:
        """Violation S1, with the expected values."""
        expected = self._expected.get((group, partition))
        due = None if expected is None else expected.last
        more = [] if expected is None else [value for _, value, _ in expected.maybe]
        text = f"{where} {_value_text(value)} for {partition.topic}-{partition.partition} of {group}"
        return Violation("S1", f"{text}; acknowledged was {_value_text(due)}, not yet answered are {more}")


def removed_key(key: bytes) -> tuple[str, TopicPartition | None] | None:
    """The group, and the partition if it is about one, of a tombstone's key."""
    record = decode(key, None)
    if isinstance(record, OffsetDeleted):
        return record.group, TopicPartition(record.topic, record.partition)
    if isinstance(record, ConsumerGroupRecord):
        return (record.group, None) if record.type is GroupRecordType.EPOCH else None
    return (record.group, None) if isinstance(record, GroupDeleted) else None


def commit_request(
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), value in offsets.items():
        row = OffsetCommitRequestPartition(number, value.offset, value.leader_epoch, value.metadata)
        topics.setdefault(topic, []).append(row)
    rows = [OffsetCommitRequestTopic(topic, None, partitions) for topic, partitions in topics.items()]
    return OffsetCommitRequest(group, generation, member_id, instance_id, topics=rows)


def fetch_request(
    group: str, partitions: Iterable[TopicPartition] | None, identity: tuple[str | None, int] = (None, -1)
) -> OffsetFetchRequest:
    """An OffsetFetch of these partitions, or (None) of all."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions or ():
        topics.setdefault(topic, []).append(number)
    rows: Any = [OffsetFetchRequestTopics(topic, None, numbers) for topic, numbers in topics.items()]
    if partitions is None:
        rows = None
    return OffsetFetchRequest(
        group, rows, [OffsetFetchRequestGroup(group, *identity, rows)], require_stable=True
    )


def offsets_in(body: Any) -> dict[TopicPartition, CommittedOffset | None]:
    """The offsets of an answered OffsetFetch; None where nothing is committed. Empty for a refusal."""
    return {
        TopicPartition(topic.name, row.partition_index): (
            CommittedOffset(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
            if row.committed_offset >= 0
            else None
        )
        for group in body.groups or [body]
        if not group.error_code
        for topic in group.topics
        for row in topic.partitions
        if not row.error_code
    }


def values_of(commit: Any) -> dict[TopicPartition, Value]:
    return {
        TopicPartition(topic.name, row.partition_index): (row.committed_offset, row.committed_metadata or "")
        for topic in commit.topics
        for row in topic.partitions
    }


def same_state(live: Durable, read: Durable, what: str) -> None:
    """Raises Violation S7 where the two differ."""
    for name in {**live.by_type, **read.by_type}:
        mine, other = live.by_type.get(name, {}), read.by_type.get(name, {})
        if mine != other:
            differ = {
                group: (mine.get(group), other.get(group))
                for group in {**mine, **other}
                if mine.get(group) != other.get(group)
            }
            raise Violation("S7", f"{what} has other groups: {differ}")
    for group in {**live.offsets, **read.offsets}:
        known = {partition: entry[:5] for partition, entry in live.committed_offsets(group)}
        found = {partition: entry[:5] for partition, entry in read.committed_offsets(group)}
        if known != found:
            raise Violation("S7", f"{what} has other offsets of {group}: {found} where {known} was known")


def _value(
    entry: OffsetEntry | bytes | None, durable: Durable, group: str, partition: TopicPartition
) -> Value:
    if isinstance(entry, bytes):
        entry = durable.offset(group, partition)
    return None if entry is None else (entry.offset, entry.metadata)


def _value_text(value: Value) -> str:
    return "nothing" if value is None else f"offset {value[0]}"
