"""Partition logs in Apache Kafka's own files: segments, indexes, recovery, retention.

Synchronous file I/O without a clock of its own. ``DataFolder`` is a broker's folder, ``PartitionLog`` one
partition in it.
"""

from ._checkpoints import encode_uuid
from ._config import CREATE_TIME, LOG_APPEND_TIME, CompressionType, LogConfig
from ._descriptors import OPEN_FILES, OpenFiles, left_by_connections, process_limit
from ._disk_calls import DISK_CALLS, DiskCall, DiskCalls
from ._errors import CorruptLogError, DataFolderError, DataFolderInUseError, NoDescriptorsError, is_full
from ._files import OS_FILES, File, FileRange, FileSystem, Lock
from ._flush import Flush
from ._folder import DataFolder, Stray, known_cluster_id, remove_stray, strays_of
from ._partition import DEDUPE_BUFFER_BYTES, UP_TO_HIGH_WATERMARK, AppendInfo, PartitionLog, ReadInfo
from ._producers import ProducerEntry
from ._records import decode_records
from ._recovery import Cut, RecoveryReport
from ._scan import Salvaged
from ._steps import Result, Steps, ThreadWork, at_once
from ._validation import CheckedBatch, RecordsError, check_batch
from .cleaner._cleaning import Cleaning, CleanReport

__all__ = [
    "CREATE_TIME",
    "DEDUPE_BUFFER_BYTES",
    "DISK_CALLS",
    "LOG_APPEND_TIME",
    "OPEN_FILES",
    "OS_FILES",
    "UP_TO_HIGH_WATERMARK",
    "AppendInfo",
    "CheckedBatch",
    "CleanReport",
    "Cleaning",
    "CompressionType",
    "CorruptLogError",
    "Cut",
    "DataFolder",
    "DataFolderError",
    "DataFolderInUseError",
    "DiskCall",
    "DiskCalls",
    "File",
    "FileRange",
    "FileSystem",
    "Flush",
    "Lock",
    "LogConfig",
    "NoDescriptorsError",
    "OpenFiles",
    "PartitionLog",
    "ProducerEntry",
    "ReadInfo",
    "RecordsError",
    "RecoveryReport",
    "Result",
    "Salvaged",
    "Steps",
    "Stray",
    "ThreadWork",
    "at_once",
    "check_batch",
    "decode_records",
    "encode_uuid",
    "is_full",
    "known_cluster_id",
    "left_by_connections",
    "process_limit",
    "remove_stray",
    "strays_of",
]
