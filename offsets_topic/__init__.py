"""``__consumer_offsets``: its records, which partition holds them, and the store of its logs."""

from ._encoded import (
    EncodedCommit,
    OtherRecord,
    decode_commit_value,
    decode_partition,
    split_records,
)
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
    "EncodedCommit",
    "GroupDeleted",
    "GroupStored",
    "OffsetCommitted",
    "OffsetDeleted",
    "OffsetsStore",
    "OtherRecord",
    "Record",
    "StoredBatch",
    "StoredMember",
    "UnknownRecord",
    "decode",
    "decode_commit_value",
    "decode_partition",
    "encode",
    "encode_all",
    "group_key",
    "java_hash",
    "offset_key",
    "partition_for",
    "split_records",
]
