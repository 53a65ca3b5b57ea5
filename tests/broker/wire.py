"""A client made of one socket: each call sends a frame and reads its answer."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from kohort.protocol import (
    ApiKey,
    build_batch,
    decode_response,
    encode_request,
)
from kohort.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from kohort.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.messages import request_of

TIMEOUT_S = 10.0


class Wire:
    """A connection to ``bootstrap``. Numbers its requests; answers must come back with the same number."""

    def __init__(self, bootstrap: str, *, timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._next = 0

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def call(self, key: ApiKey, version: int, /, **fields: Any) -> Any:
        """Send a request with these fields and give the body of its answer."""
        return self.receive(key, version, self.send(key, version, **fields))

    def send(self, key: ApiKey, version: int, /, **fields: Any) -> int:
        """Send only; gives the correlation id."""
        return self.send_together(key, version, [fields])

    def send_together(self, key: ApiKey, version: int, requests: Iterable[Mapping[str, Any]]) -> int:
        """Send them in one piece; gives the correlation id of the last."""
        frames = b""
        for fields in requests:
            self._next += 1
            body = request_of(key)(version=version, **fields)
            frames += encode_request(version, self._next, "wire", body)
        self.socket.sendall(frames)
        return self._next

    def receive(self, key: ApiKey, version: int, correlation_id: int) -> Any:
        """The next answer, which must be the one to ``correlation_id``."""
        number, body = decode_response(key, version, self.frame())
        assert number == correlation_id
        return body

    def frame(self) -> bytes:
        """The next frame; EOFError when the broker has closed the connection."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def closed_by_broker(self) -> bool:
        """Whether the connection is at its end (waits for it)."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data


def part(key: ApiKey, version: int, /, *names: str, **fields: Any) -> Any:
    """A nested struct of a request."""
    made: Any = request_of(key)
    for name in names:
        made = getattr(made, name)
    return made(version=version, **fields)


def batch(values: int = 1, *, key: bytes | None = b"k", **fields: Any) -> bytes:
    """A record batch of ``values`` small records."""
    fields.setdefault("timestamp_ms", 1_700_000_000_000)
    return bytes(build_batch([(key, b"v%d" % number, ()) for number in range(values)], **fields))


def commit_fields(
    group: str, topic: str, offset: int, metadata: str = "", partition: int = 0
) -> dict[str, Any]:
    """The fields of an OffsetCommit of one partition, for a group without members."""
    row = OffsetCommitRequestPartition(partition, committed_offset=offset, committed_metadata=metadata)
    topics = [OffsetCommitRequestTopic(topic, partitions=[row])]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": topics,
    }


def creatable(name: str, partitions: int = 1, **configs: str) -> Any:
    """A topic of a CreateTopics request. Config names have underscores."""
    rows = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return CreatableTopic(name, partitions, -1, [], rows)


def create_topic(wire: Wire, name: str, partitions: int = 1, **configs: str) -> Any:
    """Create a topic with CreateTopics v7; gives the result for it. Config names have underscores."""
    topics = [creatable(name, partitions, **configs)]
    answer = wire.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5_000, validate_only=False)
    return answer.topics[0]


def produce(
    wire: Wire, topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, version: int = 9
) -> Any:
    """Produce to one partition; gives its result, None with acks=0."""
    number = wire.send(
        ApiKey.PRODUCE,
        version,
        **produce_fields(topic, records, partition=partition, acks=acks, version=version),
    )
    if acks == 0:
        return None
    return wire.receive(ApiKey.PRODUCE, version, number).responses[0].partition_responses[0]


def produce_fields(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, version: int = 9
) -> dict[str, Any]:
    data = part(
        ApiKey.PRODUCE, version, "TopicProduceData", "PartitionProduceData", index=partition, records=records
    )
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout_ms": 1_000,
        "topic_data": [part(ApiKey.PRODUCE, version, "TopicProduceData", name=topic, partition_data=[data])],
    }


def fetch_fields(
    topic: str,
    *offsets: int,
    version: int = 12,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    epoch: int = -1,
    last_epoch: int = -1,
) -> dict[str, Any]:
    """Fields of a Fetch of partitions 0, 1, ... from these offsets."""
    partitions = [
        part(
            ApiKey.FETCH,
            version,
            "FetchTopic",
            "FetchPartition",
            partition=number,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
        )
        for number, offset in enumerate(offsets)
    ]
    return {
        "max_wait_ms": max_wait_ms,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": isolation_level,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [part(ApiKey.FETCH, version, "FetchTopic", topic=topic, partitions=partitions)],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def fetch(wire: Wire, topic: str, *offsets: int, version: int = 12, **options: Any) -> list[Any]:
    """Fetch partitions 0, 1, ... from these offsets; gives their results."""
    answer = wire.call(ApiKey.FETCH, version, **fetch_fields(topic, *offsets, version=version, **options))
    assert answer.error_code == 0
    return list(answer.responses[0].partitions)


def offset_at(
    wire: Wire, topic: str, timestamp: int, *, partition: int = 0, version: int = 7, **fields: Any
) -> Any:
    """ListOffsets of one partition; gives its result."""
    wanted = part(
        ApiKey.LIST_OFFSETS,
        version,
        "ListOffsetsTopic",
        "ListOffsetsPartition",
        partition_index=partition,
        timestamp=timestamp,
        current_leader_epoch=fields.pop("epoch", -1),
    )
    asked = part(ApiKey.LIST_OFFSETS, version, "ListOffsetsTopic", name=topic, partitions=[wanted])
    answer = wire.call(
        ApiKey.LIST_OFFSETS,
        version,
        replica_id=-1,
        isolation_level=fields.pop("isolation_level", 0),
        topics=[asked],
    )
    return answer.topics[0].partitions[0]
