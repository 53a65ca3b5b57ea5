"""A client's batch in the codec that ``compression.type`` asks for.

Only batches in another codec are rewritten, as in Apache Kafka 4.3. A rewritten batch keeps its producer's
id, epoch and sequence number. Its offset deltas count from 0, and its base timestamp is that of its first
record.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ..protocol import (
    BATCH_OVERHEAD,
    BATCH_TRANSACTIONAL,
    BatchHeader,
    Codec,
    compress,
    read_varint,
    seal_batch,
    write_varint,
)
from ._config import LogConfig
from ._records import signed_long
from ._steps import Steps, ThreadWork

#: Records of this many bytes or more are compressed by a thread.
_PROMPT_BYTES: Final = 16 << 10

#: Records renumbered before other work may run.
_STEP_RECORDS: Final = 256


def recompress_batch(
    header: BatchHeader, plain: bytes, config: LogConfig, *, unordered: bool
) -> Steps[bytearray]:
    """The batch with its ``plain`` records in the log's codec. ``unordered``: their offset deltas do not
    count from 0. The records are known to be readable.
    """
    first_ms = _first_time(header, plain)
    records: bytes | bytearray = plain
    if unordered or header.log_append_time or first_ms != header.base_timestamp_ms:
        records = yield from _renumber_records(header, plain, first_ms)
    codec = config.codec_of(header.codec)
    work = partial(compress, codec, bytes(records), config.level_of(codec))
    size = BATCH_OVERHEAD + len(records)
    prompt = codec == Codec.NONE or size < _PROMPT_BYTES
    payload = work() if prompt else (yield ThreadWork(work, size))
    # the log sets the timestamp type
    attributes = header.attributes & BATCH_TRANSACTIONAL | codec
    return seal_batch(header._replace(attributes=attributes, base_timestamp_ms=first_ms), payload)


def _first_time(header: BatchHeader, plain: bytes) -> int:
    """The first record's timestamp in milliseconds."""
    if header.log_append_time:
        return header.max_timestamp_ms
    _, at = read_varint(plain, 0)
    later_ms, _ = read_varint(plain, at + 1)
    return signed_long(header.base_timestamp_ms + later_ms)


def _renumber_records(header: BatchHeader, plain: bytes, first_ms: int) -> Steps[bytearray]:
    """The records with offset deltas that count from 0, and timestamp deltas from ``first_ms`` on."""
    shift_ms = header.base_timestamp_ms - first_ms
    out = bytearray()
    at = 0
    for number in range(header.record_count):
        size, body = read_varint(plain, at)
        later_ms, rest = read_varint(plain, body + 1)
        _, rest = read_varint(plain, rest)
        at = body + size
        head = bytearray(1)  # attributes, of which there are none
        write_varint(head, 0 if header.log_append_time else signed_long(later_ms + shift_ms))
        write_varint(head, number)
        write_varint(out, len(head) + at - rest)
        out += head
        out += plain[rest:at]
        if number % _STEP_RECORDS == _STEP_RECORDS - 1:
            yield None
    return out
