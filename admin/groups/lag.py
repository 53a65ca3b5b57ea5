"""The lag of many groups with few requests: everything that several groups need is asked for together.

ListGroups and, for a hundred groups each, OffsetFetch, DescribeShareGroupOffsets and the descriptions of
members go to the coordinators; ListOffsets, and a Fetch where something is unread, to the leaders.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ...client import LATEST, Cluster, ResponseTooLargeError
from ...client.pool import Channel
from ...lag import GroupLag, PartitionLag, measure_unread
from ...protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition, UnsupportedVersionError
from ...protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ...protocol.messages.describe_groups import DescribeGroupsRequest
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ...protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from ...protocol.messages.share_group_describe import ShareGroupDescribeRequest
from ..errors import advise_error
from ..topics.requests import find_offsets
from .coordinator import assigned_partitions
from .oldest import FirstRecords, find_first_records
from .requests import CONSUMER, list_groups, read_assignment
from .results import SHARE, ListedGroup
from .share_groups import ShareStart, share_starts, starts_in

T = TypeVar("T")

#: Groups in one request, and requests about one group at a time.
_GROUPS_AT_ONCE: Final = 100
_ALONE_AT_ONCE: Final = 16
#: Versions of OffsetFetch: from the first on it is about many groups, up to the last it names topics.
_MANY_GROUPS, _BY_NAME = 8, 9
#: A group that has moved since it was listed, or is being loaded, is asked again by itself.
_MOVED: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_MEMBERLESS: Final = ("Empty", "Dead")
_NO_START: Final = "no start offset is stored yet"


class _GroupOffset(NamedTuple):
    """Where a group goes on in a partition. ``records`` are unread if that is known; ``note``: why not."""

    offset: int | None
    records: int | None = None
    note: str = ""


class _AnsweredGroup(NamedTuple):
    """What a coordinator answers about a group."""

    group: str
    error_code: int
    offsets: Iterable[tuple[TopicPartition, _GroupOffset]]


@dataclass(slots=True, eq=False)
class _AskedGroup:
    """What is known of a group so far."""

    listed: ListedGroup
    offsets: dict[TopicPartition, _GroupOffset] = field(default_factory=dict)
    owners: dict[TopicPartition, list[str]] = field(default_factory=lambda: defaultdict(list))
    member_count: int | None = None
    error: str | None = None

    @property
    def name(self) -> str:
        return self.listed.group

    def add_member(self, owner: str, assignment: Iterable[TopicPartition]) -> None:
        self.member_count = (self.member_count or 0) + 1
        for partition in assignment:
            self.owners[partition].append(owner)

    def fail(self, error: KohortError | int) -> None:
        code = error if isinstance(error, int) else getattr(error, "code", None)
        if code is None:
            self.error = str(error)
        else:
            self.error = str(advise_error(code, f"the offsets of group {self.name!r}"))


_Ask: TypeAlias = Callable[[Sequence[_AskedGroup]], Awaitable[Iterable[_AnsweredGroup]]]
_AskAlone: TypeAlias = Callable[[str], Awaitable[Iterable[tuple[TopicPartition, _GroupOffset]]]]


async def measure_lag(cluster: Cluster, groups: Collection[str] | None = None) -> list[GroupLag]:
    """The lag of these groups, or of all, by name. What is wrong with one group is its ``error``."""
    listed = {row.group: row for row in await list_groups(cluster)}
    wanted = sorted(listed) if groups is None else list(dict.fromkeys(groups))
    asked = [_AskedGroup(listed[name]) for name in wanted if name in listed]
    by_node: dict[int, list[_AskedGroup]] = defaultdict(list)
    for group in asked:
        by_node[group.listed.coordinator].append(group)
    await asyncio.gather(*(_ask_coordinator(cluster, node, part) for node, part in by_node.items()))
    ends, errors = await find_offsets(cluster, {place for group in asked for place in group.offsets}, LATEST)
    behind: dict[TopicPartition, set[int]] = defaultdict(set)
    for group in asked:
        for place, known in group.offsets.items():
            unread = measure_unread(known.offset, None, ends.get(place))
            if unread.records and unread.first is not None:
                behind[place].add(unread.first)
    firsts = await find_first_records(cluster, behind, ends)
    now_ms = round(time.time() * 1_000)
    found = {group.name: _lag_of(group, ends, errors, firsts, now_ms) for group in asked}
    return [found.get(name) or _missing_group(name, now_ms) for name in wanted]


def _missing_group(name: str, now_ms: int) -> GroupLag:
    error = advise_error(ErrorCode.GROUP_ID_NOT_FOUND, f"group {name!r} does not exist, or may not be seen")
    return GroupLag(name, None, None, now_ms, error=str(error))


def _lag_of(
    group: _AskedGroup,
    ends: Mapping[TopicPartition, int],
    errors: Mapping[TopicPartition, KohortError],
    firsts: Mapping[TopicPartition, FirstRecords],
    now_ms: int,
) -> GroupLag:
    listed, nothing = group.listed, FirstRecords()
    rows = []
    for place in sorted({*group.offsets, *group.owners}):
        known, end = group.offsets.get(place, _GroupOffset(None)), ends.get(place)
        first = firsts.get(place, nothing)
        unread = measure_unread(known.offset, first.start, end)
        looked = None if known.offset is None else first.found.get(known.offset)
        records, age_ms = unread.records, None
        if records and looked is not None and not looked.is_found:
            records = 0
        elif records and known.records is not None:
            records = known.records
        if records and looked is not None and looked.timestamp_ms is not None:
            age_ms = max(now_ms - looked.timestamp_ms, 0)
        note = known.note or unread.note
        if place in errors:
            note = str(errors[place])
        elif records and looked is None:
            note = first.error or ""
        rows.append(
            PartitionLag(
                place.topic,
                place.partition,
                known.offset,
                end,
                records,
                0 if records == 0 else age_ms,
                unread.deleted,
                tuple(group.owners.get(place, ())),
                note,
            )
        )
    kind, state = listed.group_type, listed.state
    return GroupLag(group.name, kind, state, now_ms, tuple(rows), group.member_count, group.error)


# -- coordinators --------------------------------------------------------------------------------------------


async def _ask_coordinator(cluster: Cluster, node: int, groups: Sequence[_AskedGroup]) -> None:
    """Ask a broker about the groups that it coordinates."""
    shares = [group for group in groups if group.listed.group_type == SHARE]
    others = [group for group in groups if group.listed.group_type != SHARE]
    await asyncio.gather(
        _read_offsets(cluster, node, others),
        _read_starts(cluster, node, shares),
        _read_members(cluster, node, groups),
    )


async def _read_offsets(cluster: Cluster, node: int, groups: Sequence[_AskedGroup]) -> None:
    async def ask(part: Sequence[_AskedGroup]) -> Iterable[_AnsweredGroup]:
        rows = [OffsetFetchRequestGroup(group.name, None, -1, topics=None) for group in part]
        body = OffsetFetchRequest(groups=rows, require_stable=False)
        answer = await cluster.request(node, ApiKey.OFFSET_FETCH, body, max_version=_BY_NAME)
        return [_AnsweredGroup(row.group_id, row.error_code, _committed_in(row)) for row in answer.groups]

    async def ask_alone(group: str) -> Iterable[tuple[TopicPartition, _GroupOffset]]:
        found = await cluster.committed(group, require_stable=False)
        return [(place, _GroupOffset(committed.offset)) for place, committed in found.items()]

    connection = await cluster.connect_to(node, Channel.CONTROL)
    if connection.version_for(ApiKey.OFFSET_FETCH, _BY_NAME) < _MANY_GROUPS:
        await _ask_each(groups, ask_alone)
    else:
        await _ask_together(groups, ask, ask_alone)


async def _read_starts(cluster: Cluster, node: int, groups: Sequence[_AskedGroup]) -> None:
    async def ask(part: Sequence[_AskedGroup]) -> Iterable[_AnsweredGroup]:
        rows = [DescribeShareGroupOffsetsRequestGroup(group.name, None) for group in part]
        body = DescribeShareGroupOffsetsRequest(groups=rows)
        answer = await cluster.request(node, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, body)
        return [
            _AnsweredGroup(row.group_id, row.error_code, _share_offsets(starts_in(row)))
            for row in answer.groups
        ]

    async def ask_alone(group: str) -> Iterable[tuple[TopicPartition, _GroupOffset]]:
        return _share_offsets((await share_starts(cluster, group)).items())

    await _ask_together(groups, ask, ask_alone)


async def _ask_together(groups: Sequence[_AskedGroup], ask: _Ask, ask_alone: _AskAlone) -> None:
    """Learn the offsets of groups, many in a request; one by one those of which a response would be too
    large, and those that are with another coordinator by now.
    """
    alone: list[_AskedGroup] = []
    for part in _parts(groups, _GROUPS_AT_ONCE):
        try:
            answered = {row.group: row for row in await ask(part)}
        except ResponseTooLargeError:
            alone += part
            continue
        except KohortError as error:
            for group in part:
                group.fail(error)
            continue
        for group in part:
            row = answered.get(group.name)
            if row is None or row.error_code in _MOVED:
                alone.append(group)
            elif row.error_code:
                group.fail(row.error_code)
            else:
                group.offsets = dict(row.offsets)
    await _ask_each(alone, ask_alone)


async def _ask_each(groups: Iterable[_AskedGroup], ask_alone: _AskAlone) -> None:
    """Learn the offsets of groups one by one, wherever their coordinators are by now."""
    gate = asyncio.Semaphore(_ALONE_AT_ONCE)

    async def ask(group: _AskedGroup) -> None:
        async with gate:
            try:
                group.offsets = dict(await ask_alone(group.name))
            except KohortError as error:
                group.fail(error)

    await asyncio.gather(*map(ask, groups))


def _committed_in(row: OffsetFetchResponseGroup) -> Iterator[tuple[TopicPartition, _GroupOffset]]:
    for topic in row.topics:
        for each in topic.partitions:
            place = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                yield place, _GroupOffset(None, note=str(KafkaError(each.error_code)))
            elif each.committed_offset >= 0:
                yield place, _GroupOffset(each.committed_offset)


def _share_offsets(
    starts: Iterable[tuple[TopicPartition, ShareStart]],
) -> Iterator[tuple[TopicPartition, _GroupOffset]]:
    for place, (offset, records) in starts:
        yield place, _GroupOffset(offset, records, _NO_START if offset is None else "")


async def _read_members(cluster: Cluster, node: int, groups: Iterable[_AskedGroup]) -> None:
    """Learn members and what they have; of groups of unknown types nothing is known."""
    by_type: dict[str, list[_AskedGroup]] = defaultdict(list)
    for group in groups:
        if group.listed.state in _MEMBERLESS:
            group.member_count = 0
        else:
            by_type[group.listed.group_type or "classic"].append(group)
    for kind, read in (("classic", _read_classic), (CONSUMER, _read_consumers), (SHARE, _read_shares)):
        for part in _parts(by_type.get(kind, ()), _GROUPS_AT_ONCE):
            try:
                await read(cluster, node, {group.name: group for group in part})
            except (KohortError, UnsupportedVersionError):
                continue  # the lag is known without them


async def _read_classic(cluster: Cluster, node: int, groups: Mapping[str, _AskedGroup]) -> None:
    body = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)
    for row in (await cluster.request(node, ApiKey.DESCRIBE_GROUPS, body)).groups:
        if row.error_code:
            continue
        group = groups[row.group_id]
        group.member_count = 0
        for member in row.members:
            assignment = read_assignment(member.member_assignment) if row.protocol_type == CONSUMER else ()
            group.add_member(member.group_instance_id or member.member_id, assignment or ())


async def _read_consumers(cluster: Cluster, node: int, groups: Mapping[str, _AskedGroup]) -> None:
    body = ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
    for row in (await cluster.request(node, ApiKey.CONSUMER_GROUP_DESCRIBE, body)).groups:
        if row.error_code:
            continue
        group = groups[row.group_id]
        group.member_count = 0
        for member in row.members:
            assignment = assigned_partitions(member.assignment.topic_partitions)
            group.add_member(member.instance_id or member.member_id, assignment)


async def _read_shares(cluster: Cluster, node: int, groups: Mapping[str, _AskedGroup]) -> None:
    body = ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
    for row in (await cluster.request(node, ApiKey.SHARE_GROUP_DESCRIBE, body)).groups:
        if row.error_code:
            continue
        group = groups[row.group_id]
        group.member_count = 0
        for member in row.members:
            group.add_member(member.member_id, assigned_partitions(member.assignment.topic_partitions))


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for begun in range(0, len(items), size):
        yield items[begun : begun + size]
