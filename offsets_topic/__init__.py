"""``__consumer_offsets``: its records and which partition holds them."""

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
    group_key,
    offset_key,
)

__all__ = [
    "NONE",
    "CorruptRecordError",
    "GroupDeleted",
    "GroupStored",
    "OffsetCommitted",
    "OffsetDeleted",
    "Record",
    "StoredMember",
    "UnknownRecord",
    "decode",
    "encode",
    "group_key",
    "java_hash",
    "offset_key",
    "partition_for",
]
