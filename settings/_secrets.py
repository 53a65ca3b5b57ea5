"""A secret that stands on no command line, where every user of the machine could read it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ._reading import SettingsError


def read_secret(what: str, *, file: str | None = None, variable: str | None = None) -> str:
    """Read a secret from a file or a variable of the environment; without either it is asked for on a
    terminal, or is the first line of standard input. Raises SettingsError if there is none, or an empty one.
    """
    if variable is not None:
        if not (found := os.environ.get(variable)):
            raise SettingsError(f"{what}: the variable {variable} is not set, or is empty")
        return found
    if file is not None:
        try:
            found = Path(file).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise SettingsError(f"{what}: {file} cannot be read: {reason}") from None
        if not found:
            raise SettingsError(f"{what}: {file} is empty")
        return found
    if sys.stdin.isatty():
        import getpass

        found = getpass.getpass(f"{what}: ")
    else:
        found = sys.stdin.readline().rstrip("\r\n")
    if not found:
        raise SettingsError(f"{what} is empty: type it, or give it as a line on standard input")
    return found
