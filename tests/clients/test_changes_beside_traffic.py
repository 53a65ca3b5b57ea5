"""Topics are deleted, remade, emptied and grown while records, commits, fetches, heartbeats are under way.

Each round sends one change and some traffic together, each request on a connection of its own and in an order
drawn by chance, and then compares the cluster with a model: what a topic must hold, or may hold where it
depends on which request came first. What was meant for a deleted topic is never found in a new one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, batch, part
from tests.clients.raw import RawMember

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

ROUNDS = 20
#: An Apache Kafka hears of its controller's changes, and forgets offsets, a moment after it has answered.
SETTLED_S = 10.0
NOBODY = UUID(int=0)
MEMBERLESS = -1
NONE = -1

#: What traffic on a topic that comes or goes may be told.
GONE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
}

Place: TypeAlias = tuple[str, int]


@dataclass
class Topic:
    """``ends``, ``starts`` and ``commits`` are what may be found, one value where it is certain."""

    id: UUID
    ends: list[set[int]]
    starts: list[set[int]]
    commits: dict[Place, set[int]] = field(default_factory=dict)


@dataclass
class Request:
    """One request of a round. ``takes`` says what an answer means for the model."""

    key: ApiKey
    version: int
    fields: dict[str, Any]
    takes: Callable[[Any], None]


class Model:
    """The topics of one cluster as they must be, and the requests that change them."""

    def __init__(self, bootstrap: str, random: Random) -> None:
        self.random = random
        self.wires = [Wire(bootstrap, timeout_s=30) for _ in range(7)]
        unique = uuid.uuid4().hex[:8]
        self.names = [f"topics-{unique}-{each}" for each in "ab"]
        self.topics: dict[str, Topic] = {}
        self.told: list[str] = []
        #: Groups and partitions for which a commit of this round was taken.
        self.committing: set[Place] = set()
        self.member = RawMember(
            bootstrap, f"topics-{unique}-m", self.names[0], session_ms=40_000, rebalance_ms=20_000
        )
        self.groups = [f"topics-{unique}-s", self.member.group]
        for group in self.groups:
            self.until(partial(self.has_coordinator, group), "a coordinator")
        self.member.settle()

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        self.member.wire.close()

    def has_coordinator(self, group: str) -> bool:
        answer = self.wires[0].call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0)
        return bool(answer.error_code == 0)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SETTLED_S
        while not holds():
            assert time.monotonic() < deadline, "\n".join([*self.told, f"not within {SETTLED_S:g} s: {what}"])
            time.sleep(0.02)

    # a round

    def round(self) -> None:
        """One change with traffic around it, then the check."""
        self.committing.clear()
        name = self.random.choice(self.names)
        changes = self.change(name)
        traffic = [self.traffic(name) for _ in range(self.random.randint(1, 5))]
        volley: list[list[Request]] = [changes, *([each] for each in traffic)]
        self.random.shuffle(volley)
        sent = [
            (wire, each, wire.send(each.key, each.version, **each.fields))
            for wire, requests in zip(self.wires, volley, strict=False)
            for each in requests
        ]
        # changes first: what the traffic may have met depends on them
        for wire, each, number in sorted(sent, key=lambda one: one[1] not in changes):
            answer = wire.receive(each.key, each.version, number)
            self.told.append(f"{each.key.name} v{each.version} {each.fields}: {answer}")
            each.takes(answer)
        self.check(name)

    def change(self, name: str) -> list[Request]:
        """One or two requests for one connection, carried out in this order."""
        topic = self.topics.get(name)
        if topic is None:
            return [self.create(name)]
        kinds = {"delete": 3, "remake": 4, "grow": 2, "empty": 3}
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        if kind == "grow":
            return [self.grow(name, topic)]
        if kind == "empty":
            return [self.delete_records(name, topic)]
        return [self.delete(name), *([self.create(name)] if kind == "remake" else [])]

    def create(self, name: str) -> Request:
        count = self.random.randint(1, 3)

        def takes(answer: Any) -> None:
            (made,) = answer.topics
            assert made.error_code == 0, self.told
            self.topics[name] = Topic(made.topic_id, [{0} for _ in range(count)], [{0} for _ in range(count)])

        topic = part(
            ApiKey.CREATE_TOPICS,
            7,
            "CreatableTopic",
            name=name,
            num_partitions=count,
            replication_factor=-1,
            assignments=[],
            configs=[],
        )
        fields = {"topics": [topic], "timeout_ms": 10_000, "validate_only": False}
        return Request(ApiKey.CREATE_TOPICS, 7, fields, takes)

    def delete(self, name: str) -> Request:
        def takes(answer: Any) -> None:
            assert answer.responses[0].error_code == 0, self.told
            del self.topics[name]

        return Request(ApiKey.DELETE_TOPICS, 5, {"topic_names": [name], "timeout_ms": 10_000}, takes)

    def grow(self, name: str, topic: Topic) -> Request:
        more = self.random.randint(1, 2)

        def takes(answer: Any) -> None:
            assert answer.results[0].error_code == 0, self.told
            topic.ends += [{0} for _ in range(more)]
            topic.starts += [{0} for _ in range(more)]

        wanted = part(
            ApiKey.CREATE_PARTITIONS,
            3,
            "CreatePartitionsTopic",
            name=name,
            count=len(topic.ends) + more,
            assignments=None,
        )
        fields = {"topics": [wanted], "timeout_ms": 10_000, "validate_only": False}
        return Request(ApiKey.CREATE_PARTITIONS, 3, fields, takes)

    def delete_records(self, name: str, topic: Topic) -> Request:
        index = self.random.randrange(len(topic.ends))

        def takes(answer: Any) -> None:
            row = answer.topics[0].partitions[0]
            assert row.error_code == 0, self.told
            topic.starts[index] = {row.low_watermark}

        path = ("DeleteRecordsTopic", "DeleteRecordsPartition")
        row = part(ApiKey.DELETE_RECORDS, 2, *path, partition_index=index, offset=-1)
        wanted = part(ApiKey.DELETE_RECORDS, 2, path[0], name=name, partitions=[row])
        return Request(ApiKey.DELETE_RECORDS, 2, {"topics": [wanted], "timeout_ms": 5_000}, takes)

    # traffic

    def traffic(self, name: str) -> Request:
        kinds = [self.commit, self.commit, self.produce, self.produce, self.fetch, self.heartbeat]
        return self.random.choice(kinds)(name)

    def target(self, name: str) -> tuple[UUID, int, int]:
        """The id that a client knows, a partition that there is or may be soon, and how many there were."""
        topic = self.topics.get(name)
        count = 0 if topic is None else len(topic.ends)
        return NOBODY if topic is None else topic.id, self.random.randrange(count + 1), count

    def commit(self, name: str) -> Request:
        topic_id, index, count = self.target(name)
        version = self.random.choice([5, 9, 10])
        group = self.random.choice(self.groups)
        by_member = group == self.member.group
        offset = self.random.randrange(1_000)

        def takes(answer: Any) -> None:
            error = answer.topics[0].partitions[0].error_code
            self.took(name, topic_id, count, index, error, by_id=version >= 10, what=(group, offset))

        path = ("OffsetCommitRequestTopic", "OffsetCommitRequestPartition")
        row = part(ApiKey.OFFSET_COMMIT, version, *path, partition_index=index, committed_offset=offset)
        by = {"topic_id": topic_id} if version >= 10 else {"name": name}
        fields: dict[str, Any] = {
            "group_id": group,
            "generation_id_or_member_epoch": self.member.generation if by_member else MEMBERLESS,
            "member_id": self.member.id if by_member else "",
            "topics": [part(ApiKey.OFFSET_COMMIT, version, path[0], partitions=[row], **by)],
        }
        if version >= 7:
            fields["group_instance_id"] = None
        return Request(ApiKey.OFFSET_COMMIT, version, fields, takes)

    def produce(self, name: str) -> Request:
        topic_id, index, count = self.target(name)
        version = self.random.choice([9, 13])
        records = self.random.randint(1, 5)

        def takes(answer: Any) -> None:
            error = answer.responses[0].partition_responses[0].error_code
            self.took(name, topic_id, count, index, error, by_id=version >= 13, what=records)

        written = batch(records, timestamp_ms=int(time.time() * 1_000))
        row = part(ApiKey.PRODUCE, version, "PartitionProduceData", index=index, records=written)
        by = {"topic_id": topic_id} if version >= 13 else {"name": name}
        data = part(ApiKey.PRODUCE, version, "TopicProduceData", partition_data=[row], **by)
        fields = {"transactional_id": None, "acks": -1, "timeout_ms": 5_000, "topic_data": [data]}
        return Request(ApiKey.PRODUCE, version, fields, takes)

    def took(
        self, name: str, meant: UUID, before: int, index: int, error: int, *, by_id: bool, what: Any
    ) -> None:
        """What a commit or a produce may have changed; ``before`` is how many partitions there were."""
        topic = self.topics.get(name)
        assert error in {0, *GONE}, "\n".join(self.told)
        remade = topic is not None and topic.id != meant
        if index < before and topic is not None and not remade:
            assert error == 0, "\n".join(self.told)
        if error or topic is None or index >= len(topic.ends):
            return
        if isinstance(what, tuple):
            group, offset = what
            found = topic.commits.setdefault((group, index), {NONE})
            if remade:
                found |= set() if by_id else {offset}
            elif (group, index) in self.committing:
                found.add(offset)  # of several that are under way each may be the last
            else:
                self.committing.add((group, index))
                topic.commits[group, index] = {offset}
        else:
            ends = topic.ends[index]
            grown = {end + what for end in ends}
            topic.ends[index] = (ends | (set() if by_id else grown)) if remade else grown

    def fetch(self, name: str) -> Request:
        """One that waits for records behind the end; it comes back, with or without."""
        _, index, _ = self.target(name)

        def takes(answer: Any) -> None:
            for topic in answer.responses:
                codes = {row.error_code for row in topic.partitions}
                assert codes <= {0, ErrorCode.OFFSET_OUT_OF_RANGE, *GONE}, "\n".join(self.told)

        row = part(
            ApiKey.FETCH,
            12,
            "FetchTopic",
            "FetchPartition",
            partition=index,
            fetch_offset=0,
            partition_max_bytes=1 << 20,
            current_leader_epoch=-1,
            last_fetched_epoch=-1,
        )
        fields = {
            "max_wait_ms": 300,
            "min_bytes": 1 << 20,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [part(ApiKey.FETCH, 12, "FetchTopic", topic=name, partitions=[row])],
            "forgotten_topics_data": [],
            "rack_id": "",
        }
        return Request(ApiKey.FETCH, 12, fields, takes)

    def heartbeat(self, _name: str) -> Request:
        def takes(answer: Any) -> None:
            assert answer.error_code == 0, "\n".join(self.told)

        fields = {
            "group_id": self.member.group,
            "generation_id": self.member.generation,
            "member_id": self.member.id,
            "group_instance_id": None,
        }
        return Request(ApiKey.HEARTBEAT, 4, fields, takes)

    # the check

    def check(self, name: str) -> None:
        """Look until everything is as it may be; what was found is certain from then on."""
        topic = self.topics.get(name)
        self.until(lambda: self.described(name) == self.expected(topic), f"{name} is {self.expected(topic)}")
        if topic is None:
            return
        for timestamp, allowed in ((-2, topic.starts), (-1, topic.ends)):
            for index in range(len(topic.ends)):
                self.narrow(
                    partial(self.offset_at, name, index, timestamp),
                    allowed[index],
                    f"offset at {timestamp} of {name}-{index}",
                )
        for group in self.groups:
            for index in range(len(topic.ends)):
                self.narrow(
                    partial(self.committed, group, name, index),
                    topic.commits.setdefault((group, index), {NONE}),
                    f"offset of {group} for {name}-{index}",
                )

    def narrow(self, look: Callable[[], int], allowed: set[int], what: str) -> None:
        self.until(lambda: look() in allowed, f"{what} is one of {allowed}, found {look()}")
        found = look()
        allowed &= {found}
        assert allowed, "\n".join([*self.told, f"{what} became {found}"])

    def expected(self, topic: Topic | None) -> tuple[UUID | None, int]:
        return (None, 0) if topic is None else (topic.id, len(topic.ends))

    def described(self, name: str) -> tuple[UUID | None, int]:
        wanted = part(ApiKey.METADATA, 12, "MetadataRequestTopic", name=name, topic_id=NOBODY)
        answer = self.wires[0].call(ApiKey.METADATA, 12, topics=[wanted], allow_auto_topic_creation=False)
        (topic,) = answer.topics
        if topic.error_code or any(row.error_code for row in topic.partitions):
            return None, len(topic.partitions)
        return topic.topic_id, len(topic.partitions)

    def offset_at(self, name: str, index: int, timestamp: int) -> int:
        path = ("ListOffsetsTopic", "ListOffsetsPartition")
        row = part(ApiKey.LIST_OFFSETS, 7, *path, partition_index=index, timestamp=timestamp)
        wanted = part(ApiKey.LIST_OFFSETS, 7, path[0], name=name, partitions=[row])
        answer = self.wires[0].call(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=[wanted])
        found = answer.topics[0].partitions[0]
        return int(found.offset) if not found.error_code else -100 - int(found.error_code)

    def committed(self, group: str, name: str, index: int) -> int:
        wanted = part(ApiKey.OFFSET_FETCH, 5, "OffsetFetchRequestTopic", name=name, partition_indexes=[index])
        answer = self.wires[0].call(ApiKey.OFFSET_FETCH, 5, group_id=group, topics=[wanted])
        assert answer.error_code == 0
        return int(answer.topics[0].partitions[0].committed_offset)


@pytest.fixture(params=range(8))
def model(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[Model]:
    made = Model(bootstrap, Random(request.param))
    yield made
    made.close()


def test_nothing_that_was_meant_for_a_deleted_topic_is_found_in_a_new_one(model: Model) -> None:
    for _ in range(ROUNDS):
        model.round()
    assert model.member.heartbeat() == 0, "its group does not mind what becomes of its topics"
