"""``kohort topics``: creates, shows, changes and deletes topics of any broker."""

from __future__ import annotations

import argparse
import asyncio
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ._screen import OK, REFUSED, Screen, plain
from .commands import add_commands, reader, run_program, whole

if TYPE_CHECKING:
    from ..client import Cluster
    from ..protocol import TopicPartition
    from .results import Outcome

_CLIENT: Final = "kohort-topics"
#: DescribeConfigs: types of resources, and the source of configs that were set on the topic itself.
_TOPIC, _BROKER = 2, 4
_SET_ON_TOPIC = 1
#: Operations of IncrementalAlterConfigs.
_SET, _DELETE = 0, 1
_MOST_PARTITIONS: Final = 2**31 - 1
_MOST_REPLICAS: Final = 2**15 - 1
_SOURCES: Final = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "broker, file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of ``list``."""

    topic: str
    topic_id: uuid.UUID | None
    partitions: int
    replication_factor: int
    internal: bool


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of a topic; ``leader`` and offsets are None while there is no leader."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    start_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class Config:
    """A config of a topic; ``value`` is None where it is secret. ``source`` says where it was set."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Described:
    """A topic, with the configs that were set on it, or with all."""

    topic: str
    topic_id: uuid.UUID | None
    internal: bool
    replication_factor: int
    configs: list[Config]
    partitions: list[Partition]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort topics`` its commands."""
    command = add_commands(parser)
    listing = command("list", "all topics, with partitions and replicas")
    listing.add_argument("--internal", action="store_true", help="with topics of the brokers' own")
    describe = command("describe", "topics: configs, and leader, replicas and offsets of each partition")
    _add_topics(describe)
    describe.add_argument(
        "--all-configs", action="store_true", help="every config, not only those set on the topic"
    )
    create = command("create", "make topics")
    _add_topics(create)
    create.add_argument(
        "--partitions",
        metavar="N",
        type=_partitions,
        default=-1,
        help="(default: the broker's num.partitions)",
    )
    create.add_argument(
        "--replication-factor",
        metavar="N",
        type=_replicas,
        default=-1,
        help="copies of each partition (default: the broker's default.replication.factor)",
    )
    _add_configs(create)
    create.add_argument(
        "--if-not-exists", action="store_true", help="a topic that exists is left as it is, and no error"
    )
    alter = command("alter", "give a topic more partitions, set configs, or take them back", "topic")
    alter.add_argument(
        "--partitions",
        metavar="N",
        type=_partitions,
        help="so many in all, more than now; keys may go to other partitions than before",
    )
    _add_configs(alter)
    alter.add_argument(
        "--delete-config",
        dest="deleted",
        metavar="KEY",
        action="append",
        default=[],
        help="go back to the broker's value; may be given many times",
    )
    alter.add_argument("--dry-run", action="store_true", help="only ask the broker whether it would")
    delete = command("delete", "delete topics with all their records; asks first on a terminal")
    _add_topics(delete)
    delete.add_argument("--yes", "-y", action="store_true", help="do not ask")
    delete.add_argument("--if-exists", action="store_true", help="a topic that is not there is no error")


def _add_topics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+")


def _add_configs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        dest="configs",
        metavar="KEY=VALUE",
        action="append",
        type=reader(_config),
        default=[],
        help="a config by Kafka's name, such as retention.ms=3600000; may be given many times",
    )


def _partitions(text: str) -> int:
    return min(whole(text, 1), _MOST_PARTITIONS)


def _replicas(text: str) -> int:
    return min(whole(text, 1), _MOST_REPLICAS)


def _config(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise ValueError(f"{text!r} is no config: give KEY=VALUE, such as cleanup.policy=compact")
    return name.strip(), value.strip()


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort topics", lambda: asyncio.run(_perform(options)))


async def _perform(options: argparse.Namespace) -> int:
    from ..client import ConfigError
    from ._requests import connected

    if options.action == "alter" and not (options.partitions or options.configs or options.deleted):
        raise ConfigError("nothing to change: give --partitions, --config or --delete-config")
    screen = Screen(as_json=options.json)
    async with connected(options, _CLIENT) as cluster:
        return await _ACTIONS[options.action](cluster, options, screen)


async def _list(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    rows = [row for row in await list_topics(cluster) if options.internal or not row.internal]
    if screen.as_json:
        screen.document({"topics": _named(rows)})
    elif rows:
        screen.show(_listing(rows))
    else:
        screen.remark("no topics")
    return OK


async def _describe(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    found = await describe_topics(cluster, options.topics, all_configs=options.all_configs)
    if screen.as_json:
        screen.document({"topics": _named(found)})
    else:
        screen.show(*(part for each in found for part in _description(each)))
    return OK


async def _create(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ..protocol import ErrorCode, KafkaError
    from ._requests import outcome

    done: dict[str, Outcome] = {}
    there = set()
    for topic in dict.fromkeys(options.topics):
        try:
            await cluster.create_topics(
                {topic: options.partitions},
                replication_factor=options.replication_factor,
                configs=dict(options.configs),
                if_not_exists=False,
            )
        except KafkaError as error:
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
                there.add(topic)
                done[topic] = outcome(0)
            else:
                done[topic] = outcome(error.code, error.message or "")
        else:
            done[topic] = outcome(0)
    return _tell(screen, done, lambda topic: "exists" if topic in there else "created")


async def _alter(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    changes = {**dict(options.configs), **dict.fromkeys(options.deleted)}
    # ask first: if the broker refuses one of the two, neither is made
    for only_ask in (True,) if options.dry_run else (True, False):
        if changes:
            await alter_configs(cluster, options.topic, changes, only_ask=only_ask)
        if options.partitions:
            await create_partitions(cluster, options.topic, options.partitions, only_ask=only_ask)
    if screen.as_json:
        (found,) = await describe_topics(cluster, [options.topic])
        screen.document(_named([found])[0])
    elif options.dry_run:
        screen.remark(f"topic {options.topic!r} was not changed: the broker would do it")
    else:
        screen.remark(f"topic {options.topic!r} is changed")
    return OK


async def _delete(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ..protocol import ErrorCode, KafkaError
    from ._requests import outcome

    topics = list(dict.fromkeys(options.topics))
    known = {row.topic for row in await list_topics(cluster)}
    there = [topic for topic in topics if topic in known]
    if there and not (options.yes or _agreed(there)):
        screen.remark("nothing was deleted")
        return REFUSED
    done = {}
    for topic in topics:
        code, text = 0, ""
        if topic in known:
            try:
                await cluster.delete_topics([topic])
            except KafkaError as error:
                code, text = error.code, error.message or ""
        elif not options.if_exists:
            code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} does not exist"
        done[topic] = outcome(code, text)
    return _tell(screen, done, lambda topic: "deleted" if topic in known else "does not exist")


def _agreed(topics: Sequence[str]) -> bool:
    """Ask for confirmation on a terminal; a program is taken at its word."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write(f"Delete {', '.join(map(repr, topics))} with all records? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


_ACTIONS: Final = {
    "list": _list,
    "describe": _describe,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}


# --- requests -----------------------------------------------------------------------------------------------


async def topic_rows(cluster: Cluster, topics: Iterable[str] | None) -> list[Any]:
    """Rows of Metadata, by name: of these topics, or all. Raises KafkaError for one that is not there."""
    from ..protocol import ApiKey, ErrorCode, KafkaError
    from ..protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
    from ._errors import advised

    wanted = None if topics is None else [MetadataRequestTopic(name=topic) for topic in dict.fromkeys(topics)]
    body = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    answer = await cluster.retrying(lambda: cluster.request(None, ApiKey.METADATA, body))
    for row in answer.topics:
        if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            text = f"topic {row.name!r} does not exist; `kohort topics list` shows which topics there are"
            raise KafkaError(row.error_code, text)
        if row.error_code and wanted is not None:
            raise advised(row.error_code, f"topic {row.name!r}")
    return sorted((row for row in answer.topics if not row.error_code), key=lambda row: row.name)


def _replication(row: Any) -> int:
    return max((len(partition.replica_nodes) for partition in row.partitions), default=0)


async def list_topics(cluster: Cluster) -> list[Listed]:
    """All topics that this user may describe, by name."""
    return [
        Listed(row.name, row.topic_id, len(row.partitions), _replication(row), row.is_internal)
        for row in await topic_rows(cluster, None)
    ]


async def describe_topics(
    cluster: Cluster, topics: Sequence[str], *, all_configs: bool = False
) -> list[Described]:
    """Topics, in the order given. Raises KafkaError for one that does not exist."""
    from ..client import EARLIEST, LATEST
    from ..protocol import TopicPartition
    from ._requests import log_offsets

    rows = {row.name: row for row in await topic_rows(cluster, topics)}
    places = [
        TopicPartition(name, each.partition_index) for name, row in rows.items() for each in row.partitions
    ]
    starts, ends, configs = await asyncio.gather(
        log_offsets(cluster, places, EARLIEST),
        log_offsets(cluster, places, LATEST),
        topic_configs(cluster, rows, all_configs=all_configs),
    )
    return [
        Described(
            name,
            rows[name].topic_id,
            rows[name].is_internal,
            _replication(rows[name]),
            configs[name],
            [_partition(name, each, starts, ends) for each in _by_number(rows[name].partitions)],
        )
        for name in dict.fromkeys(topics)
    ]


def _by_number(partitions: Iterable[Any]) -> list[Any]:
    return sorted(partitions, key=lambda each: each.partition_index)


def _partition(
    topic: str, row: Any, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Partition:
    from ..protocol import TopicPartition

    place = TopicPartition(topic, row.partition_index)
    return Partition(
        row.partition_index,
        None if row.leader_id < 0 else row.leader_id,
        row.leader_epoch,
        list(row.replica_nodes),
        list(row.isr_nodes),
        starts.get(place),
        ends.get(place),
    )


async def topic_configs(
    cluster: Cluster, topics: Iterable[str], *, all_configs: bool
) -> dict[str, list[Config]]:
    from ..protocol import ApiKey, KafkaError
    from ..protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    body = DescribeConfigsRequest([DescribeConfigsResource(_TOPIC, topic, None) for topic in topics])

    async def attempt() -> dict[str, list[Config]]:
        found = {}
        for row in (await cluster.request(None, ApiKey.DESCRIBE_CONFIGS, body)).results:
            if row.error_code:
                raise KafkaError(
                    row.error_code, row.error_message or f"configs of topic {row.resource_name!r}"
                )
            found[row.resource_name] = [
                Config(one.name, one.value, _SOURCES.get(one.config_source, "unknown"))
                for one in sorted(row.configs, key=lambda one: one.name)
                if all_configs or one.config_source == _SET_ON_TOPIC
            ]
        return found

    return await cluster.retrying(attempt)


async def alter_configs(
    cluster: Cluster, topic: str, changes: Mapping[str, str | None], *, only_ask: bool = False
) -> None:
    """Set configs of a topic; None restores the broker's value. Raises KafkaError, and then sets none."""
    await topic_rows(cluster, [topic])
    await _set_configs(cluster, None, (_TOPIC, topic), changes, only_ask=only_ask)


async def alter_broker_configs(cluster: Cluster, node_id: int, changes: Mapping[str, str | None]) -> None:
    """Set configs of one broker; see ``alter_configs``."""
    await _set_configs(cluster, node_id, (_BROKER, str(node_id)), changes)


async def _set_configs(
    cluster: Cluster,
    node_id: int | None,
    resource: tuple[int, str],
    changes: Mapping[str, str | None],
    *,
    only_ask: bool = False,
) -> None:
    """Set configs at a broker, or at the controller (None)."""
    from ..client.requests import controller
    from ..protocol import ApiKey, KafkaError
    from ..protocol.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    rows = [AlterableConfig(name, _DELETE if to is None else _SET, to) for name, to in changes.items()]
    body = IncrementalAlterConfigsRequest([AlterConfigsResource(*resource, rows)], only_ask)

    async def attempt() -> None:
        node = await controller(cluster) if node_id is None else node_id
        answer = await cluster.request(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, body)
        for row in answer.responses:
            if row.error_code:
                raise KafkaError(row.error_code, row.error_message or f"configs of {resource[1]!r}")

    await cluster.retrying(attempt)


async def create_partitions(cluster: Cluster, topic: str, count: int, *, only_ask: bool = False) -> None:
    """Increase a topic's partitions to ``count``, and wait until they have leaders. Raises KafkaError."""
    from ..client.requests import controller
    from ..protocol import ApiKey, ErrorCode, KafkaError
    from ..protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

    await topic_rows(cluster, [topic])
    rows = [CreatePartitionsTopic(topic, count, None)]
    body = CreatePartitionsRequest(rows, cluster.request_timeout_ms, only_ask)

    async def attempt() -> None:
        answer = await cluster.request(await controller(cluster), ApiKey.CREATE_PARTITIONS, body)
        for row in answer.results:
            if row.error_code:
                raise KafkaError(row.error_code, row.error_message or f"partitions of topic {topic!r}")

    async def wait() -> None:
        known = await cluster.metadata([topic])
        led = [place for place in known.partitions(topic) if known.leader(place) is not None]
        if len(led) < count:
            text = f"new partitions of topic {topic!r} are still being set up"
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, text)

    await cluster.retrying(attempt)
    if not only_ask:
        await cluster.retrying(wait)


# --- what is shown ------------------------------------------------------------------------------------------


def _named(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows as JSON has them, with ids as text."""
    return [{**plain(row), "topic_id": None if row.topic_id is None else str(row.topic_id)} for row in rows]


def _tell(screen: Screen, done: Mapping[str, Outcome], well: Any) -> int:
    """Print a line for each topic, ``well`` where it succeeded; return the exit code."""
    if screen.as_json:
        rows = [{"topic": t, **plain(o), "result": well(t) if o.ok else "failed"} for t, o in done.items()]
        screen.document({"topics": rows})
    else:
        from .tables import table

        screen.show(table(["TOPIC", "RESULT"], ((t, o.error or well(t)) for t, o in done.items())))
    return OK if all(each.ok for each in done.values()) else REFUSED


def _listing(rows: Iterable[Listed]) -> Any:
    from .tables import table

    return table(
        ["TOPIC", "PARTITIONS", "REPLICATION", "ID"],
        ((row.topic, row.partitions, row.replication_factor, row.topic_id) for row in rows),
    )


def _description(found: Described) -> list[Any]:
    from .tables import pairs, table

    ends = [each.end_offset for each in found.partitions]
    starts = [each.start_offset for each in found.partitions]
    whole_log = not (None in ends or None in starts)
    head: list[tuple[str, object]] = [
        ("topic", found.topic),
        ("id", found.topic_id),
        ("partitions", len(found.partitions)),
        ("replication factor", found.replication_factor),
        ("offsets in the log", sum(ends) - sum(starts) if whole_log else None),  # type: ignore[arg-type]
        *([("internal", "yes")] if found.internal else []),
    ]
    parts: list[Any] = [pairs(head)]
    if found.configs:
        parts.append(
            table(["CONFIG", "VALUE", "SET BY"], ((c.name, c.value, c.source) for c in found.configs))
        )
    rows = (
        (
            each.partition,
            "none" if each.leader is None else f"node {each.leader}",
            ",".join(map(str, each.replicas)),
            ",".join(map(str, each.in_sync)),
            each.start_offset,
            each.end_offset,
        )
        for each in found.partitions
    )
    return [*parts, table(["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END"], rows)]
