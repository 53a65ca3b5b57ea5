"""A shortcut for OffsetCommit requests of one member, which differ in their numbers only: the bytes between
the numbers are compared with the previous request's, and the numbers are read from known places.

Where they are is seen by writing the body twice, with 0 and with -1 for each number:

    low     ... "orders" 00000001  00000003  0000000000000000  00000000  ffff ...
    high    ... "orders" 00000001  00000003  ffffffffffffffff  ffffffff  ffff ...
                         partitions  number  offset            epoch     no metadata
    mask    ... ffffffff ffffffff  ffffffff  0000000000000000  00000000  ffff ...

This Python is the specification. Compiled, ``_native.pyx`` compares what lies between the numbers in place.
"""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate, groupby
from typing import Any, Final

from ._messages import MessageCodec
from ._native_parts import has_native

NATIVE = has_native("protocol", "read_numbers")
if NATIVE:
    from ._native import read_numbers

#: Size and struct codes of an offset and the leader epoch that follows it.
_NUMBERS: Final = 12, "qi"
#: The first version of OffsetCommit with leader epochs.
_EPOCH_VERSION: Final = 6


class CommitLayout:
    """The bytes of an OffsetCommit request, except for the offset and leader epoch of each partition."""

    __slots__ = ("_fixed", "_low", "_mask", "_places", "_size", "_unpack")

    def __init__(self, low: bytes | bytearray, high: bytes | bytearray) -> None:
        """Take two bodies that differ in these numbers only: all are 0 in ``low`` and -1 in ``high``."""
        varying = int.from_bytes(low, "big") ^ int.from_bytes(high, "big")
        self._size = len(low)
        self._mask = varying ^ ((1 << 8 * len(low)) - 1)
        self._fixed = int.from_bytes(low, "big") & self._mask
        runs = [(varies, len([*run])) for varies, run in groupby(map(int.__ne__, low, high))]
        size, code = _NUMBERS
        assert all(length == size for varies, length in runs if varies), "a partition's index is before them"
        form = ">" + "".join(code if varies else f"{length}x" for varies, length in runs)
        self._unpack = struct.Struct(form).unpack
        # what the compiled part takes: the body, and where its numbers are
        self._low = bytes(low)
        ends = accumulate(length for _, length in runs)
        places = [end - length for end, (varies, length) in zip(ends, runs, strict=True) if varies]
        self._places = array("i", places).tobytes()

    def numbers(self, data: bytes, at: int = 0) -> tuple[int, ...] | None:
        """Return offset and leader epoch of each partition in turn, of the body from ``at`` on; None if
        anything else differs.
        """
        if NATIVE:
            return read_numbers(data, at, self._low, self._places)
        body = data[at:]
        if len(body) != self._size or int.from_bytes(body, "big") & self._mask != self._fixed:
            return None
        return self._unpack(body)


def commit_layout(codec: MessageCodec, data: bytes, body: Any) -> CommitLayout | None:
    """Return the layout of a decoded OffsetCommit; ``data`` are the bytes of ``body``.

    None if the version has no leader epochs, or if the client encodes requests differently than kohort does.
    """
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
