"""The image of a cluster, made from the entries of its metadata store and kept current by watches."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import zip_longest
from typing import Final
from uuid import UUID

from ._image import NO_LEADER, UNKNOWN_EPOCH, BrokerRegistration, ClusterImage, PartitionState, TopicImage
from ._store import MetadataStore, StoreEntry
from .layout import (
    BROKERS,
    CLUSTER_ID,
    CONTROLLER,
    DELETED_TOPICS,
    PARTITION_STATES,
    TOPIC_CONFIGS,
    TOPICS,
    PartitionKey,
    TopicAssignment,
    TopicDeletion,
    broker_path,
    parse_broker,
    parse_states,
    states_path,
    topic_config_path,
    topic_path,
)

log = logging.getLogger("kohort.cluster")

#: Errors of parsing a malformed entry.
_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError)

_NO_STATE: Final = PartitionState(NO_LEADER, UNKNOWN_EPOCH, (), ())


class ClusterView:
    """The image of the cluster, for one of its brokers.

    The image never goes back: only a deletion that is noted in the store removes a topic, and a state of a
    partition is replaced by newer ones alone. What the store lacks of it the controller writes again.

    Watches note what has changed; the next read of ``image`` builds a new one. ``changed`` is called once
    when there is something new, until the image is read. It is called inside the watches of a step: read
    the image afterwards.
    """

    def __init__(self, store: MetadataStore, changed: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._told = changed
        # states by partition, without replicas; the number of each one's entry; the states by entry
        self._states: dict[PartitionKey, PartitionState] = {}
        self._entry_of: dict[PartitionKey, int] = {}
        self._entries: dict[int, dict[PartitionKey, PartitionState]] = {}
        self._names: dict[UUID, str] = {}
        # what was parsed of each topic's entry, by name
        self._assignments: dict[str, tuple[StoreEntry, TopicAssignment]] = {}
        # what has changed since the image was made: entries of states, and topics by name
        self._stale_entries: set[int] = set()
        self._stale_topics: set[str] = set()
        self._stale_deletions: set[str] = set()
        self._stale_brokers = True
        self._stale = True
        self._deletions: Mapping[UUID, frozenset[int]] = {}
        # topics that the store lacks, or has in an older state, although nobody has deleted them
        self._unstored: dict[str, TopicImage] = {}
        # whether the next image follows the store alone
        self._forgetting = False
        self._image = ClusterImage("", NO_LEADER, {})
        for path in (CONTROLLER, CLUSTER_ID):
            store.watch(path, self._entry_changed)
        self._watch_all(BROKERS, self._broker_changed)
        self._watch_all(TOPICS, self._topic_changed)
        self._watch_all(TOPIC_CONFIGS, self._topic_changed)
        self._watch_all(PARTITION_STATES, self._states_changed)
        self._watch_all(DELETED_TOPICS, self._deletion_changed)

    def __repr__(self) -> str:
        return f"ClusterView({self._image})"

    @property
    def image(self) -> ClusterImage:
        """The current image of the cluster."""
        if self._stale:
            self._refresh_image()
        return self._image

    def entries(self) -> Mapping[int, Mapping[PartitionKey, PartitionState]]:
        """The states in each entry, without replicas."""
        return self._entries

    @property
    def is_foreign(self) -> bool:
        """Return whether the store has become that of another cluster; the image stays as it was."""
        entry, known = self._store.get(CLUSTER_ID), self._image.cluster_id
        return bool(known) and entry is not None and entry.value["id"] != known

    def unstored(self) -> Sequence[TopicImage]:
        """Topics of the image that the store lacks, or has in an older state, although nobody has deleted
        them: entries were removed by hand, or restored from an older copy.
        """
        return list(self._unstored.values())

    def forget(self) -> None:
        """Follow the store alone in the next image: what is not there counts as deleted. For a session that
        was out of reach for so long that deletions may have been forgotten meanwhile.
        """
        self._forgetting = True
        self._mark_stale()

    # -- what is watched -------------------------------------------------------------------------------------

    def _watch_all(self, parent: str, changed: Callable[[str], None]) -> None:
        """Call ``changed`` with the name of each entry below, now and whenever one comes, changes or goes."""
        watched: set[str] = set()

        def watch(name: str) -> None:
            watched.add(name)
            self._store.watch(f"{parent}/{name}", partial(entry_changed, name))

        def entry_changed(name: str, path: str) -> None:
            watched.discard(name)
            if self._store.get(path) is not None:
                watch(name)
            changed(name)

        def children_changed(_: str) -> None:
            self._store.watch_children(parent, children_changed)
            for name in self._store.children(parent):
                if name not in watched:
                    watch(name)
                    changed(name)

        children_changed(parent)

    def _entry_changed(self, path: str) -> None:
        self._store.watch(path, self._entry_changed)
        self._mark_stale()

    def _broker_changed(self, _: str) -> None:
        self._stale_brokers = True
        self._mark_stale()

    def _topic_changed(self, name: str) -> None:
        self._stale_topics.add(name)
        self._mark_stale()

    def _states_changed(self, name: str) -> None:
        if name.isdecimal():
            self._stale_entries.add(int(name))
            self._mark_stale()

    def _deletion_changed(self, topic_id: str) -> None:
        self._stale_deletions.add(topic_id)
        self._mark_stale()

    def _mark_stale(self) -> None:
        if not self._stale:
            self._stale = True
            self._told()

    # -- the image -------------------------------------------------------------------------------------------

    def _refresh_image(self) -> None:
        self._stale = False
        if self.is_foreign:
            return
        image = self._image
        controller = self._store.get(CONTROLLER)
        brokers = image.brokers
        if self._stale_brokers:
            self._stale_brokers = False
            brokers = self._read_brokers()
        stale = self._stale_topics | self._refresh_states() | self._refresh_deletions()
        if self._forgetting:
            stale |= {topic.name for topic in image.topics()}
        moved = {
            node_id
            for node_id in brokers.keys() | image.brokers.keys()
            if _unusable_of(brokers, node_id) != _unusable_of(image.brokers, node_id)
        }
        self._stale_topics = set()
        topics, deleted = self._read_topics(stale, brokers)
        if moved:
            topics += self._topics_on(moved, brokers, without=stale)
        now = image.with_changes(
            topics,
            deleted=deleted,
            brokers=brokers,
            controller_id=NO_LEADER if controller is None else int(controller.value["brokerid"]),
        )
        now.cluster_id = self._cluster_id()
        now.deletions = self._deletions
        self._forgetting = False
        self._image = now

    def _cluster_id(self) -> str:
        entry = self._store.get(CLUSTER_ID)
        # an entry that is gone says nothing, as that of a topic
        return self._image.cluster_id if entry is None else str(entry.value["id"])

    def _read_brokers(self) -> dict[int, BrokerRegistration]:
        found = {}
        for name in self._store.children(BROKERS):
            path = broker_path(int(name)) if name.isdecimal() else ""
            entry = self._store.get(path)
            if entry is not None:
                try:
                    found[int(name)] = parse_broker(int(name), entry.value, entry.created)
                except _UNREADABLE as error:
                    _cannot_read(path, error)
        return found

    def _refresh_states(self) -> set[str]:
        """Read the entries of states that have changed; return the topics whose states have changed."""
        changed: set[UUID] = set()
        for number in self._stale_entries:
            path = states_path(number)
            entry = self._store.get(path)
            before = self._entries.pop(number, {})
            now: dict[PartitionKey, PartitionState] = {}
            try:
                now = {} if entry is None else parse_states(entry.value)
            except _UNREADABLE as error:
                _cannot_read(path, error)
                now = before
            if entry is not None:
                self._entries[number] = now
            for key in before.keys() - now.keys():
                # a partition may have moved to another entry in the same step
                if self._entry_of.get(key) == number:
                    del self._entry_of[key], self._states[key]
            for key, state in now.items():
                self._entry_of[key] = number
                self._states[key] = state
            changed |= {key[0] for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
        self._stale_entries = set()
        return {self._names[topic_id] for topic_id in changed if topic_id in self._names}

    def _refresh_deletions(self) -> set[str]:
        """Read the deletions that have changed; return the names of topics that may be gone by them."""
        deletions, names = dict(self._deletions), set()
        for text in self._stale_deletions:
            path = f"{DELETED_TOPICS}/{text}"
            entry = self._store.get(path)
            try:
                topic_id = UUID(text)
                if entry is None:
                    deletions.pop(topic_id, None)
                    continue
                deletion = TopicDeletion.parse(entry.value)
            except _UNREADABLE as error:
                _cannot_read(path, error)
                continue
            deletions[topic_id] = deletion.brokers
            names.add(deletion.name)
        self._stale_deletions = set()
        self._deletions = deletions
        return names

    def _read_topics(
        self, names: Iterable[str], brokers: Mapping[int, BrokerRegistration]
    ) -> tuple[list[TopicImage], list[TopicImage]]:
        """The present topics of these names, and the former topics of names that are gone."""
        there, gone = [], []
        order: dict[str, int] = {}
        unusable = {node_id: broker.unusable for node_id, broker in brokers.items()}
        for name in names:
            before = self._image.topic(name)
            try:
                stored = self._stored_topic(name)
            except _UNREADABLE as error:
                # as good as gone: the controller writes it again
                _cannot_read(topic_path(name), error)
                stored = None
            if before is not None and self._is_gone(before, stored):
                gone.append(before)
                self._names.pop(before.id, None)
                before = None
            now, is_stored = self._newest_states(before, stored)
            if is_stored:
                self._unstored.pop(name, None)
            if now is None:
                continue
            now = _with_offline(now, unusable)
            if before is not None and _is_same(now, before):
                now = before
            if not is_stored:
                self._unstored[name] = now
            self._names[now.id] = name
            if now is before:
                continue
            entry = self._store.get(topic_path(name))
            order[name] = 0 if entry is None else entry.created
            there.append(now)
        return sorted(there, key=lambda topic: (order[topic.name], topic.name)), gone

    def _topics_on(
        self, moved: Set[int], brokers: Mapping[int, BrokerRegistration], *, without: Set[str]
    ) -> list[TopicImage]:
        """The topics of which nothing has changed but whether replicas on these brokers can be used."""
        unusable = {node_id: broker.unusable for node_id, broker in brokers.items()}
        found = []
        for topic in self._image.topics():
            if topic.name in without or all(moved.isdisjoint(state.replicas) for state in topic.partitions):
                continue
            now = _with_offline(topic, unusable)
            if now is not topic:
                found.append(now)
                if topic.name in self._unstored:
                    self._unstored[topic.name] = now
        return found

    def _stored_topic(self, name: str) -> TopicImage | None:
        """A topic as the store has it, None if it does not. Raises what parsing a malformed entry raises."""
        entry = self._store.get(topic_path(name))
        if entry is None:
            self._assignments.pop(name, None)
            return None
        parsed, assignment = self._assignments.get(name, (None, None))
        if assignment is None or parsed is not entry:
            assignment = TopicAssignment.parse(entry.value)
            self._assignments[name] = entry, assignment
        config = self._store.get(topic_config_path(name))
        states = [
            self._states.get((assignment.id, number), _NO_STATE)._replace(
                replicas=replicas,
                adding=assignment.adding.get(number, ()),
                removing=assignment.removing.get(number, ()),
            )
            for number, replicas in enumerate(assignment.replicas)
        ]
        configs = {} if config is None else dict(config.value["config"])
        return TopicImage(name, assignment.id, configs, states)

    def _is_gone(self, before: TopicImage, stored: TopicImage | None) -> bool:
        """Return whether a topic was deleted, and perhaps made anew. An entry that is merely missing, or that
        of another topic, an older one of its name, does not say so.
        """
        is_deleted = before.id in self._deletions or self._forgetting
        return is_deleted and (stored is None or stored.id != before.id)

    def _newest_states(
        self, before: TopicImage | None, stored: TopicImage | None
    ) -> tuple[TopicImage | None, bool]:
        """The newer state of each partition, of what was known and what is stored, and whether that is all
        stored: entries may be missing, or come from an older copy of the metadata.
        """
        if before is None or self._forgetting:
            return stored, True
        if stored is not None and stored.id != before.id:
            stored = None
        # configs that were reset have an entry without values
        lacks_configs = bool(before.configs) and self._store.get(topic_config_path(before.name)) is None
        if stored is None:
            states = [
                self._states.get((before.id, number), _NO_STATE)._replace(
                    replicas=known.replicas, adding=known.adding, removing=known.removing
                )
                for number, known in enumerate(before.partitions)
            ]
        else:
            states = list(stored.partitions)
        newest = [
            _newer_state(known, state)
            for known, state in zip_longest(before.partitions, states, fillvalue=None)
        ]
        is_stored = stored is not None and newest == states and not lacks_configs
        known = stored or before
        if lacks_configs:
            known = known.having(configs=before.configs)
        return known if tuple(newest) == known.partitions else known.having(partitions=newest), is_stored


def _newer_state(known: PartitionState | None, stored: PartitionState | None) -> PartitionState:
    """The newer of two states of a partition; each change of a state, and of its replicas, which are stored
    in another entry, raises its ``partition_epoch``.
    """
    if stored is None or known is None:
        state = known if stored is None else stored
        assert state is not None, "a partition is known, or stored"
        return state
    at, known_at = (stored.leader_epoch, stored.partition_epoch), (known.leader_epoch, known.partition_epoch)
    is_older = at < known_at or (at == known_at and _assigned_replicas(stored) != _assigned_replicas(known))
    return known if is_older else stored


def _assigned_replicas(state: PartitionState) -> tuple[tuple[int, ...], ...]:
    return state.replicas, state.adding, state.removing


def _with_offline(topic: TopicImage, unusable: Mapping[int, frozenset[PartitionKey]]) -> TopicImage:
    """The topic with the replicas that cannot be used, of brokers that are registered and their unusable
    replicas.
    """
    states = [
        state._replace(offline=offline)
        if state.offline != (offline := _offline_replicas((topic.id, number), state.replicas, unusable))
        else state
        for number, state in enumerate(topic.partitions)
    ]
    return topic.having(partitions=states) if any(map(operator.is_not, states, topic.partitions)) else topic


def _offline_replicas(
    key: PartitionKey, replicas: tuple[int, ...], unusable: Mapping[int, frozenset[PartitionKey]]
) -> tuple[int, ...]:
    return tuple(
        each for each in replicas if (known := unusable.get(each)) is None or (known and key in known)
    )


def _is_same(topic: TopicImage, before: TopicImage) -> bool:
    return (topic.id, topic.partitions, topic.configs) == (before.id, before.partitions, before.configs)


def _unusable_of(brokers: Mapping[int, BrokerRegistration], node_id: int) -> frozenset[PartitionKey] | None:
    """Replicas of a broker that cannot be used; None if it is not registered."""
    broker = brokers.get(node_id)
    return None if broker is None else broker.unusable


def _cannot_read(path: str, error: Exception) -> None:
    log.error("the entry %s of the metadata store cannot be read and is passed over: %r", path, error)
