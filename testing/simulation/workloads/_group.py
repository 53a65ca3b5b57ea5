"""A group: its members read a topic and commit what they have read; some are killed, and others follow."""

from __future__ import annotations

import asyncio
from typing import Final

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import OFFSETS_TOPIC
from ....consumer import AsyncGroupConsumer, ConsumerError
from ....coordinator.classic_groups.group import CLASSIC_TYPE
from ....coordinator.consumer_groups.group import CONSUMER_TYPE
from ....coordinator.engine.runner import ShardRunner
from ....protocol import ApiKey, KohortError, TopicPartition
from ....protocol.messages.offset_commit import OffsetCommitResponse
from ....protocol.messages.offset_fetch import OffsetFetchResponse
from ..brokers._clients import ClientProcess
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall
from ..engine._phases import Left
from ..engine._plan import Incident
from ._group_ledger import GROUP_APIS, GroupLedger
from ._record_ledger import RecordLedger
from ._workload import Workload

GROUP: Final = "billing"


class Committing(Workload):
    """``count`` members of the group read a topic, with sessions of ``session_ms``."""

    def __init__(
        self, world: AnyWorld, ledger: RecordLedger, topic: str, count: int, session_ms: int
    ) -> None:
        self._world = world
        self._ledger = ledger
        self._topic = topic
        self._count = count
        self._members: list[MemberProcess] = []
        self._told = GroupLedger(world, session_ms)
        # the highest offset whose commit was acknowledged
        self._committed: dict[TopicPartition, int] = {}
        # epochs in which a coordinator has loaded a partition of groups
        self._loaded: set[tuple[int, int]] = set()

    def start(self) -> None:
        for _ in range(self._count):
            self._join()

    def _join(self) -> None:
        member = MemberProcess(self._world, self._ledger, self._topic, f"m{len(self._world.clients)}")
        self._members.append(member)
        self._world.clients.append(member)

    def meet(self, incident: Incident) -> bool:
        if incident.kind != "client-kill" or not self._members:
            return False
        member = self._members.pop(incident.who % len(self._members))
        member.kill()
        self._world.heap.at(self._world.heap.now + incident.length_ms, self._join)
        return True

    def unsettled(self) -> Left:
        for index in range(self._world.plan.topics[self._topic] if self._members else 0):
            place = TopicPartition(self._topic, index)
            end, committed = (
                self._world.partition_at(place).log_end_offset,
                self._world.committed_offset(GROUP, place),
            )
            if committed < end:
                return "B8", f"of {self._topic}-{index} {committed} of {end} is committed"
        return None

    # --- what its coordinators say ------------------------------------------------------------------------

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:  # noqa: ARG002
        if call.api_key == ApiKey.OFFSET_FETCH:
            call.note = dict(self._committed)
        elif call.api_key in GROUP_APIS and call.body.group_id == GROUP:
            call.note = self._world.heap.now
            self._told.on_request(call)

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: object) -> None:
        if isinstance(body, OffsetCommitResponse) and call.body.group_id == GROUP:
            for asked, told in zip(call.body.topics, body.topics, strict=True):
                for row, answer in zip(asked.partitions, told.partitions, strict=True):
                    if not answer.error_code:
                        self._was_committed(row.partition_index, row.committed_offset)
        elif isinstance(body, OffsetFetchResponse) and call.note and self._world.coordinates(broker, GROUP):
            for group in body.groups:
                rows = (row for topic in group.topics for row in topic.partitions)
                for row in () if group.error_code or group.group_id != GROUP else rows:
                    place = TopicPartition(self._topic, row.partition_index)
                    known = call.note.get(place, -1)
                    if not row.error_code and row.committed_offset < known:
                        text = f"{broker} says {row.committed_offset} is committed of {place}"
                        self._world.found("B6", f"{text}, {known} was acknowledged")
        elif call.api_key in GROUP_APIS and call.body.group_id == GROUP:
            self._told.on_answer(call, body, newest=self._world.coordinates(broker, GROUP))

    def _was_committed(self, index: int, offset: int) -> None:
        place = TopicPartition(self._topic, index)
        self._world.stats.commits += 1
        # members begin anew where the log has lost what they had read
        before = 0 if place in self._world.lossy else self._committed.get(place, 0)
        self._committed[place] = max(offset, before)

    def on_led(self, broker: BrokerProcess, partition: Partition) -> None:
        """Check the group's state in a coordinator that has just loaded its partition."""
        key = partition.index, partition.leader_epoch
        parts = broker.parts
        if (
            partition.topic.name != OFFSETS_TOPIC
            or parts is None
            or key in self._loaded
            or parts.coordinator.partition_of(GROUP) != partition.index
        ):
            return
        runner = parts.coordinator._shards.serving_partition(partition.index)
        if isinstance(runner, ShardRunner) and self._world.coordinates(broker, GROUP):
            self._loaded.add(key)
            durable = runner.shard.state.durable
            if self._world.plan.consumer.get("protocol") == "consumer":
                self._told.members_were_loaded(broker.name, durable.of_type(CONSUMER_TYPE).get(GROUP, {}))
            else:
                self._told.was_loaded(broker.name, durable.of_type(CLASSIC_TYPE).get(GROUP))


class MemberProcess(ClientProcess):
    """A member of the group, which commits what it has read."""

    def __init__(self, world: AnyWorld, ledger: RecordLedger, topic: str, name: str) -> None:
        self._ledger = ledger
        self._topic = topic
        super().__init__(world, name)

    async def run(self) -> None:
        while True:
            try:
                await self._read()
            except (KohortError, ConsumerError) as error:
                self.world.say(f"{self} begins anew: {error!r}")
                await asyncio.sleep(0.1)

    async def _read(self) -> None:
        async with AsyncGroupConsumer(
            self._topic,
            bootstrap=self.world.bootstrap,
            group=GROUP,
            auto_offset_reset="earliest",
            **self.world.plan.consumer,
        ) as consumer:
            async for record in consumer:
                place, value = record.topic_partition, record.value or b""
                self._ledger.was_read(self.name, place, record.offset, value)
                consumer.done(record)
