"""Requests of transactions, drawn by chance and sent to two brokers, whose answers must be alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from kohort.log import decode_records
from kohort.protocol import ApiKey, ErrorCode, iter_batches
from tests.broker.wire import Wire, batch, produce_fields

Fields = dict[str, Any]

#: The newest timestamp of what is produced: whatever is later was written by a broker.
NOW_MS: Final = 1_700_000_000_000
#: One broker's own affair.
LEFT_OUT: Final = {"throttle_time_ms", "node_endpoints", "session_id"}
#: Rows whose order says something; others come in any, and are sorted by the fields of ``ORDER``.
IN_ORDER: Final = {"aborted_transactions", "record_errors", "unknown_state_filters"}
#: Answers after which clients send the same request again, as the coordinator is not ready for it yet.
NOT_YET: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
ORDER: Final = ("name", "topic", "partition_index", "index", "transactional_id", "producer_id", "group_id")


class Producer:
    """What one transactional id knows of itself on one broker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.id, self.epoch = -1, -1
        #: Whether its last transaction was ended by a version that leaves the epoch as it is.
        self.keeps_epoch = False
        self.sequences: dict[tuple[str, int], int] = {}


class Side:
    """One of the brokers. ``ids`` has the producer ids by the order in which they became known."""

    def __init__(self, bootstrap: str, prefix: str, topics: list[str], *, partitions: int = 2) -> None:
        self.bootstrap, self.partitions = bootstrap, partitions
        self.wire = Wire(bootstrap, timeout_s=30)
        self.topics = topics
        self.group = f"{prefix}-group"
        self.producers = [Producer(f"{prefix}-{number}") for number in range(2)]
        self.ids: dict[int, str] = {-1: "none"}

    def ask(self, key: ApiKey, version: int, fields: Fields) -> Any:
        return self.wire.call(key, version, **fields)

    def ask_until_ready(self, key: ApiKey, version: int, fields: Fields) -> Any:
        """Ask as clients do: again, as long as the coordinator is not ready."""
        deadline = time.monotonic() + 20
        while not NOT_YET.isdisjoint(_codes(body := self.ask(key, version, fields))):
            assert time.monotonic() < deadline, f"{key.name} v{version} {fields}: {body}"
        return body

    def settle(self) -> None:
        """Wait until what was decided is carried out: Apache Kafka answers first."""
        deadline = time.monotonic() + 10
        names = [each.name for each in self.producers]
        while any(
            state.transaction_state.startswith("Prepare")
            for state in self.wire.call(
                ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=names
            ).transaction_states
        ):
            assert time.monotonic() < deadline, "a transaction does not come to its end"
            time.sleep(0.01)

    def told(self, body: Any) -> Any:
        """An answer without what may differ."""
        return self._told("", body)

    def _told(self, name: str, value: Any) -> Any:
        if name == "records":
            return list(self._batches(value or b""))
        if hasattr(value, "_asdict"):
            fields = value._asdict()
            if fields.get("error_code"):
                fields.pop("producer_id", None)  # 0 where there is none, which is somebody's
            if fields.get("error_code") == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                fields.pop("committed_offset")
            return {key: self._told(key, each) for key, each in fields.items() if key not in LEFT_OUT}
        if isinstance(value, (list, tuple)):
            rows = [self._told("", each) for each in value]
            if name in IN_ORDER:
                return rows
            return sorted(rows, key=_order) if rows and isinstance(rows[0], dict) else sorted(rows)
        if name == "producer_id":
            return self.ids.setdefault(value, f"producer {len(self.ids)}")
        if name in ("transaction_start_time_ms", "last_timestamp", "timestamp") and value > NOW_MS + 1000:
            return "now"
        if name == "coordinator_epoch":
            return value >= 0
        return value

    def _batches(self, data: bytes) -> Iterator[tuple[Any, ...]]:
        for position, header in iter_batches(data):
            names = self.ids.setdefault(header.producer_id, f"producer {len(self.ids)}")
            records = decode_records(data, header, position)
            key = records[0][2] if header.control else len(records)
            yield (
                header.base_offset,
                names,
                header.producer_epoch,
                header.base_sequence,
                header.control,
                header.transactional,
                key,
            )


def _codes(value: Any) -> Iterator[int]:
    """All error codes in an answer."""
    if hasattr(value, "_asdict"):
        for name, each in value._asdict().items():
            if name.endswith("error_code"):
                yield each
            else:
                yield from _codes(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _codes(each)


def alike(ours: Any, theirs: Any) -> bool:
    """Return whether two answers are. Where they have a text about an error we have one, in words of our own;
    we may have more.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(
            bool(ours[key]) >= bool(theirs[key]) if key == "error_message" else alike(ours[key], theirs[key])
            for key in ours
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return bool(ours == theirs)


def _order(row: dict[str, Any]) -> list[str]:
    return [str(row.get(name)) for name in ORDER]


class Asking:
    """One request as it is for one side; all that is drawn is drawn alike for the other."""

    def __init__(self, seed: int, side: Side, version: int) -> None:
        self.random, self.side, self.version = Random(seed), side, version
        self.producer = self.random.choice(side.producers)
        #: Where it writes: a topic of its own where the markers of others are not waited for.
        self.topics = (
            side.topics if side.partitions == 2 else [side.topics[side.producers.index(self.producer)]]
        )

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def epoch(self) -> int:
        return max(self.producer.epoch + self.random.choices([0, -1, 1, -2], [16, 2, 1, 1])[0], 0)

    def producer_id(self) -> int:
        wrong = self.chance(0.04)
        return 987_654 if wrong else self.producer.id

    def name(self) -> str:
        return self.random.choices([self.producer.name, "", "no-such-id"], [30, 1, 1])[0]

    def place(self) -> tuple[str, int]:
        return self.random.choice(self.topics), self.random.randrange(self.side.partitions)


def initialize(asking: Asking) -> Fields:
    given = asking.random.choices(
        [
            (-1, -1),
            (asking.producer.id, asking.producer.epoch),
            (asking.producer.id, max(asking.producer.epoch - 1, -1)),
            (asking.producer.id, -1),
            (987_654, 9),
        ],
        [8, 5, 3, 1, 1],
    )[0]
    fields: Fields = {
        "transactional_id": asking.random.choices([asking.producer.name, ""], [30, 1])[0],
        "transaction_timeout_ms": asking.random.choices([60_000, 0, -1, 10_000_000], [30, 1, 1, 1])[0],
    }
    if asking.version >= 3:
        fields |= {"producer_id": given[0], "producer_epoch": given[1]}
    return fields


def _wanted_topics(asking: Asking) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for _ in range(asking.random.randint(1, 3)):
        topic, number = asking.place()
        if number not in topics.setdefault(topic, []):
            topics[topic].append(number)
    if asking.side.partitions > 2 and asking.chance(0.7):  # the more markers, the longer they take
        topics[asking.topics[0]] = _numbers(asking)
    if asking.chance(0.08):
        topics[asking.random.choice(["no-such-topic", "__consumer_offsets"])] = [0]
    if asking.chance(0.05):
        topics.setdefault(asking.topics[0], []).append(1_007)
    return list(topics.items())


def add_partitions(asking: Asking) -> Fields:
    topics = _wanted_topics(asking)
    if asking.version < 4:
        return {
            "v3_and_below_transactional_id": asking.name(),
            "v3_and_below_producer_id": asking.producer_id(),
            "v3_and_below_producer_epoch": asking.epoch(),
            "v3_and_below_topics": topics,
        }
    row = (asking.name(), asking.producer_id(), asking.epoch(), asking.chance(0.6), topics)
    return {"transactions": [row]}


def add_offsets(asking: Asking) -> Fields:
    return {
        "transactional_id": asking.name(),
        "producer_id": asking.producer_id(),
        "producer_epoch": asking.epoch(),
        "group_id": asking.side.group,
    }


def end(asking: Asking) -> Fields:
    return {
        "transactional_id": asking.name(),
        "producer_id": asking.producer_id(),
        "producer_epoch": asking.epoch(),
        "committed": asking.chance(0.6),
    }


def produce(asking: Asking) -> Fields:
    topic, number = asking.place()
    due = asking.producer.sequences.get((topic, number), 0)
    sequence = max(due + asking.random.choices([0, -due, 1, -1], [12, 3, 1, 1])[0], 0)
    records = batch(
        1,
        timestamp_ms=NOW_MS,
        producer_id=asking.producer_id(),
        producer_epoch=asking.epoch(),
        base_sequence=sequence,
        transactional=asking.chance(0.95),
    )
    fields = produce_fields(topic, records, partition=number, version=asking.version)
    fields["transactional_id"] = asking.random.choices([asking.producer.name, None], [40, 1])[0]
    return fields


def commit_offsets(asking: Asking) -> Fields:
    topic, number = asking.place()
    offset = asking.random.randrange(100)
    if asking.chance(0.05):
        number = 1_009
    partition: Fields = {"partition_index": number, "committed_offset": offset, "committed_metadata": "m"}
    member: Any = {}
    if asking.version >= 3:
        member = asking.random.choices(
            [
                {"generation_id": -1, "member_id": "", "group_instance_id": None},
                {"generation_id": 3, "member_id": "x", "group_instance_id": None},
                {"generation_id": -1, "member_id": "x", "group_instance_id": "i"},
            ],
            [10, 1, 1],
        )[0]
    return {
        "transactional_id": asking.name(),
        "group_id": asking.random.choices([asking.side.group, ""], [20, 1])[0],
        "producer_id": asking.producer_id(),
        "producer_epoch": asking.epoch(),
        "topics": [(topic, [partition])],
        **member,
    }


def _numbers(asking: Asking) -> list[int]:
    return list(range(asking.side.partitions))


def fetch_offsets(asking: Asking) -> Fields:
    every = [(topic, _numbers(asking)) for topic in asking.side.topics]
    return {
        "group_id": asking.side.group,
        "topics": None if asking.chance(0.3) else every,
        "require_stable": asking.chance(0.7),
    }


def fetch(asking: Asking) -> Fields:
    partitions = [
        {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        for number in _numbers(asking)
    ]
    level = asking.random.choices([0, 1, 2], [3, 9, 0])[0]
    return {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": level,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": asking.random.choice(asking.side.topics), "partitions": partitions}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def list_offsets(asking: Asking) -> Fields:
    times = asking.random.choice([-1, -2, -3, NOW_MS, NOW_MS + 10_000_000])
    partitions = [{"partition_index": number, "timestamp": times} for number in _numbers(asking)]
    return {
        "replica_id": -1,
        "isolation_level": asking.random.choice([0, 1]),
        "topics": [{"name": asking.random.choice(asking.side.topics), "partitions": partitions}],
    }


def describe_producers(asking: Asking) -> Fields:
    topics: list[tuple[str, list[int]]] = [(topic, _numbers(asking)) for topic in asking.side.topics]
    if asking.chance(0.1):
        topics.append(("no-such-topic", [0]))
    return {"topics": topics}


def describe_transactions(asking: Asking) -> Fields:
    return {"transactional_ids": [each.name for each in asking.side.producers] + ["no-such-id"]}


def list_transactions(asking: Asking) -> Fields:
    states = asking.random.choice([[], ["Ongoing"], ["Empty", "CompleteCommit", "CompleteAbort"], ["empty"]])
    ids = [each.id for each in asking.side.producers if each.id >= 0] or [987_654]
    fields: Fields = {"state_filters": states, "producer_id_filters": ids}
    if asking.version:
        fields["duration_filter"] = asking.random.choice([-1, 0, 10_000_000])
    if asking.version >= 2:
        name = asking.producer.name
        patterns = [None, "", ".*", name, name[1:], f"{name[:-1]}[0-9]", f"^{name}$", "(?i:ALIKE).*"]
        bad = ["[", "(", "*a", "a{2,1}", "(?<x", "\\", "(?=a)", "[z-a]", "\\q"]
        fields["transactional_id_pattern"] = asking.random.choice([*patterns, *patterns, *bad])
    return fields


def write_markers(asking: Asking) -> Fields:
    topic, number = asking.place()
    marker: Fields = {
        "producer_id": asking.producer_id(),
        "producer_epoch": asking.epoch(),
        "transaction_result": asking.chance(0.5),
        "topics": [(topic, [number])],
        "coordinator_epoch": 0,
    }
    if asking.version >= 2:
        marker["transaction_version"] = asking.random.choice([0, 2])
    return {"markers": [marker]}


def delete_offsets(asking: Asking) -> Fields:
    topic, number = asking.place()
    return {"group_id": asking.side.group, "topics": [(topic, [number])]}


#: By API: weight, first and last version, fields.
REQUESTS: Final[dict[ApiKey, tuple[int, int, int, Callable[[Asking], Fields]]]] = {
    ApiKey.INIT_PRODUCER_ID: (8, 0, 5, initialize),
    ApiKey.ADD_PARTITIONS_TO_TXN: (14, 0, 5, add_partitions),
    ApiKey.ADD_OFFSETS_TO_TXN: (6, 0, 4, add_offsets),
    ApiKey.END_TXN: (14, 0, 5, end),
    ApiKey.PRODUCE: (22, 9, 12, produce),
    ApiKey.TXN_OFFSET_COMMIT: (10, 0, 5, commit_offsets),
    ApiKey.OFFSET_FETCH: (5, 7, 7, fetch_offsets),
    ApiKey.FETCH: (5, 12, 12, fetch),
    ApiKey.LIST_OFFSETS: (4, 7, 7, list_offsets),
    ApiKey.DESCRIBE_PRODUCERS: (4, 0, 0, describe_producers),
    ApiKey.DESCRIBE_TRANSACTIONS: (4, 0, 0, describe_transactions),
    ApiKey.LIST_TRANSACTIONS: (3, 0, 2, list_transactions),
    ApiKey.WRITE_TXN_MARKERS: (1, 1, 2, write_markers),
    ApiKey.DESCRIBE_GROUPS: (3, 5, 6, lambda asking: {"groups": [asking.side.group]}),
    ApiKey.DELETE_GROUPS: (1, 2, 2, lambda asking: {"groups_names": [asking.side.group]}),
    ApiKey.OFFSET_DELETE: (2, 0, 0, delete_offsets),
}


def learn(asking: Asking, key: ApiKey, fields: Fields, body: Any) -> None:
    """What an answer makes known to the producer that asked."""
    producer = asking.producer
    gives_epoch = key == ApiKey.INIT_PRODUCER_ID or (key == ApiKey.END_TXN and asking.version >= 5)
    if gives_epoch and not body.error_code:
        _become(producer, body.producer_id, body.producer_epoch)
        producer.keeps_epoch = False
    elif key == ApiKey.END_TXN:
        producer.keeps_epoch |= not body.error_code
    elif key == ApiKey.PRODUCE:
        (topic,) = fields["topic_data"]
        (data,) = topic.partition_data
        answer = body.responses[0].partition_responses[0]
        if not answer.error_code:
            sequence = int.from_bytes(data.records[53:57], "big")
            producer.sequences[topic.name, data.index] = sequence + 1


def _become(producer: Producer, producer_id: int, epoch: int) -> None:
    if (producer.id, producer.epoch) != (producer_id, epoch):
        producer.sequences.clear()
    producer.id, producer.epoch = producer_id, epoch
