"""Decompression of a batch, once, bounded, and away from the event loop where much comes out."""

from __future__ import annotations

from functools import partial

from ..protocol import BatchHeader, Codec, GrownTooLargeError, decompress, decompressed_limit
from ._steps import Steps

#: Bytes that are decompressed where the log is used; more are left to a thread.
PROMPT_BYTES = 1 << 20


def unpacked(header: BatchHeader, payload: memoryview) -> Steps[bytes]:
    """The records behind a batch's header, as they were before they were compressed.

    Raises CorruptBatchError, and GrownTooLargeError over the limits of decompression.
    """
    if header.codec == Codec.NONE:
        return bytes(payload)
    try:
        return bytes(decompress(header.codec, payload, min(PROMPT_BYTES, decompressed_limit(len(payload)))))
    except GrownTooLargeError:
        if decompressed_limit(len(payload)) <= PROMPT_BYTES:
            raise
    return bytes((yield partial(decompress, header.codec, payload)))
