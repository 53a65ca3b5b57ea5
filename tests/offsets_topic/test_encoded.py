"""Records cut out of a batch undecoded: what the careful reader finds, whatever way through is taken."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kohort.log import decode_records
from kohort.offsets_topic import (
    CorruptRecordError,
    EncodedCommit,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    OtherRecord,
    Record,
    UnknownRecord,
    decode,
    decode_commit_value,
    decode_partition,
    encode,
    split_records,
)
from kohort.offsets_topic._encoded import CommitValue
from kohort.protocol import BATCH_OVERHEAD, CorruptBatchError, TopicPartition, build_batch, parse_batch_header

TIME_MS = 1_800_000_000_000
TOPIC_ID = bytes(range(1, 17))

Pair = tuple[bytes, bytes | None]


def commit(
    group: str = "g",
    topic: str = "t",
    partition: int = 0,
    offset: int = 1,
    metadata: str = "",
    topic_id: bytes = TOPIC_ID,
) -> Pair:
    return encode(OffsetCommitted(group, topic, partition, offset, -1, metadata, TIME_MS, -1, topic_id))


def payload(pairs: list[Pair]) -> bytes:
    return bytes(build_batch([(key, value, ()) for key, value in pairs], timestamp_ms=TIME_MS))[
        BATCH_OVERHEAD:
    ]


def key_of(group: bytes, partition: bytes) -> bytes:
    return b"\x00\x01" + len(group).to_bytes(2, "big") + group + partition


def joined(data: bytes, count: int) -> tuple[list[Pair], int]:
    """Key and value of all records again, and how many came undecoded."""
    pairs: list[Pair] = []
    undecoded = 0
    for piece in split_records(data, count, {}):
        if isinstance(piece, OtherRecord):
            assert piece.delta == len(pairs)
            assert piece.key is not None
            pairs.append((piece.key, piece.value))
        else:
            commits: list[EncodedCommit] = list(piece)
            pairs += [(key_of(group, partition), value) for group, partition, value in commits]
            undecoded += len(commits)
    return pairs, undecoded


NAME = st.text(max_size=6) | st.sampled_from(["group", "x" * 60, "y" * 300])
RECORD: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        OffsetCommitted,
        NAME,
        NAME,
        st.integers(-1, 2**31 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 5),
        st.sampled_from(["", "", "", "note"]),
        st.just(TIME_MS),
        st.sampled_from([-1, -1, -1, TIME_MS]),
        st.sampled_from([b"", TOPIC_ID, bytes(range(200, 216))]),
    ),
    st.builds(OffsetDeleted, NAME, NAME, st.integers(0, 9)),
    st.builds(GroupDeleted, NAME),
    st.builds(UnknownRecord, st.just(5), st.just(b"\x00\x05abc"), st.binary(max_size=9)),
)
#: Some records, each as often as the number says: runs long and short.
RUNS = st.lists(st.tuples(RECORD, st.sampled_from([1, 1, 2, 31, 33, 70, 200])), min_size=1, max_size=8)


@settings(max_examples=150)
@given(RUNS)
@example([(OffsetCommitted("g", "t", 0, 1, -1, "", TIME_MS), 9_000)])
@example([(OffsetCommitted("g", "t", 0, 1, -1, "", TIME_MS, -1, TOPIC_ID), 9_000)])
def test_what_comes_out_is_what_went_in(runs: list[tuple[Record, int]]) -> None:
    pairs = [encode(record) for record, count in runs for _ in range(count)]
    assert joined(payload(pairs), len(pairs))[0] == pairs


@pytest.mark.parametrize("topic_id", [b"", TOPIC_ID])
@pytest.mark.parametrize("count", [1, 10, 64, 100, 2_048, 9_000])
def test_plain_commits_stay_encoded(count: int, topic_id: bytes) -> None:
    pairs = [commit(f"group-{i % 10}", partition=i, offset=i * 7, topic_id=topic_id) for i in range(count)]
    assert joined(payload(pairs), count) == (pairs, count)


@pytest.mark.parametrize(
    "other",
    [
        commit(metadata="note"),
        commit("gröup"),
        encode(OffsetCommitted("g", "t", 0, 1, -1, "", TIME_MS, expire_timestamp_ms=TIME_MS)),
        encode(OffsetDeleted("g", "t", 0)),
        (b"\x00\x01\x00\x01g\x00\x01\xff\x00\x00\x00\x00", commit()[1]),
        (b"\x00\x01\x00\x01g\x00\x09t\x00\x00\x00\x00", commit()[1]),
        (commit()[0], b"\x00\x03" + bytes(22) + b"more"),
        (b"", None),
    ],
)
def test_every_other_record_comes_in_its_place(other: Pair) -> None:
    pairs = [*[commit()] * 40, other, *[commit()] * 40]
    assert joined(payload(pairs), 81) == (pairs, 80)


@pytest.mark.parametrize("topic_id", [b"", TOPIC_ID])
def test_a_value_is_decoded_as_the_careful_reader_does(topic_id: bytes) -> None:
    key, value = commit(offset=2**62, partition=7, topic_id=topic_id)
    (piece,) = split_records(payload([(key, value)]), 1, {})
    assert not isinstance(piece, OtherRecord)
    ((group, partition, kept),) = piece
    careful = decode(key, value)
    assert isinstance(careful, OffsetCommitted)
    assert decode_partition(partition) == TopicPartition(careful.topic, careful.partition)
    assert group == b"g"
    assert decode_commit_value(kept) == CommitValue(
        careful.offset, careful.leader_epoch, careful.commit_timestamp_ms, topic_id
    )


@pytest.mark.parametrize(
    ("encoded", "said"),
    [
        (b"", "key: unpack_from requires"),
        (b"\x00\x01t\x00\x00\x00", "key: a topic of 1 bytes in 6"),
        (b"\x00\x01tu\x00\x00\x00\x00", "key: a topic of 1 bytes in 8"),
        (b"\xff\xff\x00\x00\x00\x00", "key: a topic of -1 bytes in 6"),
        (b"\xff\xff\x00\x00\x00", "key: a topic of -1 bytes in 5"),
        (b"\x00\x01\xff" + bytes(4), "key: 'utf-8' codec can't decode"),
    ],
)
def test_a_partition_that_is_none_is_refused(encoded: bytes, said: str) -> None:
    with pytest.raises(CorruptRecordError, match=said):
        decode_partition(encoded)


def test_a_topic_may_have_no_name() -> None:
    assert decode_partition(b"\x00\x00" + (7).to_bytes(4, "big")) == TopicPartition("", 7)


@pytest.mark.parametrize(("count", "most"), [(60, 1), (100, 2), (8_000, 5)])
def test_many_commits_that_are_alike_are_handed_out_together(count: int, most: int) -> None:
    """Cut by one struct: that is what makes a load of millions quick."""
    data = payload([commit("a group", "a topic", partition) for partition in range(count)])
    assert len(list(split_records(data, count, {}))) <= most


@settings(max_examples=300)
@given(st.integers(1, 80), st.data())
def test_damaged_bytes_are_refused_or_read_as_the_careful_reader_reads_them(
    count: int, data: st.DataObject
) -> None:
    batch = build_batch([(*commit(partition=i), ()) for i in range(count)], timestamp_ms=TIME_MS)
    at = data.draw(st.integers(BATCH_OVERHEAD, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    try:
        careful = [(key, value) for _, _, key, value in decode_records(batch, parse_batch_header(batch))]
    except CorruptBatchError:
        careful = None
    try:
        found = [
            (piece.key, piece.value)
            if isinstance(piece, OtherRecord)
            else [(key_of(group, partition), value) for group, partition, value in piece]
            for piece in split_records(bytes(batch[BATCH_OVERHEAD:]), count, {})
        ]
    except CorruptBatchError:
        found = None
    if careful is not None and found is not None:
        flat = [pair for each in found for pair in (each if isinstance(each, list) else [each])]
        assert flat == careful
    else:
        assert found is None
