"""Kafka's wire protocol: frames, the table of APIs, messages, error codes, record batch headers.

The messages of an API are in ``messages/``. Each module there is imported when its first message is read or
written: importing all of them would more than double the time a broker takes to start.
"""

from typing import Any

from ._apis import APIS, GROUP_HISTORY_FEATURE, Api, api_for
from ._batch import (
    BATCH_OVERHEAD,
    BatchHeader,
    Codec,
    Headers,
    TimedRecord,
    build_batch,
    crc32c_function,
    encode_records,
    iter_batches,
    parse_batch_header,
    read_varint,
    seal_batch,
    stamp_batch,
    stamp_built,
    verify_batch,
    write_varint,
)
from ._compression import (
    GZIP_LEVEL,
    LZ4_LEVEL,
    MAX_DECOMPRESSED_BYTES,
    ZSTD_LEVEL,
    compress,
    compress_batch,
    decompress,
    decompressed_limit,
)
from ._context import ANONYMOUS, RequestContext
from ._errors import (
    BrokenOffBatchError,
    CorruptBatchError,
    ErrorCode,
    FrameTooLargeError,
    GrownTooLargeError,
    KafkaError,
    KohortError,
    MalformedFrameError,
    MalformedMessageError,
    ProtocolError,
    UnsupportedVersionError,
)
from ._events import CauseKind, EventName
from ._frames import LENGTH_PREFIX, MAX_FRAME_BYTES, FrameReader, FrameReceiver
from ._kafka_python import kafka_module
from ._layout import CommitLayout, commit_layout
from ._messages import (
    MessageCodec,
    Part,
    RequestHeader,
    codec_of,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_parts,
    encode_response_steps,
    messages_of,
    operation_bits,
    prepare_request,
    request_type,
    response_type,
    struct_arrays,
)
from ._native_parts import has_native, implementation
from ._reader import TopicPartition, WireReader
from ._subscription import (
    SUBSCRIPTION_VERSION,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    encode_topic_partitions,
    subscribed_topics,
)
from .messages._apis import ApiKey
from .messages._wire import PreparedArray, Sendable

_RENAMED = {"request_class": request_type, "response_class": response_type}


def __getattr__(name: str) -> Any:
    new = _RENAMED.get(name)
    if new is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import warnings

    warnings.warn(f"{name} is called {new.__name__} now", DeprecationWarning, stacklevel=2)
    return new


__all__ = [
    "ANONYMOUS",
    "APIS",
    "BATCH_OVERHEAD",
    "GROUP_HISTORY_FEATURE",
    "GZIP_LEVEL",
    "LENGTH_PREFIX",
    "LZ4_LEVEL",
    "MAX_DECOMPRESSED_BYTES",
    "MAX_FRAME_BYTES",
    "SUBSCRIPTION_VERSION",
    "ZSTD_LEVEL",
    "Api",
    "ApiKey",
    "Assignment",
    "BatchHeader",
    "BrokenOffBatchError",
    "CauseKind",
    "Codec",
    "CommitLayout",
    "CorruptBatchError",
    "ErrorCode",
    "EventName",
    "FrameReader",
    "FrameReceiver",
    "FrameTooLargeError",
    "GrownTooLargeError",
    "Headers",
    "KafkaError",
    "KohortError",
    "MalformedFrameError",
    "MalformedMessageError",
    "MessageCodec",
    "Part",
    "PreparedArray",
    "ProtocolError",
    "RequestContext",
    "RequestHeader",
    "Sendable",
    "Subscription",
    "TimedRecord",
    "TopicPartition",
    "UnsupportedVersionError",
    "WireReader",
    "api_for",
    "build_batch",
    "codec_of",
    "commit_layout",
    "compress",
    "compress_batch",
    "crc32c_function",
    "decode_assignment",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "decode_subscription",
    "decompress",
    "decompressed_limit",
    "encode_assignment",
    "encode_records",
    "encode_request",
    "encode_response",
    "encode_response_parts",
    "encode_response_steps",
    "encode_subscription",
    "encode_topic_partitions",
    "has_native",
    "implementation",
    "iter_batches",
    "kafka_module",
    "messages_of",
    "operation_bits",
    "parse_batch_header",
    "prepare_request",
    "read_varint",
    "request_type",
    "response_type",
    "seal_batch",
    "stamp_batch",
    "stamp_built",
    "struct_arrays",
    "subscribed_topics",
    "verify_batch",
    "write_varint",
]
