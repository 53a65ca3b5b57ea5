"""``kohort quotas``: shows, sets and removes the quotas of clients."""

from __future__ import annotations

import argparse
import asyncio
import math
from typing import TYPE_CHECKING, Final

from ..commands import add_commands, reader, run_program
from ..screen import OK, Screen

if TYPE_CHECKING:
    from ...client import Cluster

_CLIENT: Final = "kohort-quotas"
#: Kafka's quotas, each with what it limits.
_QUOTAS: Final = {
    "producer_byte_rate": "bytes a second of Produce requests",
    "consumer_byte_rate": "bytes a second of Fetch answers",
    "request_percentage": "percent of the brokers' time",
    "controller_mutation_rate": "partitions made or deleted a second",
    "connection_creation_rate": "connections a second, of an address",
}
_KINDS: Final = ("user", "client-id", "ip")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort quotas`` its commands."""
    command = add_commands(parser)
    listing = command("list", "quotas, all or those that name a user, a client id or an address")
    add = command("set", "set quotas of a user, a client id, both, or an address")
    add.add_argument(
        "quotas",
        metavar="QUOTA=NUMBER",
        nargs="+",
        type=reader(_read_quota),
        help="; ".join(f"{name}: {words}" for name, words in _QUOTAS.items()),
    )
    remove = command("remove", "remove quotas of a user, a client id, both, or an address")
    remove.add_argument(
        "quotas", metavar="QUOTA", nargs="*", type=reader(_quota_name), help="(default: all it has)"
    )
    for action in (add, remove):
        action.add_argument("--dry-run", action="store_true", help="only ask the brokers whether they would")
    for action in (listing, add, remove):
        for kind, words in (("user", "this user"), ("client-id", "this client id"), ("ip", "this address")):
            one = action.add_mutually_exclusive_group()
            one.add_argument(f"--{kind}", metavar="NAME", type=reader(_name), help=words)
            one.add_argument(
                f"--{kind}-default", action="store_true", help="the default of those that have no own"
            )


def _name(text: str) -> str:
    if not text:
        raise ValueError("a name is not empty; the default of all others has an option of its own")
    return text


def _quota_name(text: str) -> str:
    if text not in _QUOTAS:
        import difflib

        near = difflib.get_close_matches(text, _QUOTAS, n=1)
        meant = f", did you mean {near[0]}?" if near else f": give {', '.join(_QUOTAS)}"
        raise ValueError(f"{text!r} is no quota{meant}")
    return text


def _read_quota(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is no quota: give QUOTA=NUMBER, such as producer_byte_rate=1048576")
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{text!r}: a quota is a number above 0; `kohort quotas remove` ends one")
    return _quota_name(name.strip()), number


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort quotas", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ...client import ConfigError
    from ..connection import open_cluster

    screen = Screen(as_json=options.json)
    entity: dict[str, str | None] = {}
    for kind in _KINDS:
        field = kind.replace("-", "_")
        if getattr(options, f"{field}_default"):
            entity[kind] = None
        elif (name := getattr(options, field)) is not None:
            entity[kind] = name
    if options.action != "list":
        if not entity:
            raise ConfigError("whose? give --user, --client-id or --ip, or --user-default and so on")
        if "ip" in entity and len(entity) > 1:
            raise ConfigError("an address has quotas of its own: --ip goes with no other")
    async with open_cluster(options, _CLIENT) as cluster:
        return await _ACTIONS[options.action](cluster, entity, options, screen)


async def _list_quotas(
    cluster: Cluster, entity: dict[str, str | None], _: argparse.Namespace, screen: Screen
) -> int:
    from .quotas import list_quotas

    found = await list_quotas(cluster, entity, exact=False)
    if screen.as_json:
        screen.document({"quotas": found})
    elif found:
        from ..tables import table
        from .quotas import entity_words

        rows = (
            (entity_words(each.entity), key, _number_text(value))
            for each in found
            for key, value in each.quotas.items()
        )
        screen.show(table(["FOR", "QUOTA", "VALUE"], rows))
    else:
        screen.remark("no quotas")
    return OK


async def _set_quotas(
    cluster: Cluster, entity: dict[str, str | None], options: argparse.Namespace, screen: Screen
) -> int:
    from .quotas import alter_quotas

    changes: dict[str, float | None] = dict(options.quotas)
    await alter_quotas(cluster, entity, changes, only_ask=options.dry_run)
    return _report(screen, entity, changes, dry_run=options.dry_run)


async def _remove_quotas(
    cluster: Cluster, entity: dict[str, str | None], options: argparse.Namespace, screen: Screen
) -> int:
    from ...protocol import ErrorCode, KafkaError
    from .quotas import alter_quotas, entity_words, list_quotas

    there = {key for each in await list_quotas(cluster, entity, exact=True) for key in each.quotas}
    wanted = dict.fromkeys(options.quotas or sorted(there))
    if missing := [key for key in wanted if key not in there] or ([] if wanted else ["quota"]):
        words = f"no {', '.join(missing)} is set for {entity_words(entity)}; `kohort quotas list` shows all"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, words)
    await alter_quotas(cluster, entity, wanted, only_ask=options.dry_run)
    return _report(screen, entity, wanted, dry_run=options.dry_run)


_ACTIONS: Final = {"list": _list_quotas, "set": _set_quotas, "remove": _remove_quotas}


def _report(
    screen: Screen, entity: dict[str, str | None], changes: dict[str, float | None], *, dry_run: bool
) -> int:
    done = {key: "removed" if value is None else "set" for key, value in changes.items()}
    results = {key: f"would be {words}" if dry_run else words for key, words in done.items()}
    if screen.as_json:
        told = [{"quota": key, "value": changes[key], "result": results[key]} for key in changes]
        screen.document({"entity": entity, "quotas": told})
    else:
        from ..tables import table
        from .quotas import entity_words

        rows = [
            (entity_words(entity), key, None if value is None else _number_text(value), results[key])
            for key, value in changes.items()
        ]
        screen.show(table(["FOR", "QUOTA", "VALUE", "RESULT"], rows))
    return OK


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)
