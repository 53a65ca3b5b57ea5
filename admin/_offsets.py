"""Where logs begin and end, for as many partitions as can be asked; and the rows of a group's lag."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..client import LATEST, BrokerConnectionError, Cluster, CommittedOffset
from ..protocol import KafkaError, TopicPartition
from .results import GroupDescription, PartitionOffsets


async def log_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], at: int
) -> dict[TopicPartition, int]:
    """Offsets at EARLIEST, LATEST or a time in ms (then the end where no record is that late).

    Partitions that do not exist, have no leader or may not be seen are left out: whoever looks at a group
    wants to see the rest of it.
    """
    wanted = set(partitions)
    if not wanted:
        return {}
    known = await cluster.metadata({partition.topic for partition in wanted})
    there = [partition for partition in sorted(wanted) if known.leader(partition) is not None]
    try:
        return await _asked(cluster, there, at)
    except (KafkaError, BrokerConnectionError):
        by_topic: dict[str, list[TopicPartition]] = defaultdict(list)
        for partition in there:
            by_topic[partition.topic].append(partition)
        answers = await asyncio.gather(
            *(_asked(cluster, part, at) for part in by_topic.values()), return_exceptions=True
        )
    found: dict[TopicPartition, int] = {}
    for answer in answers:
        if isinstance(answer, dict):
            found.update(answer)
        elif not isinstance(answer, (KafkaError, BrokerConnectionError)):
            raise answer
    return found


async def _asked(cluster: Cluster, partitions: list[TopicPartition], at: int) -> dict[TopicPartition, int]:
    answers = await cluster.list_offsets(dict.fromkeys(partitions, at))
    found = {partition: answer.offset for partition, answer in answers.items()}
    late = [partition for partition, offset in found.items() if offset < 0]
    if late and at != LATEST:
        found.update(await _asked(cluster, late, LATEST))
    return found


async def lag_rows(
    cluster: Cluster, description: GroupDescription, committed: Mapping[TopicPartition, CommittedOffset]
) -> tuple[PartitionOffsets, ...]:
    """A row for each partition that has an offset or an owner, by topic and number."""
    owners = {
        partition: member.member_id for member in description.members for partition in member.assignment or ()
    }
    partitions = sorted({*committed, *owners})
    ends = await log_offsets(cluster, partitions, LATEST)
    rows = []
    for partition in partitions:
        offset, end = committed.get(partition), ends.get(partition)
        rows.append(
            PartitionOffsets(
                partition.topic,
                partition.partition,
                offset.offset if offset else None,
                end,
                end - offset.offset if offset and end is not None else None,
                owners.get(partition),
                offset.metadata if offset else "",
            )
        )
    return tuple(rows)
