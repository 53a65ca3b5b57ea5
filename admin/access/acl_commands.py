"""``kohort acls``: shows the access rules of a cluster, adds some and removes some."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Final

from ..commands import add_commands, reader, run_program
from ..screen import OK, REFUSED, Screen, ask_agreement, plain
from .acl_words import CLUSTER_NAME, OPERATIONS_ON, read_operation, read_principal

if TYPE_CHECKING:
    from ...client import Cluster
    from ...protocol import JsonObject
    from ..errors import Outcome
    from .acls import AclQuery, AclRule

_CLIENT: Final = "kohort-acls"

#: What producers and consumers need, as Apache Kafka's kafka-acls has it.
_PRODUCER: Final = {"topic": ("Write", "Describe", "Create"), "transactional-id": ("Write", "Describe")}
_CONSUMER: Final = {"topic": ("Read", "Describe"), "group": ("Read",)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort acls`` its commands."""
    command = add_commands(parser)
    listing = command("list", "the rules, or those for a principal, a topic, a group")
    _add_filters(listing)
    add = command("add", "let principals do something, or deny it to them")
    _add_principals(add)
    _add_resources(add)
    add.add_argument(
        "--dry-run", action="store_true", help="only show the rules, and which there are already"
    )
    remove = command("remove", "take rules away; shows them and asks first on a terminal")
    _add_filters(remove)
    remove.add_argument("--dry-run", action="store_true", help="only show the rules that would go")
    remove.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _add_principals(parser: argparse.ArgumentParser) -> None:
    for option, words in (("--allow", "who may"), ("--deny", "who may not, whatever else allows it")):
        parser.add_argument(
            option,
            metavar="PRINCIPAL",
            action="append",
            type=reader(read_principal),
            default=[],
            help=f"{words}: User:NAME, or the name alone; '*' is everyone. May be given many times",
        )
    _add_operations(parser)
    parser.add_argument(
        "--producer",
        action="store_true",
        help="the operations of producers: Write, Describe, Create on topics; Write, Describe on "
        "transactional ids",
    )
    parser.add_argument(
        "--consumer",
        action="store_true",
        help="the operations of consumers: Read, Describe on topics; Read on groups",
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--principal",
        dest="principals",
        metavar="PRINCIPAL",
        action="append",
        type=reader(read_principal),
        default=[],
        help="rules for it, and no others: User:NAME, or the name alone; may be given many times",
    )
    parser.add_argument("--permission", type=str.title, choices=("Allow", "Deny"), help="allow or deny")
    _add_operations(parser)
    _add_resources(parser)


def _add_operations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operation",
        dest="operations",
        metavar="OPERATION,...",
        type=reader(lambda text: [read_operation(each) for each in text.split(",")]),
        default=[],
        help="Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs, ClusterAction, "
        "IdempotentWrite, All",
    )


def _add_resources(parser: argparse.ArgumentParser) -> None:
    for option, words in (
        ("--topic", "a topic; '*' is every one. May be given many times, as all of these"),
        ("--group", "a group"),
        ("--transactional-id", "a transactional id"),
        ("--user", "a user whose delegation tokens it is about"),
    ):
        parser.add_argument(
            option,
            dest=option[2:].replace("-", "_"),
            metavar="NAME",
            action="append",
            type=reader(_resource_name),
            default=[],
            help=words,
        )
    parser.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument("--prefixed", action="store_true", help="each NAME is the beginning of names")
    parser.add_argument(
        "--host",
        dest="hosts",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="an address as the brokers see it (default: every one); may be given many times",
    )


def _resource_name(text: str) -> str:
    if not text:
        raise ValueError("a name is not empty: '*' is every one")
    return text


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort acls", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ..connection import open_cluster

    screen = Screen(as_json=options.json)
    if options.action == "add":
        rules = _rules_of(options)
        async with open_cluster(options, _CLIENT) as cluster:
            return await _add_rules(cluster, rules, options, screen)
    filters = _filters_of(options)
    async with open_cluster(options, _CLIENT) as cluster:
        return await _ACTIONS[options.action](cluster, filters, options, screen)


async def _list_rules(
    cluster: Cluster, filters: list[AclQuery], _: argparse.Namespace, screen: Screen
) -> int:
    from .acls import list_acls

    rules = await list_acls(cluster, filters)
    if screen.as_json:
        screen.document({"rules": rules})
    elif rules:
        screen.show(_rule_table((rule, None) for rule in rules))
    else:
        screen.remark("no rules")
    return OK


async def _remove_rules(
    cluster: Cluster, filters: list[AclQuery], options: argparse.Namespace, screen: Screen
) -> int:
    from ..tables import clean
    from .acls import list_acls, remove_acls

    rules = await list_acls(cluster, filters)
    if not rules or options.dry_run:
        _report_rules(screen, [(rule, None, "would be removed") for rule in rules])
        screen.remark("nothing is changed" if rules else "no such rule")
        return OK if rules else REFUSED
    if not options.yes:
        asked = "\n".join(clean(str(rule)) for rule in rules)
        if not ask_agreement(f"{asked}\nRemove {'this rule' if len(rules) == 1 else 'these rules'}?"):
            screen.remark("nothing is changed")
            return REFUSED
    done = await remove_acls(cluster, rules)
    return _report_rules(screen, [(rule, outcome, "removed") for rule, outcome in done])


async def _add_rules(
    cluster: Cluster, rules: list[AclRule], options: argparse.Namespace, screen: Screen
) -> int:
    from .acls import AclQuery, add_acls, list_acls

    if options.dry_run:
        filters = {AclQuery(rule.resource, rule.name, rule.pattern) for rule in rules}
        there = set(await list_acls(cluster, filters))
        words = ((rule, None, "exists" if rule in there else "would be added") for rule in rules)
        _report_rules(screen, list(words))
        screen.remark("nothing is changed")
        return OK
    done = await add_acls(cluster, rules)
    return _report_rules(screen, [(rule, outcome, "added") for rule, outcome in done])


_ACTIONS: Final = {"list": _list_rules, "remove": _remove_rules}


# --- what was asked for -------------------------------------------------------------------------------------


def _resources_of(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Types and names. ``--cluster`` has the one name there is."""
    named = {
        "topic": options.topic,
        "group": options.group,
        "transactional-id": options.transactional_id,
        "user": options.user,
    }
    found = [(kind, name) for kind, names in named.items() for name in dict.fromkeys(names)]
    return [*found, ("cluster", CLUSTER_NAME)] if options.cluster else found


def _rules_of(options: argparse.Namespace) -> list[AclRule]:
    """The rules of ``kohort acls add``. Raises ConfigError."""
    from ...client import ConfigError
    from .acls import AclRule

    resources = _resources_of(options)
    if not (options.allow or options.deny):
        raise ConfigError("who? give --allow or --deny, such as --allow User:billing")
    if not (options.operations or options.producer or options.consumer):
        raise ConfigError("what? give --operation, --producer or --consumer")
    if not resources:
        raise ConfigError("on what? give --topic, --group, --transactional-id, --user or --cluster")
    if options.consumer and not (options.topic and options.group):
        raise ConfigError("--consumer needs --topic and --group")
    if options.producer and not options.topic:
        raise ConfigError("--producer needs --topic")
    if options.prefixed and options.cluster:
        raise ConfigError("the cluster has one name: --prefixed is for the others")
    who = [("Allow", each) for each in options.allow] + [("Deny", each) for each in options.deny]
    rules: dict[AclRule, None] = {}
    for (kind, name), (permission, principal), host in product(resources, who, options.hosts or ["*"]):
        pattern = "prefixed" if options.prefixed else "literal"
        for operation in _operations_on(kind, options):
            rules[AclRule(principal, permission, operation, kind, name, pattern, host)] = None
    return list(rules)


def _operations_on(kind: str, options: argparse.Namespace) -> list[str]:
    """The operations for resources of a type. Raises ConfigError if there is none, or one does not exist."""
    from ...client import ConfigError

    known = OPERATIONS_ON[kind]
    for each in options.operations:
        if each != "All" and each not in known:
            raise ConfigError(f"{each} is no operation on a {kind}: give {', '.join(known)} or All")
    chosen = list(options.operations)
    for given, has in ((options.producer, _PRODUCER), (options.consumer, _CONSUMER)):
        if given:
            chosen += has.get(kind, ())
    if not chosen:
        words = "--producer" if options.producer else "--consumer"
        raise ConfigError(f"{words} says nothing of a {kind}: leave it out, or add --operation")
    return list(dict.fromkeys(chosen))


def _filters_of(options: argparse.Namespace) -> list[AclQuery]:
    """The filters of ``list`` and ``remove``: one for each resource that is named. Raises ConfigError."""
    from ...client import ConfigError
    from .acls import AclQuery

    resources = _resources_of(options)
    if options.action == "remove" and not (resources or options.principals):
        raise ConfigError("which rules? give --principal, or what they are about: --topic, --group ...")
    if options.prefixed and not resources:
        raise ConfigError("--prefixed needs a name: --topic, --group, --transactional-id or --user")
    # to look at, all that hold for the name; to remove, those of this very name
    pattern = "prefixed" if options.prefixed else "match" if options.action == "list" else "literal"
    chosen = options.principals, options.operations, options.permission, options.hosts
    if not resources:
        return [AclQuery(None, None, "any", *chosen)]
    return [AclQuery(kind, name, pattern, *chosen) for kind, name in resources]


# --- what is shown ------------------------------------------------------------------------------------------


def _report_rules(screen: Screen, rows: list[tuple[AclRule, Outcome | None, str]]) -> int:
    """Print a line for each rule: what was done (or would be, without an outcome); the exit code."""
    results = [
        (rule, outcome, words if outcome is None or outcome.ok else "failed") for rule, outcome, words in rows
    ]
    if screen.as_json:
        screen.document({"rules": [_to_json(*row) for row in results]})
    elif rows:
        shown = ((rule, outcome.error or result if outcome else result) for rule, outcome, result in results)
        screen.show(_rule_table(shown, "RESULT"))
    return REFUSED if any(outcome and not outcome.ok for _, outcome, _ in rows) else OK


def _to_json(rule: AclRule, outcome: Outcome | None, result: str) -> JsonObject:
    return {**plain(rule), **(plain(outcome) if outcome else {}), "result": result}


def _rule_table(rows: Iterable[tuple[AclRule, str | None]], *more: str) -> object:
    from ..tables import table

    headings = ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN", "HOST", *more]
    return table(headings, ((*rule, result)[: len(headings)] for rule, result in rows))
