"""One schedule of a share group on several brokers."""

from __future__ import annotations

from collections.abc import Iterator

from ....broker.partitions.partition import Partition
from ....broker.share.led_partition import LedPartition
from ....coordinator.engine.runner import ShardRunner
from ....protocol import TopicPartition
from ..brokers._process import BrokerProcess
from ..cluster._plan import TOPIC
from ..cluster._world import ClusterWorld
from ..workloads._share import Sharing
from ._plan import SharePlan


class ShareWorld(ClusterWorld):
    """A schedule that is about to run."""

    plan: SharePlan

    def __init__(self, plan: SharePlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self._sharing = Sharing(self, self, TOPIC, plan.share_members)
        self.workloads.append(self._sharing)

    def leads_newest(self, broker: BrokerProcess, partition: Partition) -> bool:
        """Return whether nobody has led a partition after this broker."""
        return self._is_newest(broker, partition)

    def share_start_offset(self, group: str, place: TopicPartition) -> int | None:
        """Return below which offset all is done, as the leader of a partition has it; None if it has not."""
        for broker in self.brokers.values():
            partition = self.replica(broker, *place)
            if broker.parts is None or partition is None or not self._is_newest(broker, partition):
                continue
            led = self.led_share_partition(broker, group, partition)
            return None if led is None or led.records is None else led.records.start_offset
        return None

    def led_share_partition(
        self, broker: BrokerProcess, group: str, partition: Partition
    ) -> LedPartition | None:
        """Return what a broker has of a share partition in memory, from one load to the next."""
        led = () if broker.parts is None else broker.parts.node.shares.all_led()
        return next((each for each in led if (each.key.group, each.partition) == (group, partition)), None)

    def stored_start_offsets(self, broker: BrokerProcess, partition: Partition) -> Iterator[tuple[str, int]]:
        """Share partitions with their start offsets, as the newest leader of their state has them."""
        shards = None if broker.parts is None else broker.parts.share_states._shards
        if shards is not None and self._is_newest(broker, partition):
            runner = shards.serving_partition(partition.index)
            if isinstance(runner, ShardRunner):
                for key, kept in runner.shard.state.by_key.items():
                    yield str(key), kept.now.start_offset

    def _check(self) -> None:
        super()._check()
        for index in range(self.plan.topics[TOPIC] if self.checked else 0):
            end = self.partition_at(TopicPartition(TOPIC, index)).log_end_offset
            self._sharing.ledger.check(index, end)
