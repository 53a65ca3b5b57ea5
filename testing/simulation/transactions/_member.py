"""Producers whose input is assigned by their group, which also fences them (KIP-447)."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from uuid import UUID

from ....client.errors import BrokerConnectionError
from ....protocol import ErrorCode
from ....protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ....protocol.messages.heartbeat import HeartbeatRequest
from ....protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
)
from ....protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from .._network import Receiver, SimulatedLink
from .._schedule import Schedule
from ._ledger import TransactionLedger
from ._plan import GROUP, INPUT, SESSION_MS, ProducerPlan, TransactionPlan
from ._process import AGAIN, RETRY_S, Fenced, SimulatedProducer

NO_TOPIC_ID: Final = UUID(int=0)
_TYPE: Final = "consumer"
_PROTOCOL: Final = "by turns"

#: The group does not know the member, or not in this generation.
_PUT_OUT: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class MemberProducer(SimulatedProducer):
    """Joins its group, works on what it is assigned until the group rebalances, and joins again.

    It finds out by its heartbeats; one that stood still goes on where it was until they are answered.
    """

    broken = SimulatedProducer.broken | _PUT_OUT
    fenced = SimulatedProducer.fenced | {ErrorCode.FENCED_INSTANCE_ID}

    def __init__(
        self,
        schedule: Schedule[TransactionPlan],
        ledger: TransactionLedger,
        broker: Receiver,
        name: str,
        plan: ProducerPlan,
    ) -> None:
        self._member_id = ""
        self._generation = -1
        self._sources: list[int] = []
        self._topic_id = NO_TOPIC_ID
        self._joined = False
        self._membership = SimulatedLink(schedule, broker)
        super().__init__(schedule, ledger, broker, name, plan)
        self.connections.append(self._membership)
        self.loop.create_task(self._beat())

    async def _work(self) -> None:
        while True:
            await self._join()
            self.positions = {source: await self._committed_offset(source) for source in self._sources}
            while self._joined:
                if self.positions:
                    await self._transact(self.rng.choice(list(self.positions)))
                else:
                    await asyncio.sleep(RETRY_S)

    @property
    def waits(self) -> bool:
        """Return whether it has done all that it is assigned."""
        return self._joined and (super().waits or not self.positions)

    def _group_metadata(self) -> dict[str, Any]:
        return {
            "generation_id": self._generation,
            "member_id": self._member_id,
            "group_instance_id": self.plan.instance_id,
        }

    async def _join(self) -> None:
        self._joined, self.positions = False, {}
        while not self._joined:
            error = await self._join_once()
            if error == ErrorCode.FENCED_INSTANCE_ID:
                self._member_id = ""
                raise Fenced
            if error == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            elif error in AGAIN:
                await asyncio.sleep(RETRY_S)
            elif error not in _TO_JOIN_AGAIN:
                self.schedule.found("S0", f"{self} is answered {ErrorCode(error).name} when it joins")

    async def _join_once(self) -> int:
        plan = self.schedule.plan
        join = JoinGroupRequest(
            GROUP,
            SESSION_MS,
            plan.rebalance_ms,
            self._member_id,
            self.plan.instance_id,
            _TYPE,
            [JoinGroupRequestProtocol(_PROTOCOL)],
        )
        answer = await self._ask_coordinator(join)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        if answer.error_code:
            return int(answer.error_code)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        leads = answer.leader == answer.member_id and not answer.skip_assignment
        sync = SyncGroupRequest(
            GROUP,
            self._generation,
            self._member_id,
            self.plan.instance_id,
            _TYPE,
            _PROTOCOL,
            self._shares(answer.members) if leads else (),
        )
        answer = await self._ask_coordinator(sync)
        if not answer.error_code:
            # of who is given none the coordinator makes an assignment of version 0
            count, *sources = bytes(answer.assignment)
            self._sources = sources[:count]
            self._joined = True
        return int(answer.error_code)

    def _shares(self, members: list[JoinGroupResponseMember]) -> list[SyncGroupRequestAssignment]:
        """Input partitions by turns."""
        names = sorted(member.member_id for member in members)
        sources = range(len(self.ledger.ends))
        shares = [sources[place :: len(names)] for place in range(len(names))]
        return [
            SyncGroupRequestAssignment(name, bytes([len(share), *share]))
            for name, share in zip(names, shares, strict=True)
        ]

    async def _beat(self) -> None:
        while not self.done:
            await asyncio.sleep(self.schedule.plan.heartbeat_ms / 1_000)
            if not self._joined:
                continue
            generation = self._generation
            answer = await self._ask_coordinator(
                HeartbeatRequest(GROUP, generation, self._member_id, self.plan.instance_id)
            )
            if self._joined and generation == self._generation and answer.error_code not in (0, *AGAIN):
                self._joined = False

    async def _ask_coordinator(self, body: Any) -> Any:
        """The answer of the group's coordinator, however often it has to be asked."""
        while True:
            try:
                return await self.ask(body, connection=self._membership)
            except BrokerConnectionError:
                await asyncio.sleep(RETRY_S)


#: Errors of a join that is repeated at once.
_TO_JOIN_AGAIN: Final = (
    ErrorCode.NONE,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.REBALANCE_IN_PROGRESS,
    *_PUT_OUT,
)


class ConsumerProducer(MemberProducer):
    """As a member of a group of consumers (KIP-848), which the coordinator assigns by heartbeats.

    What it is to give up it gives up between two transactions, and says so with the next heartbeat.
    """

    async def _work(self) -> None:
        self._joined, self.positions = False, {}
        while True:
            if not self._joined:
                # what it had may be another's by now
                self.positions = {}
                await self._told_by(await self._ask_coordinator(self._heartbeat(0)))
                continue
            self.positions = {at: offset for at, offset in self.positions.items() if at in self._sources}
            for source in self._sources:
                if source not in self.positions:
                    offset = await self._committed_offset(source)
                    if self._joined and source in self._sources:
                        self.positions[source] = offset
            if self.positions:
                await self._transact(self.rng.choice(list(self.positions)))
            else:
                await asyncio.sleep(RETRY_S)

    def _heartbeat(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        self._member_id = self._member_id or self.schedule.new_id()
        owned = [TopicPartitions(self._topic_id, sorted(self.positions))] if self.positions else []
        return ConsumerGroupHeartbeatRequest(
            GROUP,
            self._member_id,
            epoch,
            rebalance_timeout_ms=self.schedule.plan.rebalance_ms,
            subscribed_topic_names=[INPUT],
            topic_partitions=owned,
        )

    async def _told_by(self, answer: Any) -> None:
        if answer.error_code in AGAIN:
            await asyncio.sleep(RETRY_S)
            return
        if answer.error_code:
            self._joined = False
            if answer.error_code not in _OF_CONSUMERS:
                name = ErrorCode(answer.error_code).name
                self.schedule.found("S0", f"{self} is answered {name} to its heartbeat")
            await asyncio.sleep(RETRY_S)
            return
        if not self._joined:
            self._sources = []
        self._joined, self._generation = True, answer.member_epoch
        if answer.assignment is not None:
            found = answer.assignment.topic_partitions
            self._sources = [number for topic in found for number in topic.partitions]
            if found:
                self._topic_id = found[0].topic_id

    async def _beat(self) -> None:
        while not self.done:
            await asyncio.sleep(self.schedule.plan.heartbeat_ms / 1_000)
            if not self._joined:
                continue
            epoch = self._generation
            answer = await self._ask_coordinator(self._heartbeat(epoch))
            if self._joined and epoch == self._generation:
                await self._told_by(answer)


#: Errors of a heartbeat after which a member joins again.
_OF_CONSUMERS: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
}
