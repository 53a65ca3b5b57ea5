"""Nodes of the simulated cluster: what a consumer asks of a broker besides its group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ....broker.apis import served_apis
from ....client.metadata import Address
from ....protocol import ApiKey, ErrorCode, TopicPartition
from ....protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ....protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ....protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ....protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ....protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ....protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ..engine._network import Receiver, SimulatedCall
from ..engine._schedule import Schedule
from ._ledger import ServiceLedger
from ._plan import NODES, ServicePlan
from ._topics import SimulatedLog, SimulatedTopic, SimulatedTopics

HOST: Final = "simulated"
#: The port of node 0; the others follow.
PORT: Final = 9092
COORDINATOR: Final = 0
_EARLIEST: Final = -2
_BY_ID: Final = 13
_NO_RECORDS: Final = b""
_RETRY: Final = ".retry."


class SimulatedNodes:
    """All nodes. The group may be used while it is ``group_allowed``; OffsetCommits get ``commit_error``."""

    def __init__(
        self,
        schedule: Schedule[ServicePlan],
        broker: Receiver,
        topics: SimulatedTopics,
        ledger: ServiceLedger,
    ) -> None:
        self.schedule = schedule
        self.broker = broker
        self.topics = topics
        self.ledger = ledger
        self.group_allowed = True
        self.commit_error: ErrorCode | None = None
        self.nodes = {number: SimulatedNode(self, number) for number in range(NODES)}
        topics.changed = self._topics_changed

    def node_at(self, address: Address) -> SimulatedNode | None:
        """The node of an address; any that can be reached for one that is not in the metadata."""
        node = self.nodes.get(address.port - PORT)
        if node is not None:
            return node
        return next((node for node in self.nodes.values() if node.reachable), None)

    def make_retry_topics(self, names: Iterable[str]) -> None:
        """Make those of these topics that are for retries: their first letter is about to come."""
        for name in names:
            if self.is_retry_topic(name) and name not in self.topics.topics:
                count = self.schedule.plan.topics[_origin(name)]
                self.topics.make(name, count, self.schedule.heap.now)

    def is_retry_topic(self, name: str) -> bool:
        """Return whether records of a topic of the plan, on which their handler failed, wait in this one."""
        return _RETRY in name and _origin(name) in self.schedule.plan.topics

    def _topics_changed(self) -> None:
        for node in self.nodes.values():
            if node.reachable:
                node.look()

    def close(self) -> None:
        """Drop all references, so that this is freed at once."""
        for node in self.nodes.values():
            vars(node).clear()
        vars(self).clear()


class SimulatedNode:
    """One broker. Node 0 coordinates the groups: it is there when the coordinator's process is."""

    def __init__(self, cluster: SimulatedNodes, number: int) -> None:
        self.number = number
        self.down = False
        self._cluster = cluster
        #: Fetches that wait for records.
        self._polls: dict[SimulatedCall, None] = {}
        self._serves: dict[int, Callable[[SimulatedCall], object]] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._epoch_ends,
            ApiKey.PRODUCE: self._produce,
        }

    @property
    def reachable(self) -> bool:
        return not self.down and (self.number != COORDINATOR or self._cluster.broker.reachable)

    def receive(self, call: SimulatedCall) -> None:
        cluster, key = self._cluster, call.api_key
        serve = self._serves.get(key)
        if key == ApiKey.FETCH or serve is not None:
            cluster.schedule.stats.requests += 1
            if serve is None:
                self._fetch(call)
            else:
                call.connection.on_answer(call, serve(call))
            return
        error = cluster.commit_error if key == ApiKey.OFFSET_COMMIT else None
        if not cluster.group_allowed:
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if error is not None:
            refused = served_apis()[key].errors.answer(key, call.version, call.body, error)
            call.connection.on_answer(call, refused)
        else:
            assert self.number == COORDINATOR, f"{call} came to node {self.number}, which coordinates nothing"
            cluster.broker.receive(call)

    def look(self) -> None:
        """Something was appended, or has another leader: answer those who wait."""
        for call in list(self._polls):
            self._answer_fetch(call, last=False)

    # --- requests -----------------------------------------------------------------------------------------

    def _metadata(self, call: SimulatedCall) -> MetadataResponse:
        topics = self._cluster.topics.topics
        asked = list(topics)
        if call.body.topics is not None:
            by_id = (self._cluster.topics.by_id(row.topic_id) for row in call.body.topics if row.name is None)
            asked = [row.name for row in call.body.topics if row.name is not None]
            asked += [topic.name for topic in by_id if topic is not None]
            if call.body.allow_auto_topic_creation:
                self._cluster.make_retry_topics(asked)
        self._cluster.ledger.sees(call.client.name)
        nodes = [node.number for node in self._cluster.nodes.values() if node.reachable]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(number, HOST, PORT + number) for number in nodes],
            cluster_id="simulated",
            controller_id=COORDINATOR,
            topics=[_topic_response(name, topics.get(name)) for name in asked],
        )

    def _find_coordinator(self, call: SimulatedCall) -> FindCoordinatorResponse:
        (group,) = call.body.coordinator_keys
        code = ErrorCode.NONE
        if not self._cluster.group_allowed:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        elif not self._cluster.nodes[COORDINATOR].reachable:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        row = Coordinator(group, COORDINATOR, HOST, PORT + COORDINATOR, code, None)
        return FindCoordinatorResponse(coordinators=[row])

    def _list_offsets(self, call: SimulatedCall) -> ListOffsetsResponse:
        topics = []
        for topic in call.body.topics:
            rows = []
            for asked in topic.partitions:
                log, error = self._led(TopicPartition(topic.name, asked.partition_index), -1)
                offset = -1 if log is None else 0 if asked.timestamp == _EARLIEST else log.end
                epoch = -1 if log is None else log.epoch
                rows.append(ListOffsetsPartitionResponse(asked.partition_index, error, -1, offset, epoch))
            topics.append(ListOffsetsTopicResponse(topic.name, rows))
        return ListOffsetsResponse(topics=topics)

    def _epoch_ends(self, call: SimulatedCall) -> OffsetForLeaderEpochResponse:
        topics = []
        for topic in call.body.topics:
            rows = []
            for asked in topic.partitions:
                partition = TopicPartition(topic.topic, asked.partition)
                log, error = self._led(partition, asked.current_leader_epoch)
                end = (-1, -1) if log is None else log.epoch_end(asked.leader_epoch)
                rows.append(EpochEndOffset(error, asked.partition, *end))
            topics.append(OffsetForLeaderTopicResult(topic.topic, rows))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _produce(self, call: SimulatedCall) -> ProduceResponse:
        topics = []
        for topic in call.body.topic_data:
            rows = [self._append(topic.name, data) for data in topic.partition_data]
            topics.append(TopicProduceResponse(topic.name, None, rows))
        return ProduceResponse(topics)

    def _append(self, name: str, data: Any) -> PartitionProduceResponse:
        log, error = self._led(TopicPartition(name, data.index), -1)
        base = -1
        if log is not None and self._cluster.is_retry_topic(name):
            base = log.append_batch(bytes(data.records))
            self._cluster.ledger.on_postponed(bytes(data.records))
            self._cluster.topics.changed()
        elif log is not None:
            base = log.end
            log.end += 1
            self._cluster.ledger.set_aside(name, bytes(data.records))
        return PartitionProduceResponse(data.index, error, base)

    # --- records ------------------------------------------------------------------------------------------

    def _fetch(self, call: SimulatedCall) -> None:
        if not self._answer_fetch(call, last=False):
            self._polls[call] = None
            heap = self._cluster.schedule.heap
            heap.at(heap.now + max(call.body.max_wait_ms, 1), self._poll_over, call)

    def _poll_over(self, call: SimulatedCall) -> None:
        if call in self._polls:
            self._answer_fetch(call, last=True)

    def _answer_fetch(self, call: SimulatedCall, *, last: bool) -> bool:
        if call.epoch != call.connection.epoch:
            self._polls.pop(call, None)
            return True  # nobody listens any more
        body, topics, size = call.body, [], 0
        worth = last
        for topic in body.topics:
            by_id, known = call.version >= _BY_ID, self._cluster.topics
            found = known.by_id(topic.topic_id) if by_id else known.topics.get(topic.topic)
            rows = []
            for asked in topic.partitions:
                left = max(body.max_bytes - size, 1)
                row = self._read(call.client.name, found, asked, left, by_id=by_id)
                size += len(row.records or b"")
                worth = worth or bool(row.error_code) or size >= body.min_bytes
                rows.append(row)
            topics.append(FetchableTopicResponse(topic.topic, topic.topic_id if by_id else None, rows))
        if worth:
            self._polls.pop(call, None)
            call.connection.on_answer(call, FetchResponse(responses=_in_one_frame(topics)))
        return worth

    def _read(
        self, name: str, topic: SimulatedTopic | None, asked: Any, max_bytes: int, *, by_id: bool
    ) -> PartitionData:
        """What a partition has for the process of this name."""
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _failed_partition(asked, unknown)
        if not topic.readable:
            return _failed_partition(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        log, error = self._led(TopicPartition(topic.name, asked.partition), asked.current_leader_epoch)
        if log is None:
            return _failed_partition(asked, error)
        if not 0 <= asked.fetch_offset <= log.end:
            return _failed_partition(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        records = _NO_RECORDS
        self._cluster.ledger.fetches(name, TopicPartition(topic.name, asked.partition), asked.fetch_offset)
        if asked.fetch_offset < log.end:
            records = log.read(asked.fetch_offset, min(asked.partition_max_bytes, max_bytes))
        return PartitionData(asked.partition, 0, log.end, log.end, 0, records=records)

    def _led(self, partition: TopicPartition, epoch: int) -> tuple[SimulatedLog | None, int]:
        """The log, if this node leads it in that epoch; or the error."""
        log = self._cluster.topics.log(partition)
        if log is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if log.leader != self.number:
            return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if 0 <= epoch < log.epoch:
            return None, ErrorCode.FENCED_LEADER_EPOCH
        if epoch > log.epoch:
            return None, ErrorCode.UNKNOWN_LEADER_EPOCH
        return log, ErrorCode.NONE


def _origin(retry_topic: str) -> str:
    return retry_topic.rpartition(_RETRY)[0]


def _in_one_frame(topics: list[FetchableTopicResponse]) -> list[FetchableTopicResponse]:
    """As a socket gives them: what is kept of one partition keeps the whole frame."""
    read = [row.records for topic in topics for row in topic.partitions if row.records]
    if len(read) < 2:
        return topics
    frame = memoryview(b"".join(read))
    made, at = [], 0
    for topic in topics:
        rows = []
        for row in topic.partitions:
            end = at + len(row.records or b"")
            rows.append(row._replace(records=frame[at:end]))
            at = end
        made.append(topic._replace(partitions=rows))
    return made


def _failed_partition(asked: Any, error: int) -> PartitionData:
    return PartitionData(asked.partition, int(error), -1, records=_NO_RECORDS)


def _topic_response(name: str, topic: SimulatedTopic | None) -> MetadataResponseTopic:
    if topic is None:
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
    rows = []
    for number, log in enumerate(topic.logs):
        error = ErrorCode.NONE if log.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
        rows.append(MetadataResponsePartition(error, number, log.leader, log.epoch, [0, 1]))
    return MetadataResponseTopic(0, name, topic.topic_id, partitions=rows)
