"""A share coordinator in memory, whose writes can be held back and refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kohort.broker.share.persister import ShareKey, StateId, StoredPartition
from kohort.protocol import ErrorCode, KafkaError
from kohort.share_partitions import StateBatch


class MemoryPersister:
    """Every share partition is initialized, with the state epoch 1, from the start on."""

    def __init__(self) -> None:
        self.states: dict[ShareKey, StoredPartition] = {}
        self.leader_epochs: dict[ShareKey, int] = {}
        self.reads: list[ShareKey] = []
        self.writes: list[tuple[ShareKey, int, int, list[StateBatch]]] = []
        #: The error of the next calls.
        self.refusal: KafkaError | None = None
        #: The error of the next writes.
        self.write_refusal: KafkaError | None = None
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        await asyncio.sleep(0)
        self.reads.append(key)
        if self.refusal is not None:
            raise self.refusal
        self.leader_epochs[key] = max(leader_epoch, self.leader_epochs.get(key, 0))
        return self.states.setdefault(key, StoredPartition(StateId(1), -1, ()))

    async def write(
        self,
        key: ShareKey,
        state: StateId,
        leader_epoch: int,
        start_offset: int,
        done_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        await self.may_write.wait()
        if (refusal := self.refusal or self.write_refusal) is not None:
            raise refusal
        known = self.states[key]
        if leader_epoch < self.leader_epochs[key]:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if state.epoch < known.state.epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self.writes.append((key, start_offset, done_count, list(batches)))
        start = max(known.start_offset, start_offset)
        rows = {
            offset: StateBatch(offset, offset, state, count)
            for first, last, state, count in [*known.batches, *batches]
            for offset in range(max(first, start), last + 1)
        }
        merged: list[StateBatch] = []
        for offset in sorted(rows):
            row = rows[offset]
            if merged and merged[-1][1:] == (offset - 1, row.state, row.delivery_count):
                merged[-1] = merged[-1]._replace(last=offset)
            else:
                merged.append(row)
        self.states[key] = StoredPartition(known.state, start, merged)
