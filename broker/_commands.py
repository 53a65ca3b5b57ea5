"""``kohort serve-check`` and ``kohort users``: look at a broker's settings, and make its first users."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path

from ..cluster import FolderStore
from ..log import DataFolder
from ..protocol import KohortError
from ._kafka_names import meaningless
from ._live_settings import LiveSettings
from ._settings import broker_settings, given_settings
from .quotas import QuotaTable
from .security._check import check
from .security._scram_users import HASHES, MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential, ScramUsers

OK, WARNED, WRONG_USE = 0, 1, 2


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``kohort serve-check`` besides those of ``kohort broker`` that it shares."""
    parser.add_argument("--strict", action="store_true", help="end with 1 if there is a warning")


def add_users_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``kohort users``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser(
        "add", help="make a user, or give one another password; it is asked for, or read"
    )
    remove = actions.add_parser("remove", help="take a user's credentials away")
    show = actions.add_parser("list", help="users and their mechanisms")
    for action in (add, remove):
        action.add_argument("user")
        action.add_argument("--mechanism", choices=sorted(HASHES), help="only this one (default: each)")
    add.add_argument("--iterations", type=int, default=MIN_ITERATIONS, help="default: %(default)s")
    for action in (add, remove, show):
        action.add_argument(
            "--data", metavar="DIR", required=True, help="data folder of a broker that is stopped"
        )
        action.add_argument("--node-id", type=int, default=1, help="its node.id (default: %(default)s)")


def run_check(options: argparse.Namespace) -> int:
    """Print what the settings mean."""
    users, quotas = ScramUsers(), None
    try:
        given = given_settings(options)
        settings = broker_settings(given)
        if options.data is not None:
            metadata = FolderStore(options.data)
            users.open(metadata.document("scram-users"))
            LiveSettings(settings, metadata.document("settings")).load()
            quotas = metadata.document("client-quotas").load(QuotaTable.parse)
        users.add_in_memory(settings.kohort_scram_users)
        host, port = options.host or "127.0.0.1", options.port or 9092
        parts, warnings = check(settings, users, quotas or QuotaTable(), host, port, options.metrics_port)
    except KohortError as error:
        print(f"kohort serve-check: {error}", file=sys.stderr)
        return WRONG_USE
    if ignored := meaningless(given):
        warnings.append(f"settings of Apache Kafka that mean nothing here: {', '.join(ignored)}")
    for part in parts:
        print(part.title)
        for line in part.lines:
            print(f"  {line}")
    print("warnings" if warnings else "no warnings")
    for warning in warnings:
        print(f"  {warning}")
    return WARNED if warnings and options.strict else OK


def run_users(options: argparse.Namespace) -> int:
    """Change the users of a data folder that no broker uses."""
    try:
        if not Path(options.data).is_dir() and options.action != "add":
            raise KohortError(f"there is no folder {options.data}: give the data folder of a broker")
        folder = DataFolder.open(options.data, node_id=options.node_id)
        try:
            users = ScramUsers()
            users.open(FolderStore(options.data).document("scram-users"))
            if options.action == "add":
                _add(users, options)
            elif options.action == "remove":
                _remove(users, options)
            else:
                for user, mechanism, credential in users.all():
                    print(f"{user}\t{mechanism}\t{credential.iterations} iterations")
        finally:
            folder.close(clean=folder.clean_start)
    except (KohortError, OSError) as error:
        print(f"kohort users: {error}", file=sys.stderr)
        return WRONG_USE
    return OK


def _add(users: ScramUsers, options: argparse.Namespace) -> None:
    if not options.user or not MIN_ITERATIONS <= options.iterations <= MAX_ITERATIONS:
        raise KohortError(f"a user has a name, and --iterations is {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    if sys.stdin.isatty():
        password = getpass.getpass(f"password of {options.user}: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise KohortError("the password is empty: type it, or give it as a line on standard input")
    made = {
        (mechanism, options.user): ScramCredential.of_password(mechanism, password, options.iterations)
        for mechanism in _chosen(options)
    }
    users.replace({**users.copy(), **made})


def _remove(users: ScramUsers, options: argparse.Namespace) -> None:
    gone = {(mechanism, options.user) for mechanism in _chosen(options)}
    left = {key: credential for key, credential in users.copy().items() if key not in gone}
    if len(left) == len(users.copy()):
        raise KohortError(f"{options.user!r} has no credential: 'kohort users list' shows who has")
    users.replace(left)


def _chosen(options: argparse.Namespace) -> list[str]:
    return [options.mechanism] if options.mechanism else sorted(HASHES)
