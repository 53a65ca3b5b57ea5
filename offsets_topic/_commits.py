"""Committed offsets by the thousand: a commit that is repeated becomes records, and records become entries.

This Python is the specification; compiled, ``_native.pyx`` does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ..protocol import TopicPartition, has_native
from .records import NONE, OffsetCommitted

NATIVE = has_native("offsets_topic", "commits_again", "enter_commits")
if NATIVE:
    from ._native import commits_again as repeat_compiled
    from ._native import enter_commits as enter_compiled

V = TypeVar("V")

# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__


def commits_again(
    group: str, places: Sequence[tuple[str, int, bytes]], numbers: tuple[int, ...], committed_ms: int
) -> list[OffsetCommitted]:
    """The records of a commit without metadata. ``places`` has topic, number and topic id of each partition,
    ``numbers`` offset and leader epoch of each.
    """
    if NATIVE:
        return repeat_compiled(OffsetCommitted, group, places, numbers, committed_ms)
    return [
        _new(OffsetCommitted, (group, topic, number, offset, leader_epoch, "", committed_ms, NONE, topic_id))
        for (topic, number, topic_id), offset, leader_epoch in zip(
            places, numbers[::2], numbers[1::2], strict=True
        )
    ]


def enter_commits(
    records: Sequence[OffsetCommitted],
    record_offset: int,
    by_group: dict[str, dict[TopicPartition, V]],
    known: dict[tuple[str, int], TopicPartition],
    learn: Callable[[str, int], TopicPartition],
    entry: type[tuple[object, ...]],
) -> None:
    """Enter records, whose offsets in the log begin at ``record_offset``, by group and partition, each as an
    ``entry`` of a record's last fields with its offset in the log before the topic's id. ``known`` has
    partitions by their names and numbers; ``learn`` finds another.
    """
    if NATIVE:
        enter_compiled(records, record_offset, by_group, known, learn, entry)
        return
    offsets: dict[TopicPartition, V] = {}
    offsets_of = None
    for (
        group,
        topic,
        partition,
        offset,
        leader_epoch,
        metadata,
        commit_ms,
        expire_ms,
        topic_id,
    ) in records:
        if group is not offsets_of:
            offsets = by_group.setdefault(group, {})
            offsets_of = group
        # a plain tuple finds the same entry as a named tuple
        key = known.get((topic, partition)) or learn(topic, partition)
        fields = (offset, leader_epoch, metadata, commit_ms, expire_ms, record_offset, topic_id)
        offsets[key] = _new(entry, fields)  # type: ignore[assignment]
        record_offset += 1
