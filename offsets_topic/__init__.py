"""``__consumer_offsets``: its records, which partition holds them, and the store of its logs."""

from .partitioner import java_hash, partition_for
from .records import (
    NONE,
    CorruptRecordError,
    GroupDeleted,
    GroupStored,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    StoredMember,
    UnknownRecord,
    decode,
    encode,
    encode_all,
    group_key,
    offset_key,
)
from .store import OffsetsStore, StoredBatch

__all__ = [
    "NONE",
    "CorruptRecordError",
    "GroupDeleted",
    "GroupStored",
    "OffsetCommitted",
    "OffsetDeleted",
    "OffsetsStore",
    "Record",
    "StoredBatch",
    "StoredMember",
    "UnknownRecord",
    "decode",
    "encode",
    "encode_all",
    "group_key",
    "java_hash",
    "offset_key",
    "partition_for",
]
