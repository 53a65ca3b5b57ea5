"""Records done beyond the committed offset, as ranges in the commit's metadata.

A committed offset means that everything before it is done. Records done after it, out of order, are written
as ranges into the metadata string that Kafka keeps with each offset and that other clients ignore, so that
the next owner does not handle them again. Ranges count only with the exact offset that they were written for,
and only in the version known here; records whose ranges do not fit, or cannot be read, are handled again.
Losing ranges is harmless, inventing them is not.

Layout: ``kohort-done-1:`` and, in base64url without padding, varints: the committed offset, then for each
range the gap since the end of the one before (the first: since the committed offset) and its length.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from ...protocol.messages.wire import varint

#: Offsets from the first up to, not including, the second.
Range = tuple[int, int]

PREFIX = "kohort-done-1:"
#: Kafka's ``offset.metadata.max.bytes``. After a refusal by a broker with a lower limit, no ranges are sent.
MAX_CHARS = 4096
_MAX_BYTES = (MAX_CHARS - len(PREFIX)) * 3 // 4
_MAX_VARINT_BYTES = 9


def is_ours(metadata: str) -> bool:
    """Return whether a commit may replace this metadata: it is empty or of this kind."""
    return not metadata or metadata.startswith(PREFIX)


def encode(offset: int, ranges: Iterable[Range]) -> str:
    """Metadata for a commit of ``offset``; the first ranges that fit. Empty when there are none.

    The ranges ascend and do not overlap; no more are looked at than fit.
    """
    data = bytearray(varint(offset))
    before = offset
    written = False
    for start, end in ranges:
        piece = varint(start - before) + varint(end - start)
        if len(data) + len(piece) > _MAX_BYTES:
            break
        data += piece
        before = end
        written = True
    return PREFIX + base64.urlsafe_b64encode(data).rstrip(b"=").decode() if written else ""


def decode(offset: int, metadata: str) -> list[Range]:
    """The ranges done beyond a committed ``offset``; none for metadata of other kinds, or damaged."""
    if not metadata.startswith(PREFIX):
        return []
    try:
        text = metadata.removeprefix(PREFIX)
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        numbers = _read_varints(data)
    except (ValueError, binascii.Error):
        return []
    if not numbers or numbers[0] != offset or len(numbers) % 2 == 0:
        return []
    ranges = []
    at = offset
    for gap, length in zip(numbers[1::2], numbers[2::2], strict=True):
        if not length:
            return []
        ranges.append((at + gap, at + gap + length))
        at += gap + length
    return ranges


def _read_varints(data: bytes) -> list[int]:
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte > 0x7F:
            shift += 7
            if shift >= 7 * _MAX_VARINT_BYTES:
                raise ValueError("a number of more than 63 bits")
        else:
            numbers.append(number)
            number, shift = 0, 0
    if shift:
        raise ValueError("the last number is cut short")
    return numbers
