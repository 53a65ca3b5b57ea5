"""Decisions of the controller: functions from an image of the cluster and an event to the topics to write.

They are pure: no I/O, no clock, nothing random. A decision has the topics to write, the topics to delete,
and the response to the request. Every partition goes through ``settled``, so each decision leaves the
partitions that it touches in a state that fits the live brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID, uuid4

from ...protocol import ErrorCode, KafkaError, TopicPartition
from .._image import NO_LEADER, UNKNOWN_EPOCH, BrokerRegistration, ClusterImage, PartitionState, TopicImage
from .partitions import settle_state
from .placement import leaders_of, place_replicas

A = TypeVar("A")
K = TypeVar("K")

#: The six bits that base64url writes as a hyphen.
_HYPHEN: Final = 62

#: Results by request: None for success.
Refusals = dict[K, KafkaError | None]


class Rules(NamedTuple):
    """Settings that decisions depend on, with Apache Kafka's defaults."""

    unclean_leader_election: bool = False
    #: Whether leadership is balanced, how often, and above which percentage of a broker's partitions.
    balance: bool = True
    balance_interval_s: float = 300.0
    leader_imbalance_percent: int = 10


class Decision(NamedTuple, Generic[A]):
    """Topics to write, topics to delete, and the response to the request."""

    answer: A
    topics: Sequence[TopicImage] = ()
    deleted: Sequence[TopicImage] = ()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created; ``assignments`` are the replicas of each partition, if the client chose them.
    Configs are in the form that the image has.
    """

    name: str
    id: UUID = field(default_factory=lambda: new_topic_id())
    partitions: int = 1
    replication_factor: int = 1
    assignments: Sequence[Sequence[int]] | None = None
    configs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """An increase of a topic to ``count`` partitions; ``assignments`` are the replicas of the new ones."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


class IsrChange(NamedTuple):
    """The in-sync replicas that a leader asks for, with the epochs of their brokers (-1: not given)."""

    topic_id: UUID | None
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]
    recovering: bool = False


def new_topic_id() -> UUID:
    """A topic id; like Apache Kafka none whose text begins with a hyphen, which tools take for an option."""
    while True:
        made = uuid4()
        if made.bytes[0] >> 2 != _HYPHEN:
            return made


# -- brokers -------------------------------------------------------------------------------------------------


def tidy_partitions(image: ClusterImage, topics: Iterable[TopicImage], rules: Rules) -> Decision[None]:
    """Adapt partitions to the live brokers: elect leaders, remove dead brokers from the in-sync replicas,
    complete reassignments.
    """
    return Decision(None, _settle_partitions(image, {topic.name: {} for topic in topics}, rules))


def unclean_is_allowed(topic: TopicImage, rules: Rules) -> bool:
    """Return whether a replica that is not in sync may become leader of the topic's partitions."""
    set_for_it = topic.configs.get("unclean.leader.election.enable")
    return rules.unclean_leader_election if set_for_it is None else str(set_for_it).lower() == "true"


def _settle_partitions(
    image: ClusterImage, wanted: Mapping[str, Mapping[int, PartitionState]], rules: Rules
) -> list[TopicImage]:
    """Return the topics that change when these partitions get the wanted states."""
    changed = []
    for name, states in wanted.items():
        topic = image.topic(name)
        assert topic is not None, "only topics of the image are changed"
        unclean = unclean_is_allowed(topic, rules)
        after = [
            settle_state(
                before,
                states.get(number, before),
                _usable_brokers(image, topic, number),
                unclean=unclean,
                newest_epoch=_newest_epoch(image, topic, number),
            )
            if unclean or before.leader_epoch != UNKNOWN_EPOCH or image.brokers.keys() >= {*before.replicas}
            # a replica that is away may have a log: then the state is lost
            else before
            for number, before in enumerate(topic.partitions)
        ]
        if tuple(after) != topic.partitions:
            changed.append(topic.having(partitions=after))
    return changed


def _usable_brokers(
    image: ClusterImage, topic: TopicImage, partition: int
) -> Mapping[int, BrokerRegistration]:
    """The live brokers, without those whose replica of this partition cannot be used. Where every replica is
    lost there is nothing to wait for. Where the state is lost: those whose logs have the newest leader epoch.
    """
    replica, brokers = (topic.id, partition), image.brokers
    if topic.partitions[partition].leader_epoch == UNKNOWN_EPOCH:
        newest = _newest_epoch(image, topic, partition)
        brokers = {
            node_id: broker
            for node_id, broker in brokers.items()
            if broker.newer_epochs.get(replica, UNKNOWN_EPOCH) == newest
        }
    unusable = [node_id for node_id, broker in brokers.items() if replica in broker.unusable]
    if not unusable:
        return brokers
    replicas = topic.partitions[partition].replicas
    if all(each in brokers and replica in brokers[each].lost for each in replicas):
        return brokers
    return {node_id: broker for node_id, broker in brokers.items() if node_id not in unusable}


def _newest_epoch(image: ClusterImage, topic: TopicImage, partition: int) -> int:
    """The newest leader epoch that a broker reports of its log of a partition, if the metadata are older."""
    key = (topic.id, partition)
    reported = (broker.newer_epochs.get(key, UNKNOWN_EPOCH) for broker in image.brokers.values())
    return max(reported, default=UNKNOWN_EPOCH)


# -- topics --------------------------------------------------------------------------------------------------


def create_topics(image: ClusterImage, wanted: Sequence[NewTopic]) -> Decision[Refusals[str]]:
    """Create topics. INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
    TOPIC_ALREADY_EXISTS.
    """
    answer: Refusals[str] = {}
    made: list[TopicImage] = []
    placing = _Placing(image)
    for each in wanted:
        try:
            if image.topic(each.name) is not None or each.name in answer:
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {each.name} is there already")
            states = placing.place(each.partitions, each.replication_factor, each.assignments)
        except KafkaError as error:
            answer.setdefault(each.name, error)
            continue
        answer[each.name] = None
        made.append(TopicImage(each.name, each.id, each.configs, states))
    return Decision(answer, made)


def add_partitions(image: ClusterImage, wanted: Sequence[NewPartitions]) -> Decision[Refusals[str]]:
    """Add partitions to topics. Errors are those of ``create_topics``, and UNKNOWN_TOPIC_OR_PARTITION,
    REASSIGNMENT_IN_PROGRESS.
    """
    answer: Refusals[str] = {}
    grown: list[TopicImage] = []
    placing = _Placing(image)
    for each in wanted:
        topic = image.topic(each.name)
        try:
            if topic is None:
                raise _unknown_partition(each.name)
            if any(state.adding or state.removing for state in topic.partitions):
                raise KafkaError(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS,
                    f"{each.name} is being reassigned: add partitions when that has ended",
                )
            there = [state.replicas for state in topic.partitions]
            count = each.count - len(there)
            if count <= 0:
                raise KafkaError(
                    ErrorCode.INVALID_PARTITIONS,
                    f"{each.name} has {len(there)} partitions: it can have more, not {each.count}",
                )
            states = placing.place(count, len(there[0]), each.assignments, there)
        except KafkaError as error:
            answer.setdefault(each.name, error)
            continue
        answer[each.name] = None
        grown.append(topic.having(partitions=[*topic.partitions, *states]))
    return Decision(answer, grown)


def alter_configs(image: ClusterImage, wanted: Mapping[UUID, Mapping[str, object]]) -> Decision[None]:
    """Replace all configs of these topics. Skips topics that no longer exist."""
    found = {topic_id: image.topic_by_id(topic_id) for topic_id in wanted}
    return Decision(
        None,
        [topic.having(configs=wanted[topic_id]) for topic_id, topic in found.items() if topic is not None],
    )


def delete_topics(image: ClusterImage, names: Iterable[str]) -> Decision[Refusals[str]]:
    """Delete topics. UNKNOWN_TOPIC_OR_PARTITION."""
    found = {name: image.topic(name) for name in names}
    answer: Refusals[str] = {
        name: _unknown_partition(name) if topic is None else None for name, topic in found.items()
    }
    return Decision(answer, (), [topic for topic in found.values() if topic is not None])


class _Placing:
    """Places new partitions of one decision, each topic beside those before it."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._may_lead = {n: each for n, each in image.brokers.items() if not each.shutting_down}
        # partitions by preferred leader; one broker has them all
        self._led = leaders_of(image.topics() if len(image.brokers) > 1 else ())
        self._states: dict[tuple[int, ...], PartitionState] = {}

    def place(
        self,
        count: int,
        replication_factor: int,
        assignments: Sequence[Sequence[int]] | None,
        before: Sequence[Sequence[int]] = (),
    ) -> list[PartitionState]:
        """States of ``count`` new partitions of a topic that has those of ``before``. Raises KafkaError."""
        if assignments is not None:
            count = count if before else len(assignments)
        if count < 1:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"a topic cannot have {count} partitions")
        if assignments is None:
            placed = place_replicas(self._may_lead, count, replication_factor, before=before, led=self._led)
        else:
            placed = [_check_replicas(self._image, replicas) for replicas in assignments]
            sizes = {len(replicas) for replicas in (*before, *placed)}
            if len(placed) != count or len(sizes) != 1:
                raise _bad_assignment(
                    f"{len(placed)} new partitions have {sorted(sizes)} replicas: name {count}, with equally "
                    "many"
                )
        states = [self._states.get(replicas) or self._new_state(replicas) for replicas in placed]
        self._led.update(replicas[0] for replicas in placed)
        return states

    def _new_state(self, replicas: tuple[int, ...]) -> PartitionState:
        new = PartitionState(NO_LEADER, UNKNOWN_EPOCH, (), replicas)
        state = self._states[replicas] = settle_state(new, new, self._image.brokers)
        if state.leader == NO_LEADER:
            raise _bad_assignment(f"of the brokers {list(replicas)} none is there, or all are about to stop")
        return state


def _check_replicas(image: ClusterImage, replicas: Sequence[int]) -> tuple[int, ...]:
    if not replicas:
        raise _bad_assignment("a partition needs a replica")
    if len(set(replicas)) != len(replicas):
        raise _bad_assignment(f"the replicas {list(replicas)} name a broker twice")
    unknown = [each for each in replicas if each not in image.brokers]
    if unknown:
        raise _bad_assignment(f"the replicas {list(replicas)} name brokers that are not there: {unknown}")
    return tuple(replicas)


def _bad_assignment(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _unknown_partition(name: str, partition: int | None = None) -> KafkaError:
    what = f"topic {name!r}" if partition is None else f"partition {name}-{partition}"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {what}")


# -- leaders -------------------------------------------------------------------------------------------------


def elect_leaders(
    image: ClusterImage, partitions: Iterable[TopicPartition] | None, rules: Rules, *, unclean: bool
) -> Decision[Refusals[TopicPartition]]:
    """Elect the preferred leaders, or with ``unclean`` any leader for partitions that have none (KIP-183,
    KIP-460). Of all partitions (None) the answer has those that needed it.

    ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION.
    """
    every = partitions is None
    if partitions is None:
        partitions = (
            TopicPartition(topic.name, number)
            for topic in image.topics()
            for number in range(len(topic.partitions))
        )
    answer: Refusals[TopicPartition] = {}
    changed: dict[str, TopicImage] = {}
    for key in partitions:
        topic = changed.get(key.topic) or image.topic(key.topic)
        if topic is None or not 0 <= key.partition < len(topic.partitions):
            answer[key] = _unknown_partition(*key)
            continue
        before = topic.partitions[key.partition]
        needed = before.leader == NO_LEADER if unclean else before.leader != before.replicas[0]
        if not needed:
            if not every:
                answer[key] = KafkaError(
                    ErrorCode.ELECTION_NOT_NEEDED, f"{_name_partition(key)} is led as it should be"
                )
            continue
        allowed = unclean or unclean_is_allowed(topic, rules)
        brokers = _usable_brokers(image, topic, key.partition)
        newest_epoch = _newest_epoch(image, topic, key.partition)
        after = settle_state(
            before, before, brokers, unclean=allowed, prefer_first=not unclean, newest_epoch=newest_epoch
        )
        answer[key] = None
        if unclean and after.leader == NO_LEADER:
            answer[key] = KafkaError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica of {_name_partition(key)} is there"
            )
        elif not unclean and after.leader != after.replicas[0]:
            answer[key] = KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"broker {before.replicas[0]} is away, or not in sync with {_name_partition(key)}",
            )
        if after != before:
            states = list(topic.partitions)
            states[key.partition] = after
            changed[key.topic] = topic.having(partitions=states)
    return Decision(answer, list(changed.values()))


def balance_leaders(image: ClusterImage, rules: Rules) -> Decision[Refusals[TopicPartition]]:
    """Elect preferred leaders, for each broker that does not lead more than
    ``leader.imbalance.per.broker.percentage`` of the partitions whose preferred leader it is.
    """
    preferred = leaders_of(image.topics())
    elsewhere: dict[int, list[TopicPartition]] = {}
    for topic in image.topics():
        for number, state in enumerate(topic.partitions):
            first = state.replicas[0]
            if state.leader != first and first in state.isr and not (state.adding or state.removing):
                elsewhere.setdefault(first, []).append(TopicPartition(topic.name, number))
    wanted = [
        key
        for broker, keys in elsewhere.items()
        if broker in image.brokers and len(keys) * 100 > preferred[broker] * rules.leader_imbalance_percent
        for key in keys
    ]
    return elect_leaders(image, wanted, rules, unclean=False)


def _name_partition(key: TopicPartition) -> str:
    return f"{key.topic}-{key.partition}"


# -- in-sync replicas ----------------------------------------------------------------------------------------


def alter_isr(
    image: ClusterImage, node_id: int, broker_epoch: int, changes: Sequence[IsrChange], rules: Rules
) -> Decision[list[PartitionState | KafkaError]]:
    """Change in-sync replicas as leaders request it (AlterPartition, KIP-497). The response has the state of
    each partition, or the error.

    Raises KafkaError STALE_BROKER_EPOCH. Refusals: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
    NOT_CONTROLLER for epochs newer than the image, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION,
    INVALID_REQUEST, INELIGIBLE_REPLICA, NEW_LEADER_ELECTED.
    """
    broker = image.brokers.get(node_id)
    if broker is None or broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {node_id} is not registered with epoch {broker_epoch}"
        )
    answer: list[PartitionState | KafkaError] = []
    changed: dict[str, TopicImage] = {}
    for change in changes:
        found = image.topic_by_id(change.topic_id)
        topic = None if found is None else changed.get(found.name, found)
        try:
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {change.topic_id}")
            if not 0 <= change.partition < len(topic.partitions):
                raise _unknown_partition(topic.name, change.partition)
            before = topic.partitions[change.partition]
            brokers = _usable_brokers(image, topic, change.partition)
            _check_isr(brokers, node_id, before, change)
        except KafkaError as error:
            answer.append(error)
            continue
        isr = tuple(each for each, _ in change.isr)
        # the order does not matter: an equal set changes nothing
        wanted = before if set(isr) == set(before.isr) else before._replace(isr=isr)
        wanted = wanted._replace(recovering=change.recovering)
        after = settle_state(before, wanted, brokers, unclean=unclean_is_allowed(topic, rules))
        if after != before:
            states = list(topic.partitions)
            states[change.partition] = after
            changed[topic.name] = topic.having(partitions=states)
        if after.leader == node_id and after.leader_epoch == before.leader_epoch:
            answer.append(after)
        else:
            answer.append(
                KafkaError(
                    ErrorCode.NEW_LEADER_ELECTED, f"{topic.name}-{change.partition} has another leader"
                )
            )
    return Decision(answer, list(changed.values()))


def _check_isr(
    brokers: Mapping[int, BrokerRegistration], node_id: int, now: PartitionState, change: IsrChange
) -> None:
    """Raise KafkaError for a change that cannot be made. ``brokers`` are those that can use their replica: a
    leader that was given its former state for an answer would wait for another one.
    """
    asked = [each for each, _ in change.isr]
    if change.leader_epoch > now.leader_epoch or change.partition_epoch > now.partition_epoch:
        code, why = ErrorCode.NOT_CONTROLLER, "its epochs are newer than those known here"
    elif change.leader_epoch < now.leader_epoch:
        code, why = ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {now.leader_epoch} by now"
    elif now.leader != node_id:
        code, why = ErrorCode.INVALID_REQUEST, f"broker {now.leader} leads"
    elif change.partition_epoch < now.partition_epoch:
        code, why = ErrorCode.INVALID_UPDATE_VERSION, f"the partition epoch is {now.partition_epoch} by now"
    elif len(set(asked)) != len(asked) or node_id not in asked or not set(asked) <= set(now.replicas):
        code, why = ErrorCode.INVALID_REQUEST, "in-sync are the leader and other replicas, each named once"
    elif change.recovering and (len(asked) > 1 or not now.recovering):
        code, why = ErrorCode.INVALID_REQUEST, "a leader that recovers is alone in sync, and was before"
    elif not all(_is_eligible(brokers, *each, is_new=each[0] not in now.isr) for each in change.isr):
        why = "a broker is away, stops, cannot use its replica, or was registered anew since"
        code = ErrorCode.INELIGIBLE_REPLICA
    else:
        return
    raise KafkaError(code, f"the in-sync replicas cannot be {asked}: {why}")


def _is_eligible(
    brokers: Mapping[int, BrokerRegistration], node_id: int, epoch: int, *, is_new: bool
) -> bool:
    broker = brokers.get(node_id)
    if broker is None:
        return not is_new and epoch == -1
    return epoch in (-1, broker.epoch) and not (is_new and broker.shutting_down)


# -- reassignments -------------------------------------------------------------------------------------------


def reassign(
    image: ClusterImage,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    rules: Rules,
    *,
    same_factor: bool = False,
) -> Decision[Refusals[TopicPartition]]:
    """Give partitions other replicas (KIP-455), or cancel a reassignment (None).

    New replicas are added and have to get in sync before old ones are removed. The errors are those of
    ``reassign_partition``.
    """
    answer: Refusals[TopicPartition] = {}
    states: dict[str, dict[int, PartitionState]] = {}
    for key, target in wanted.items():
        try:
            after = reassign_partition(image, key, target, same_factor=same_factor)
        except KafkaError as error:
            answer[key] = error
            continue
        answer[key] = None
        states.setdefault(key.topic, {})[key.partition] = after
    return Decision(answer, _settle_partitions(image, states, rules))


def reassign_partition(
    image: ClusterImage, key: TopicPartition, target: Sequence[int] | None, *, same_factor: bool
) -> PartitionState:
    """The state of a partition whose reassignment to these replicas begins, or is cancelled (None); with
    ``same_factor`` to as many as it has (KIP-860).

    Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
    NO_REASSIGNMENT_IN_PROGRESS.
    """
    topic = image.topic(key.topic)
    if topic is None or not 0 <= key.partition < len(topic.partitions):
        raise _unknown_partition(*key)
    before = topic.partitions[key.partition]
    if target is None:
        return _reverted_state(before)
    replicas = _check_replicas(image, target)
    if same_factor and len(replicas) != len(set(before.replicas) - set(before.adding)):
        text = f"{len(replicas)} replicas are another replication factor: the request allows none"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return _aim_at(before, replicas)


def _aim_at(before: PartitionState, target: tuple[int, ...]) -> PartitionState:
    """The target's replicas, followed by those to be removed."""
    settled_there = set(before.replicas) - set(before.adding)
    removing = tuple(each for each in before.replicas if each not in target)
    adding = tuple(each for each in target if each not in settled_there)
    # replicas that an earlier reassignment was adding and this one does not want are removed at once, unless
    # they are in sync
    dropped = {each for each in removing if each in before.adding and each not in before.isr}
    removing = tuple(each for each in removing if each not in dropped)
    return before._replace(replicas=(*target, *removing), adding=adding, removing=removing)


def _reverted_state(before: PartitionState) -> PartitionState:
    if not (before.adding or before.removing):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment is under way")
    isr = tuple(each for each in before.isr if each not in before.adding)
    if not isr:
        raise _bad_assignment("only replicas that are being added are in sync: records would be lost")
    replicas = tuple(each for each in before.replicas if each not in before.adding)
    return before._replace(replicas=replicas, isr=isr, adding=(), removing=())


def reassignments(image: ClusterImage) -> dict[TopicPartition, PartitionState]:
    """The partitions that are being reassigned."""
    return {
        TopicPartition(topic.name, number): state
        for topic in image.topics()
        for number, state in enumerate(topic.partitions)
        if state.adding or state.removing
    }


def leaders_to_move(image: ClusterImage, node_id: int) -> int:
    """Number of partitions that a broker leads and another in-sync replica could lead: the broker may stop
    when none is left (ControlledShutdown).
    """
    may_lead = {each for each, broker in image.brokers.items() if not broker.shutting_down}
    led: Counter[bool] = Counter(
        bool(may_lead & set(state.isr) - {node_id})
        for topic in image.topics()
        for state in topic.partitions
        if state.leader == node_id
    )
    return led[True]
