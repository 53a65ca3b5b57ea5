"""Effects of open transactions on a group: records that ``read_committed`` consumers cannot read yet, and
offsets of the group in an open transaction, for which its members wait before they begin.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ...client import LATEST, Cluster
from ...client.offsets import Errors
from ...offsets_topic import partition_for
from ...protocol import ErrorCode, KafkaError, TopicPartition
from ..transactions.open_transactions import OPEN, describe_at_coordinator, list_transactions, open_partitions
from .history.group_records import OFFSETS_TOPIC
from .results import GroupDescription, HeldBack


class _Open(NamedTuple):
    """A transaction as its coordinator knows it."""

    transactional_id: str
    producer_id: int
    start_ms: int
    partitions: Collection[TopicPartition]


async def held_back(cluster: Cluster, description: GroupDescription) -> tuple[HeldBack, ...]:
    """Partitions that open transactions hold back, by name. Raises KafkaError, UnsupportedVersionError."""
    places = [TopicPartition(row.topic, row.partition) for row in description.partitions]
    if not places:
        return ()
    errors: Errors = {}
    await cluster.committed(description.group, places, require_stable=True, errors=errors)
    pending = [
        at
        for at, error in errors.items()
        if isinstance(error, KafkaError) and error.code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    ]
    at_end = dict.fromkeys(places, LATEST)
    # the ends first: records that are written between the two requests do not count as held back
    ends = await cluster.list_offsets(at_end, errors={})
    stable = await cluster.list_offsets(at_end, read_committed=True, errors={})
    behind = [at for at, end in ends.items() if at in stable and stable[at].offset < end.offset]
    if not (pending or behind):
        return ()
    found = await _open_transactions(cluster)
    rows = await _find_held_records(cluster, behind, found) + await _find_held_offsets(
        cluster, description.group, pending, found
    )
    return tuple(sorted(rows, key=lambda row: (row.topic, row.partition, row.stable_offset is None)))


async def _open_transactions(cluster: Cluster) -> list[_Open]:
    found = []
    for listed in await list_transactions(cluster, OPEN):
        try:
            row = await describe_at_coordinator(cluster, listed.transactional_id)
        except KafkaError as error:
            if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                continue  # forgotten meanwhile
            raise
        partitions = {TopicPartition(t.topic, number) for t in row.topics for number in t.partitions}
        start_ms = row.transaction_start_time_ms
        found.append(_Open(listed.transactional_id, row.producer_id, start_ms, partitions))
    return found


async def _find_held_records(
    cluster: Cluster, places: Collection[TopicPartition], found: Collection[_Open]
) -> list[HeldBack]:
    of: Mapping[int, _Open] = {each.producer_id: each for each in found}
    rows = []
    for each in await open_partitions(cluster, places):
        if not each.held_back:
            continue  # an older one holds these records back
        place = TopicPartition(each.topic, each.partition)
        owner = of.get(each.producer_id)
        known = [owner] if owner is not None and place in owner.partitions else []
        rows.append(_held_back_row(place, known, each.start_offset, each.held_back))
    return rows


async def _find_held_offsets(
    cluster: Cluster, group: str, places: Collection[TopicPartition], found: Collection[_Open]
) -> list[HeldBack]:
    if not places:
        return []
    # brokers do not say which transaction an offset is in: it is one that is open in the group's partition
    known = await cluster.metadata([OFFSETS_TOPIC])
    number = partition_for(group, max(1, len(known.partitions(OFFSETS_TOPIC))))
    owners = [each for each in found if TopicPartition(OFFSETS_TOPIC, number) in each.partitions]
    return [_held_back_row(place, owners) for place in places]


def _held_back_row(
    place: TopicPartition, owners: Collection[_Open], stable: int | None = None, records: int | None = None
) -> HeldBack:
    starts = [each.start_ms for each in owners if each.start_ms >= 0]
    now_ms = time.time_ns() // 1_000_000
    open_ms = max(0, now_ms - min(starts)) if starts else None
    names = tuple(sorted(each.transactional_id for each in owners))
    return HeldBack(*place, stable, records, names, open_ms)
