"""``kohort users``: SCRAM users of running brokers of any make. ``kohort.cli`` sends those of a data folder
elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Final

from ...settings import SettingsError, read_secret
from ..commands import add_commands, run_program
from ..connection import NoSecret
from ..screen import OK, REFUSED, Screen, ask_agreement

if TYPE_CHECKING:
    from ...client import Cluster

_CLIENT: Final = "kohort-users"
_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
#: The least and the most iterations, as Apache Kafka allows them.
_LEAST, _MOST = 4_096, 16_384


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort users`` its commands."""
    command = add_commands(parser)
    listing = command("list", "users and their mechanisms")
    listing.add_argument("users", metavar="USER", nargs="*", help="(default: all)")
    add = command("add", "make a user, or give one another password; it is asked for, or read", "user")
    secret = add.add_mutually_exclusive_group()
    secret.add_argument("--password-file", metavar="FILE", help="a file that holds the user's password")
    secret.add_argument("--password-env", metavar="NAME", help="a variable that holds it")
    add.add_argument("--password", action=NoSecret, help=argparse.SUPPRESS)
    add.add_argument("--iterations", metavar="N", type=int, default=_LEAST, help="(default: %(default)s)")
    remove = command("remove", "take a user's credentials away; asks first on a terminal", "user")
    remove.add_argument("--yes", "-y", action="store_true", help="do not ask")
    for action in (add, remove):
        action.add_argument("--mechanism", choices=_MECHANISMS, help="only this one (default: each)")
        action.add_argument("--dry-run", action="store_true", help="only say what would be done")
    for action in (add, remove, listing):
        place = action.add_argument_group("brokers that are stopped").add_mutually_exclusive_group()
        place.add_argument("--data", metavar="DIR", help="data folder of a kohort broker that is stopped")
        place.add_argument(
            "--settings",
            metavar="FILE",
            dest="settings_file",
            help="settings of a broker of a cluster: its users are in ZooKeeper, whether brokers run or not",
        )
        action.add_argument(
            "--node-id", type=int, default=1, help="node.id of the data folder (default: %(default)s)"
        )


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort users", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ...client import ConfigError
    from ..connection import open_cluster

    screen = Screen(as_json=options.json)
    password = ""
    if options.action == "add":
        if not options.user or not _LEAST <= options.iterations <= _MOST:
            raise ConfigError(f"a user has a name, and --iterations is {_LEAST} to {_MOST}")
        if not options.dry_run:
            try:
                password = read_secret(
                    f"the password of {options.user}",
                    file=options.password_file,
                    variable=options.password_env,
                )
            except SettingsError as error:
                raise ConfigError(str(error)) from None
    async with open_cluster(options, _CLIENT) as cluster:
        if options.action == "add":
            return await _add_user(cluster, options, password, screen)
        return await (_remove_user if options.action == "remove" else _list_users)(cluster, options, screen)


async def _list_users(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from .users import list_users

    found = await list_users(cluster, options.users or None)
    missing = [name for name in dict.fromkeys(options.users) if name not in {each.user for each in found}]
    if screen.as_json:
        screen.document({"users": found})
    elif found:
        from ..tables import table

        rows = ((each.user, one.mechanism, one.iterations) for each in found for one in each.mechanisms)
        screen.show(table(["USER", "MECHANISM", "ITERATIONS"], rows))
    elif not missing:
        screen.remark("no users")
    if missing:
        screen.remark(f"no credentials: {', '.join(map(repr, missing))}")
    return REFUSED if missing else OK


async def _add_user(cluster: Cluster, options: argparse.Namespace, password: str, screen: Screen) -> int:
    from .users import list_users, set_password

    mechanisms = [options.mechanism] if options.mechanism else list(_MECHANISMS)
    if options.dry_run:
        there = await list_users(cluster, [options.user])
        has = {one.mechanism for each in there for one in each.mechanisms}
        words = {each: "would be replaced" if each in has else "would be made" for each in mechanisms}
    else:
        await set_password(cluster, options.user, password, mechanisms, options.iterations)
        words = dict.fromkeys(mechanisms, "can log in")
    return _report(screen, options.user, words)


async def _remove_user(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ...protocol import ErrorCode, KafkaError
    from .users import list_users, remove_credentials

    there = await list_users(cluster, [options.user])
    mechanisms = [
        one.mechanism
        for each in there
        for one in each.mechanisms
        if options.mechanism in (None, one.mechanism)
    ]
    if not mechanisms:
        what = f" for {options.mechanism}" if options.mechanism else ""
        words = f"user {options.user!r} has no credential{what}; `kohort users list` shows who has"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, words)
    if options.dry_run:
        return _report(screen, options.user, dict.fromkeys(mechanisms, "would be removed"))
    question = f"Remove {', '.join(mechanisms)} of {options.user!r}?"
    if not (options.yes or ask_agreement(question)):
        screen.remark("nothing is changed")
        return REFUSED
    await remove_credentials(cluster, options.user, mechanisms)
    return _report(screen, options.user, dict.fromkeys(mechanisms, "removed"))


def _report(screen: Screen, user: str, words: dict[str, str]) -> int:
    rows = [{"user": user, "mechanism": each, "result": result} for each, result in words.items()]
    if screen.as_json:
        screen.document({"users": rows})
    else:
        from ..tables import table

        screen.show(table(["USER", "MECHANISM", "RESULT"], (list(row.values()) for row in rows)))
    return OK
