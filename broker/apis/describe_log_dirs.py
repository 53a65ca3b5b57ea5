"""DescribeLogDirs (35), v1-5: the data folder, and the sizes of the partitions in it (KIP-113, KIP-827)."""

from __future__ import annotations

import os

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..metrics import DiskFigures
from ..node import Node
from ..partitions.partition import Partition
from ._api import Request, ServedApi
from ._guards import whole


async def handle(node: Node, request: Request[DescribeLogDirsRequest]) -> DescribeLogDirsResponse:
    """Return the size and lag of each replica here; from v4 the space of the disk."""
    folder = node.logs.folder
    wanted = request.body.topics
    asked = None if wanted is None else {(item.topic, index) for item in wanted for index in item.partitions}
    found: dict[str, list[DescribeLogDirsPartition]] = {}
    async for partition in in_slices(node.logs.partitions()):
        name, index = partition.topic.name, partition.index
        # a partition that cannot be served is left out
        if partition.damage is None and (asked is None or (name, index) in asked):
            size = _size_bytes(partition, f"{folder}/{name}-{index}")
            found.setdefault(name, []).append(DescribeLogDirsPartition(index, size))
    space = node.logs.disk.figures()
    result = DescribeLogDirsResult(
        error_code=_disk_error(space),
        log_dir=folder,
        topics=[DescribeLogDirsTopic(name, partitions) for name, partitions in found.items()],
        total_bytes=space.total_bytes,
        usable_bytes=space.free_bytes,
    )
    return DescribeLogDirsResponse(results=[result])


def _disk_error(disk: DiskFigures) -> ErrorCode:
    if disk.failing:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.REQUEST_TIMED_OUT if disk.hanging_s else ErrorCode.NONE


def _size_bytes(partition: Partition, folder: str) -> int:
    """Size of a partition's log in bytes; by its files if it is not open."""
    if partition.log is not None:
        return partition.size_bytes
    try:
        with os.scandir(folder) as files:
            return sum(file.stat().st_size for file in files if file.name.endswith(".log"))
    except FileNotFoundError:
        return 0  # nothing was ever written


API = ServedApi(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    versions=(1, 5),
    handler=handle,
    guard=whole(
        right(Operation.DESCRIBE, ResourceType.CLUSTER, "all partitions; below v3 none are told instead")
    ),
    reads_only=True,
)
