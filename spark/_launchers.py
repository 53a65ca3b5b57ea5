"""Small scripts that start a program as Spark needs it started: made once, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def launcher(name: str, text: str) -> Path:
    """A folder whose ``bin/<name>`` is a script of that text."""
    home = _cache_folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    script = home / "bin" / name
    if script.is_file() and script.read_text() == text and os.access(script, os.X_OK):
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=script.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, script)
    return home


def _cache_folder() -> Path:
    """Ours alone: what lies in it is run."""
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(cache) if cache else Path.home() / ".cache") / "kohort"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass  # no home, or one that cannot be written
    return Path(tempfile.mkdtemp(prefix="kohort-launchers-"))
