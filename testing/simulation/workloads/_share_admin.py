"""Somebody who looks after a share group: offsets are altered and deleted, and the group is deleted, while it
has no members; records are deleted under its members, configs changed; one of its topics comes and goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from ....client.cluster import Cluster
from ....client.errors import BrokerConnectionError
from ....producer import Producer
from ....protocol import ApiKey, ErrorCode, KafkaError, KohortError, RequestBody, TopicPartition
from ....protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from ....protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ....protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ....protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from ....protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
)
from ....protocol.messages.describe_share_partitions import DescribeSharePartitionsRequest
from ....protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ....protocol.messages.share_group_describe import ShareGroupDescribeRequest
from ..brokers._clients import ClientProcess
from ..brokers._world import AnyWorld
from ..engine._loop import AnyFuture

T = TypeVar("T")

_E = ErrorCode
_PAUSE_S: Final = 0.1
_TRIES: Final = 5
_GROUP_RESOURCE: Final = 32
_SET: Final = 0

#: What it does with a client.
Job: TypeAlias = Callable[[Cluster], Awaitable[None]]


class ShareAdmin(ClientProcess):
    """Carries out jobs, one after the other."""

    def __init__(self, world: AnyWorld, name: str) -> None:
        self.jobs: deque[Job] = deque()
        self.is_busy = False
        super().__init__(world, name)

    async def run(self) -> None:
        async with Cluster(
            self.world.bootstrap,
            self.name,
            # what was given up may be carried out later, when others are at work
            request_timeout_ms=10_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
        ) as cluster:
            while True:
                if self.jobs:
                    self.is_busy = True
                    await self.jobs.popleft()(cluster)
                    self.is_busy = bool(self.jobs)
                await asyncio.sleep(_PAUSE_S)


async def alter_offset(cluster: Cluster, group: str, place: TopicPartition, start: int) -> None:
    """Set a group without members back, or ahead, to an offset; until that is answered."""
    row = AlterShareGroupOffsetsRequestPartition(place.partition, start)
    body = AlterShareGroupOffsetsRequest(group, [AlterShareGroupOffsetsRequestTopic(place.topic, [row])])

    def outcome(answer: AlterShareGroupOffsetsResponse) -> int:
        if answer.error_code:
            return int(answer.error_code)
        return int(answer.responses[0].partitions[0].error_code)

    await _ask_until(cluster, group, body, outcome, {_E.NONE})


async def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a group without members; until that is answered."""
    body = DeleteGroupsRequest([group])

    def outcome(answer: DeleteGroupsResponse) -> int:
        return int(answer.results[0].error_code)

    await _ask_until(cluster, group, body, outcome, {_E.NONE, _E.GROUP_ID_NOT_FOUND})


async def delete_offsets(cluster: Cluster, group: str, topic: str) -> None:
    """Delete what a group without members has of a topic; until that is answered."""
    body = DeleteShareGroupOffsetsRequest(group, [DeleteShareGroupOffsetsRequestTopic(topic)])

    def outcome(answer: DeleteShareGroupOffsetsResponse) -> int:
        return int(answer.error_code or answer.responses[0].error_code)

    wanted = {_E.NONE, _E.GROUP_ID_NOT_FOUND, _E.UNKNOWN_TOPIC_OR_PARTITION}
    await _ask_until(cluster, group, body, outcome, wanted)


async def configure_group(cluster: Cluster, group: str, configs: Mapping[str, str]) -> None:
    """Set configs of a group. Raises KafkaError."""
    rows = [AlterableConfig(name, _SET, value) for name, value in configs.items()]
    resources = [AlterConfigsResource(_GROUP_RESOURCE, group, rows)]
    body = IncrementalAlterConfigsRequest(resources, validate_only=False)
    answer = await cluster.request(None, ApiKey.INCREMENTAL_ALTER_CONFIGS, body)
    for row in answer.responses:
        if row.error_code:
            raise KafkaError(ErrorCode(row.error_code), row.error_message or "")


async def describe_group(
    cluster: Cluster, group: str, nodes: Iterable[int]
) -> DescribeShareGroupOffsetsResponseGroup:
    """Ask for all that is told of a group, and return its offsets. Raises KohortError."""
    for node in nodes:
        await cluster.request(node, ApiKey.DESCRIBE_SHARE_PARTITIONS, DescribeSharePartitionsRequest(group))
    await cluster.request_coordinator(group, ShareGroupDescribeRequest([group]))
    body = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, None)])
    return (await cluster.request_coordinator(group, body)).groups[0]


async def _ask_until(
    cluster: Cluster, group: str, body: RequestBody[T], outcome: Callable[[T], int], wanted: set[ErrorCode]
) -> None:
    while True:
        try:
            error = outcome(await cluster.request_coordinator(group, body))
        except (BrokerConnectionError, KafkaError):
            error = -1
        if error in wanted:
            return
        if error in (_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE):
            cluster.forget_coordinator(group)
        await asyncio.sleep(_PAUSE_S)


async def delete_records(cluster: Cluster, place: TopicPartition, before: int) -> None:
    """Ask the leader of a partition to delete its records below an offset; that may fail."""
    body = DeleteRecordsRequest(
        [DeleteRecordsTopic(place.topic, [DeleteRecordsPartition(place.partition, before)])], 1_000
    )
    for _ in range(_TRIES):
        try:
            await cluster.metadata([place.topic])
            leader = cluster.leader(place)
            if leader is not None:
                answer = await cluster.request(leader, ApiKey.DELETE_RECORDS, body)
                if not answer.topics[0].partitions[0].error_code:
                    return
        except KohortError:
            pass
        await asyncio.sleep(_PAUSE_S)


class PassingWriter(ClientProcess):
    """Writes to a topic while it exists, until the faults are over. ``partitions`` counts those it has."""

    def __init__(self, world: AnyWorld, topic: str, partitions: Callable[[], int], name: str) -> None:
        self._topic = topic
        self._partitions = partitions
        super().__init__(world, name)

    async def run(self) -> None:
        producer = None
        while not self.world.healed:
            await asyncio.sleep(_PAUSE_S)
            count = self._partitions()
            if not count:
                continue
            try:
                if producer is None:
                    begun = Producer(bootstrap=self.world.bootstrap, **self.world.plan.producer)
                    await begun.start()
                    producer = begun
                async with asyncio.timeout(0.5):
                    sent = await producer.send(self._topic, b"passing", partition=self.rng.randrange(count))
                sent.add_done_callback(_forget)
            except (KohortError, TimeoutError):
                continue


def _forget(done: AnyFuture) -> None:
    if not done.cancelled():
        done.exception()
