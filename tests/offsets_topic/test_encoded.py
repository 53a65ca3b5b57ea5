"""Committed offsets entered undecoded: what the careful reader finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import decode_records
from kohort.offsets_topic import (
    Commits,
    CorruptRecordError,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    UnknownRecord,
    decode,
    decode_commit_value,
    decode_partition,
    encode,
)
from kohort.offsets_topic._encoded import CommitValue, load_commits
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


def loaded(data: bytes, count: int) -> tuple[dict[str, dict[TopicPartition, bytes]], list[Pair]]:
    """The plain commits, and key and value of the other records."""
    by_group: Commits = {}
    others = [(other.key or b"", other.value) for other in load_commits(data, count, by_group, {})]
    return by_group, others


def expected(pairs: list[Pair]) -> dict[str, dict[TopicPartition, bytes]]:
    """What a load enters, if all of these are plain commits."""
    by_group: dict[str, dict[TopicPartition, bytes]] = {}
    for key, value in pairs:
        record = decode(key, value)
        assert isinstance(record, OffsetCommitted)
        by_group.setdefault(record.group, {})[TopicPartition(record.topic, record.partition)] = value or b""
    return by_group


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


@settings(max_examples=60)
@given(RUNS)
def test_every_record_is_entered_or_handed_out(runs: list[tuple[Record, int]]) -> None:
    pairs = [encode(record) for record, count in runs for _ in range(count)]
    by_group, others = loaded(payload(pairs), len(pairs))
    left = iter(others)
    due = next(left, None)
    entered = []
    for pair in pairs:
        if pair == due:
            due = next(left, None)
        else:
            entered.append(pair)
    assert due is None
    assert by_group == expected(entered)


@pytest.mark.parametrize("topic_id", [b"", TOPIC_ID])
@pytest.mark.parametrize("count", [1, 64, 2_048])
def test_plain_commits_stay_encoded(count: int, topic_id: bytes) -> None:
    pairs = [commit(f"group-{i % 10}", partition=i, offset=i * 7, topic_id=topic_id) for i in range(count)]
    assert loaded(payload(pairs), count) == (expected(pairs), [])


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
    before, after = commit(offset=3), commit(partition=1)
    pairs = [*[before] * 40, other, *[after] * 40]
    by_group: Commits = {}
    for found in load_commits(payload(pairs), 81, by_group, {}):
        assert (found.delta, found.key, found.value) == (40, *other)
        assert by_group == expected([before])
    assert by_group == expected([before, after])


@pytest.mark.parametrize("topic_id", [b"", TOPIC_ID])
def test_a_value_is_decoded_as_the_careful_reader_does(topic_id: bytes) -> None:
    key, value = commit(offset=2**62, partition=7, topic_id=topic_id)
    careful = decode(key, value)
    assert isinstance(careful, OffsetCommitted)
    ((group, offsets),) = loaded(payload([(key, value)]), 1)[0].items()
    ((partition, kept),) = offsets.items()
    assert (group, partition) == ("g", TopicPartition(careful.topic, careful.partition))
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


@settings(max_examples=150)
@given(st.integers(1, 80), st.data())
def test_damaged_bytes_are_refused_or_read_as_the_careful_reader_reads_them(
    count: int, data: st.DataObject
) -> None:
    batch = build_batch([(*commit(partition=i), ()) for i in range(count)], timestamp_ms=TIME_MS)
    at = data.draw(st.integers(BATCH_OVERHEAD, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    try:
        records = decode_records(batch, parse_batch_header(batch))
    except CorruptBatchError:
        with pytest.raises(CorruptBatchError):
            loaded(bytes(batch[BATCH_OVERHEAD:]), count)
        return
    by_group, others = loaded(bytes(batch[BATCH_OVERHEAD:]), count)
    careful = [(key or b"", value) for _, _, key, value in records]
    assert by_group == expected([pair for pair in careful if pair not in others])
