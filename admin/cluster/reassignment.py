"""``kohort cluster reassign``: other replicas for a topic's partitions, or for all that a broker has."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..screen import OK, REFUSED, Screen, plain

if TYPE_CHECKING:
    from ...client import Cluster
    from ...protocol import TopicPartition
    from ..errors import Outcome

#: Configs of topics and of brokers that throttle replication (KIP-73).
_THROTTLED_REPLICAS: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_THROTTLED_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


@dataclass(frozen=True, slots=True)
class Moving:
    """A partition that is being reassigned; ``missing`` are replicas that are added and not in sync yet."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    missing: list[int]


def check_reassign(options: argparse.Namespace) -> None:
    """Raises ConfigError for options that do not go together."""
    from ...client import ConfigError

    if options.source is None:
        if options.topic is None:
            raise ConfigError("name a topic, or the broker that is to have no replicas: --from")
        if bool(options.brokers) + options.cancel + options.verify != 1:
            raise ConfigError("give --brokers, or --verify, or --cancel")
    elif options.cancel and options.verify:
        raise ConfigError("give --verify or --cancel")
    if options.partitions and options.topic is None:
        raise ConfigError("--partition is one of one topic: name the topic")
    if options.throttle and not options.execute:
        raise ConfigError("--throttle needs --execute")


async def reassign_replicas(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    """Run the command; the exit code."""
    from ...protocol import TopicPartition
    from ..topics.requests import topic_rows

    rows = await topic_rows(cluster, None)
    if options.topic is not None and options.topic not in rows:
        # says why
        await topic_rows(cluster, [options.topic])
    there = {
        TopicPartition(name, each.partition_index): list(each.replica_nodes)
        for name, row in rows.items()
        for each in row.partitions
    }
    chosen = _choose_partitions(there, options)
    moving = {
        TopicPartition(each.topic, each.partition): each
        for each in await reassignments(cluster)
        if options.topic in (None, each.topic)
    }
    if options.verify:
        return await _verify_moves(cluster, options, chosen, moving, screen)
    wanted: Mapping[TopicPartition, list[int] | None]
    if options.cancel:
        wanted = {key: None for key in chosen if key in moving}
    elif options.source is not None:
        nodes = (await cluster.metadata([])).nodes
        racks = {node_id: node.rack for node_id, node in nodes.items()}
        allowed = options.brokers or [node_id for node_id in sorted(nodes) if node_id != options.source]
        # where a reassignment is under way: what it leads to
        later = {
            key: [each for each in replicas if key not in moving or each not in moving[key].removing]
            for key, replicas in there.items()
        }
        left = [key for key in chosen if options.source in later[key]]
        wanted = without_broker(later, left, options.source, allowed, racks, options.replication_factor)
    else:
        wanted = _in_turns(there, chosen, options.brokers, options.replication_factor)
    if not wanted:
        words = f"broker {options.source} has no replicas" if options.source is not None else ""
        none_moves = f"nothing of {options.topic or 'any topic'} is being reassigned"
        screen.remark(words if words and not options.cancel else none_moves)
        return OK
    if options.throttle:
        targets = {key: replicas or () for key, replicas in wanted.items()}
        topics = {key.topic for key in wanted}
        of_them = [each for each in moving.values() if each.topic in topics]
        await throttle(cluster, there, targets, of_them, options.throttle)
    if options.execute or options.cancel:
        done = await reassign(cluster, wanted)
        if options.cancel:
            await end_throttle(cluster, sorted({key.topic for key in wanted}))
        return tell_outcomes(screen, done, "cancelled" if options.cancel else "begun")
    _show_plan(screen, there, wanted)
    chosen_brokers = {
        each for key, replicas in wanted.items() for each in {*(replicas or ())}.difference(there[key])
    }
    if away := chosen_brokers.difference((await cluster.metadata([])).nodes):
        screen.remark(f"no broker {join_numbers(sorted(away))} is registered: --execute is refused without")
    return OK


def _choose_partitions(
    there: Mapping[TopicPartition, Sequence[int]], options: argparse.Namespace
) -> list[TopicPartition]:
    """The partitions that the command is about. Raises KafkaError for one that is not there."""
    from ...protocol import ErrorCode, KafkaError, TopicPartition

    for number in options.partitions or ():
        if TopicPartition(options.topic, number) not in there:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {options.topic!r} has no partition {number}"
            )
    return [
        key
        for key, replicas in sorted(there.items())
        if options.topic in (None, key.topic)
        and (not options.partitions or key.partition in options.partitions)
        and (options.source is None or options.source in replicas)
    ]


def _in_turns(
    there: Mapping[TopicPartition, Sequence[int]],
    chosen: Iterable[TopicPartition],
    ring: Sequence[int],
    count: int | None,
) -> dict[TopicPartition, list[int] | None]:
    """Replicas on the brokers of ``ring``: each partition begins with the next of them."""
    from ...client import ConfigError

    wanted: dict[TopicPartition, list[int] | None] = {}
    for key in chosen:
        many = count or len(there[key])
        if many > len(ring):
            raise ConfigError(f"{many} replicas need {many} brokers: --brokers names {len(ring)}")
        at = key.partition % len(ring)
        wanted[key] = [*ring[at:], *ring[:at]][:many]
    return wanted


def without_broker(
    there: Mapping[TopicPartition, Sequence[int]],
    chosen: Iterable[TopicPartition],
    node_id: int,
    allowed: Collection[int],
    racks: Mapping[int, str | None],
    count: int | None = None,
) -> dict[TopicPartition, list[int] | None]:
    """Replicas without a broker: another takes its place in the order of each partition, one in a rack that
    the partition does not have yet if there is such a one, then the one that has the fewest. With ``count``
    replicas each, fewer than there are now, none takes it. Raises ConfigError.
    """
    from ...client import ConfigError

    held = Counter(each for replicas in there.values() for each in replicas)
    first = Counter(replicas[0] for replicas in there.values())
    wanted: dict[TopicPartition, list[int] | None] = {}
    for key in chosen:
        replicas = there[key]
        place = replicas.index(node_id)
        kept = [each for each in replicas if each != node_id]
        if count is not None and 0 < count <= len(kept):
            wanted[key] = kept[:count]
            continue
        others = [each for each in allowed if each not in replicas]
        if not others:
            raise ConfigError(
                f"{key.topic}-{key.partition} has {len(replicas)} replicas, and there is no other broker for "
                f"that of {node_id}: start one, or lower --replication-factor"
            )
        known = {racks.get(each) for each in kept} - {None}
        chosen_one = min(
            others,
            key=lambda each: (racks.get(each) in known, first[each] if place == 0 else 0, held[each], each),
        )
        held[chosen_one] += 1
        first[chosen_one] += place == 0
        wanted[key] = [*kept[:place], chosen_one, *kept[place:]]
    return wanted


def _show_plan(
    screen: Screen,
    there: Mapping[TopicPartition, Sequence[int]],
    wanted: Mapping[TopicPartition, Sequence[int] | None],
) -> None:
    rows = [(key.topic, key.partition, there[key], replicas) for key, replicas in wanted.items()]
    if screen.as_json:
        names = ("topic", "partition", "replicas", "then")
        screen.document({"plan": [dict(zip(names, each, strict=True)) for each in rows]})
        return
    from ..tables import table

    head = ["TOPIC", "PARTITION", "REPLICAS", "THEN"]
    screen.show(table(head, ((t, str(n), join_numbers(a), join_numbers(b or ())) for t, n, a, b in rows)))
    screen.remark("nothing is changed: --execute does it")


async def _verify_moves(
    cluster: Cluster,
    options: argparse.Namespace,
    chosen: Sequence[TopicPartition],
    moving: Mapping[TopicPartition, Moving],
    screen: Screen,
) -> int:
    """Tell what is still moving; with a broker that is to have no replicas, what it still has."""
    of_broker = options.source is not None
    rows = [(*key, "moving" if key in moving else "not begun" if of_broker else "done") for key in chosen]
    left = [row for row in rows if row[2] != "done"]
    topics = sorted({key.topic for key in chosen})
    if of_broker:
        from ..topics.requests import topic_rows

        names_of = None if options.topic is None else [options.topic]
        topics = list(await topic_rows(cluster, names_of))
    ended = [] if left else await end_throttle(cluster, topics)
    if screen.as_json:
        names = ("topic", "partition", "result")
        screen.document({"partitions": [dict(zip(names, each, strict=True)) for each in rows]})
    else:
        from ..tables import table

        if rows:
            lines = ((name, str(number), result) for name, number, result in rows)
            screen.show(table(["TOPIC", "PARTITION", "RESULT"], lines))
        if of_broker and not left:
            screen.remark(f"broker {options.source} has no replicas")
        if ended:
            screen.remark(f"throttles of {', '.join(ended)} are removed")
    return REFUSED if left else OK


# --- requests ---------------------------------------------------------------------------------------------


async def reassignments(cluster: Cluster) -> list[Moving]:
    """Partitions that are being reassigned. Raises KafkaError."""
    from ...client.requests import error_of
    from ...protocol import ApiKey
    from ...protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

    async def attempt() -> list[Moving]:
        body = ListPartitionReassignmentsRequest(cluster.request_timeout_ms)
        answer = await cluster.request(None, ApiKey.LIST_PARTITION_REASSIGNMENTS, body)
        if answer.error_code:
            raise error_of(answer, "reassignments")
        return [
            Moving(
                topic.name,
                each.partition_index,
                list(each.replicas),
                list(each.adding_replicas),
                list(each.removing_replicas),
                list(each.adding_replicas),
            )
            for topic in answer.topics
            for each in topic.partitions
        ]

    return await cluster.retrying(attempt)


async def reassign(
    cluster: Cluster, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, Outcome]:
    """Give partitions other replicas; None cancels a reassignment. Raises KafkaError."""
    from ...client.requests import controller, error_of, refusal_text
    from ...protocol import ApiKey, TopicPartition
    from ...protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
        ReassignableTopic,
    )
    from ..errors import outcome_of

    topics: dict[str, list[ReassignablePartition]] = {}
    for key, replicas in wanted.items():
        topics.setdefault(key.topic, []).append(ReassignablePartition(key.partition, replicas))
    body = AlterPartitionReassignmentsRequest(
        cluster.request_timeout_ms, topics=[ReassignableTopic(*each) for each in topics.items()]
    )

    async def attempt() -> dict[TopicPartition, Outcome]:
        answer = await cluster.request(await controller(cluster), ApiKey.ALTER_PARTITION_REASSIGNMENTS, body)
        if answer.error_code:
            raise error_of(answer, "reassignments")
        return {
            TopicPartition(topic.name, each.partition_index): outcome_of(
                each.error_code, refusal_text(each, "")
            )
            for topic in answer.responses
            for each in topic.partitions
        }

    return await cluster.retrying(attempt)


async def throttle(
    cluster: Cluster,
    there: Mapping[TopicPartition, Sequence[int]],
    targets: Mapping[TopicPartition, Collection[int]],
    moving: Collection[Moving],
    rate: int,
) -> None:
    """Limit what each broker copies for reassignments to ``rate`` bytes per second (KIP-73): from the
    replicas that partitions have to their ``targets``, and for reassignments of their topics under way.
    """
    from ...protocol import TopicPartition
    from ..topics.requests import alter_broker_configs, alter_configs

    under_way = {TopicPartition(each.topic, each.partition): each for each in moving}
    sources = {key: set(there[key]) for key in targets}
    sources |= {key: set(each.replicas) - set(each.adding) for key, each in under_way.items()}
    wanted = {key: set(each.adding) for key, each in under_way.items()}
    wanted |= {key: set(replicas) for key, replicas in targets.items()}
    adding = {key: wanted[key] - found for key, found in sources.items()}
    # one that is gone sends nothing
    brokers = set().union(*sources.values(), *adding.values()) & (await cluster.metadata([])).nodes.keys()
    for node_id in sorted(brokers):
        await alter_broker_configs(cluster, node_id, dict.fromkeys(_THROTTLED_RATES, str(rate)))
    for topic in sorted({key.topic for key in sources}):
        named = [
            ",".join(
                f"{key.partition}:{each}"
                for key, ids in sorted(found.items())
                if key.topic == topic
                for each in sorted(ids)
            )
            for found in (sources, adding)
        ]
        await alter_configs(cluster, topic, dict(zip(_THROTTLED_REPLICAS, named, strict=True)))


async def end_throttle(cluster: Cluster, topics: Iterable[str]) -> list[str]:
    """Remove the throttles of topics, and those of brokers if nothing is being reassigned any more. Return
    the topics that had any.
    """
    from ..topics.requests import alter_broker_configs, alter_configs, topic_configs

    found = await topic_configs(cluster, topics, all_configs=False)
    throttled = [
        topic
        for topic, configs in found.items()
        if not {each.name for each in configs}.isdisjoint(_THROTTLED_REPLICAS)
    ]
    for topic in throttled:
        await alter_configs(cluster, topic, dict.fromkeys(_THROTTLED_REPLICAS))
    if throttled and not await reassignments(cluster):
        for node_id in (await cluster.metadata([])).nodes:
            await alter_broker_configs(cluster, node_id, dict.fromkeys(_THROTTLED_RATES))
    return throttled


def join_numbers(numbers: Iterable[int]) -> str:
    """Return broker ids as one text, with commas."""
    return ",".join(map(str, numbers))


def tell_outcomes(screen: Screen, done: Mapping[TopicPartition, Outcome], well: str) -> int:
    """A line for each partition; the exit code."""
    if screen.as_json:
        rows = [
            {**key._asdict(), **plain(each), "result": well if each.ok else "failed"}
            for key, each in done.items()
        ]
        screen.document({"partitions": rows})
    elif done:
        from ..tables import table

        lines = ((key.topic, str(key.partition), each.error or well) for key, each in done.items())
        screen.show(table(["TOPIC", "PARTITION", "RESULT"], lines))
    return OK if all(each.ok for each in done.values()) else REFUSED
