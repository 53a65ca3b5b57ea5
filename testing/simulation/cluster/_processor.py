"""Processes that turn numbers into records, each exactly once: positions are committed with the output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ....client import Cluster
from ....producer import Producer, ProducerFencedError, TransactionAbortableError
from ....protocol import KohortError, TopicPartition
from ..transactions._ledger import EndOutcome, PlannedTransaction
from ._clients import ClientProcess
from ._plan import OUTPUT, PROCESSORS, TOPIC
from ._schedule import BOOTSTRAP, ClusterSchedule

_AGAIN_S: Final = 0.03
#: How often the end of a transaction is requested before its producer is given up.
_TRIES: Final = 3


class Processor(ClientProcess):
    """Works on one input with the transactional producer as it ships, until all of it is committed.

    Inputs are numbers; how far one is done is committed as the offset of a partition. Another process may
    begin with its transactional id: the older one ends when it notices.
    """

    def __init__(self, world: ClusterSchedule, name: str, source: int) -> None:
        self._place = TopicPartition(TOPIC, source)
        self.source = source
        super().__init__(world, name)

    async def run(self) -> None:
        while self.world.processors[self.source] is self or not self.world.healed:
            try:
                await self._work()
                return
            except ProducerFencedError as error:
                self.world.say(f"{self} is fenced: {error}")
                if self.world.processors[self.source] is not self:
                    return
            except KohortError as error:
                self.world.say(f"{self} begins anew: {error!r}")
            await asyncio.sleep(_AGAIN_S)

    async def _work(self) -> None:
        plan, ends = self.world.plan, self.world.transactions.ends
        retries = {name: value for name, value in plan.producer.items() if name.startswith("re")}
        async with (
            Cluster(BOOTSTRAP, **retries, default_api_timeout_ms=10_000) as cluster,
            Producer.on_cluster(
                cluster,
                transactional_id=f"id{self.source}",
                transaction_timeout_ms=plan.timeout_ms,
                max_block_ms=10_000,
                **plan.producer,
            ) as producer,
        ):
            found = (await cluster.committed(PROCESSORS, [self._place])).get(self._place)
            position = 0 if found is None else max(found.offset, 0)
            while position < ends[self.source]:
                position = await self._transact(producer, position)
                await asyncio.sleep(self.rng.choice(plan.pauses_ms) / 1_000)

    async def _transact(self, producer: Producer, position: int) -> int:
        """Run one transaction with the next numbers; return the position after the committed ones."""
        world = self.world
        end = min(world.transactions.ends[self.source], position + self.rng.randint(1, 3))
        transaction = world.transactions.begin(self.name, self.source, position, end)
        producer.begin_transaction()
        try:
            for offset in range(position, end):
                await self._send(producer, transaction, offset)
            if not world.healed and self.rng.random() < world.plan.idles:
                await asyncio.sleep(self.rng.random() * 2 * world.plan.timeout_ms / 1_000)
            if world.healed or self.rng.random() >= world.plan.aborts:
                await producer.send_offsets({self._place: end}, PROCESSORS)
                transaction.outcome = EndOutcome.COMMITTING
                await self._end_transaction(producer.commit_transaction)
                world.transactions.on_committed(transaction)
                return end
        except TransactionAbortableError as error:
            world.say(f"{self} aborts {transaction}: {error}")
            transaction.outcome = EndOutcome.OPEN
        await self._end_transaction(producer.abort_transaction)
        transaction.outcome = EndOutcome.ABORTED
        return position

    async def _send(self, producer: Producer, transaction: PlannedTransaction, offset: int) -> None:
        partition = self.rng.randrange(self.world.plan.topics[OUTPUT])
        value = self.world.transactions.write(transaction, partition, offset)
        sent = await producer.send(OUTPUT, value, partition=partition, timestamp_ms=self.world.clock_ms())
        sent.add_done_callback(_see)

    async def _end_transaction(self, end: Callable[[], Awaitable[None]]) -> None:
        """End a transaction; repeat that while its outcome is unknown."""
        for left in reversed(range(_TRIES)):
            try:
                await end()
                return
            except (TransactionAbortableError, ProducerFencedError):
                raise
            except KohortError:
                if not left:
                    raise
            await asyncio.sleep(_AGAIN_S)


def _see(sent: asyncio.Future[Any]) -> None:
    """Ignore the result of a send: the outcome of the transaction decides about its records."""
    if not sent.cancelled():
        sent.exception()
