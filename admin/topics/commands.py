"""``kohort topics``: creates, shows, changes and deletes topics of any broker."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...protocol import JsonObject
from .. import notation
from ..commands import add_commands, reader, run_program, whole
from ..screen import OK, REFUSED, Screen, ask_agreement, plain
from .record_deletion import add_deletion_arguments, delete_records

if TYPE_CHECKING:
    from ...client import Cluster
    from ..errors import Outcome
    from .requests import DescribedTopic, ListedTopic

_CLIENT: Final = "kohort-topics"
_MOST_PARTITIONS: Final = 2**31 - 1
_MOST_REPLICAS: Final = 2**15 - 1


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
        type=_partition_count,
        default=-1,
        help="(default: the broker's num.partitions)",
    )
    create.add_argument(
        "--replication-factor",
        metavar="N",
        type=_replica_count,
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
        type=_partition_count,
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

    words = "delete the records below an offset or before a time; without --execute the plan is shown"
    add_deletion_arguments(command("delete-records", words))


def _add_topics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+")


def _add_configs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        dest="configs",
        metavar="KEY=VALUE",
        action="append",
        type=reader(notation.config_pair),
        default=[],
        help="a config by Kafka's name, such as retention.ms=3600000; may be given many times",
    )


def _partition_count(text: str) -> int:
    return min(whole(text, 1), _MOST_PARTITIONS)


def _replica_count(text: str) -> int:
    return min(whole(text, 1), _MOST_REPLICAS)


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort topics", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ...client import ConfigError
    from ..connection import open_cluster

    if options.action == "alter" and not (options.partitions or options.configs or options.deleted):
        raise ConfigError("nothing to change: give --partitions, --config or --delete-config")
    screen = Screen(as_json=options.json)
    async with open_cluster(options, _CLIENT) as cluster:
        return await _ACTIONS[options.action](cluster, options, screen)


async def _list_topics(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ..visibility import ask_hidden_topics, hidden_field
    from .requests import list_topics

    rows = [row for row in await list_topics(cluster) if options.internal or not row.internal]
    hidden = await ask_hidden_topics(cluster)
    if screen.as_json:
        screen.document({"topics": _to_rows(rows), **hidden_field(hidden)})
    elif rows:
        screen.show(_topic_table(rows))
    else:
        screen.remark("no topics that this user may see" if hidden else "no topics")
    screen.remark(*hidden)
    return REFUSED if hidden and not rows else OK


async def _describe_topics(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from .requests import describe_topics

    found = await describe_topics(cluster, options.topics, all_configs=options.all_configs)
    if screen.as_json:
        screen.document({"topics": _to_rows(found)})
    else:
        screen.show(*(part for each in found for part in _description_of(each)))
    if unknown := ", ".join(repr(each.topic) for each in found if each.configs is None):
        screen.remark(f"configs of {unknown} are hidden: the right to DESCRIBE_CONFIGS shows them")
    return OK


async def _create_topics(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ...protocol import ErrorCode, KafkaError
    from ..errors import outcome_of

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
                done[topic] = outcome_of(0)
            else:
                done[topic] = outcome_of(error.code, error.message or "")
        else:
            done[topic] = outcome_of(0)
    return _report_outcomes(screen, done, lambda topic: "exists" if topic in there else "created")


async def _alter_topics(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from .requests import alter_configs, create_partitions, describe_topics

    changes = {**dict(options.configs), **dict.fromkeys(options.deleted)}
    # ask first: if the broker refuses one of the two, neither is made
    for only_ask in (True,) if options.dry_run else (True, False):
        if changes:
            await alter_configs(cluster, options.topic, changes, only_ask=only_ask)
        if options.partitions:
            await create_partitions(cluster, options.topic, options.partitions, only_ask=only_ask)
    if screen.as_json:
        (found,) = await describe_topics(cluster, [options.topic])
        screen.document(_to_rows([found])[0])
    elif options.dry_run:
        screen.remark(f"topic {options.topic!r} was not changed: the broker would do it")
    else:
        screen.remark(f"topic {options.topic!r} is changed")
    return OK


async def _delete_topics(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ...protocol import ErrorCode, KafkaError
    from ..errors import outcome_of

    topics = list(dict.fromkeys(options.topics))
    found = await cluster.metadata(topics)
    # the broker also refuses those that this user may not see: it says so when it is asked to delete them
    known = {topic for topic in topics if found.errors.get(topic) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    there = [topic for topic in topics if topic in known]
    question = f"Delete {', '.join(map(repr, there))} with all records?"
    if there and not (options.yes or ask_agreement(question)):
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
        done[topic] = outcome_of(code, text)
    return _report_outcomes(screen, done, lambda topic: "deleted" if topic in known else "does not exist")


_ACTIONS: Final = {
    "list": _list_topics,
    "describe": _describe_topics,
    "create": _create_topics,
    "alter": _alter_topics,
    "delete": _delete_topics,
    "delete-records": delete_records,
}


# --- what is shown ------------------------------------------------------------------------------------------


def _to_rows(rows: Iterable[Any]) -> list[JsonObject]:
    """Rows as JSON has them, with ids as text."""
    return [{**plain(row), "topic_id": None if row.topic_id is None else str(row.topic_id)} for row in rows]


def _report_outcomes(screen: Screen, done: Mapping[str, Outcome], well: Any) -> int:
    """Print a line for each topic, ``well`` where it succeeded; return the exit code."""
    if screen.as_json:
        rows = [{"topic": t, **plain(o), "result": well(t) if o.ok else "failed"} for t, o in done.items()]
        screen.document({"topics": rows})
    else:
        from ..tables import table

        screen.show(table(["TOPIC", "RESULT"], ((t, o.error or well(t)) for t, o in done.items())))
    return OK if all(each.ok for each in done.values()) else REFUSED


def _topic_table(rows: Iterable[ListedTopic]) -> object:
    from ..tables import table

    return table(
        ["TOPIC", "PARTITIONS", "REPLICATION", "ID"],
        ((row.topic, row.partitions, row.replication_factor, row.topic_id) for row in rows),
    )


def _description_of(found: DescribedTopic) -> list[object]:
    from ..tables import pairs, table

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
    parts: list[object] = [pairs(head)]
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
