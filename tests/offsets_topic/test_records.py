"""Golden bytes of Kafka's own writer, every version read, and bytes that are not what they claim."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.offsets_topic import (
    NONE,
    CorruptRecordError,
    GroupDeleted,
    GroupStored,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    StoredMember,
    UnknownRecord,
    decode,
    encode,
    encode_all,
    records,
)
from kohort.protocol import MalformedMessageError

OFFSET_KEY = bytes.fromhex("0001 000167 000174 00000003")
TOPIC_ID = bytes.fromhex("e8d12878 b348 4c72 a773 9cf56ff941e7")
GROUP_KEY = bytes.fromhex("0002 000167")
SUBSCRIPTION = bytes.fromhex("000000000001000174ffffffff")
ASSIGNMENT = bytes.fromhex("000000000001000174000000020000000000000001ffffffff")
MEMBER = StoredMember("c-1", None, "c", "/127.0.0.1", 300000, 45000, SUBSCRIPTION, ASSIGNMENT)

GOLDEN: dict[str, tuple[Record, bytes, bytes | None]] = {
    "a committed offset": (
        OffsetCommitted("g", "t", 3, 42, 7, "m", 1000),
        OFFSET_KEY,
        bytes.fromhex("0003 000000000000002a 00000007 00016d 00000000000003e8"),
    ),
    "a committed offset of a topic with an id": (
        OffsetCommitted("g", "t", 3, 9, NONE, "", 0x1A2150644EA, NONE, TOPIC_ID),
        OFFSET_KEY,
        bytes.fromhex("0004 0000000000000009 ffffffff 01 000001a2150644ea 01 00 10") + TOPIC_ID,
    ),
    "a committed offset with metadata of a topic with an id": (
        OffsetCommitted("g", "t", 3, 42, 7, "m" * 200, 1000, NONE, TOPIC_ID),
        OFFSET_KEY,
        bytes.fromhex("0004 000000000000002a 00000007 c901")
        + b"m" * 200
        + bytes.fromhex("00000000000003e8 01 00 10")
        + TOPIC_ID,
    ),
    "a committed offset with its own expiry": (
        OffsetCommitted("g", "t", 3, 42, NONE, "", 1000, 2000),
        OFFSET_KEY,
        bytes.fromhex("0001 000000000000002a 0000 00000000000003e8 00000000000007d0"),
    ),
    "a new empty group": (
        GroupStored("g", "", 0, None, None, 1000),
        GROUP_KEY,
        bytes.fromhex("0003 0000 00000000 ffff ffff 00000000000003e8 00000000"),
    ),
    "a generation with one member": (
        GroupStored("g", "consumer", 1, "range", "c-1", 1000, (MEMBER,)),
        GROUP_KEY,
        bytes.fromhex(
            "0003 0008636f6e73756d6572 00000001 000572616e6765 0003632d31 00000000000003e8 00000001"
            "0003632d31 ffff 000163 000a2f3132372e302e302e31 000493e0 0000afc8"
            "0000000d 000000000001000174ffffffff"
            "00000019 000000000001000174000000020000000000000001ffffffff"
        ),
    ),
    "a deleted offset": (OffsetDeleted("g", "t", 3), OFFSET_KEY, None),
    "a deleted group": (GroupDeleted("g"), GROUP_KEY, None),
}


@pytest.mark.row(
    "10/offset-key",
    "10/offset-value-3",
    "10/offset-value-1",
    "10/group-key",
    "10/group-value-empty",
    "10/group-value-member",
    "5.2/2",
)
@pytest.mark.parametrize("name", GOLDEN)
def test_writes_and_reads_the_bytes_that_kafka_writes(name: str) -> None:
    record, key, value = GOLDEN[name]
    assert encode(record) == (key, value)
    assert decode(key, value) == record


def test_members_without_bytes_have_none() -> None:
    _, key, value = GOLDEN["a generation with one member"]
    assert value is not None
    for data in (SUBSCRIPTION, ASSIGNMENT):
        value = value.replace(len(data).to_bytes(4, "big") + data, b"\xff\xff\xff\xff")
    record = decode(key, value)
    assert isinstance(record, GroupStored)
    assert record.members == (MEMBER._replace(subscription=b"", assignment=b""),)


@pytest.mark.parametrize("expiry", [NONE, 2_000])
def test_the_longest_texts_are_written_and_longer_ones_refused(expiry: int) -> None:
    longest = "x" * 32_767
    record = OffsetCommitted(longest, longest, 3, 42, NONE, longest, 1_000, expiry)
    assert decode(*encode(record)) == record
    for name in ("group", "topic", "metadata"):
        longer: dict[str, Any] = {name: longest + "x"}
        with pytest.raises(ValueError, match="of 32768 bytes: shorten it below 32767"):
            encode(record._replace(**longer))


def test_many_are_written_as_each_is_and_measured() -> None:
    plain = OffsetCommitted("g", "t", 3, 42, 7, "", 1000)
    pairs = [encode(plain), *((key, value) for _, key, value in GOLDEN.values()), encode(plain)]
    size = sum(len(key) + len(value or b"") for key, value in pairs)
    assert encode_all([plain, *(record for record, _, _ in GOLDEN.values()), plain]) == (pairs, size)
    assert encode_all([]) == ([], 0)


@pytest.mark.row("5.3/offset", "5.3/expiry-none")
@pytest.mark.parametrize(
    ("value", "leader_epoch", "expire"),
    [
        ("0000 000000000000002a 00016d 00000000000003e8", NONE, NONE),
        ("0001 000000000000002a 00016d 00000000000003e8 00000000000007d0", NONE, 2000),
        ("0001 000000000000002a 00016d 00000000000003e8 ffffffffffffffff", NONE, NONE),
        ("0002 000000000000002a 00016d 00000000000003e8", NONE, NONE),
        ("0003 000000000000002a 00000007 00016d 00000000000003e8", 7, NONE),
        ("0004 000000000000002a 00000007 026d 00000000000003e8 00", 7, NONE),
        # a tagged field from the future (number 1, two bytes) is stepped over
        ("0004 000000000000002a 00000007 026d 00000000000003e8 01 01 02 abcd", 7, NONE),
        (f"0004 000000000000002a 00000007 026d 00000000000003e8 01 00 10 {'00' * 16}", 7, NONE),
    ],
    ids=["v0", "v1", "v1-no-expiry-KAFKA-8069", "v2", "v3", "v4", "v4-tagged", "v4-no-id"],
)
def test_reads_every_version_of_a_committed_offset(value: str, leader_epoch: int, expire: int) -> None:
    expected = OffsetCommitted("g", "t", 3, 42, leader_epoch, "m", 1000, expire)
    assert decode(OFFSET_KEY, bytes.fromhex(value)) == expected


@pytest.mark.row("5.2/0-1")
def test_an_old_key_of_type_0_is_an_offset_too() -> None:
    assert decode(b"\x00\x00" + OFFSET_KEY[2:], None) == OffsetDeleted("g", "t", 3)


def group_value(version: int) -> bytes:
    """The golden generation as an older or newer version would have it."""

    def text(value: str) -> bytes:
        data = value.encode()
        return bytes([len(data) + 1]) + data if version == 4 else struct.pack(">h", len(data)) + data

    def blob(value: bytes) -> bytes:
        return bytes([len(value) + 1]) + value if version == 4 else struct.pack(">i", len(value)) + value

    out = struct.pack(">h", version) + text("consumer") + struct.pack(">i", 1) + text("range") + text("c-1")
    out += struct.pack(">q", 1000) if version >= 2 else b""
    out += b"\x02" if version == 4 else struct.pack(">i", 1)
    out += text("c-1")
    out += {3: b"\xff\xff", 4: b"\x00"}.get(version, b"")
    out += text("c") + text("/127.0.0.1")
    out += struct.pack(">i", 300000) if version >= 1 else b""
    out += struct.pack(">i", 45000) + blob(SUBSCRIPTION) + blob(ASSIGNMENT)
    return out + (b"\x00\x00" if version == 4 else b"")


@pytest.mark.row("5.3/group", "1.2/state-time")
@pytest.mark.parametrize("version", range(5))
def test_reads_every_version_of_a_group(version: int) -> None:
    rebalance_timeout_ms = 300000 if version >= 1 else 45000
    expected = GroupStored(
        "g",
        "consumer",
        1,
        "range",
        "c-1",
        1000 if version >= 2 else NONE,
        (MEMBER._replace(rebalance_timeout_ms=rebalance_timeout_ms),),
    )
    assert decode(GROUP_KEY, group_value(version)) == expected


@pytest.mark.parametrize("size", [0, 126, 127, 128, 16_382, 16_383, 20_000])
def test_lengths_of_a_flexible_value_take_as_many_bytes_as_they_need(size: int) -> None:
    number, length = size + 1, b""
    while number >= 0x80:
        length, number = length + bytes([number & 0x7F | 0x80]), number >> 7
    start = b"\x00\x04\x09consumer"
    whole = group_value(4)
    assert whole.startswith(start)
    changed = b"\x00\x04" + length + bytes([number]) + b"x" * size + whole[len(start) :]
    decoded = decode(GROUP_KEY, changed)
    assert isinstance(decoded, GroupStored)
    assert (decoded.protocol_type, decoded.members[0].client_id) == ("x" * size, "c")


@pytest.mark.row("5.3/rebalance-timeout")
def test_a_rebalance_timeout_of_minus_one_is_the_session_timeout() -> None:
    record = GroupStored(
        "g", "consumer", 1, "range", "c-1", 1000, (MEMBER._replace(rebalance_timeout_ms=-1),)
    )
    key, value = encode(record)
    decoded = decode(key, value)
    assert isinstance(decoded, GroupStored)
    assert decoded.members[0].rebalance_timeout_ms == 45000


@pytest.mark.row("5.2/3-15")
@pytest.mark.parametrize("record_type", [9, 17, 22, 99])
def test_a_record_of_an_unknown_type_is_kept_as_it_is(record_type: int) -> None:
    key = struct.pack(">h", record_type) + b"whatever"
    record = decode(key, b"value")
    assert record == UnknownRecord(record_type, key, b"value")
    assert encode(record) == (key, b"value")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (None, b"", "without key"),
        (b"", b"", "2 bytes wanted at byte 0"),
        (b"\xff\xff", b"", "type 65535"),
        (OFFSET_KEY[:-1], b"", "are left"),
        (OFFSET_KEY, b"", "are left"),
        (OFFSET_KEY, b"\x00\x05", "version 5 is not known"),
        (
            OFFSET_KEY,
            bytes.fromhex("0004 000000000000002a 00000007 01 00000000000003e8 01 00 02 abcd"),
            "are left",
        ),
        (OFFSET_KEY, b"\xff\xff", "version -1 is not known"),
        (OFFSET_KEY, bytes.fromhex("0000 000000000000002a ffff 00000000000003e8"), "null"),
        (OFFSET_KEY, bytes.fromhex("0000 000000000000002a fffe 00000000000003e8"), "null"),
        (OFFSET_KEY, bytes.fromhex("0000 000000000000002a 0001ff 00000000000003e8"), "UTF-8"),
        (
            GROUP_KEY,
            bytes.fromhex("0003 0000 00000000 ffff ffff 00000000000003e8 7fffffff"),
            "array of 2147483647",
        ),
        (GROUP_KEY, bytes.fromhex("0004 ffffffffffff"), "more than five bytes"),
        (GROUP_KEY, bytes.fromhex("0004 808080808000"), "more than five bytes"),
    ],
)
def test_bytes_that_do_not_fit_are_refused_with_the_reason(
    key: bytes | None, value: bytes, says: str
) -> None:
    with pytest.raises(CorruptRecordError, match=says):
        decode(key, value)


def test_a_string_too_long_for_the_format_is_refused_at_writing() -> None:
    with pytest.raises(ValueError, match="32767"):
        encode(OffsetDeleted("g" * 32768, "t", 0))
    with pytest.raises(ValueError, match="metadata of 40000 bytes"):
        encode(OffsetCommitted("g", "t", 0, 1, NONE, "m" * 40000, 0))


def utf8_texts(max_size: int = 20) -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), max_size=max_size)


def int32s(low: int = -(2**31)) -> st.SearchStrategy[int]:
    return st.integers(low, 2**31 - 1)


INT64 = st.integers(-(2**63), 2**63 - 1)
COMMITS = st.builds(
    OffsetCommitted,
    utf8_texts(),
    utf8_texts(),
    int32s(),
    INT64,
    int32s(),
    utf8_texts(),
    INT64,
    st.just(NONE),
    st.sampled_from([b"", TOPIC_ID]),
)
EXPIRING = st.builds(
    OffsetCommitted,
    utf8_texts(),
    utf8_texts(),
    int32s(),
    INT64,
    st.just(NONE),
    utf8_texts(),
    INT64,
    st.integers(0, 2**63 - 1),
    st.just(b""),
)
MEMBERS = st.builds(
    StoredMember,
    utf8_texts(),
    st.none() | utf8_texts(),
    utf8_texts(),
    utf8_texts(),
    int32s(0),
    int32s(0),
    st.binary(max_size=30),
    st.binary(max_size=30),
)
GROUPS = st.builds(
    GroupStored,
    utf8_texts(),
    utf8_texts(),
    int32s(),
    st.none() | utf8_texts(),
    st.none() | utf8_texts(),
    INT64,
    st.lists(MEMBERS, max_size=4).map(tuple),
)
TOMBSTONES = st.builds(OffsetDeleted, utf8_texts(), utf8_texts(), int32s()) | st.builds(
    GroupDeleted, utf8_texts()
)


@given(COMMITS | EXPIRING | GROUPS | TOMBSTONES)
def test_what_was_written_reads_back_equal(record: Record) -> None:
    decoded = decode(*encode(record))
    assert decoded == record
    assert type(decoded) is type(record)


@given(st.binary(max_size=80), st.none() | st.binary(max_size=120))
def test_any_bytes_are_a_record_or_a_corrupt_one(key: bytes, value: bytes | None) -> None:
    try:
        record = decode(key, value)
    except CorruptRecordError:
        return
    assert isinstance(record, Record)


@given(COMMITS, st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 60), st.integers(0, 60))
def test_the_quick_reader_says_what_the_careful_one_says(
    record: OffsetCommitted, extra_key: bytes, extra_value: bytes, cut_key: int, cut_value: int
) -> None:
    key, value = encode(record)
    assert value is not None
    key, value = key[: 2 + cut_key] + extra_key, value[: 2 + cut_value] + extra_value
    try:
        careful: Record | None = records._read(key, value)
    except MalformedMessageError:
        careful = None
    quick = records._read_plain_offset(key, value)
    assert quick is None or quick == careful


def test_the_quick_reader_takes_what_is_plain() -> None:
    record, key, value = GOLDEN["a committed offset"]
    assert value is not None
    assert records._read_plain_offset(key, value) == record


@given(GROUPS, st.data())
def test_a_value_cut_short_anywhere_is_corrupt(record: GroupStored, data: st.DataObject) -> None:
    key, value = encode(record)
    assert value is not None
    cut = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(CorruptRecordError):
        decode(key, value[:cut])
