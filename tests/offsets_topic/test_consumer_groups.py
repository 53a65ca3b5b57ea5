"""Records of consumer groups: golden bytes of Apache Kafka 4.3.1, and bytes that are not what they claim.

Covers: protocol/_reader.py.
"""

from __future__ import annotations

import random
import tracemalloc
from functools import partial
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.offsets_topic import (
    ClassicMetadata,
    ConsumerGroupRecord,
    CorruptRecordError,
    CurrentAssignment,
    GroupEpoch,
    GroupRecordType,
    GroupRecordValue,
    MemberMetadata,
    ResolvedRegex,
    TargetAssignment,
    TargetEpoch,
    UnknownRecord,
    decode,
    encode,
)
from tests.fuzzing import fuzzed, inputs, refused, seeds

TOPIC = UUID("f25b742e-4af4-416f-be73-a0dce75dc6bc")
TOPIC_BYTES = "f25b742e4af4416fbe73a0dce75dc6bc"
SUBSCRIPTION = bytes.fromhex("000100000001000f6b69703834382d612d613536613161ffffffff000000000000")


def golden(
    type_: int, name: str, value: GroupRecordValue | None, encoded: str | None
) -> tuple[ConsumerGroupRecord, bytes, bytes | None]:
    key = type_.to_bytes(2, "big") + b"\x00\x01g"
    if name:
        key += len(name).to_bytes(2, "big") + name.encode()
    record = ConsumerGroupRecord(GroupRecordType(type_), "g", name, value)
    return record, key, None if encoded is None else bytes.fromhex(encoded)


GOLDEN: dict[str, tuple[ConsumerGroupRecord, bytes, bytes | None]] = {
    "an epoch": golden(3, "", GroupEpoch(2, 0x1C8287508670DBE8), "0000 00000002 01 00 08 1c8287508670dbe8"),
    "an epoch without topics": golden(3, "", GroupEpoch(7), "0000 00000007 00"),
    "a member": golden(
        5,
        "m1",
        MemberMetadata(None, "r1", "wire", "/127.0.0.1", ("kip848-a-98d167",), "", 5_000),
        "0000 00 037231 0577697265 0b2f3132372e302e302e31 02 106b69703834382d612d393864313637 01 00001388 00"
        "01 00 01 00",
    ),
    "a static member": golden(
        5,
        "m2",
        MemberMetadata("i2", None, "wire", "/127.0.0.1", (), "kip848-a.*", 5_000),
        "0000 036932 00 0577697265 0b2f3132372e302e302e31 01 0b6b69703834382d612e2a 00001388 00 01 00 01 00",
    ),
    "a classic member": golden(
        5,
        "m3",
        MemberMetadata(
            None,
            None,
            "wire",
            "/127.0.0.1",
            ("kip848-a-a56a1a",),
            "",
            6_000,
            None,
            ClassicMetadata(45_000, (("range", SUBSCRIPTION[:31]),)),
        ),
        "0000 00 00 0577697265 0b2f3132372e302e302e31 02 106b69703834382d612d613536613161 01 00001770 00"
        "01 00 2e 01 0000afc8 02 0672616e6765 20"
        "000100000001000f6b69703834382d612d613536613161ffffffff00000000 00 00",
    ),
    "a target's epoch": golden(
        6, "", TargetEpoch(2, 0x1A204C0D97D), "0000 00000002 01 00 08 000001a204c0d97d"
    ),
    "a target's epoch after a migration": golden(6, "", TargetEpoch(2), "0000 00000002 00"),
    "a member's target": golden(
        7,
        "m1",
        TargetAssignment({TOPIC: (4, 5, 6)}),
        f"0000 02 {TOPIC_BYTES} 04 00000004 00000005 00000006 00 00",
    ),
    "what a member has": golden(
        8,
        "m1",
        CurrentAssignment(3, 2, 0, {TOPIC: {4: 2, 5: 3}}, {}),
        f"0000 00000003 00000002 00 02 {TOPIC_BYTES} 03 00000004 00000005 01 00 09 03 0000000200000003 01 00",
    ),
    "a member that gives up": golden(
        8,
        "m1",
        CurrentAssignment(2, 0, 1, {TOPIC: {0: 2}}, {TOPIC: {4: 2}}),
        f"0000 00000002 00000000 01 02 {TOPIC_BYTES} 02 00000000 01 00 05 02 00000002"
        f"02 {TOPIC_BYTES} 02 00000004 01 00 05 02 00000002 00",
    ),
    "a member that is away": golden(
        8, "m2", CurrentAssignment(-2, 3, 0, {}, {}), "0000fffffffe00000003000101 00"
    ),
    "a regular expression": golden(
        16,
        "kip848-a.*",
        ResolvedRegex(("kip848-a-98d167",), 123, 0x1A204C0DE21),
        "0000 02 106b69703834382d612d393864313637 000000000000007b 000001a204c0de21 00",
    ),
    **{
        f"a tombstone of type {type_}": golden(type_, "m" if type_ not in (3, 4, 6) else "", None, None)
        for type_ in GroupRecordType
    },
}


@pytest.mark.parametrize("name", GOLDEN)
def test_writes_and_reads_the_bytes_that_kafka_writes(name: str) -> None:
    record, key, value = GOLDEN[name]
    assert encode(record) == (key, value)
    assert decode(key, value) == record


def test_partitions_without_epochs_have_that_of_their_member() -> None:
    _, key, _ = GOLDEN["what a member has"]
    value = bytes.fromhex(f"0000 00000003 00000002 00 02 {TOPIC_BYTES} 03 00000004 00000005 00 01 00")
    record = decode(key, value)
    assert isinstance(record, ConsumerGroupRecord)
    assert record.value == CurrentAssignment(3, 2, 0, {TOPIC: {4: 3, 5: 3}}, {})


def test_the_partitions_of_topics_that_older_brokers_wrote_are_kept_as_they_are() -> None:
    record = decode(b"\x00\x04\x00\x01g", b"\x00\x00\x01\x00")
    assert record == UnknownRecord(4, b"\x00\x04\x00\x01g", b"\x00\x00\x01\x00")


def test_names_too_long_for_the_format_are_refused_at_writing() -> None:
    with pytest.raises(ValueError, match="32767"):
        encode(ConsumerGroupRecord(GroupRecordType.EPOCH, "g" * 32_768))
    member = MemberMetadata(None, "r" * 32_768, "c", "h", (), "", 1)
    with pytest.raises(ValueError, match="32767"):
        encode(ConsumerGroupRecord(GroupRecordType.MEMBER, "g", "m", member))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("0001 00000002 00", "version 1 is not known"),
        ("0000 00000002 01 00 09 1c8287508670dbe8 00", "does not end"),
        ("0000 00000002 01 00 08 1c82875086", "are left"),
    ],
)
def test_bytes_that_do_not_fit_are_refused_with_the_reason(value: str, says: str) -> None:
    with pytest.raises(CorruptRecordError, match=says):
        decode(b"\x00\x03\x00\x01g", bytes.fromhex(value))


def test_as_many_epochs_as_partitions_are_asked_for() -> None:
    _, key, _ = GOLDEN["what a member has"]
    value = f"0000 00000003 00000002 00 02 {TOPIC_BYTES} 03 00000004 00000005 01 00 05 02 00000002 01 00"
    with pytest.raises(CorruptRecordError, match="2 partitions of a topic with 1 epochs"):
        decode(key, bytes.fromhex(value))


TEXTS = st.text(st.characters(codec="utf-8"), max_size=9)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.lists(INT32, max_size=140, unique=True)
EPOCHS = st.dictionaries(st.uuids(), st.dictionaries(INT32, INT32, min_size=1, max_size=5), max_size=3)
CLASSIC = st.builds(
    ClassicMetadata, INT32, st.lists(st.tuples(TEXTS, st.binary(max_size=9)), max_size=3).map(tuple)
)
NAMES = st.lists(TEXTS, max_size=4).map(tuple)
OPTIONAL = st.none() | TEXTS
VALUES: dict[GroupRecordType, st.SearchStrategy[GroupRecordValue]] = {
    GroupRecordType.EPOCH: st.builds(GroupEpoch, INT32, INT64),
    GroupRecordType.MEMBER: st.builds(
        MemberMetadata,
        OPTIONAL,
        OPTIONAL,
        TEXTS,
        TEXTS,
        NAMES,
        TEXTS,
        INT32,
        OPTIONAL,
        st.none() | CLASSIC,
    ),
    GroupRecordType.TARGET_EPOCH: st.builds(TargetEpoch, INT32, INT64),
    GroupRecordType.TARGET: st.builds(
        TargetAssignment, st.dictionaries(st.uuids(), NUMBERS.map(tuple), max_size=3)
    ),
    GroupRecordType.CURRENT: st.builds(
        CurrentAssignment, INT32, INT32, st.integers(-128, 127), EPOCHS, EPOCHS
    ),
    GroupRecordType.REGEX: st.builds(ResolvedRegex, NAMES, INT64, INT64),
}


@st.composite
def records(draw: st.DrawFn) -> ConsumerGroupRecord:
    type_ = draw(st.sampled_from(list(VALUES)))
    named = type_ not in (GroupRecordType.EPOCH, GroupRecordType.TARGET_EPOCH)
    value = draw(st.none() | VALUES[type_])
    return ConsumerGroupRecord(type_, draw(TEXTS), draw(TEXTS) if named else "", value)


@given(records())
def test_what_was_written_reads_back_equal(record: ConsumerGroupRecord) -> None:
    assert decode(*encode(record)) == record


@fuzzed
@seeds
def test_damaged_records_are_read_or_refused(rng: random.Random) -> None:
    _, key, value = rng.choice(list(GOLDEN.values()))
    for damaged in inputs(value or key, rng):
        if value is None:
            refused(partial(decode, damaged, value), CorruptRecordError)
        else:
            refused(partial(decode, key, damaged), CorruptRecordError)


def test_long_texts_of_clients_are_not_kept_when_their_record_is_written() -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            record = ConsumerGroupRecord(
                GroupRecordType.MEMBER, f"g{number}" + "g" * 30_000, f"m{number}" + "m" * 30_000
            )
            assert len(record.encode()[0]) > 60_000
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1_000_000
