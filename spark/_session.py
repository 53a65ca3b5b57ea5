"""``spark_session``: a session with the Java that is found, and defaults for what nobody has set.

What the environment, spark-submit, ``spark-defaults.conf`` or the caller has set stays as it is. The JVM
knows all of it, so it is started first, and asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from ._java import java_home
from ._python import explain_import_error, workers_python, workers_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {"spark.master": "local[*]", "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

#: Takes 30-90 ms off each batch. For local sessions only: the temporary folders of a cluster's containers may
#: have longer names than the path of a socket can have.
_SOCKETS = {"spark.python.unix.domain.socket.enabled": "true"}

#: Variables by which Spark chooses the driver's address.
_ADDRESS = frozenset({"SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"})

#: spark-submit's name for a Python that starts its own JVM.
_SHELL = "pyspark-shell"

_PYTHON = "spark.pyspark.python"


def spark_session(app_name: str, *, master: str | None = None, **conf: str) -> SparkSession:
    """Create a Spark session with the Java that ``java_home`` finds, or return the active one unchanged.

    ``conf``: Spark settings (``**{"spark.sql.shuffle.partitions": "4"}``). Where neither they nor the
    environment, spark-submit or ``spark-defaults.conf`` set another value, ``master`` is ``local[*]``, the
    name ``app_name``, the time zone UTC, the executors' Python that of the driver, and there is no UI. In a
    local session JVM and Python talk over Unix sockets. ``format("kohort")`` is registered. Raises
    JavaNotFoundError, and ImportError if PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise explain_import_error("spark_session", error) from error

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    given = conf if master is None else conf | {"spark.master": master}
    if is_remote(given, os.environ):
        # a Spark Connect server has a session of its own, and its operators' settings
        settings = {"spark.app.name": app_name} | given
    else:
        os.environ["JAVA_HOME"] = str(java_home().path)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", workers_python())
        found = _start_jvm(given)
        python, settings = choose_settings(app_name, given, found, os.environ)
        os.environ["PYSPARK_PYTHON"] = python
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # before 4.0 there are no data sources in Python
    if hasattr(session, "dataSource"):
        from ._source import register

        register(session)
    return session


def is_remote(given: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether the session will be one of a Spark Connect server."""
    return "spark.remote" in given or "SPARK_REMOTE" in environment


def choose_settings(
    app_name: str, given: Mapping[str, str], found: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return the Python of the workers, and the settings for the session's builder.

    ``given``: settings in code. ``found``: those that the JVM has from spark-submit and its files.
    """
    known = {**found, **given}
    master = known.get("spark.master", _DEFAULTS["spark.master"])
    is_local = master == "local" or master.startswith("local[")
    ours = workers_python() if is_local else sys.executable
    python = known.get(_PYTHON) or environment.get("PYSPARK_PYTHON") or ours
    defaults = dict(_DEFAULTS)
    if is_local:
        defaults |= _SOCKETS if _ADDRESS & environment.keys() else _SOCKETS | _LOOPBACK
        # another Python may not have kohort, whose daemon this names
        defaults |= workers_settings() if python == ours else {}
    settings = {key: value for key, value in defaults.items() if key not in known}
    if "spark.app.name" not in known or _is_default_name(found, environment):
        settings["spark.app.name"] = app_name
    if _is_shell(environment):
        # spark-submit shows a bar in each shell
        settings["spark.ui.showConsoleProgress"] = "false"
    return python, settings | dict(given)


def _is_shell(environment: Mapping[str, str]) -> bool:
    """Return whether this Python has started its JVM, and not spark-submit."""
    return "PYSPARK_GATEWAY_PORT" not in environment


def _is_default_name(found: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether the name is the one that spark-submit gives to an application without a name."""
    program = _SHELL if _is_shell(environment) else PurePath(sys.argv[0]).name
    return found.get("spark.app.name") == program


def _start_jvm(given: Mapping[str, str]) -> dict[str, str]:
    """Start the JVM with these settings, unless it runs; return all settings that it has."""
    from pyspark import SparkConf, SparkContext

    launched = SparkConf(loadDefaults=False)
    for key, value in given.items():
        launched.set(key, value)
    SparkContext._ensure_initialized(conf=launched)
    return dict(SparkConf().getAll())
