"""Steps drawn by chance for topics and their records: what clients ask, and what they should not."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from kohort.protocol import ApiKey
from tests.broker.wire import batch, part

from .side import Side

Fields = dict[str, Any]
WRONG_NAMES = ("", ".", "a/b", "x" * 250)
#: Old records would be gone when the broker next looks for some.
NOW_MS = int(time.time()) * 1_000


class LogStep(NamedTuple):
    client: int
    kind: ApiKey
    seed: int


def draw(random: Random, clients: int, steps: int) -> list[LogStep]:
    """The first two make topics, so that the rest has something to ask for."""
    kinds = random.choices(list(REQUESTS), [weight for weight, _ in REQUESTS.values()], k=steps)
    kinds[:2] = [ApiKey.CREATE_TOPICS, ApiKey.METADATA]
    return [LogStep(random.randrange(clients), kind, random.getrandbits(30)) for kind in kinds]


class AskingLog:
    """What a step means on one side; all that is drawn here is drawn alike on the other."""

    def __init__(self, step: LogStep, side: Side) -> None:
        self.kind, self.side, self.random = step.kind, side, Random(step.seed)
        self.client = side.clients[step.client]
        self.version = 0

    def some(self, most: int = 2) -> list[tuple[str, UUID]]:
        """Names and ids of one or more of the topics that may exist."""
        topics = list(self.side.topics.values())
        return self.random.sample(topics, self.random.randint(1, most))

    def struct(self, *names: str, **fields: Any) -> Any:
        return part(self.kind, self.version, *names, **fields)

    def partitions(self) -> list[int]:
        numbers = [0, 1, 7, -1] if self.random.random() < 0.2 else [0, 1]
        return self.random.sample(numbers, self.random.randint(1, 2))

    def epoch(self, since: int) -> Fields:
        if self.version < since:
            return {}
        return {"current_leader_epoch": self.random.choices([-1, 0, 5], [6, 2, 1])[0]}


def create_topics(asking: AskingLog) -> Fields:
    random = asking.random
    names = [name for name, _ in asking.some()]
    if random.random() < 0.15:
        names.append(random.choice([*WRONG_NAMES, names[0]]))
    configs = [
        ("cleanup.policy", "compact"),
        ("retention.ms", "-1"),
        ("no.such.config", "1"),
        ("retention.ms", "x"),
    ]
    topics = [
        asking.struct(
            "CreatableTopic",
            name=name,
            num_partitions=random.choices([2, 1, 0, -2], [8, 2, 1, 1])[0],
            replication_factor=random.choices([1, 0], [9, 1])[0],
            assignments=[],
            configs=[
                asking.struct("CreatableTopic", "CreatableTopicConfig", name=key, value=value)
                for key, value in random.sample(configs, random.choices([0, 1], [4, 1])[0])
            ],
        )
        for name in names
    ]
    return {"topics": topics, "timeout_ms": 10_000, "validate_only": random.random() < 0.1}


def delete_topics(asking: AskingLog) -> Fields:
    topics = asking.some(1)
    if asking.version < 6:
        return {"topic_names": [name for name, _ in topics], "timeout_ms": 10_000}
    by_id = asking.random.random() < 0.5
    none = UUID(int=0)
    named = [
        asking.struct("DeleteTopicState", name=None if by_id else name, topic_id=topic_id if by_id else none)
        for name, topic_id in topics
    ]
    return {"topics": named, "timeout_ms": 10_000}


def create_partitions(asking: AskingLog) -> Fields:
    topics = [
        asking.struct(
            "CreatePartitionsTopic",
            name=name,
            count=asking.random.choice([0, 1, 2, 3]),
            assignments=None,
        )
        for name, _ in asking.some()
    ]
    return {"topics": topics, "timeout_ms": 10_000, "validate_only": asking.random.random() < 0.2}


def metadata(asking: AskingLog) -> Fields:
    by_id = asking.version >= 12 and asking.random.random() < 0.3
    topics = []
    for name, topic_id in asking.some(3):
        ids = {"topic_id": topic_id if by_id else UUID(int=0)} if asking.version >= 10 else {}
        topics.append(asking.struct("MetadataRequestTopic", name=None if by_id else name, **ids))
    return {"topics": topics, "allow_auto_topic_creation": False}


def _records(asking: AskingLog) -> Any:
    random, client = asking.random, asking.client
    good = batch(random.randint(1, 3), timestamp_ms=NOW_MS + random.randrange(5))
    if client.producer is not None and random.random() < 0.5:
        producer_id, epoch = client.producer
        return batch(
            2,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=max(0, epoch + random.choice([0, 0, 0, 1, -1])),
            base_sequence=random.choice([0, 0, 2, 2, 4, 9]),
        )
    broken = bytearray(good)
    broken[-1] ^= 1
    older = bytearray(good)
    older[16] = 1
    wrong = [bytes(broken), b"", good + good, good[:-3], bytes(older)]
    return random.choices([good, *wrong], [2 * len(wrong)] + [1] * len(wrong))[0]


def produce(asking: AskingLog) -> Fields:
    topics = []
    for name, topic_id in asking.some():
        by = {"topic_id": topic_id} if asking.version >= 13 else {"name": name}
        rows = [
            asking.struct("TopicProduceData", "PartitionProduceData", index=number, records=_records(asking))
            for number in asking.partitions()
        ]
        topics.append(asking.struct("TopicProduceData", partition_data=rows, **by))
    acks = asking.random.choices([-1, 1, 2], [6, 6, 1])[0]
    return {"transactional_id": None, "acks": acks, "timeout_ms": 5_000, "topic_data": topics}


def fetch(asking: AskingLog) -> Fields:
    random = asking.random
    topics = []
    for name, topic_id in asking.some():
        by = {"topic_id": topic_id} if asking.version >= 13 else {"topic": name}
        rows = [
            asking.struct(
                "FetchTopic",
                "FetchPartition",
                partition=number,
                fetch_offset=random.choice([0, 0, 1, 3, 100, -1]),
                partition_max_bytes=random.choice([1, 100, 1_000_000]),
                **asking.epoch(9),
            )
            for number in asking.partitions()
        ]
        topics.append(asking.struct("FetchTopic", partitions=rows, **by))
    return {
        "max_wait_ms": 0,
        "min_bytes": random.choice([0, 1]),
        "max_bytes": random.choice([1, 150, 1_000_000]),
        "isolation_level": random.choice([0, 1]),
        "session_id": 0,
        "session_epoch": -1,
        "topics": topics,
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def list_offsets(asking: AskingLog) -> Fields:
    random = asking.random
    times = [-1, -2, NOW_MS - 1, NOW_MS + 2, NOW_MS + 100, 0]
    times += [-3] if asking.version >= 7 else []
    topics = []
    for name, _ in asking.some():
        rows = [
            asking.struct(
                "ListOffsetsTopic",
                "ListOffsetsPartition",
                partition_index=number,
                timestamp=random.choice(times),
                **asking.epoch(4),
            )
            for number in asking.partitions()
        ]
        topics.append(asking.struct("ListOffsetsTopic", name=name, partitions=rows))
    return {"replica_id": -1, "isolation_level": random.choice([0, 1]), "topics": topics}


def delete_records(asking: AskingLog) -> Fields:
    topics = []
    for name, _ in asking.some(1):
        rows = [
            asking.struct(
                "DeleteRecordsTopic",
                "DeleteRecordsPartition",
                partition_index=number,
                offset=asking.random.choice([-1, 0, 1, 2, 50, -7]),
            )
            for number in asking.partitions()
        ]
        topics.append(asking.struct("DeleteRecordsTopic", name=name, partitions=rows))
    return {"topics": topics, "timeout_ms": 5_000}


def offset_for_leader_epoch(asking: AskingLog) -> Fields:
    topics = []
    for name, _ in asking.some():
        rows = [
            asking.struct(
                "OffsetForLeaderTopic",
                "OffsetForLeaderPartition",
                partition=number,
                leader_epoch=asking.random.choice([0, 0, 1, 5, -1]),
                **asking.epoch(2),
            )
            for number in asking.partitions()
        ]
        topics.append(asking.struct("OffsetForLeaderTopic", topic=name, partitions=rows))
    return {"topics": topics}


def init_producer_id(asking: AskingLog) -> Fields:
    fields: Fields = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    if asking.version >= 3:
        producer_id, epoch = asking.client.producer or (-1, -1)
        again = asking.random.random() < 0.5
        fields |= {"producer_id": producer_id if again else -1, "producer_epoch": epoch if again else -1}
    return fields


#: How often each is drawn, and what makes its body.
REQUESTS: dict[ApiKey, tuple[int, Callable[[AskingLog], Fields]]] = {
    ApiKey.CREATE_TOPICS: (5, create_topics),
    ApiKey.DELETE_TOPICS: (2, delete_topics),
    ApiKey.CREATE_PARTITIONS: (3, create_partitions),
    ApiKey.METADATA: (8, metadata),
    ApiKey.PRODUCE: (24, produce),
    ApiKey.FETCH: (14, fetch),
    ApiKey.LIST_OFFSETS: (10, list_offsets),
    ApiKey.DELETE_RECORDS: (4, delete_records),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (4, offset_for_leader_epoch),
    ApiKey.INIT_PRODUCER_ID: (4, init_producer_id),
}
#: The versions that both brokers have.
VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.METADATA: (4, 13),
    ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 9),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
}


def request_of(step: LogStep, side: Side) -> tuple[int, Fields]:
    """Version and fields of the request."""
    asking = AskingLog(step, side)
    asking.version = asking.random.randint(*VERSIONS[step.kind])
    return asking.version, REQUESTS[step.kind][1](asking)
