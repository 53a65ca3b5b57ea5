"""Spark micro-batches driven from a group's committed offsets.

    spark = spark_session("etl")
    with GroupBatches(spark, bootstrap="localhost:9092", group="etl", topics=["orders"]) as batches:
        batches.run(lambda batch: batch.df.write.mode("append").parquet("orders.parquet"))

Importing this loads neither pyspark nor pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._batch_steps import PartialBatchError, TransactionLostError, UndecidedBatchError
    from ._driver import Batch, GroupBatches, UncommittedBatchError
    from ._events import (
        BatchCommitted,
        BatchMetrics,
        CommitRefused,
        Event,
        Listener,
        MetricsUnavailableError,
        OffsetsLost,
        OffsetsReset,
        ProgressBar,
    )
    from ._fetch import UnreadableRangeError
    from ._group import CommitRefusedError, UnknownTopicError
    from ._java import JavaHome, JavaNotFoundError, java_home
    from ._json import ModelError, from_json
    from ._ledger_entry import LedgerError
    from ._member import GroupTakenError
    from ._offsets import OffsetRange, OffsetsFormatError, format_offsets, parse_offsets
    from ._options import GroupBatchesOptions, OptionsError
    from ._plan import DataLossError, NoStartError
    from ._query import stream
    from ._session import spark_session
    from ._source import KohortDataSource, register
    from ._stream import StartStateError

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
    "LedgerError",
    "Listener",
    "MetricsUnavailableError",
    "ModelError",
    "NoStartError",
    "OffsetRange",
    "OffsetsFormatError",
    "OffsetsLost",
    "OffsetsReset",
    "OptionsError",
    "PartialBatchError",
    "ProgressBar",
    "StartStateError",
    "TransactionLostError",
    "UncommittedBatchError",
    "UndecidedBatchError",
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
    "_batch_steps": "PartialBatchError TransactionLostError UndecidedBatchError",
    "_driver": "Batch GroupBatches UncommittedBatchError",
    "_events": "BatchCommitted BatchMetrics CommitRefused Event Listener MetricsUnavailableError "
    "OffsetsLost OffsetsReset ProgressBar",
    "_fetch": "UnreadableRangeError",
    "_group": "CommitRefusedError UnknownTopicError",
    "_java": "JavaHome JavaNotFoundError java_home",
    "_json": "ModelError from_json",
    "_ledger_entry": "LedgerError",
    "_member": "GroupTakenError",
    "_offsets": "OffsetRange OffsetsFormatError format_offsets parse_offsets",
    "_options": "GroupBatchesOptions OptionsError",
    "_plan": "DataLossError NoStartError",
    "_query": "stream",
    "_session": "spark_session",
    "_source": "KohortDataSource register",
    "_stream": "StartStateError",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Load names on first use, so that a worker or a test pays only for what it uses."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f".{_HOME_OF[name]}", __name__)
    except ModuleNotFoundError as error:
        from ._python import explain_import_error

        raise explain_import_error(name, error) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
