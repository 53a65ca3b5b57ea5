"""Kafka's wire protocol: frames, the table of APIs, messages, error codes, record batch headers.

The message classes are kafka-python's; they are imported when the first message of an API is coded, because
that import takes longer than everything else a broker does before it serves.
"""

from ._apis import APIS, GROUP_HISTORY_FEATURE, Api, ApiKey, api_for
from ._batch import (
    BATCH_OVERHEAD,
    BatchHeader,
    Codec,
    build_batch,
    iter_batches,
    parse_batch_header,
    read_varint,
    stamp_batch,
    verify_batch,
    write_varint,
)
from ._compression import MAX_DECOMPRESSED_BYTES, compress, compress_batch, decompress, decompressed_limit
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
from ._fetch_answers import Part, Sendable, fetch_answer
from ._frames import LENGTH_PREFIX, MAX_FRAME_BYTES, FrameReader, FrameReceiver
from ._hot import MAX_HOT_BYTES, HotCodec, hot_codec, hot_header
from ._hot_fields import UNREADABLE
from ._hot_requests import CommitBodyPartition
from ._kafka_python import kafka_module
from ._messages import (
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    request_class,
    response_class,
)
from ._metadata_answers import MetadataPartition, MetadataPartitions, metadata_answer
from ._subscription import (
    SUBSCRIPTION_VERSION,
    Assignment,
    Subscription,
    TopicPartition,
    WireReader,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    encode_topic_partitions,
    subscribed_topics,
)

__all__ = [
    "ANONYMOUS",
    "APIS",
    "BATCH_OVERHEAD",
    "GROUP_HISTORY_FEATURE",
    "LENGTH_PREFIX",
    "MAX_DECOMPRESSED_BYTES",
    "MAX_FRAME_BYTES",
    "MAX_HOT_BYTES",
    "SUBSCRIPTION_VERSION",
    "UNREADABLE",
    "Api",
    "ApiKey",
    "Assignment",
    "BatchHeader",
    "BrokenOffBatchError",
    "Codec",
    "CommitBodyPartition",
    "CorruptBatchError",
    "ErrorCode",
    "FrameReader",
    "FrameReceiver",
    "FrameTooLargeError",
    "GrownTooLargeError",
    "HotCodec",
    "KafkaError",
    "KohortError",
    "MalformedFrameError",
    "MalformedMessageError",
    "MetadataPartition",
    "MetadataPartitions",
    "Part",
    "ProtocolError",
    "RequestContext",
    "RequestHeader",
    "Sendable",
    "Subscription",
    "TopicPartition",
    "UnsupportedVersionError",
    "WireReader",
    "api_for",
    "build_batch",
    "compress",
    "compress_batch",
    "decode_assignment",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "decode_subscription",
    "decompress",
    "decompressed_limit",
    "encode_assignment",
    "encode_request",
    "encode_response",
    "encode_subscription",
    "encode_topic_partitions",
    "fetch_answer",
    "hot_codec",
    "hot_header",
    "iter_batches",
    "kafka_module",
    "metadata_answer",
    "parse_batch_header",
    "read_varint",
    "request_class",
    "response_class",
    "stamp_batch",
    "subscribed_topics",
    "verify_batch",
    "write_varint",
]
