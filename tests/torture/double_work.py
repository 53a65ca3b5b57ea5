"""What a run leaves of numbers that were put out twice: who wrote them, and which offsets the group had."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kohort.log import decode_records
from kohort.offsets_topic import OffsetCommitted, OffsetDeleted, decode
from kohort.protocol import BatchHeader, CorruptBatchError, ErrorCode, KohortError, iter_batches
from tests.torture.history import FetchedOffset

#: Most lines of each kind.
MOST_LINES = 150


def set_back(fetched: Iterable[FetchedOffset]) -> list[str]:
    """Answers that told an offset below one that was told before they were asked for; none is below all."""
    places: dict[tuple[str, str, int], list[FetchedOffset]] = defaultdict(list)
    for each in fetched:
        if not each.error:
            places[each.group, each.topic, each.partition].append(each)
    return [text for told in places.values() for text in _set_back(told)]


def _set_back(told: Sequence[FetchedOffset]) -> Iterator[str]:
    before = sorted(told, key=lambda each: each.answered)
    highest, at = -1, 0
    for each in sorted(told, key=lambda each: each.asked):
        while before[at].answered < each.asked:
            highest = max(highest, before[at].offset)
            at += 1
        if each.offset < highest:
            yield f"{each.group}: {each.topic}-{each.partition} was {highest}, then {each.offset}"


def traces(
    folder: Path, group: str, fetched: Iterable[FetchedOffset], errors: Path, found: Sequence[Sequence[int]]
) -> str:
    """Of each partition with numbers that are there twice: what wrote them from ``source`` to ``target``, by
    the files in the data ``folder``, and the offsets of the group.
    """
    lines = []
    for partition, numbers in enumerate(found):
        doubled = {number for number, times in Counter(numbers).items() if times > 1}
        if doubled:
            answers = [
                f"told {each.offset} {ErrorCode(each.error).name}, ticks {each.asked} to {each.answered}"
                for each in fetched
                if (each.group, each.topic, each.partition) == (group, "source", partition)
            ]
            begun = errors.read_text(errors="replace").splitlines() if errors.exists() else []
            for kind in (
                _writes(folder, "source", partition, doubled),
                _writes(folder, "target", partition, doubled),
                _commits(folder, group, partition),
                answers,
                (line for line in begun if f" reads {partition} from " in line),
            ):
                lines += list(kind)[:MOST_LINES]
    return "\n".join(lines)


def _batches(folder: Path) -> Iterator[tuple[BatchHeader, list[tuple[bytes | None, bytes | None]]]]:
    """The batches of a partition up to the first damage, with key and value of each record."""
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        try:
            for position, header in iter_batches(data):
                records = decode_records(data, header, position)
                yield header, [(key, value) for _, _, key, value in records]
        except CorruptBatchError:
            return


def _by(header: BatchHeader) -> str:
    return f"producer {header.producer_id} epoch {header.producer_epoch}, {header.max_timestamp_ms} ms"


def _end(header: BatchHeader, key: bytes | None) -> str:
    return f"{header.base_offset}: {'commit' if key and key[3] else 'abort'} by {_by(header)}"


def _writes(folder: Path, topic: str, partition: int, wanted: set[int]) -> Iterator[str]:
    """The batches with these numbers, and the ends of transactions."""
    for header, records in _batches(folder / f"{topic}-{partition}"):
        if header.control:
            yield f"{topic} {_end(header, records[0][0])}"
            continue
        numbers = [int(value or b"-1") for _, value in records]
        if not wanted.isdisjoint(numbers):
            yield (
                f"{topic} {header.base_offset}: {numbers[0]} to {numbers[-1]} by {_by(header)}, "
                f"sequence {header.base_sequence}, leader epoch {header.leader_epoch}"
            )


def _commits(folder: Path, group: str, partition: int) -> Iterator[str]:
    """What the log has of a group's offset of ``source``, and the ends of transactions."""
    for place in sorted(folder.glob("__consumer_offsets-*")):
        ends: list[str] = []
        for header, records in _batches(place):
            if header.control:
                ends.append(f"offsets {_end(header, records[0][0])}")
                continue
            for key, value in records:
                try:
                    record = decode(key, value)
                except KohortError:
                    continue
                if isinstance(record, OffsetCommitted | OffsetDeleted) and record[:3] == (
                    group,
                    "source",
                    partition,
                ):
                    yield from ends
                    ends = []
                    offset = record.offset if isinstance(record, OffsetCommitted) else "gone"
                    yield f"offsets {header.base_offset}: {offset} by {_by(header)}"
        yield from ends[:1]
