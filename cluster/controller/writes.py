"""Steps of the metadata store that carry a decision out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from .._image import ClusterImage, PartitionState, TopicImage
from .._store import Change, Create, Delete, Put, StoreEntry
from ..layout import (
    STATES_IN_ENTRY,
    PartitionKey,
    TopicAssignment,
    TopicDeletion,
    deleted_topic_path,
    states_path,
    stored_configs,
    stored_states,
    topic_config_path,
    topic_path,
)
from .decisions import Decision

#: Most entries of topics, and most entries of states, written in one step. A topic is never split between
#: steps.
MAX_TOPICS: Final = 200
MAX_ENTRIES: Final = 10

Entries = Mapping[int, Mapping[PartitionKey, PartitionState]]


def steps_to_write(
    image: ClusterImage, entries: Entries, stored: Callable[[str], StoreEntry | None], decision: Decision[Any]
) -> Iterator[list[Change]]:
    """Yield the steps to write, a topic with all its states in one step. ``entries`` are the stored
    states, ``stored`` returns the entry of a path.
    """
    kept = _States(entries)
    changes: list[Change] = []
    topics = 0
    # one entry after the other, so that each is written once
    changed = sorted(decision.topics, key=lambda topic: kept.place_of((topic.id, 0)))
    for topic in (*decision.deleted, *changed):
        is_gone = any(topic is each for each in decision.deleted)
        before = image.topic(topic.name)
        if is_gone:
            changes.append(Delete(topic_path(topic.name)))
            # in the same step, as files go only by it
            deletion = TopicDeletion.of(topic)
            changes.append(Create(deleted_topic_path(topic.id), deletion.to_document()))
            if stored(topic_config_path(topic.name)) is not None:
                changes.append(Delete(topic_config_path(topic.name)))
            for number in range(len(topic.partitions)):
                kept.remove((topic.id, number))
            topics += 1
        else:
            own = _topic_changes(before, topic, stored)
            changes += own
            topics += bool(own)
            for number, state in enumerate(topic.partitions):
                is_old = before is not None and number < len(before.partitions)
                if not (is_old and before is not None and before.partitions[number] == state):
                    kept.put((topic.id, number), state)
        if topics >= MAX_TOPICS or len(kept.changed) >= MAX_ENTRIES:
            yield changes + kept.take_changes()
            changes, topics = [], 0
    if changes or kept.changed:
        yield changes + kept.take_changes()


def steps_to_restore(
    topics: Collection[TopicImage], entries: Entries, stored: Callable[[str], StoreEntry | None]
) -> Iterator[list[Change]]:
    """Yield the steps that write topics whole, as far as they are not stored or in another state, a topic
    with all its states in one step.
    """
    kept = _States(entries)
    changes: list[Change] = []
    for count, topic in enumerate(topics, start=1):
        assigned = TopicAssignment.of(topic.id, topic.partitions).to_document()
        changes.append(_put_change(topic_path(topic.name), assigned, stored))
        if topic.configs or stored(topic_config_path(topic.name)) is not None:
            changes.append(_put_change(topic_config_path(topic.name), stored_configs(topic.configs), stored))
        for number, state in enumerate(topic.partitions):
            kept.put((topic.id, number), state)
        if count == len(topics) or len(changes) >= MAX_TOPICS or len(kept.changed) >= MAX_ENTRIES:
            yield changes + kept.take_changes()
            changes = []


def _put_change(path: str, value: object, stored: Callable[[str], StoreEntry | None]) -> Change:
    return Create(path, value) if stored(path) is None else Put(path, value)


def _topic_changes(
    before: TopicImage | None, topic: TopicImage, stored: Callable[[str], StoreEntry | None]
) -> list[Change]:
    changes: list[Change] = []
    if before is None or _replicas_of(before) != _replicas_of(topic):
        path, assigned = topic_path(topic.name), TopicAssignment.of(topic.id, topic.partitions).to_document()
        changes.append(Create(path, assigned) if before is None else Put(path, assigned))
    configs_before = {} if before is None else before.configs
    if topic.configs != configs_before:
        # configs that are reset keep their entry, empty: one that is missing means that it was lost
        changes.append(_put_change(topic_config_path(topic.name), stored_configs(topic.configs), stored))
    return changes


def _replicas_of(topic: TopicImage) -> list[tuple[tuple[int, ...], ...]]:
    return [(each.replicas, each.adding, each.removing) for each in topic.partitions]


class _States:
    """The entries of states, to which a decision's changes are applied."""

    def __init__(self, entries: Entries) -> None:
        self._there = set(entries)
        # new states go to the first entry that has room
        self._entries = {number: dict(entries[number]) for number in sorted(entries)}
        self._entry_of = {key: number for number, states in entries.items() for key in states}
        self.changed: set[int] = set()

    def place_of(self, key: PartitionKey) -> int:
        """The number of the entry that has a partition's state; that of the last for a new one."""
        return self._entry_of.get(key, max(self._entries, default=0))

    def put(self, key: PartitionKey, state: PartitionState) -> None:
        number = self._entry_of.get(key)
        if number is None:
            number = next(
                (each for each, states in self._entries.items() if len(states) < STATES_IN_ENTRY),
                max(self._entries, default=-1) + 1,
            )
            self._entries.setdefault(number, {})
            self._entry_of[key] = number
        self._entries[number][key] = state
        self.changed.add(number)

    def remove(self, key: PartitionKey) -> None:
        number = self._entry_of.pop(key, None)
        if number is not None:
            del self._entries[number][key]
            self.changed.add(number)

    def take_changes(self) -> list[Change]:
        made: list[Change] = []
        for number in sorted(self.changed):
            path, value = states_path(number), stored_states(self._entries[number])
            made.append(Put(path, value) if number in self._there else Create(path, value))
            self._there.add(number)
        self.changed = set()
        return made
