"""Nodes of the simulated cluster: what a consumer asks of a broker besides its group."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from ....protocol import ApiKey, ErrorCode, TopicPartition
from ....protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from .._network import Call
from ._topics import Log, Topic

if TYPE_CHECKING:
    from ._world import ServiceWorld

HOST: Final = "simulated"
#: The port of node 0; the others follow.
PORT: Final = 9092
COORDINATOR: Final = 0
_GROUP_APIS: Final = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
    }
)
_EARLIEST: Final = -2
_BY_ID: Final = 13
_NO_RECORDS: Final = b""


class Node:
    """One broker. Node 0 coordinates the groups: it is there when the coordinator's process is."""

    def __init__(self, world: ServiceWorld, number: int) -> None:
        self.number = number
        self.down = False
        self._world = world
        #: Fetches that wait for records.
        self._polls: dict[Call, None] = {}
        self._serves: dict[int, Callable[[Call], Any]] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._epoch_ends,
            ApiKey.PRODUCE: self._produce,
        }

    @property
    def reachable(self) -> bool:
        return not self.down and (self.number != COORDINATOR or self._world.broker.reachable)

    def receive(self, call: Call) -> None:
        """Take in a request that has arrived."""
        world = self._world
        key = call.api_key
        if key in _GROUP_APIS:
            refused = world.group_refusal(call)
            if refused is not None:
                call.connection.answered(call, refused)
            elif self.number == COORDINATOR:
                world.broker.receive(call)
            else:
                raise AssertionError(f"{call} came to node {self.number}, which coordinates nothing")
            return
        world.stats.requests += 1
        if key == ApiKey.FETCH:
            self._fetch(call)
        else:
            call.connection.answered(call, self._serves[key](call))

    def look(self) -> None:
        """Something was appended, or has another leader: answer those who wait."""
        for call in list(self._polls):
            self._answer_fetch(call, last=False)

    def close(self) -> None:
        """Let go of everything."""
        vars(self).clear()

    # --- requests -----------------------------------------------------------------------------------------

    def _metadata(self, call: Call) -> Any:
        topics = self._world.topics.topics
        asked = [row.name for row in call.body.topics] if call.body.topics is not None else list(topics)
        rows = []
        for name in asked:
            topic = topics.get(name)
            if topic is None:
                rows.append(_missing(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                rows.append(_described(topic))
        nodes = [node for node in self._world.nodes.values() if node.reachable]
        brokers = [
            SimpleNamespace(node_id=n.number, host=HOST, port=PORT + n.number, rack=None) for n in nodes
        ]
        return SimpleNamespace(
            error_code=0, brokers=brokers, topics=rows, cluster_id="simulated", controller_id=COORDINATOR
        )

    def _find_coordinator(self, call: Call) -> Any:
        world, (group,) = self._world, call.body.coordinator_keys
        code = int(ErrorCode.NONE)
        if not world.group_allowed:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        elif not world.nodes[COORDINATOR].reachable:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        row = SimpleNamespace(
            key=group,
            node_id=COORDINATOR,
            host=HOST,
            port=PORT + COORDINATOR,
            error_code=code,
            error_message=None,
        )
        return SimpleNamespace(coordinators=[row])

    def _list_offsets(self, call: Call) -> Any:
        topics = []
        for topic in call.body.topics:
            rows = []
            for asked in topic.partitions:
                log, error = self._led(TopicPartition(topic.name, asked.partition_index), -1)
                offset = -1 if log is None else 0 if asked.timestamp == _EARLIEST else log.end
                rows.append(
                    SimpleNamespace(
                        partition_index=asked.partition_index,
                        error_code=error,
                        offset=offset,
                        timestamp=-1,
                        leader_epoch=-1 if log is None else log.epoch,
                    )
                )
            topics.append(SimpleNamespace(name=topic.name, partitions=rows))
        return SimpleNamespace(topics=topics)

    def _epoch_ends(self, call: Call) -> Any:
        topics = []
        for topic in call.body.topics:
            rows = []
            for asked in topic.partitions:
                partition = TopicPartition(topic.topic, asked.partition)
                log, error = self._led(partition, asked.current_leader_epoch)
                epoch, end = (-1, -1) if log is None else log.epoch_end(asked.leader_epoch)
                rows.append(
                    SimpleNamespace(
                        partition=asked.partition, error_code=error, leader_epoch=epoch, end_offset=end
                    )
                )
            topics.append(SimpleNamespace(topic=topic.topic, partitions=rows))
        return SimpleNamespace(topics=topics)

    def _produce(self, call: Call) -> Any:
        (topic,) = call.body.topic_data
        (data,) = topic.partition_data
        log, error = self._led(TopicPartition(topic.name, data.index), -1)
        base = -1
        if log is not None:
            base = log.end
            log.end += 1
            self._world.ledger.set_aside(topic.name, bytes(data.records))
        row = SimpleNamespace(index=data.index, error_code=error, error_message=None, base_offset=base)
        return SimpleNamespace(responses=[SimpleNamespace(name=topic.name, partition_responses=[row])])

    # --- records ------------------------------------------------------------------------------------------

    def _fetch(self, call: Call) -> None:
        if not self._answer_fetch(call, last=False):
            self._polls[call] = None
            heap = self._world.heap
            heap.at(heap.now + max(call.body.max_wait_ms, 1), self._poll_over, call)

    def _poll_over(self, call: Call) -> None:
        if call in self._polls:
            self._answer_fetch(call, last=True)

    def _answer_fetch(self, call: Call, *, last: bool) -> bool:
        if call.epoch != call.connection.epoch:
            self._polls.pop(call, None)
            return True  # nobody listens any more
        body, topics, size = call.body, [], 0
        worth = last
        for topic in body.topics:
            by_id = call.version >= _BY_ID
            found = (
                self._world.topics.by_id(topic.topic_id)
                if by_id
                else self._world.topics.topics.get(topic.topic)
            )
            rows = []
            for asked in topic.partitions:
                row = self._read(found, asked, max(body.max_bytes - size, 1), by_id=by_id)
                size += len(row.records or b"")
                worth = worth or bool(row.error_code) or size >= body.min_bytes
                rows.append(row)
            topics.append(FetchableTopicResponse(topic.topic, topic.topic_id if by_id else None, rows))
        if worth:
            self._polls.pop(call, None)
            call.connection.answered(call, FetchResponse(responses=_in_one_frame(topics)))
        return worth

    def _read(self, topic: Topic | None, asked: Any, max_bytes: int, *, by_id: bool) -> PartitionData:
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _failed(asked, unknown)
        if not topic.readable:
            return _failed(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        log, error = self._led(TopicPartition(topic.name, asked.partition), asked.current_leader_epoch)
        if log is None:
            return _failed(asked, error)
        if not 0 <= asked.fetch_offset <= log.end:
            return _failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        records = _NO_RECORDS
        if asked.fetch_offset < log.end:
            records = log.read(asked.fetch_offset, min(asked.partition_max_bytes, max_bytes))
        return PartitionData(asked.partition, 0, log.end, log.end, 0, records=records)

    def _led(self, partition: TopicPartition, epoch: int) -> tuple[Log | None, int]:
        """The log, if this node leads it in that epoch; or the error."""
        log = self._world.topics.log(partition)
        if log is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if log.leader != self.number:
            return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if 0 <= epoch < log.epoch:
            return None, ErrorCode.FENCED_LEADER_EPOCH
        if epoch > log.epoch:
            return None, ErrorCode.UNKNOWN_LEADER_EPOCH
        return log, ErrorCode.NONE


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


def _failed(asked: Any, error: int) -> PartitionData:
    return PartitionData(asked.partition, int(error), -1, records=_NO_RECORDS)


def _missing(name: str, error: int) -> Any:
    return SimpleNamespace(name=name, error_code=int(error), topic_id=None, is_internal=False, partitions=())


def _described(topic: Topic) -> Any:
    partitions = [
        SimpleNamespace(
            error_code=0 if log.leader >= 0 else int(ErrorCode.LEADER_NOT_AVAILABLE),
            partition_index=number,
            leader_id=log.leader,
            leader_epoch=log.epoch,
            replica_nodes=[0, 1],
        )
        for number, log in enumerate(topic.logs)
    ]
    return SimpleNamespace(
        name=topic.name,
        error_code=0,
        topic_id=topic.topic_id,
        is_internal=False,
        partitions=partitions,
    )
