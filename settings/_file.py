"""Files of settings in the format of Java's properties, such as Kafka's ``server.properties``."""

from __future__ import annotations

import re
from pathlib import Path

from ._reading import SettingsError

_ENDS = re.compile(r"(?<!\\)(?:\\\\)*[=:\s]")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_settings_file(path: str | Path) -> dict[str, str]:
    """Return the names and values of a properties file. Raises SettingsError if it cannot be read."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError(f"{path} cannot be read ({reason}): name a file of NAME=VALUE lines") from None
    found = {}
    for line in _logical_lines(text):
        end = _ENDS.search(line)
        name = line if end is None else line[: end.end() - 1]
        value = "" if end is None else line[end.end() - 1 :].lstrip()
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip()
        found[_unescape_text(name)] = _unescape_text(value)
    return found


def _logical_lines(text: str) -> list[str]:
    """Lines that are neither blank nor comments; a line that ends with a backslash continues on the next."""
    lines: list[str] = []
    going_on = False
    for raw in text.splitlines():
        line = raw.lstrip()
        if not going_on and (not line or line[0] in "#!"):
            continue
        more = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        piece = line[:-1] if more else line
        if going_on:
            lines[-1] += piece
        else:
            lines.append(piece)
        going_on = more
    return lines


def _unescape_text(text: str) -> str:
    def letter(match: re.Match[str]) -> str:
        what = match[1]
        return chr(int(what[1:], 16)) if len(what) > 1 else _LETTERS.get(what, what)

    return _ESCAPED.sub(letter, text)
