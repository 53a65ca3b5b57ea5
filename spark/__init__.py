"""Spark micro-batches driven from a group's committed offsets.

    spark = spark_session("etl")
    with GroupBatches(spark, bootstrap="localhost:9092", group="etl", topics=["orders"]) as batches:
        batches.run(lambda batch: batch.df.write.mode("append").parquet("orders.parquet"))

Importing this loads neither pyspark nor pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._batch import Batch
    from ._driver import GroupBatches, UncommittedBatchError
    from ._events import BatchCommitted, CommitRefused, Event, Listener, OffsetsLost
    from ._fetch import UnreadableRangeError
    from ._group import CommitRefusedError, UnknownTopicError
    from ._java import JavaHome, JavaNotFoundError, java_home, spark_session
    from ._json import ModelError, from_json
    from ._member import GroupTakenError
    from ._metrics import BatchMetrics, MetricsUnavailableError
    from ._offsets import OffsetsFormatError, format_offsets, parse_offsets
    from ._options import GroupBatchesOptions, OptionsError
    from ._plan import DataLossError, NoStartError
    from ._progress_bar import ProgressBar
    from ._ranges import OffsetRange
    from ._source import KohortDataSource, register
    from ._stream import StartStateError
    from ._streams import stream

__all__ = [
    "Batch",
    "BatchCommitted",
    "BatchMetrics",
    "CommitRefused",
    "CommitRefusedError",
    "DataLossError",
    "Event",
    "GroupBatches",
    "GroupBatchesOptions",
    "GroupTakenError",
    "JavaHome",
    "JavaNotFoundError",
    "KohortDataSource",
    "Listener",
    "MetricsUnavailableError",
    "ModelError",
    "NoStartError",
    "OffsetRange",
    "OffsetsFormatError",
    "OffsetsLost",
    "OptionsError",
    "ProgressBar",
    "StartStateError",
    "UncommittedBatchError",
    "UnknownTopicError",
    "UnreadableRangeError",
    "format_offsets",
    "from_json",
    "java_home",
    "parse_offsets",
    "register",
    "spark_session",
    "stream",
]

_HOMES = {
    "_batch": ("Batch",),
    "_driver": ("GroupBatches", "UncommittedBatchError"),
    "_events": ("BatchCommitted", "CommitRefused", "Event", "Listener", "OffsetsLost"),
    "_fetch": ("UnreadableRangeError",),
    "_group": ("CommitRefusedError", "UnknownTopicError"),
    "_java": ("JavaHome", "JavaNotFoundError", "java_home", "spark_session"),
    "_json": ("ModelError", "from_json"),
    "_member": ("GroupTakenError",),
    "_metrics": ("BatchMetrics", "MetricsUnavailableError"),
    "_offsets": ("OffsetsFormatError", "format_offsets", "parse_offsets"),
    "_options": ("GroupBatchesOptions", "OptionsError"),
    "_plan": ("DataLossError", "NoStartError"),
    "_ranges": ("OffsetRange",),
    "_progress_bar": ("ProgressBar",),
    "_source": ("KohortDataSource", "register"),
    "_stream": ("StartStateError",),
    "_streams": ("stream",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names are loaded when first asked for, so that a worker or a test pays only for what it uses."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f".{_HOME_OF[name]}", __name__)
    except ModuleNotFoundError as error:
        from ._extra import explained

        raise explained(name, error) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
