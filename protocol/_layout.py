"""Messages that come again and again with other numbers in them: read by the layout of the last one."""

from __future__ import annotations

import struct
from itertools import groupby
from typing import Any, Final

from ._messages import MessageCodec

#: Bytes of an offset and a leader epoch, one after the other, and how they are read.
_NUMBERS: Final = 12, "qi"
#: The first version of OffsetCommit with leader epochs.
_EPOCH_VERSION: Final = 6


class CommitLayout:
    """The bytes of an OffsetCommit request but for the offset and leader epoch of each partition."""

    __slots__ = ("_fixed", "_mask", "_size", "_unpack")

    def __init__(self, low: bytes | bytearray, high: bytes | bytearray) -> None:
        """From two bodies: all these numbers are 0 in ``low``, and -1 in ``high``."""
        varying = int.from_bytes(low, "big") ^ int.from_bytes(high, "big")
        self._size = len(low)
        self._mask = varying ^ ((1 << 8 * len(low)) - 1)
        self._fixed = int.from_bytes(low, "big") & self._mask
        runs = [(varies, len([*run])) for varies, run in groupby(map(int.__ne__, low, high))]
        size, code = _NUMBERS
        assert all(length == size for varies, length in runs if varies), "a partition's index is before them"
        form = ">" + "".join(code if varies else f"{length}x" for varies, length in runs)
        self._unpack = struct.Struct(form).unpack

    def numbers(self, data: bytes) -> tuple[int, ...] | None:
        """Offset and leader epoch of each partition in turn, if this body is as the first one otherwise."""
        if len(data) != self._size or int.from_bytes(data, "big") & self._mask != self._fixed:
            return None
        return self._unpack(data)


def commit_layout(codec: MessageCodec, data: bytes, body: Any) -> CommitLayout | None:
    """The layout of an OffsetCommit body that was read; None for one that is not written as we would."""
    if codec.version < _EPOCH_VERSION:
        return None
    low, high = bytearray(), bytearray()
    for out, number in ((low, 0), (high, -1)):
        topics = [
            topic._replace(
                partitions=[
                    each._replace(committed_offset=number, committed_leader_epoch=number)
                    for each in topic.partitions
                ]
            )
            for topic in body.topics
        ]
        codec.write_request(out, body._replace(topics=topics), codec.version)
    layout = CommitLayout(low, high)
    return None if layout.numbers(data) is None else layout
