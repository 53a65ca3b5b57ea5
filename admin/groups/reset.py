"""Offset resets: what is asked for, and the offset that each partition gets.

The arithmetic (:func:`change_for`) asks no broker. It follows Apache Kafka's own tool: a time after the last
record means the end, "current" of a partition without an offset means the end, and every offset is moved into
the range of the log. One thing differs: the tool leaves "current" outside that range.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from ...client import EARLIEST, LATEST, Cluster, ConfigError
from ...protocol import ErrorCode, KafkaError, TopicPartition
from ..errors import advise_error
from ..topics.requests import log_offsets
from .requests import describe_group
from .results import SHARE, GroupDescription, OffsetChange, ResetPlan
from .share_groups import share_starts

#: States in which the group has no members, so that a tool may commit.
_FREE = frozenset({"Empty", "Dead"})

_MEMBERS_NAMED = 5


class ResetKind(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSET = "offset"
    SHIFT = "shift"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class ResetTo:
    """Target of a reset. ``value`` is a time in ms, an offset or a number of records, as ``kind`` says."""

    kind: ResetKind
    value: int = 0

    @classmethod
    def earliest(cls) -> Self:
        """The first record that the log still has."""
        return cls(ResetKind.EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """After the last record."""
        return cls(ResetKind.LATEST)

    @classmethod
    def timestamp(cls, timestamp_ms: int) -> Self:
        """The first record at or after a time; the end if there is none."""
        return cls(ResetKind.TIMESTAMP, timestamp_ms)

    @classmethod
    def offset(cls, offset: int) -> Self:
        """Reset every partition to the same offset."""
        return cls(ResetKind.OFFSET, offset)

    @classmethod
    def shift(cls, records: int) -> Self:
        """Forward from the committed offset; back if negative."""
        return cls(ResetKind.SHIFT, records)

    @classmethod
    def current(cls) -> Self:
        """The committed offset itself; the end if there is none."""
        return cls(ResetKind.CURRENT)


def change_for(
    partition: TopicPartition,
    to: ResetTo,
    current: int | None,
    earliest: int | None,
    end: int | None,
    at_time: int | None = None,
) -> OffsetChange:
    """One partition's part of a plan; ``at_time`` is the offset that a time means."""
    if earliest is None or end is None:
        note = "the topic is gone, has no leader or may not be seen: left as it is"
        return OffsetChange(*partition, current, None, earliest, end, note)
    if to.kind is ResetKind.SHIFT and current is None:
        note = "no offset to shift: left as it is"
        return OffsetChange(*partition, None, None, earliest, end, note)
    wanted, note = _wanted_offset(to, current, earliest, end, at_time)
    new = min(max(wanted, earliest), end)
    if new != wanted:
        side = "before the first offset" if wanted < earliest else "after the end"
        note = f"{wanted} is {side}: {new} taken"
    return OffsetChange(*partition, current, new, earliest, end, note)


def _wanted_offset(
    to: ResetTo, current: int | None, earliest: int, end: int, at_time: int | None
) -> tuple[int, str]:
    if to.kind is ResetKind.EARLIEST:
        return earliest, ""
    if to.kind is ResetKind.TIMESTAMP and at_time is not None:
        return at_time, "no record that late: the end taken" if at_time == end else ""
    if to.kind is ResetKind.OFFSET:
        return to.value, ""
    if to.kind is ResetKind.SHIFT:
        return (current or 0) + to.value, ""
    if to.kind is ResetKind.CURRENT:
        return (end, "no offset yet: the end taken") if current is None else (current, "")
    return end, ""


async def plan(
    cluster: Cluster,
    group: str,
    to: ResetTo,
    topics: Mapping[str, Collection[int]] | None,
    *,
    share: bool = False,
) -> ResetPlan:
    """See GroupAdmin.plan_reset."""
    description, share = await _describe(cluster, group, share)
    current = await (_share_offsets if share else _committed_offsets)(cluster, group)
    partitions = sorted(current) if topics is None else await _partitions(cluster, topics)
    planned = await _plan(cluster, description, dict.fromkeys(partitions, to), current)
    return replace(planned, group_type=SHARE) if share else planned


async def _describe(cluster: Cluster, group: str, share: bool) -> tuple[GroupDescription, bool]:
    """A group, and whether it is a share group, or is made as one."""
    description = await describe_group(cluster, group)
    if share and description.group_type not in (None, SHARE):
        text = f"group {group!r} is no share group, it is of type {description.group_type!r}"
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, text)
    return description, share or description.group_type == SHARE


async def plan_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int], *, share: bool = False
) -> ResetPlan:
    """See GroupAdmin.plan_offsets."""
    description, share = await _describe(cluster, group, share)
    by_topic: dict[str, list[int]] = {}
    for topic, number in offsets:
        by_topic.setdefault(topic, []).append(number)
    await _partitions(cluster, by_topic)  # they are all there
    current = await (_share_offsets if share else _committed_offsets)(cluster, group)
    resets = {partition: ResetTo.offset(offset) for partition, offset in sorted(offsets.items())}
    planned = await _plan(cluster, description, resets, current)
    return replace(planned, group_type=SHARE) if share else planned


async def _committed_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, int | None]:
    committed = await cluster.committed(group, require_stable=False)
    return {partition: commit.offset for partition, commit in committed.items()}


async def _share_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, int | None]:
    """Start offsets of a share group; None where it has state and nothing was stored yet."""
    return {partition: start.offset for partition, start in (await share_starts(cluster, group)).items()}


async def plan_import(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int], refused: str | None
) -> ResetPlan:
    """A plan that gives each partition its own offset, with a note where that is behind the committed one;
    ``refused`` says why it may not be executed.
    """
    description = await describe_group(cluster, group)
    resets = {partition: ResetTo.offset(offset) for partition, offset in sorted(offsets.items())}
    planned = await _plan(cluster, description, resets, await _committed_offsets(cluster, group))
    changes = tuple(_noted_if_back(change) for change in planned.changes)
    return replace(planned, changes=changes, refusal=refused or planned.refusal)


def _noted_if_back(change: OffsetChange) -> OffsetChange:
    current, new = change.current_offset, change.new_offset
    if change.note or current is None or new is None or new >= current:
        return change
    return replace(change, note=f"back by {current - new}: the group has committed more on the brokers")


async def _plan(
    cluster: Cluster,
    description: GroupDescription,
    resets: Mapping[TopicPartition, ResetTo],
    current: Mapping[TopicPartition, int | None],
) -> ResetPlan:
    partitions = list(resets)
    earliest = await log_offsets(cluster, partitions, EARLIEST)
    ends = await log_offsets(cluster, partitions, LATEST)
    at_time: dict[TopicPartition, int] = {}
    for moment in {to.value for to in resets.values() if to.kind is ResetKind.TIMESTAMP}:
        at_time |= await log_offsets(cluster, partitions, moment)
    changes = tuple(
        change_for(p, to, current.get(p), earliest.get(p), ends.get(p), at_time.get(p))
        for p, to in resets.items()
    )
    return ResetPlan(description.group, description.state, False, refusal(description), changes)


def check_topics(topics: Mapping[str, object]) -> None:
    """Raise ConfigError unless each topic has numbers of partitions, or an empty collection for all."""
    for topic, numbers in topics.items():
        if isinstance(numbers, str) or not isinstance(numbers, Collection):
            raise ConfigError(
                f"topics={{{topic!r}: {numbers!r}}} is not allowed: give the numbers of partitions, or [] "
                "for all of them"
            )


async def _partitions(cluster: Cluster, topics: Mapping[str, Collection[int]]) -> list[TopicPartition]:
    check_topics(topics)
    known = await cluster.metadata(topics)
    partitions: list[TopicPartition] = []
    for topic, numbers in topics.items():
        there = known.partitions(topic)
        if not there:
            code = known.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise KafkaError(code, f"topic {topic!r}")
        wanted = [TopicPartition(topic, number) for number in sorted(set(numbers))] or there
        if missing := [partition for partition in wanted if partition not in there]:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has partitions 0 to {len(there) - 1}, not {missing[0].partition}",
            )
        partitions += wanted
    return sorted(partitions)


def refusal(description: GroupDescription) -> str | None:
    """The reason, with members and hosts, why offsets of the group cannot be set now; None if they can."""
    if description.state in _FREE:
        return None
    members = description.members
    names = [f"{m.owner} (client {m.client_id!r} at {m.client_host})" for m in members[:_MEMBERS_NAMED]]
    if len(members) > _MEMBERS_NAMED:
        names.append(f"{len(members) - _MEMBERS_NAMED} more")
    who = ", ".join(names) or "members that cannot be named here"
    return f"group {description.group!r} is {description.state} and not Empty, it is held by {who}"
