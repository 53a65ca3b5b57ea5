"""``kohort profiles``: the clusters that ``--profile`` may name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from ...settings import SettingsError
from ..commands import run_program
from ..screen import OK, Screen
from .profiles import PROFILE_VARIABLE, profiles_path, read_profiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort profiles`` its command."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "profiles, the clusters they are for, and the one that KOHORT_PROFILE names"
    listing = commands.add_parser("list", help=words, description=f"{words[0].upper()}{words[1:]}.")
    listing.add_argument("--json", action="store_true", help="one JSON document instead of tables")


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort profiles", lambda: _list_profiles(Screen(as_json=options.json)))


def _list_profiles(screen: Screen) -> int:
    from ...client import ConfigError

    path = profiles_path()
    try:
        profiles = read_profiles(path)
    except SettingsError as error:
        raise ConfigError(str(error)) from None
    used = os.environ.get(PROFILE_VARIABLE)
    rows = [
        {
            "profile": name,
            "bootstrap": _text_of(values, "bootstrap", "bootstrap_servers"),
            "security_protocol": _text_of(values, "security_protocol"),
            "user": _text_of(values, "sasl_plain_username", "sasl_username"),
            "in_use": name == used,
        }
        for name, values in profiles.items()
    ]
    if screen.as_json:
        screen.document({"file": str(path), "profiles": rows})
    elif rows:
        from ..tables import table

        cells = ([*list(row.values())[:-1], "yes" if row["in_use"] else None] for row in rows)
        screen.show(table(["PROFILE", "BOOTSTRAP", "PROTOCOL", "USER", "IN USE"], cells))
    if not rows:
        screen.remark(f"no profiles in {path}")
    return OK


def _text_of(values: Mapping[str, object], *names: str) -> str | None:
    found = next((values[name] for name in names if name in values), None)
    return ",".join(map(str, found)) if isinstance(found, list) else None if found is None else str(found)
