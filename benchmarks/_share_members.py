"""Members of share groups (KIP-932) by hand: no client library stands between the clock and the broker."""

from __future__ import annotations

import select
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from kohort.protocol import ApiKey, ErrorCode, build_batch, decode_response, encode_request
from kohort.protocol.messages import (
    incremental_alter_configs,
    list_offsets,
    produce,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)

from . import _wire as wire
from ._connection import Connection, WrongAnswerError, must, new_group, until_ready
from ._load import SILENCE_S

FETCH_VERSION: Final = 2
#: How long a fetch waits, as it does by default in Apache Kafka's client.
WAIT_MS: Final = 500
MOST_BYTES: Final = 50 << 20
#: Partitions in one Produce request.
TOGETHER: Final = 100

_ACCEPT: Final = 1
_GROUP_RESOURCE: Final = 32
_SET: Final = 0
_PATIENCE_S: Final = 60.0


class Held(NamedTuple):
    """Offsets from ``first`` to ``last`` of a partition that a member has, for the n-th time."""

    topic_id: UUID
    partition: int
    first: int
    last: int
    deliveries: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class ShareMember:
    """A member on a connection of its own. What it holds is accepted record by record."""

    def __init__(self, bootstrap: str, group: str, name: str) -> None:
        self.connection = Connection(bootstrap)
        self.group, self.name = group, name
        self.places: list[tuple[UUID, list[int]]] = []
        self._epoch = 0
        self._member_epoch = 0

    def beat(self, topic: str) -> None:
        """Join or heartbeat, and learn what is assigned."""
        names = [topic] if self._member_epoch == 0 else None
        request = share_group_heartbeat.ShareGroupHeartbeatRequest(
            self.group, self.name, self._member_epoch, subscribed_topic_names=names
        )
        told: Any = None

        def ask() -> int:
            nonlocal told
            told = _ask(self.connection, ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
            return int(told.error_code)

        until_ready("ShareGroupHeartbeat", ask)
        self._member_epoch = told.member_epoch
        if told.assignment is not None:
            self.places = [
                (each.topic_id, list(each.partitions)) for each in told.assignment.topic_partitions
            ]

    def leave(self) -> None:
        """Give back what it has, leave the group and close the connection."""
        self.acknowledge((), epoch=-1)
        request = share_group_heartbeat.ShareGroupHeartbeatRequest(self.group, self.name, -1)
        told = _ask(self.connection, ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
        # it does not heartbeat while it works, and its session may have expired
        must("ShareGroupHeartbeat", told.error_code, ErrorCode.UNKNOWN_MEMBER_ID)
        self.connection.socket.close()

    def send_fetch(
        self, held: Iterable[Held] = (), *, most: int = 500, strict: bool = False, wait_ms: int = WAIT_MS
    ) -> None:
        """Send a ShareFetch that accepts what is ``held``. ``strict``: no more than ``most`` records."""
        epoch = self._next_epoch()
        said = _topics_of(held, share_fetch)
        if epoch == 0:
            said = [
                share_fetch.FetchTopic(topic_id, [share_fetch.FetchPartition(number) for number in numbers])
                for topic_id, numbers in self.places
            ]
        request = share_fetch.ShareFetchRequest(
            self.group, self.name, epoch, wait_ms, 1, MOST_BYTES, most, most, int(strict), topics=said
        )
        self.connection.socket.sendall(encode_request(FETCH_VERSION, epoch, "benchmark", request))

    def receive(self) -> list[Held]:
        """Return what the answer to a fetch gives."""
        told = decode_response(ApiKey.SHARE_FETCH, FETCH_VERSION, self.connection.next_answer()[4:])[1]
        must("ShareFetch", told.error_code)
        held = []
        for topic in told.responses:
            for row in topic.partitions:
                must("a partition of ShareFetch", row.error_code)
                must("an acknowledgement in ShareFetch", row.acknowledge_error_code)
                held += [Held(topic.topic_id, row.partition_index, *each) for each in row.acquired_records]
        return held

    def acknowledge(self, held: Iterable[Held], *, epoch: int | None = None) -> None:
        """Accept what is held; with ``epoch`` -1 the session ends."""
        epoch = self._next_epoch() if epoch is None else epoch
        request = share_acknowledge.ShareAcknowledgeRequest(
            self.group, self.name, epoch, topics=_topics_of(held, share_acknowledge)
        )
        told = _ask(self.connection, ApiKey.SHARE_ACKNOWLEDGE, FETCH_VERSION, request)
        must("ShareAcknowledge", told.error_code)
        for topic in told.responses:
            for row in topic.partitions:
                must("a partition of ShareAcknowledge", row.error_code)

    def _next_epoch(self) -> int:
        epoch, self._epoch = self._epoch, self._epoch + 1
        return epoch


def _ask(connection: Connection, key: ApiKey, version: int, request: Any) -> Any:
    answer = connection.ask(bytes(encode_request(version, 0, "benchmark", request)))
    return decode_response(key, version, answer[4:])[1]


def _topics_of(held: Iterable[Held], module: Any) -> list[Any]:
    """What is accepted, a type for each record, in the words of either request."""
    places: dict[UUID, dict[int, list[object]]] = defaultdict(lambda: defaultdict(list))
    for each in held:
        batch = module.AcknowledgementBatch(each.first, each.last, [_ACCEPT] * each.size)
        places[each.topic_id][each.partition].append(batch)
    partition_of = getattr(module, "FetchPartition", None) or module.AcknowledgePartition
    topic_of = getattr(module, "FetchTopic", None) or module.AcknowledgeTopic
    return [
        topic_of(topic_id, [partition_of(number, batches) for number, batches in rows.items()])
        for topic_id, rows in places.items()
    ]


def new_topic(bootstrap: str, partitions: int) -> str:
    """Create a topic that no other run has used, and wait until all of it is led."""
    topic = new_group("share-topic")
    asked = [list_offsets.ListOffsetsPartition(number, -1, -1) for number in range(partitions)]
    request = list_offsets.ListOffsetsRequest(-1, 0, [list_offsets.ListOffsetsTopic(topic.decode(), asked)])

    def find_ends() -> int:
        told = _ask(connection, ApiKey.LIST_OFFSETS, 7, request)
        return max(int(row.error_code) for each in told.topics for row in each.partitions)

    with Connection(bootstrap) as connection:
        until_ready(
            "CreateTopics",
            lambda: wire.created_error(connection.ask(wire.create_topic(topic, partitions))),
        )
        until_ready("ListOffsets", find_ends)
    return topic.decode()


class Filler:
    """Produces record batches of equal size, each partition in turn."""

    def __init__(self, bootstrap: str, topic: str, records: int, size: int = 100) -> None:
        self.connection = Connection(bootstrap)
        self.topic, self.records = topic, records
        self._batch = bytes(
            build_batch([(None, bytes(size))] * records, timestamp_ms=int(time.time() * 1_000))
        )

    def send(self, partitions: Iterable[int] = (0,)) -> None:
        """Send one batch to each of these partitions."""
        rows = [produce.PartitionProduceData(number, self._batch) for number in partitions]
        request = produce.ProduceRequest(None, 1, 30_000, [produce.TopicProduceData(self.topic, None, rows)])
        self.connection.socket.sendall(encode_request(9, 0, "benchmark", request))

    def receive(self) -> None:
        """Wait until a request that was sent is answered."""
        told = decode_response(ApiKey.PRODUCE, 9, self.connection.next_answer()[4:])[1]
        for topic in told.responses:
            for row in topic.partition_responses:
                must("Produce", row.error_code)

    def fill(self, partitions: int, count: int) -> None:
        """Produce ``count`` records to partitions 0 to ``partitions``, evenly."""
        requests = 0
        for _ in range(count // (partitions * self.records)):
            for first in range(0, partitions, TOGETHER):
                self.send(range(first, min(first + TOGETHER, partitions)))
                requests += 1
                if requests > 8:
                    self.receive()
        for _ in range(min(requests, 8)):
            self.receive()

    def close(self) -> None:
        self.connection.socket.close()


def new_share_group(bootstrap: str) -> str:
    """Return a group that reads its topics from the first record, and whose target never waits."""
    group = new_group("share").decode()
    configs = {"share.auto.offset.reset": "earliest", "share.assignment.interval.ms": "0"}
    resource = incremental_alter_configs.AlterConfigsResource(
        _GROUP_RESOURCE,
        group,
        [incremental_alter_configs.AlterableConfig(key, _SET, value) for key, value in configs.items()],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    with Connection(bootstrap) as connection:
        told = _ask(connection, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        must("IncrementalAlterConfigs", told.responses[0].error_code)
        # the topic of the groups is made for whoever asks first
        find = wire.find_coordinator(group.encode())
        until_ready("FindCoordinator", lambda: wire.coordinator_error(connection.ask(find)))
    return group


def join_all(bootstrap: str, topic: str, partitions: int, count: int) -> list[ShareMember]:
    """Members of a new group that read the topic, each with what it is assigned."""
    group = new_share_group(bootstrap)
    members = [ShareMember(bootstrap, group, f"m{number}") for number in range(count)]
    give_up = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up:
        for member in members:
            member.beat(topic)
        assigned = [len(numbers) for member in members for _, numbers in member.places]
        if len(assigned) == count and sum(assigned) == max(partitions, count):
            return members
        time.sleep(0.02)
    raise WrongAnswerError(f"{count} members have {assigned} of {partitions} partitions")


def drain(members: Sequence[ShareMember], records: int, *, most: int = 500, strict: bool = False) -> float:
    """Read and accept so many records; return the seconds until the last one is delivered.

    Each member's next fetch accepts what its last one gave. Every record has to come once.
    """
    by_fd = {member.connection.socket.fileno(): member for member in members}
    poll = select.epoll()
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    begin = time.perf_counter()
    for member in members:
        member.send_fetch(most=most, strict=strict)
    given: list[Held] = []
    missing = records
    while missing > 0:
        ready = poll.poll(SILENCE_S)
        if not ready:
            raise WrongAnswerError(f"no answer for {SILENCE_S:g} s; look at the broker's log")
        for fd, _ in ready:
            held = by_fd[fd].receive()
            given += held
            missing -= sum(each.size for each in held)
            by_fd[fd].send_fetch(held, most=most, strict=strict)
    took_s = time.perf_counter() - begin
    poll.close()
    for member in members:
        if member.receive():
            raise WrongAnswerError("there are more records than were produced")
    check_once(given)
    return took_s


def check_once(given: Iterable[Held]) -> None:
    """Raise WrongAnswerError if a record was given more than once."""
    ends: dict[tuple[UUID, int], int] = {}
    for each in sorted(given):
        place = each.topic_id, each.partition
        if each.deliveries != 1 or each.first < ends.get(place, 0):
            raise WrongAnswerError(f"{each} was given before")
        ends[place] = each.last + 1


def wait_assigned(bootstrap: str, group: str, members: int) -> None:
    """Wait until so many members of a group have been told of their partitions."""
    give_up = time.monotonic() + _PATIENCE_S
    request = share_group_describe.ShareGroupDescribeRequest([group])
    with Connection(bootstrap) as connection:
        while time.monotonic() < give_up:
            (found,) = _ask(connection, ApiKey.SHARE_GROUP_DESCRIBE, 1, request).groups
            assigned = [
                member
                for member in found.members
                if member.member_epoch == found.group_epoch and member.assignment.topic_partitions
            ]
            if len(assigned) == members:
                return
            time.sleep(0.1)
    raise WrongAnswerError(f"of {members} members {len(assigned)} have partitions")
