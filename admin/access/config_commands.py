"""``kohort configs``: shows, sets and deletes configs of topics, groups, brokers and client metrics."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .. import notation
from ..commands import add_commands, reader, run_program
from ..screen import OK, REFUSED, Screen, plain

if TYPE_CHECKING:
    from ...client import Cluster
    from ..errors import Outcome
    from .configs import ConfiguredResource, ConfigValue

_CLIENT: Final = "kohort-configs"
#: Similarity (0 to 1) from which an unknown name is taken for a misspelled one.
_SLIP: Final = 0.8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort configs`` its commands."""
    command = add_commands(parser)
    listing = command("list", "configs that are set, of all resources or of those that are named")
    listing.add_argument("--all", action="store_true", help="every config, wherever its value comes from")
    change = command("set", "set configs of topics, groups, brokers or client metrics")
    change.add_argument("configs", metavar="KEY=VALUE", nargs="*", type=reader(notation.config_pair))
    change.add_argument(
        "--from-file",
        dest="files",
        metavar="KEY=FILE",
        action="append",
        default=[],
        type=reader(notation.config_pair),
        help="a config whose value is the text of a file, as secrets are to be; may be given many times",
    )
    delete = command("delete", "go back to what a topic, group or broker has without a config")
    delete.add_argument("names", metavar="KEY", nargs="+")
    for action in (change, delete):
        action.add_argument("--dry-run", action="store_true", help="only ask the brokers whether they would")
    for action in (listing, change, delete):
        _add_resources(action)


def _add_resources(parser: argparse.ArgumentParser) -> None:
    for option, metavar, words in (
        ("--topic", "NAME", "a topic; may be given many times, as all of these"),
        ("--group", "NAME", "a group"),
        ("--broker", "N", "a broker, by its node id"),
        ("--client-metrics", "NAME", "a subscription to metrics of clients (Apache Kafka)"),
    ):
        parser.add_argument(
            option,
            dest=option[2:].replace("-", "_"),
            metavar=metavar,
            action="append",
            default=[],
            type=reader(_resource_name),
            help=words,
        )
    parser.add_argument("--all-brokers", action="store_true", help="the default of all brokers")


def _resource_name(text: str) -> str:
    if not text:
        raise ValueError("a name is not empty")
    return text


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort configs", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ...client import ConfigError
    from ..connection import open_cluster

    screen = Screen(as_json=options.json)
    resources = _resources_of(options)
    changes: dict[str, str | None] = {}
    if options.action != "list":
        if not resources:
            raise ConfigError("of what? give --topic, --group, --broker, --all-brokers or --client-metrics")
        changes = _changes_of(options)
    async with open_cluster(options, _CLIENT) as cluster:
        if options.action == "list":
            return await _list_configs(cluster, resources, options, screen)
        return await _change_configs(cluster, resources, changes, options, screen)


def _resources_of(options: argparse.Namespace) -> list[ConfiguredResource]:
    """Resources that are named. Raises ConfigError for a broker that has no number."""
    from ...client import ConfigError
    from .configs import ConfiguredResource

    named = {
        "topic": options.topic,
        "group": options.group,
        "broker": options.broker,
        "client-metrics": options.client_metrics,
    }
    found = [ConfiguredResource(kind, name) for kind, names in named.items() for name in dict.fromkeys(names)]
    if wrong := [name for name in options.broker if not (name.isascii() and name.isdigit())]:
        raise ConfigError(f"{wrong[0]!r} is no node id of a broker; --all-brokers is their default")
    return [*found, ConfiguredResource("broker", "")] if options.all_brokers else found


def _changes_of(options: argparse.Namespace) -> dict[str, str | None]:
    """What is to be set, or deleted (None). Raises ConfigError."""
    from ...client import ConfigError

    if options.action == "delete":
        return dict.fromkeys(options.names)
    changes: dict[str, str | None] = dict(options.configs)
    for name, path in options.files:
        try:
            changes[name] = Path(path).read_text("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise ConfigError(f"{path} is no text in UTF-8") from None
    if not changes:
        raise ConfigError("nothing to set: give KEY=VALUE, or --from-file")
    if len(changes) < len(options.configs) + len(options.files):
        raise ConfigError("a config is given twice")
    return changes


async def _list_configs(
    cluster: Cluster, resources: list[ConfiguredResource], options: argparse.Namespace, screen: Screen
) -> int:
    from .configs import describe_configs, list_config_resources

    found = await describe_configs(cluster, resources or await list_config_resources(cluster))
    rows = [
        (resource, each) for resource, values in found.items() for each in values if options.all or each.own
    ]
    if screen.as_json:
        shown = [{"resource": of.kind, "resource_name": of.name, **plain(each)} for of, each in rows]
        screen.document({"configs": shown})
    elif rows:
        from ..tables import table

        cells = ((str(of), each.name, _value_text(each), each.source) for of, each in rows)
        screen.show(table(["OF", "CONFIG", "VALUE", "SET BY"], cells))
    else:
        screen.remark("no config is set; --all shows every value")
    return OK


def _value_text(config: ConfigValue) -> str | None:
    return "(hidden)" if config.sensitive and config.value is None else config.value


async def _change_configs(
    cluster: Cluster,
    resources: list[ConfiguredResource],
    changes: dict[str, str | None],
    options: argparse.Namespace,
    screen: Screen,
) -> int:
    """Change each resource for itself: one that is refused leaves the others as they are to be."""
    from ...protocol import KafkaError
    from ..errors import outcome_of
    from .configs import alter_configs

    # of a resource and all its configs: either all are changed, or none
    done: list[tuple[ConfiguredResource, Outcome]] = []
    for resource in resources:
        try:
            await _check_names(cluster, resource, changes)
            await alter_configs(cluster, resource, changes, only_ask=options.dry_run)
        except KafkaError as error:
            done.append((resource, outcome_of(error.code, error.message or "")))
        else:
            done.append((resource, outcome_of(0)))
    words = {name: "deleted" if value is None else "set" for name, value in changes.items()}
    if options.dry_run:
        words = {name: f"would be {each}" for name, each in words.items()}
    rows = [(of, name, outcome, words[name]) for of, outcome in done for name in changes]
    if screen.as_json:
        shown = [
            {
                "resource": of.kind,
                "resource_name": of.name,
                "name": name,
                **plain(outcome),
                "result": result if outcome.ok else "failed",
            }
            for of, name, outcome, result in rows
        ]
        screen.document({"configs": shown})
    else:
        from ..tables import table

        cells = ((str(of), name, outcome.error or result) for of, name, outcome, result in rows)
        screen.show(table(["OF", "CONFIG", "RESULT"], cells))
    return OK if all(outcome.ok for _, outcome in done) else REFUSED


async def _check_names(cluster: Cluster, resource: ConfiguredResource, names: Collection[str]) -> None:
    """Raises KafkaError for a name that is nearly one of the resource's: Apache Kafka takes any name for a
    broker. What may not be described is left to the brokers.
    """
    import difflib

    from ...protocol import ErrorCode, KafkaError
    from .configs import ConfiguredResource, describe_configs

    model = resource
    if resource == ("broker", ""):
        # the default has what is set alone; a broker has all names
        nodes = (await cluster.metadata([])).nodes
        model = ConfiguredResource("broker", str(min(nodes))) if nodes else resource
    try:
        found = await describe_configs(cluster, [model])
    except KafkaError as error:
        if error.code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            return
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return
        raise
    known = {each.name for values in found.values() for each in values}
    for name in names:
        near = [] if name in known else difflib.get_close_matches(name, known, n=1, cutoff=_SLIP)
        if near:
            words = f"{resource.kind} has no config {name!r}, did you mean {near[0]}?"
            raise KafkaError(ErrorCode.INVALID_CONFIG, words)
