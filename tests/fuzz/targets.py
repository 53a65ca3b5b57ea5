"""What is fuzzed: functions of bytes that raise nothing, whatever the bytes are, unless something is wrong.

Each has the errors that its callers expect, and what must hold for what it accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from kohort.admin.assignors import group_file
from kohort.assignors import AssignorError, registry
from kohort.assignors.user_data import decode_cooperative, decode_sticky
from kohort.log import CorruptLogError, DataFolderError, LogConfig, decode_records
from kohort.log._producers import decode_snapshot
from kohort.offsets_topic import CorruptRecordError, decode
from kohort.protocol import (
    APIS,
    CorruptBatchError,
    FrameReader,
    KafkaError,
    KohortError,
    MalformedMessageError,
    ProtocolError,
    UnsupportedVersionError,
    decode_assignment,
    decode_request,
    decode_request_header,
    decode_response,
    decode_subscription,
    encode_assignment,
    encode_request,
    encode_subscription,
    iter_batches,
    subscribed_topics,
    verify_batch,
)
from kohort.spark._intent import parse_mark
from kohort.spark._offsets import OffsetsFormatError, format_offsets, parse_offsets
from kohort.spark._options import OptionsError
from kohort.spark._source_options import read_source_options
from tests.fuzz.samples import versions
from tests.log.batches import NOW_MS, batch
from tests.log.disks import FIRST, disk, opened
from tests.records import header_of, require_same_readers

#: Largest frame of the frames target, in bytes.
MAX_FRAME_BYTES = 1_000

_VERSIONS = versions()
#: Of which of them, in front of a response.
_NUMBER_BYTES: Final = 2


def frames(data: bytes) -> None:
    """The same frames however the bytes are cut; no more kept than came."""
    if not data:
        return
    cut = data[0] % len(data)
    whole, error = _cut(FrameReader(MAX_FRAME_BYTES), data[1:])
    reader = FrameReader(MAX_FRAME_BYTES)
    parts, again = _cut(reader, data[1:cut], data[max(cut, 1) :])
    assert parts == whole
    assert again == error
    assert reader.buffered_bytes <= len(data)


def _cut(reader: FrameReader, *pieces: bytes) -> tuple[list[bytes], str]:
    found: list[bytes] = []
    try:
        for piece in pieces:
            # what came before an error counts
            found.extend(reader.feed(piece))
    except ProtocolError as error:
        return found, str(error)
    return found, ""


def request(data: bytes) -> None:
    """What is read can be written, and reads the same."""
    try:
        header = decode_request_header(data)
        if header.api_key not in APIS:
            return
        body = decode_request(data, header)
    except (ProtocolError, MalformedMessageError, UnsupportedVersionError):
        return
    again = bytes(encode_request(header.api_version, 1, "me", body)[4:])
    # by their text: a number that is none equals nothing
    assert repr(decode_request(again, decode_request_header(again))) == repr(body)


def response(data: bytes) -> None:
    """As clients read them; the first two bytes say which answer it is."""
    if len(data) < _NUMBER_BYTES:
        return
    try:
        number = int.from_bytes(data[:_NUMBER_BYTES]) % len(_VERSIONS)
        decode_response(*_VERSIONS[number], data[_NUMBER_BYTES:])
    except ProtocolError:
        return


def batches(data: bytes) -> None:
    """Record batches: headers, checksums, records; also where the checksum is right by chance."""
    try:
        for position, header in iter_batches(data):
            try:
                decode_records(data, header, position)
            except CorruptBatchError:
                continue
            verify_batch(data, header, position)
    except CorruptBatchError:
        return


def records(data: bytes) -> None:
    """A byte for the number of records, then these: Python and compiled code read them alike."""
    if data:
        require_same_readers(data[1:], header_of(data[0]))


def recovery(data: bytes) -> None:
    """A segment with these bytes, after a stop that was not clean: opened and appended to, or refused."""
    fs = disk()
    fs.make_dirs(FIRST.rpartition("/")[0])
    fs.put(FIRST, data)
    try:
        log = opened(fs, LogConfig(segment_bytes=700, index_interval_bytes=60))
        end = log.log_end_offset
        log.append(batch(), now_ms=NOW_MS)
        assert log.log_end_offset == end + 1
    except (CorruptLogError, DataFolderError, KafkaError):
        return


def snapshot(data: bytes) -> None:
    """Producer snapshots."""
    try:
        decode_snapshot(data)
    except CorruptBatchError:
        return


def offsets_record(data: bytes) -> None:
    """A record of __consumer_offsets: a byte for the key's length, key, value."""
    if not data:
        return
    size = data[0]
    try:
        decode(data[1 : 1 + size], data[1 + size :] or None)
    except CorruptRecordError:
        return


def subscription(data: bytes) -> None:
    """What can be read can be written, and reads the same."""
    subscribed_topics(data)
    try:
        found = decode_subscription(data)
    except MalformedMessageError:
        return
    if found.generation >= -1:
        assert set(decode_subscription(encode_subscription(found)).topics) == set(found.topics)


def assignment(data: bytes) -> None:
    """What can be read can be written, and reads the same."""
    try:
        found = decode_assignment(data)
    except MalformedMessageError:
        return
    again = decode_assignment(encode_assignment(found.partitions, found.user_data))
    assert set(again.partitions) == set(found.partitions)


def user_data(data: bytes) -> None:
    """Of every assignor; unreadable bytes claim nothing."""
    decode_sticky(data)
    decode_cooperative(data)


def json_options(data: bytes) -> None:
    """Offsets, marks in commits' metadata, options of Spark sources, options of assignors, group files."""
    text = data.decode(errors="replace")
    parse_mark(text)
    try:
        found = parse_offsets(text)
        assert parse_offsets(format_offsets(found)) == found
    except OffsetsFormatError:
        pass
    for name in ("startingOffsets", "assign", "startingTimestamp"):
        try:
            read_source_options({name: text, "kafka.bootstrap.servers": "here:9092"}, stream=True)
        except OptionsError:
            continue
    try:
        registry._parse_options("range", text)
        group_file._read_group(group_file._parse_file(Path("group.json"), text), "group")
    except (AssignorError, KohortError, TypeError, ValueError):
        # TypeError and ValueError are what read_group makes a WorkbenchError of
        return


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": frames,
    "request": request,
    "response": response,
    "batches": batches,
    "records": records,
    "recovery": recovery,
    "snapshot": snapshot,
    "offsets-record": offsets_record,
    "subscription": subscription,
    "assignment": assignment,
    "user-data": user_data,
    "json-options": json_options,
}
