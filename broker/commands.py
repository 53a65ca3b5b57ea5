"""``kohort serve-check`` and ``kohort users``: explain a broker's settings, and create its first users."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from ..cluster import ConflictError, Document, FolderStore
from ..log import DataFolder
from ..protocol import KohortError
from ..settings import read_secret, read_settings_file
from .kafka_names import find_meaningless
from .metadata.live_settings import LiveSettings
from .quotas import QuotaTable
from .reporting.log_lines import printable_text
from .security._check import check
from .security._scram_users import (
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    Credentials,
    ScramCredential,
    ScramUsers,
)
from .settings import broker_settings, given_settings

OK, WARNED, WRONG_USE = 0, 1, 2


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
    if ignored := find_meaningless(given):
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
    """Change the users of a data folder that no broker uses, or of a cluster."""
    try:
        if options.json or getattr(options, "dry_run", False):
            raise KohortError("--json and --dry-run are for running brokers: leave out --data and --settings")
        if options.settings_file is not None:
            asyncio.run(_change_shared(options))
            return OK
        if not Path(options.data).is_dir() and options.action != "add":
            raise KohortError(f"there is no folder {options.data}: give the data folder of a broker")
        folder = DataFolder.open(options.data, node_id=options.node_id)
        try:
            users = ScramUsers()
            users.open(FolderStore(options.data).document("scram-users"))
            changed = _change_users(users, options)
            if changed is not None:
                users.replace(changed)
                _report_done(options, options.data)
        finally:
            folder.close(clean=folder.clean_start)
    except (KohortError, OSError) as error:
        print(f"kohort users: {error}", file=sys.stderr)
        return WRONG_USE
    return OK


async def _change_shared(options: argparse.Namespace) -> None:
    """Change the users that brokers share; running brokers notice a moment later."""
    from .broker import open_shared_metadata

    settings = broker_settings(read_settings_file(options.settings_file))
    if not settings.zookeeper_connect:
        raise KohortError(f"{options.settings_file} has no zookeeper.connect: give --data of a broker alone")
    store = await open_shared_metadata(settings)
    try:
        users = ScramUsers()
        users.open(Document(store, "scram-users"))
        changed = _change_users(users, options)
        if changed is not None:
            await users.change(changed)
            _report_done(options, "ZooKeeper; running brokers know it in a moment")
    except ConflictError as error:
        raise KohortError("somebody else has changed the users just now: try again") from error
    finally:
        store.close()


def _report_done(options: argparse.Namespace, where: str) -> None:
    """Say what was done, apart from what ``list`` prints."""
    mechanisms = ", ".join(_chosen_mechanisms(options))
    done = "can log in" if options.action == "add" else "can no longer log in"
    print(
        f"kohort users: {printable_text(options.user)} {done} by {mechanisms} (written to {where})",
        file=sys.stderr,
    )


def _change_users(users: ScramUsers, options: argparse.Namespace) -> Credentials | None:
    """The new credentials; None to only show them."""
    if options.action == "add":
        return _add_user(users, options)
    if options.action == "remove":
        return _remove_user(users, options)
    for user, mechanism, credential in users.all():
        print(f"{user}\t{mechanism}\t{credential.iterations} iterations")
    return None


def _add_user(users: ScramUsers, options: argparse.Namespace) -> Credentials:
    if not options.user or not MIN_ITERATIONS <= options.iterations <= MAX_ITERATIONS:
        raise KohortError(f"a user has a name, and --iterations is {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    password = read_secret(
        f"the password of {options.user}", file=options.password_file, variable=options.password_env
    )
    made = {
        (mechanism, options.user): ScramCredential.of_password(mechanism, password, options.iterations)
        for mechanism in _chosen_mechanisms(options)
    }
    return {**users.copy(), **made}


def _remove_user(users: ScramUsers, options: argparse.Namespace) -> Credentials:
    gone = {(mechanism, options.user) for mechanism in _chosen_mechanisms(options)}
    left = {key: credential for key, credential in users.copy().items() if key not in gone}
    if len(left) == len(users.copy()):
        raise KohortError(f"{options.user!r} has no credential: 'kohort users list' shows who has")
    return left


def _chosen_mechanisms(options: argparse.Namespace) -> list[str]:
    return [options.mechanism] if options.mechanism else sorted(HASHES)
