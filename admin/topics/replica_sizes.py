"""Bytes of replicas on the brokers' disks (DescribeLogDirs)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...client import BrokerConnectionError, Cluster
from ...protocol import ApiKey, ErrorCode, KohortError, TopicPartition
from ...protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ..errors import advise_error


@dataclass(slots=True)
class ReplicaSizes:
    """Bytes by partition and node. ``errors``: brokers that did not tell, and why."""

    bytes_of: dict[TopicPartition, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    errors: dict[int, KohortError] = field(default_factory=dict)

    def size_at(self, partition: TopicPartition, node_id: int | None) -> int | None:
        """Bytes of one replica; None where they are not known."""
        sizes = self.bytes_of.get(partition)
        return None if sizes is None or node_id is None else sizes.get(node_id)


async def read_replica_sizes(
    cluster: Cluster, nodes: Collection[int], topics: Mapping[str, Sequence[int]] | None = None
) -> ReplicaSizes:
    """Sizes of the replicas on these nodes: of these partitions, or of all that the user may see. What keeps
    one broker from telling is in ``errors``.
    """
    rows = None if topics is None else [DescribableLogDirTopic(*each) for each in topics.items()]
    sizes = ReplicaSizes()

    async def ask(node_id: int) -> None:
        try:
            await _read_sizes_of(cluster, node_id, DescribeLogDirsRequest(rows), sizes)
        except (KohortError, BrokerConnectionError) as error:
            sizes.errors[node_id] = error

    await asyncio.gather(*map(ask, nodes))
    return sizes


async def _read_sizes_of(
    cluster: Cluster, node_id: int, body: DescribeLogDirsRequest, sizes: ReplicaSizes
) -> None:
    answer = await cluster.request(node_id, ApiKey.DESCRIBE_LOG_DIRS, body)
    # before version 3 a broker that refuses has no log dirs
    if answer.error_code or not answer.results:
        code = answer.error_code or ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise advise_error(code, f"broker {node_id} does not tell sizes")
    for log_dir in answer.results:
        for topic in log_dir.topics:
            for each in topic.partitions:
                # one that is being moved to another log dir is there twice
                if not each.is_future_key:
                    place = TopicPartition(topic.name, each.partition_index)
                    sizes.bytes_of[place][node_id] = each.partition_size
