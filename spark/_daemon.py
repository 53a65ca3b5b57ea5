"""A daemon that forks Spark's Python processes with modules loaded: ``python -m kohort.spark._daemon``.

A session forks its Python processes from daemons, one for each kind of process. Without this module each
process would import PySpark's and kohort's modules again. Modules that start threads, such as numpy and
pyarrow, are not loaded here, because threads do not survive a fork.
"""

from __future__ import annotations

import sys
from importlib import import_module

#: Modules that each kind of process needs.
_NEEDED = {
    "pyspark.worker": ("kohort.spark._frames", "kohort.spark._task"),
    "pyspark.sql.worker.create_data_source": ("kohort.spark._source",),
    "pyspark.sql.worker.plan_data_source_read": ("kohort.spark._source_options", "kohort.spark._readers"),
}


def load(kind: str) -> None:
    """Import the modules of this kind of process. A failed import is left for the process to report."""
    for name in ("pyspark.worker", *_NEEDED.get(kind, ())):
        try:
            import_module(name)
        except ImportError:
            return


def main() -> None:
    """Fork processes until Spark ends the daemon. The first argument is their kind, as in PySpark."""
    from pyspark.daemon import manager

    load(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    manager()


if __name__ == "__main__":
    main()
