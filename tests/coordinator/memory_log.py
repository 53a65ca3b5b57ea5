"""The offsets topic in memory, and a coordinator over it that a test talks to in a line."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kohort.coordinator import CoordinatorEvent, GroupCoordinator, GroupSettings
from kohort.offsets_topic import OtherRecord
from kohort.protocol import ApiKey, BatchHeader, ErrorCode, KafkaError, RequestContext
from tests.coordinator.bodies import DIRECTORY, RANGE_T, commit_body

CONTEXT = RequestContext("c")


@dataclass
class Batch:
    base_offset: int
    records: list[tuple[int, int, bytes | None, bytes | None]]
    producer_id: int = -1
    producer_epoch: int = -1
    transactional: bool = False
    control: bool = False
    damage: str = ""

    @property
    def header(self) -> BatchHeader | None:
        if self.damage:
            return None
        attributes = self.transactional << 4 | self.control << 5
        return BatchHeader(
            self.base_offset,
            length=0,
            leader_epoch=0,
            magic=2,
            crc=0,
            attributes=attributes,
            last_offset_delta=len(self.records) - 1,
            base_timestamp_ms=0,
            max_timestamp_ms=0,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=-1,
            record_count=len(self.records),
        )

    def load_commits(self, _by_group: Any, _known: Any) -> Iterator[OtherRecord]:
        for offset, _, key, value in self.records:
            yield OtherRecord(offset - self.base_offset, key, value)


@dataclass
class MemoryLog:
    """The offsets topic in memory; ``limit`` is the most bytes a batch may have."""

    partition_count: int = 4
    limit: int = 1 << 20
    fail: Exception | None = None
    batches: dict[int, list[Batch]] = field(default_factory=dict)
    flushed: int = 0

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        /,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        marker: tuple[bool, int] | None = None,
    ) -> int:
        if self.fail is not None:
            raise self.fail
        if sum(len(key) + len(value or b"") for key, value in records) > self.limit:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "the batch is too large")
        if marker is not None:
            records = [(struct.pack(">hh", 0, marker[0]), struct.pack(">hi", 0, marker[1]))]
        batches = self.batches.setdefault(partition, [])
        base = batches[-1].base_offset + len(batches[-1].records) if batches else 0
        rows = [(base + i, now_ms, key, value) for i, (key, value) in enumerate(records)]
        transactional, control = producer_id != -1, marker is not None
        batches.append(Batch(base, list(rows), producer_id, producer_epoch, transactional, control))
        return base

    def load(self, partition: int, /) -> Iterator[Batch]:
        yield from list(self.batches.get(partition, []))

    def flush(self, partition: int, /) -> None:
        assert self.batches[partition]
        self.flushed += 1


def coordinator(
    log: MemoryLog, notes: list[CoordinatorEvent] | None = None, **options: Any
) -> GroupCoordinator:
    if notes is not None:
        options["on_event"] = notes.append
    return GroupCoordinator(
        settings=GroupSettings(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=1),
        store=log,
        partition_count_of=DIRECTORY.partition_count_of,
        topic_of_id=DIRECTORY.topic_of_id,
        id_of_topic=DIRECTORY.id_of_topic,
        **options,
    )


def join(group: str = "g", member: str = "", session_ms: int = 10_000) -> SimpleNamespace:
    return SimpleNamespace(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=RANGE_T,
        reason=None,
    )


def sync(group: str, member: str, generation: int) -> SimpleNamespace:
    return SimpleNamespace(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SimpleNamespace(member_id=member, assignment=b"share")],
    )


def heartbeat(group: str = "g", member: str = "m", generation: int = 1) -> SimpleNamespace:
    return SimpleNamespace(group_id=group, generation_id=generation, member_id=member, group_instance_id=None)


async def commit(c: GroupCoordinator, group: str, offset: int = 1, metadata: str = "") -> list[int]:
    body = commit_body(group, {("t", 0): offset}, "", -1, None, metadata, -1)
    reply = await c.handle(ApiKey.OFFSET_COMMIT, 9, body, CONTEXT)
    return [int(p.error_code) for topic in reply.topics for p in topic.partitions]


async def fetch(c: GroupCoordinator, *groups: str, version: int = 9) -> Any:
    body = SimpleNamespace(
        groups=[
            SimpleNamespace(group_id=group, topics=None, member_id=None, member_epoch=-1) for group in groups
        ],
        require_stable=False,
    )
    return await c.handle(ApiKey.OFFSET_FETCH, version, body, CONTEXT)


async def stable_member(c: GroupCoordinator, group: str = "g", session_ms: int = 10_000) -> str:
    first = await c.handle(ApiKey.JOIN_GROUP, 9, join(group, session_ms=session_ms), CONTEXT)
    member: str = first.member_id
    joined = await c.handle(ApiKey.JOIN_GROUP, 9, join(group, member, session_ms), CONTEXT)
    synced = await c.handle(ApiKey.SYNC_GROUP, 5, sync(group, member, joined.generation_id), CONTEXT)
    assert (joined.error_code, synced.error_code, synced.assignment) == (0, 0, b"share")
    return member
