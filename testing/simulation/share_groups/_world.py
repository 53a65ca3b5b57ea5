"""One schedule of a share group on several brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from ....broker.share.led_partition import LedPartition
from ....broker.share.persister import ShareKey
from ....cluster import TopicImage
from ....coordinator.engine.runner import ShardRunner
from ....coordinator.share_groups.group import ShareGroup, live_share_group
from ....offsets_topic import partition_for
from ....protocol import SharePartitionKey, TopicPartition
from ....share_partitions import TopicPlace
from ....share_state.shards import ShareStates
from ..brokers._process import BrokerProcess
from ..cluster._plan import OUTPUT, TOPIC
from ..cluster._world import ClusterWorld, read_values
from ..faults._controller import ControllerRequestFaults
from ..faults._topics import TopicFaults
from ..workloads._share import Sharing
from ..workloads._share_states import ShareStateLedger
from ._plan import PASSING, SharePlan
from ._process import ShareProcess


class ShareWorld(ClusterWorld):
    """A schedule that is about to run."""

    plan: SharePlan
    make_broker = ShareProcess
    make_sharing: type[Sharing] = Sharing

    def __init__(self, plan: SharePlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        #: Share partitions of which a write has failed.
        self.failed_writes: set[ShareKey] = set()
        #: What share coordinators of all brokers were asked and have answered.
        self.state_ledger = ShareStateLedger(self)
        topics = [TOPIC, *([OUTPUT] if plan.inputs else []), PASSING]
        self.workloads.append(self.make_sharing(self, self, topics, self.ledger, self.transactions))
        self.faults = [
            *(each for each in self.faults if not isinstance(each, ControllerRequestFaults)),
            ControllerRequestFaults(self, (TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC)),
            TopicFaults(self, PASSING, plan.passing_configs),
        ]
        # by their log's end: states whose start offsets were looked at
        self._states_looked_at: dict[ShareStates, int] = {}

    def _read_topics(self) -> list[str]:
        # members of the share group read them all; the others say what became of transactions
        return [OUTPUT] if self.plan.inputs else []

    # --- where things are ---------------------------------------------------------------------------------

    def leads_newest(self, broker: BrokerProcess, partition: Partition) -> bool:
        """Return whether nobody has led a partition after this broker."""
        return self._is_newest(broker, partition)

    def led_share_partition(
        self, broker: BrokerProcess, group: str, place: TopicPlace
    ) -> LedPartition | None:
        """Return what a broker has of a share partition in memory, from one load to the next."""
        return None if broker.parts is None else broker.parts.node.shares.find(ShareKey(group, *place))

    def has_failed(self, key: ShareKey) -> bool:
        """Return whether a write of a leader has failed."""
        return key in self.failed_writes

    def stored_starts(
        self, broker: BrokerProcess, partition: Partition
    ) -> Iterator[tuple[SharePartitionKey, int]]:
        """Share partitions with their start offsets, as the newest leader of their state has them, if that
        has changed.
        """
        states = self._states_at(broker, partition)
        if states is not None and self._states_looked_at.get(states) != states.end_offset:
            self._states_looked_at[states] = states.end_offset
            for key, kept in states.by_key.items():
                yield key, kept.now.start_offset

    def _states_at(self, broker: BrokerProcess, partition: Partition) -> ShareStates | None:
        shards = None if broker.parts is None else broker.parts.share_states._shards
        if shards is not None and self._is_newest(broker, partition):
            runner = shards.serving_partition(partition.index)
            if isinstance(runner, ShardRunner):
                return runner.shard.state
        return None

    def is_newest_epoch(self, key: ShareKey, leader_epoch: int) -> bool:
        """Return whether nobody has led a share partition's partition after this epoch."""
        return self._newest.get((key.topic_id, key.number)) == leader_epoch

    def keeps_state(self, broker: BrokerProcess, key: SharePartitionKey) -> bool:
        """Return whether nobody has led the state of a share partition after this broker."""
        if broker.parts is None:
            return False
        node = broker.parts.node
        count = node.topics.count_of(SHARE_STATE_TOPIC)
        partition = (
            None if count is None else node.logs.led(SHARE_STATE_TOPIC, partition_for(str(key), count))
        )
        return partition is not None and self._is_newest(broker, partition)

    def share_states(self) -> Iterator[tuple[Partition, ShareStates]]:
        """Return the logs of states with what is in them, at their newest leaders."""
        for broker in self.brokers.values():
            for partition, _ in broker.leaderships():
                states = None
                if partition.topic.name == SHARE_STATE_TOPIC:
                    states = self._states_at(broker, partition)
                if states is not None:
                    yield partition, states

    def share_group(self, group: str) -> ShareGroup | None:
        """Return a group as the newest coordinator has it in memory."""
        for broker in self.brokers.values():
            parts = broker.parts
            if parts is not None and self.coordinates(broker, group):
                runner = parts.coordinator._shards.serving_partition(parts.coordinator.partition_of(group))
                if isinstance(runner, ShardRunner):
                    return live_share_group(runner.shard, group)
        return None

    def share_sessions(self) -> Iterator[tuple[BrokerProcess, str]]:
        """Return the members that have sessions, with the broker where these are."""
        for broker in self.brokers.values():
            if broker.parts is not None:
                for _, member in broker.parts.node.shares.sessions._sessions:
                    yield broker, member

    def places_of(self, topics: Iterable[str]) -> Mapping[TopicPlace, TopicPartition]:
        """Return the partitions of those topics that exist."""
        found = [topic for name in topics if (topic := self._newest_image_of(name)) is not None]
        return {
            TopicPlace(topic.id, number): TopicPartition(topic.name, number)
            for topic in found
            for number in range(len(topic.partitions))
        }

    def _newest_image_of(self, name: str) -> TopicImage | None:
        """A topic as the active controller knows it, or whoever is there; not one that has just started, and
        knows no topics yet.
        """
        nodes = [broker.parts.node for broker in self.brokers.values() if broker.parts is not None]
        nodes = [node for node in nodes if any(node.image.topics())]
        nodes.sort(key=lambda node: not node.control.is_active)
        return nodes[0].image.topic(name) if nodes else None

    def values_of(self, partition: Partition) -> Mapping[int, bytes]:
        """Return what is in a partition, by offset."""
        return read_values(partition)
