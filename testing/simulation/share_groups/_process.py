"""A broker whose way to the share coordinators is slow, and fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ....broker.assembly import BrokerAssembly
from ....broker.share.persister import Persister, ShareKey, StateId, StoredPartition
from ....protocol import ApiKey, ErrorCode, KafkaError, SharePartitionKey
from ....share_partitions import StateBatch
from ....share_state import ShareCoordinator
from ..brokers._process import BrokerProcess
from ..engine._plan import SchedulePlan
from ..engine._schedule import Schedule
from ..workloads._share_states import ShareStateLedger, StateRow
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
        shares.persister = FailingPersister(
            shares.persister,
            self.world,
            self.world.failed_writes,  # type: ignore[attr-defined]
            self.world.state_ledger,  # type: ignore[attr-defined]
            self.world.is_newest_epoch,  # type: ignore[attr-defined]
            fails=plan.state_faults,
            is_late=max(plan.state_faults, plan.state_late),
        )
        self._look_at(parts.share_states)

    def _look_at(self, coordinator: ShareCoordinator) -> None:
        """Have all that it is asked looked at: its own leaders and groups ask it without a connection."""
        ledger = self.world.state_ledger  # type: ignore[attr-defined]
        answer, answer_one = coordinator.answer, coordinator.answer_one

        async def looked_at(api: ApiKey, rows: Iterable[tuple[SharePartitionKey, object]]) -> list[StateRow]:
            asked = ledger.on_request(api, rows := list(rows))
            results = await answer(api, rows)
            ledger.on_answer(asked, results, self._former_states(key for key, _ in rows))
            return results

        async def looked_at_one(api: ApiKey, key: SharePartitionKey, text: str, row: object) -> StateRow:
            asked = ledger.on_request(api, [(key, row)])
            result = await answer_one(api, key, text, row)
            ledger.on_answer(asked, [result], self._former_states([key]))
            return result

        coordinator.answer = looked_at  # type: ignore[method-assign,assignment]
        coordinator.answer_one = looked_at_one  # type: ignore[method-assign,assignment]

    def _former_states(self, keys: Iterable[SharePartitionKey]) -> set[SharePartitionKey]:
        """Return those of which it is not, or not any more, the newest coordinator."""
        return {key for key in keys if not self.world.keeps_state(self, key)}  # type: ignore[attr-defined]


class FailingPersister:
    """A ``Persister`` whose reads and writes are late, and whose writes fail: before they are carried out, or
    afterwards (those are put into ``failed``). ``fails`` and ``is_late`` are how likely each of that is,
    ``leads`` says whether nobody has led a share partition after a leader epoch.
    """

    def __init__(
        self,
        persister: Persister,
        schedule: Schedule[SchedulePlan],
        failed: set[ShareKey],
        ledger: ShareStateLedger,
        leads: Callable[[ShareKey, int], bool],
        *,
        fails: float,
        is_late: float,
    ) -> None:
        self._persister = persister
        self._schedule = schedule
        self._fails = fails
        self._is_late = is_late
        self._failed = failed
        self._ledger = ledger
        self._leads = leads

    def _draws(self, share: float) -> bool:
        return not self._schedule.healed and share > 0 and self._schedule.rng.random() < share

    async def _be_late(self) -> None:
        if self._draws(self._is_late):
            await asyncio.sleep(self._schedule.rng.choice(_LATE_MS) / 1_000)

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        """Read the state, sooner or later."""
        await self._be_late()
        begun = self._ledger.on_read(SharePartitionKey(*key))
        stored = await self._persister.read(key, leader_epoch)
        if self._leads(key, leader_epoch):
            # one of before that does not know its successor may ask a coordinator that is as late
            self._ledger.on_found(begun, stored.start_offset, stored.batches)
        return stored

    async def write(
        self,
        key: ShareKey,
        state: StateId,
        leader_epoch: int,
        start_offset: int,
        done_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Write what has changed, or fail."""
        try:
            await self._be_late()
            if self._draws(self._fails):
                raise _FAILED
            await self._persister.write(key, state, leader_epoch, start_offset, done_count, batches)
            await self._be_late()
            if self._draws(self._fails):
                raise _FAILED
        except KafkaError:
            self._failed.add(key)
            raise
