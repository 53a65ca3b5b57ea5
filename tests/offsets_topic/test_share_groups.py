"""Records of share groups: golden bytes of Apache Kafka 4.3.1, and bytes that are not what they claim.

Covers: offsets_topic/group_values.py.
"""

from __future__ import annotations

import random
from functools import partial
from uuid import UUID

import pytest

from kohort.offsets_topic import (
    CorruptRecordError,
    ShareAssignment,
    ShareEpoch,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareRecordType,
    ShareRecordValue,
    ShareTopic,
    ShareTopics,
    TargetAssignment,
    TargetEpoch,
    decode,
    encode,
)
from tests.fuzzing import fuzzed, inputs, refused, seeds

ONE, TWO = UUID("688dcc3f-cbef-4556-8fe7-5eea344ec503"), UUID("ad7cd884-4752-407e-b3f4-5abf0e96465b")
A, B = ShareTopic("ta3efb67", (0, 1)), ShareTopic("tb3efb67", (0, 1, 2))


def golden(
    type_: int, member_id: str, value: ShareRecordValue | None, encoded: str | None
) -> tuple[ShareGroupRecord, bytes, bytes | None]:
    key = type_.to_bytes(2, "big") + b"\x00\x01g"
    if member_id:
        key += len(member_id).to_bytes(2, "big") + member_id.encode()
    record = ShareGroupRecord(ShareRecordType(type_), "g", member_id, value)
    return record, key, None if encoded is None else bytes.fromhex(encoded)


GOLDEN: dict[str, tuple[ShareGroupRecord, bytes, bytes | None]] = {
    "a member": golden(
        10,
        "m1",
        ShareMemberMetadata(None, "wire", "/127.0.0.1", ("ta3efb67",)),
        "00000005776972650b2f3132372e302e302e310209746133656662363700",
    ),
    "a member in a rack": golden(
        10,
        "m2",
        ShareMemberMetadata("r", "wire", "/127.0.0.1", ("ta3efb67", "tb3efb67")),
        "0000027205776972650b2f3132372e302e302e310309746133656662363709746233656662363700",
    ),
    "an epoch": golden(11, "", ShareEpoch(2, -1594770811765293256), "0000 00000002 e9de3c656a917f38 00"),
    "an epoch without topics": golden(11, "", ShareEpoch(7), "0000 00000007 0000000000000000 00"),
    "a target's epoch": golden(
        12, "", TargetEpoch(2, 0x1A21F46B12F), "0000 00000002 01 00 08 000001a21f46b12f"
    ),
    "an empty target": golden(13, "m1", TargetAssignment({}), "0000 01 00"),
    "a target": golden(
        13,
        "m1",
        TargetAssignment({ONE: (0, 1)}),
        "0000 02 688dcc3fcbef45568fe75eea344ec503 03 00000000 00000001 00 00",
    ),
    "a member that has nothing": golden(
        14, "m1", ShareAssignment(2, 0, {}), "0000 00000002 00000000 00 01 00"
    ),
    "what a member has": golden(
        14,
        "m2",
        ShareAssignment(5, 4, {TWO: (0, 1, 2), ONE: (0,)}),
        "0000 00000005 00000004 00 03 ad7cd8844752407eb3f45abf0e96465b 04 00000000 00000001 00000002 00"
        "688dcc3fcbef45568fe75eea344ec503 02 00000000 00 00",
    ),
    "topics that are being initialized": golden(
        15,
        "",
        ShareTopics({ONE: A}, {}, {}),
        "000002688dcc3fcbef45568fe75eea344ec50309746133656662363703000000000000000100010100",
    ),
    "topics that are initialized": golden(
        15,
        "",
        ShareTopics({}, {TWO: B, ONE: A}, {}),
        "00000103ad7cd8844752407eb3f45abf0e96465b09746233656662363704000000000000000100000002"
        "00688dcc3fcbef45568fe75eea344ec503097461336566623637030000000000000001000100",
    ),
    "a topic that is being deleted": golden(
        15,
        "",
        ShareTopics({}, {}, {ONE: ShareTopic("ta3efb67")}),
        "0000 01 01 02 688dcc3fcbef45568fe75eea344ec503 09 7461336566623637 00 00",
    ),
    **{
        f"a tombstone of type {type_}": golden(type_, "m" if type_ in (10, 13, 14) else "", None, None)
        for type_ in ShareRecordType
    },
}


@pytest.mark.parametrize("name", GOLDEN)
def test_writes_and_reads_the_bytes_that_kafka_writes(name: str) -> None:
    record, key, value = GOLDEN[name]
    assert encode(record) == (key, value)
    assert decode(key, value) == record


@pytest.mark.parametrize("name", GOLDEN)
def test_each_record_says_its_fields(name: str) -> None:
    record, _, value = GOLDEN[name]
    kind, fields = record.readable()
    assert kind.startswith("share group ")
    assert kind.endswith("tombstone") == (value is None)
    assert fields["group"] == "g"
    assert fields.get("member", "") == record.member_id


def test_topics_are_shown_by_their_ids_with_name_and_partitions() -> None:
    _, fields = GOLDEN["topics that are initialized"][0].readable()
    assert fields["initialized"] == {str(TWO): B._asdict(), str(ONE): A._asdict()}
    _, fields = GOLDEN["a target"][0].readable()
    assert fields["partitions"] == {str(ONE): [0, 1]}


@pytest.mark.parametrize("name", [name for name, row in GOLDEN.items() if row[2]])
def test_a_record_that_is_cut_or_of_a_newer_version_is_refused(name: str) -> None:
    _, key, value = GOLDEN[name]
    assert value is not None
    for size in range(len(value)):
        with pytest.raises(CorruptRecordError):
            decode(key, value[:size])
    with pytest.raises(CorruptRecordError, match="version 1"):
        decode(key, b"\x00\x01" + value[2:])


@fuzzed
@seeds
def test_damaged_records_are_read_or_refused(rng: random.Random) -> None:
    _, key, value = rng.choice([row for row in GOLDEN.values() if row[2]])
    for damaged in inputs(value or b"", rng):
        refused(partial(decode, key, damaged), CorruptRecordError)
