"""Spark's daemon of Python processes, which has imported what they need: ``python -m kohort.spark._daemon``.

A session forks its Python processes from daemons, one for each kind, and a query has some of its own: each
would load PySpark's and kohort's modules again. Modules that start threads, such as numpy and pyarrow, are
not loaded here: threads do not survive a fork.
"""

from __future__ import annotations

import sys
from importlib import import_module

#: What each kind of process needs.
_NEEDED = {
    "pyspark.worker": ("kohort.spark._frames", "kohort.spark._task"),
    "pyspark.sql.worker.create_data_source": ("kohort.spark._source",),
    "pyspark.sql.worker.plan_data_source_read": ("kohort.spark._source_options", "kohort.spark._readers"),
}


def load(kind: str) -> None:
    """Import what processes of this kind need. They report a failed import themselves."""
    for name in ("pyspark.worker", *_NEEDED.get(kind, ())):
        try:
            import_module(name)
        except ImportError:
            return


def main() -> None:
    """Serve forks until Spark ends it; the kind of process is the first argument, as for PySpark's daemon."""
    from pyspark.daemon import manager

    load(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    manager()


if __name__ == "__main__":
    main()
