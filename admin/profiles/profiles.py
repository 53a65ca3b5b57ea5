"""``--profile``: the connections of several clusters in one file, without a secret."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ...settings import Fallback, SettingsError, not_overridden, read_secret
from ...settings.connection import JAAS, names_in_files, settings_in, settings_of_file

#: The variable that names the profile where no option does.
PROFILE_VARIABLE: Final = "KOHORT_PROFILE"
_ENDINGS: Final = {"_file": "file", "_env": "variable"}


def profiles_path() -> Path:
    """The file of profiles: ``kohort/profiles.toml`` where the platform has settings of programs."""
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming"
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "kohort" / "profiles.toml"


def read_profiles(path: Path) -> dict[str, dict[str, object]]:
    """Profiles by name, none without a file; names of settings have underscores. Raises SettingsError."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"{path} cannot be read: {reason}") from None
    profiles = {}
    for name, values in found.items():
        if not isinstance(values, dict):
            raise SettingsError(f"{path}: {name} stands outside of a profile: give a table such as [staging]")
        profiles[name] = dict(_flatten(values))
    return profiles


def _flatten(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        key = before + name.replace(".", "_").replace("-", "_")
        if isinstance(value, dict):
            yield from _flatten(value, f"{key}_")
        else:
            yield key, value


def read_profile(cls: type[object], name: str, secrets: Iterable[str]) -> Fallback:
    """The settings of a profile, those of its ``config`` behind them; ``secrets`` are fields of ``cls`` that
    may only be named, by a file or a variable that has them. Raises SettingsError.
    """
    path = profiles_path()
    profiles = read_profiles(path)
    if name not in profiles:
        import difflib

        near = difflib.get_close_matches(name, profiles, n=1)
        there = f": there are {', '.join(profiles)}" if profiles else ""
        raise SettingsError(f"no profile {name!r} in {path}{f', did you mean {near[0]}?' if near else there}")
    where = f"{path}, profile {name}"
    fields = {key: field for key, field in names_in_files(cls).items() if field in set(secrets)}
    values: dict[str, object] = {}
    for key, value in profiles[name].items():
        ending = next((each for each in _ENDINGS if key.endswith(each)), "")
        if key in fields or key == JAAS.replace(".", "_"):
            at = key if key in fields else "sasl_password"
            raise SettingsError(f"{where}: {key} has a secret: give {at}_file or {at}_env in its place")
        if ending and key.removesuffix(ending) in fields:
            source = str(Path(str(value)).expanduser()) if ending == "_file" else str(value)
            secret = read_secret(f"{where}: {key}", **{_ENDINGS[ending]: source})
            values[fields[key.removesuffix(ending)]] = secret
        else:
            values[key] = value
    config = values.pop("config", None)
    given = dict(settings_in(cls, values, where))
    origins = dict.fromkeys(given, where)
    if config is not None:
        behind = not_overridden(given, settings_of_file(cls, str(Path(str(config)).expanduser())))
        origins |= dict.fromkeys(behind, str(config))
        given |= behind
    return Fallback(given, origins)
