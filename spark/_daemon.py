"""A daemon that forks Spark's Python processes with modules loaded: ``python -m kohort.spark._daemon``.

A session forks its Python processes from daemons, one for each kind of process. Without this module each
process would import PySpark's and kohort's modules again. Modules that start threads, such as numpy and
pyarrow, are not loaded here, because threads do not survive a fork.
"""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable
from importlib import import_module

_WORKER = "pyspark.worker"
_LOOKUP = "pyspark.sql.worker.lookup_data_sources"
_PLANNING = ("kohort.spark._source_options", "kohort.spark._readers")
_WRITING = ("kohort.spark._source", "kohort.spark._sink_options", "kohort.spark._sink")

#: Modules that each kind of process needs.
_NEEDED = {
    _WORKER: (_WORKER, "kohort.spark._dataframes", "kohort.spark._task"),
    "pyspark.sql.worker.create_data_source": (_WORKER, "kohort.spark._source"),
    "pyspark.sql.worker.plan_data_source_read": (_WORKER, *_PLANNING),
    "pyspark.sql.worker.write_into_data_source": (_WORKER, *_WRITING),
    "pyspark.sql.worker.commit_data_source_write": (_WORKER, *_WRITING),
    "pyspark.sql.worker.python_streaming_sink_runner": (_WORKER, *_WRITING),
    _LOOKUP: (_LOOKUP,),
}


def load(kind: str) -> None:
    """Import the modules of this kind of process. A failed import is left for the process to report."""
    for name in _NEEDED.get(kind, (_WORKER,)):
        try:
            import_module(name)
        except ImportError:
            return


def freeze_modules(worker: Callable[[socket.socket, bool], int]) -> Callable[[socket.socket, bool], int]:
    """A process's work behind whose first task the garbage collector leaves alone what is loaded.

    PySpark collects garbage after every task, at the cost of a look at each of 90,000 objects of modules:
    15 to 25 ms, while the driver notes the batch. Only once, since what is alive at that time is never
    collected again.
    """

    def run(sock: socket.socket, authenticated: bool) -> int:
        code = worker(sock, authenticated)
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()
        return code

    return run


def without_parting_words(
    worker: Callable[[socket.socket, bool], int],
) -> Callable[[socket.socket, bool], int]:
    """A process's work that ends with code 1, and no traceback, when Spark's JVM has closed the connection.

    A process that waits for its next task when the JVM ends reads the end of the connection, takes it for an
    error of a task and writes that to the JVM, which is gone. From PySpark 4.1 on the failure of that is
    printed at the end of jobs that are done. A task's own errors reach the JVM while it is there.
    """

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return run


def main() -> None:
    """Fork processes until Spark ends the daemon. The first argument is their kind, as in PySpark."""
    from pyspark import daemon

    load(sys.argv[1] if len(sys.argv) > 1 else _WORKER)
    daemon.worker = without_parting_words(freeze_modules(daemon.worker))  # type: ignore[assignment]
    daemon.manager()


if __name__ == "__main__":
    main()
