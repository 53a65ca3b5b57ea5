"""A broker whose way to the share coordinators is slow, and fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ....broker.assembly import BrokerAssembly
from ....broker.share.persister import Persister, ShareKey, StoredPartition
from ....protocol import ErrorCode, KafkaError
from ....share_partitions import StateBatch
from ..brokers._process import BrokerProcess
from ..engine._plan import SchedulePlan
from ..engine._schedule import Schedule
from ._plan import SharePlan

#: Longer than a lock lasts, too.
_LATE_MS: Final = (5, 50, 300, 1_500)
_FAILED: Final = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the state cannot be kept, as was drawn")


class ShareProcess(BrokerProcess):
    """One broker through all its runs."""

    def _on_assembled(self, parts: BrokerAssembly) -> None:
        super()._on_assembled(parts)
        plan, shares = self.world.plan, parts.node.shares
        assert isinstance(plan, SharePlan), "it is one of a share group"
        shares.persister = FailingPersister(shares.persister, self.world, plan.state_faults)


class FailingPersister:
    """A ``Persister`` whose reads and writes are late, and whose writes fail: before they are carried out, or
    afterwards. ``share`` is how likely each of that is.
    """

    def __init__(self, persister: Persister, schedule: Schedule[SchedulePlan], share: float) -> None:
        self._persister = persister
        self._schedule = schedule
        self._share = share

    def _draws(self) -> bool:
        return not self._schedule.healed and self._share > 0 and self._schedule.rng.random() < self._share

    async def _be_late(self) -> None:
        if self._draws():
            await asyncio.sleep(self._schedule.rng.choice(_LATE_MS) / 1_000)

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        """Read the state, sooner or later."""
        await self._be_late()
        return await self._persister.read(key, leader_epoch)

    async def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        done_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Write what has changed, or fail."""
        await self._be_late()
        if self._draws():
            raise _FAILED
        await self._persister.write(key, state_epoch, leader_epoch, start_offset, done_count, batches)
        await self._be_late()
        if self._draws():
            raise _FAILED
