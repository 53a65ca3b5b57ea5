"""Reading a segment's bytes for damage: where the last whole batch ends, whether anything follows it, and
every whole batch of a damaged log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ..protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, parse_batch_header, verify_batch
from ..protocol.named_tuples import NamedTuple
from ._checkpoints import UNDEFINED, LeaderEpochs
from ._segment import MAX_RELATIVE_OFFSET, DamagedRange, Segment

#: Bytes read at a time; a batch larger than that is read whole.
SCAN_BYTES = 1 << 20

_BASE_OFFSET_BYTES = 8
_SEARCHED_BYTES = 17  # base offset up to magic


class Damage(NamedTuple):
    """The first bytes of a segment that are not a batch, or not the expected one."""

    position: int
    reason: str


class Chain:
    """Checks of the fields of a batch that its checksum does not cover, from batch to batch of a segment.

    Base offsets rise and lie within the reach of the indexes; no batch reaches into the segment that begins
    at ``bound``. Leader epochs never fall and match the checkpoint, which is written before the first batch
    of an epoch. An epoch one above the checkpoint's newest passes: Apache Kafka writes the checkpoint
    afterwards.

    ``gaps`` counts batches that skip offsets, as compaction does; unless ``anchored``, the first batch may
    begin after ``next_offset`` without being counted.
    """

    __slots__ = ("_anchored", "_base", "_bound", "_epoch", "_epochs", "_rose", "gaps", "next_offset")

    def __init__(
        self,
        segment_base: int,
        next_offset: int,
        *,
        bound: int | None = None,
        epochs: LeaderEpochs | None = None,
        anchored: bool = True,
    ) -> None:
        self.next_offset = next_offset
        self.gaps = 0
        self._base = segment_base
        self._bound = bound
        self._epochs = epochs
        self._anchored = anchored
        self._epoch = UNDEFINED
        self._rose = False

    def require(self, header: BatchHeader, position: int) -> None:
        """Raise CorruptBatchError for a batch that cannot be at this place."""
        offset, epoch = header.base_offset, header.leader_epoch
        if not may_follow(header, self.next_offset, self._base):
            raise CorruptBatchError(f"offset {offset} where {self.next_offset} is due", position)
        if self._bound is not None and header.last_offset >= self._bound:
            reason = f"it ends at offset {header.last_offset}, the next file begins at {self._bound}"
            raise CorruptBatchError(reason, position)
        if epoch < self._epoch:
            raise CorruptBatchError(f"leader epoch {epoch} behind {self._epoch}", position)
        if self._epochs is not None and not self._epochs.may_have_written(epoch, offset):
            due = self._epochs.epoch_at(offset)
            raise CorruptBatchError(f"leader epoch {epoch} where leader-epoch-checkpoint has {due}", position)

    def is_refuted(self, last: BatchHeader, due: int, header: BatchHeader) -> bool:
        """Return whether a batch shows that offset or epoch of the ``last`` one, at ``due``, was wrong."""
        if header.leader_epoch < last.leader_epoch:
            noted = UNDEFINED if self._epochs is None else self._epochs.epoch_at(header.base_offset)
            return self._rose and noted == header.leader_epoch
        return last.base_offset > due and due <= header.base_offset < last.next_offset

    def step_over(self) -> None:
        """Continue after damage, which explains the next gap."""
        self._anchored = False

    def take(self, header: BatchHeader) -> bool:
        """Continue after a batch; return whether it skips offsets."""
        gap = header.base_offset != self.next_offset
        self.gaps += gap and self._anchored
        self._anchored = True
        self.next_offset = header.next_offset
        self._rose = header.leader_epoch > self._epoch
        self._epoch = header.leader_epoch
        return gap


class _Held(NamedTuple):
    """The last good batch, held back because the next one may show that its offset or epoch is wrong."""

    header: BatchHeader
    position: int
    due: int
    gap: bool


def verify_segment(
    segment: Segment,
    chain: Chain,
    take: Callable[[BatchHeader, int], None],
    *,
    position: int = 0,
    gap_at_end: bool = True,
    end: int | None = None,
) -> Damage | None:
    """Check each batch of a segment from ``position`` on: that it is whole, its checksum, and the rules of
    ``chain``.

    Passes each good one to ``take`` with its position; ``chain`` ends after the last. Returns the damage that
    ended the walk, if any. Unless ``gap_at_end``, a last batch that alone skips offsets and does not reach
    ``end`` is damage: the checksum does not cover its base offset, and nothing shows that it is right.
    """
    held: _Held | None = None
    damage: Damage | None = None
    while position < segment.size and damage is None:
        data = segment.file.read(position, min(SCAN_BYTES, segment.size - position))
        at = 0
        try:
            while at + BATCH_OVERHEAD <= len(data):
                header = parse_batch_header(data, at)
                if at + header.size > len(data) and at:
                    break  # read on from here
                if at + header.size > len(data):
                    data = read_batch(segment, position, header)
                verify_batch(data, header, at)
                if held is not None and chain.is_refuted(held.header, held.due, header):
                    return _as_damage(held, chain)
                chain.require(header, at)
                if held is not None:
                    take(held.header, held.position)
                due = chain.next_offset
                held = _Held(header, position + at, due, chain.take(header))
                at += header.size
            if not at:
                raise CorruptBatchError(f"{len(data)} bytes are too few for a batch", 0)
        except CorruptBatchError as error:
            damage = Damage(position + at, str(error))
        position += at
    if held is not None and held.gap and chain.gaps == 1 and chain.next_offset != end and not gap_at_end:
        return _as_damage(held, chain)
    if held is not None:
        take(held.header, held.position)
    return damage


def _as_damage(held: _Held, chain: Chain) -> Damage:
    """Return the last batch, which was held back, as damage."""
    header = held.header
    chain.next_offset = held.due
    chain.gaps -= held.gap
    if held.gap:
        return Damage(held.position, f"offset {header.base_offset} where {held.due} is due")
    return Damage(held.position, f"leader epoch {header.leader_epoch} before an older one")


def batch_follows(segment: Segment, damage: Damage, next_offset: int) -> int | None:
    """The position of a whole batch after the damage, if there is one.

    Its base offset is at least ``next_offset``, so its upper bytes are known: the search looks for them and
    the magic, and accepts a batch whose checksum is right. A ``next_offset`` that comes from a damaged base
    offset is brought into the range that the segment can hold.
    """
    # known are 4 bytes of the base offset, not its other 4, the length and the leader epoch; then the magic
    next_offset = min(max(next_offset, segment.base_offset), segment.base_offset + MAX_RELATIVE_OFFSET + 1)
    upper = next_offset.to_bytes(_BASE_OFFSET_BYTES, "big")[:4]
    pattern = re.compile(b"(?=" + re.escape(upper) + rb"[\s\S]{12}\x02)")
    window = damage.position + 1
    while window < segment.size:
        data = segment.file.read(window, SCAN_BYTES + BATCH_OVERHEAD)
        for match in pattern.finditer(data, 0, SCAN_BYTES + _SEARCHED_BYTES):
            if _is_batch(segment, window + match.start(), next_offset):
                return window + match.start()
        window += SCAN_BYTES
    return None


def damaged_range(segment: Segment, damage: Damage, due: int, end_offset: int) -> DamagedRange:
    """Return how far damage reaches where ``due`` was the next offset: up to the next whole batch, or up to
    the segment's end, which is at ``end_offset``.
    """
    resume = batch_follows(segment, damage, due)
    if resume is None:
        return DamagedRange(damage.position, segment.size, due, end_offset, damage.reason)
    header = parse_batch_header(segment.file.read(resume, BATCH_OVERHEAD))
    return DamagedRange(damage.position, resume, due, header.base_offset, damage.reason)


def may_follow(header: BatchHeader, next_offset: int, segment_base: int) -> bool:
    """Return whether a batch may stand where ``next_offset`` is due.

    Base offsets are outside of the checksum: they must rise and lie within the reach of the indexes.
    """
    return (
        header.base_offset >= next_offset
        and header.last_offset_delta >= 0
        and header.last_offset - segment_base <= MAX_RELATIVE_OFFSET
    )


def _is_batch(segment: Segment, position: int, next_offset: int) -> bool:
    try:
        header = parse_batch_header(segment.file.read(position, BATCH_OVERHEAD))
        verify_batch(read_batch(segment, position, header), header)
    except CorruptBatchError:
        return False
    return header.base_offset >= next_offset


def read_batch(segment: Segment, position: int, header: BatchHeader) -> bytes:
    """The bytes of a batch. Raises CorruptBatchError if the segment ends before it does."""
    if header.size > segment.size - position:
        missing = header.size - (segment.size - position)
        raise CorruptBatchError(f"batch of {header.size} bytes cut short by {missing}", 0)
    return segment.file.read(position, header.size)


class Salvaged(NamedTuple):
    """A whole batch with the right checksum; or no records, and ``damage`` says what is wrong there.

    ``offset`` is the batch's base offset, or the offset that was due.
    """

    records: bytes
    offset: int
    file: str
    position: int
    damage: str = ""


def salvage_segments(segments: Sequence[Segment], offset: int) -> Iterator[Salvaged]:
    """Everything from ``offset`` on, in order. After damage the walk continues with the next whole batch of
    the segment, or else in the next segment. Raises OSError.
    """
    due = segments[0].base_offset
    for segment in segments:
        position = 0
        while position < segment.size:
            try:
                header = parse_batch_header(segment.file.read(position, BATCH_OVERHEAD))
                records = read_batch(segment, position, header)
                verify_batch(records, header)
                if not may_follow(header, due, segment.base_offset):
                    raise CorruptBatchError(f"offset {header.base_offset} where {due} is due", 0)
            except CorruptBatchError as error:
                yield Salvaged(b"", due, segment.file.path, position, str(error))
                found = batch_follows(segment, Damage(position, str(error)), due)
                position = segment.size if found is None else found
                continue
            if header.last_offset >= offset:
                yield Salvaged(records, header.base_offset, segment.file.path, position)
            due = header.next_offset
            position += header.size
