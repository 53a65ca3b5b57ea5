"""What a load leaves in a shard: the same, however its records came."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator import CoordinatorEvent, RecordSkipped, ShardLoading
from kohort.coordinator.engine.loader import Loader
from kohort.coordinator.groups.durable import Durable, OffsetEntry
from kohort.coordinator.groups.groups import Groups, GroupShard
from kohort.coordinator.groups.shards import group_shard
from kohort.coordinator.settings import GroupSettings
from kohort.offsets_topic import NONE, OffsetCommitted, OffsetDeleted, StoredBatch, encode
from kohort.protocol import TopicPartition, build_batch, parse_batch_header
from tests.coordinator.bodies import START_MS
from tests.coordinator.memory_log import MemoryLog, coordinator

Batches = list[tuple[list[tuple[bytes, bytes | None]], int]]


def stored(batches: Batches) -> list[StoredBatch]:
    """Batches as the store hands them out; with a producer id they are a transaction's."""
    made, offset = [], 0
    for pairs, producer_id in batches:
        data = build_batch(
            [(key, value, ()) for key, value in pairs],
            timestamp_ms=START_MS,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
        )
        made.append(StoredBatch(offset, "f.log", 0, header=parse_batch_header(data), data=bytes(data)))
        offset += len(pairs)
    return made


def marker(producer_id: int, *, committed: bool) -> StoredBatch:
    data = build_batch(
        [(b"\x00\x00\x00\x01" if committed else bytes(4), bytes(6), ())],
        timestamp_ms=START_MS,
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    return StoredBatch(0, "f.log", 0, header=parse_batch_header(data), data=bytes(data))


def load(batches: list[StoredBatch]) -> tuple[GroupShard, Loader[Groups], list[CoordinatorEvent]]:
    shard, notes = group_shard(GroupSettings(), lambda: "id"), list[CoordinatorEvent]()
    loader = Loader(shard, 3, notes.append)
    list(loader.run(batches))
    shard.activate(START_MS)
    return shard, loader, notes


def commit(group: str, partition: int, offset: int, metadata: str = "") -> tuple[bytes, bytes | None]:
    return encode(OffsetCommitted(group, "t", partition, offset, -1, metadata, START_MS))


def offsets(durable: Durable) -> dict[tuple[str, int], tuple[int, str]]:
    return {
        (group, key.partition): (entry.offset, entry.metadata)
        for group in durable.offsets
        for key, entry in durable.committed_offsets(group)
    }


ONE = st.tuples(
    st.sampled_from(["g", "h", "group"]),
    st.integers(0, 2),
    st.integers(0, 99),
    st.sampled_from(["", "m", None]),
)


@settings(max_examples=100)
@given(st.lists(st.lists(ONE, min_size=1, max_size=60), max_size=5))
def test_the_last_word_on_each_partition_wins(batches: list[list[tuple[str, int, int, str | None]]]) -> None:
    expected: dict[tuple[str, int], tuple[int, str]] = {}
    written: Batches = []
    for batch in batches:
        pairs = []
        for group, partition, offset, metadata in batch:
            if metadata is None:
                pairs.append(encode(OffsetDeleted(group, "t", partition)))
                expected.pop((group, partition), None)
            else:
                pairs.append(commit(group, partition, offset, metadata))
                expected[group, partition] = (offset, metadata)
        written.append((pairs, -1))
    shard, loader, _ = load(stored(written))
    assert offsets(shard.state.durable) == expected
    assert loader.records == sum(map(len, batches))
    assert not shard.state.durable.encoded_keys, "nobody looks for them after the load"
    for (group, partition), (offset, _) in expected.items():
        entry = shard.state.durable.offset(group, TopicPartition("t", partition))
        assert entry is not None
        assert (entry.offset, entry.commit_timestamp_ms) == (offset, START_MS)
    found = shard.state.durable.partitions_with({"t"})
    assert {(group, key.partition) for group, keys in found.items() for key in keys} == expected.keys()


def test_a_committed_transaction_is_behind_what_was_read_before_it_and_before_what_came_after() -> None:
    first, within, after = stored(
        [([commit("g", 0, 1)], -1), ([commit("g", 0, 2)], 7), ([commit("g", 0, 3)], -1)]
    )
    shard, _, _ = load([first, within, marker(7, committed=True)])
    assert offsets(shard.state.durable) == {("g", 0): (2, "")}
    shard, _, _ = load([first, within, after, marker(7, committed=True)])
    assert offsets(shard.state.durable) == {("g", 0): (3, "")}
    shard, _, _ = load([first, within, marker(7, committed=False)])
    assert offsets(shard.state.durable) == {("g", 0): (1, "")}


def test_a_batch_whose_records_are_none_is_told_and_the_rest_is_loaded() -> None:
    good, bad, last = stored(
        [([commit("g", 0, 1)], -1), ([commit("g", 1, 1)], -1), ([commit("g", 2, 1)], -1)]
    )
    broken = bytearray(bad.data)
    broken[61] += 2
    bad.data = bytes(broken)
    shard, loader, notes = load([good, bad, last])
    assert set(offsets(shard.state.durable)) == {("g", 0), ("g", 2)}
    assert (loader.skipped, loader.failed) == (1, False)
    (note,) = notes
    assert isinstance(note, RecordSkipped)
    assert (note.partition, note.offset) == (3, 1)
    assert "f.log" in note.reason


def test_what_is_read_back_is_whole() -> None:
    pair = encode(OffsetCommitted("g", "t", 0, 9, 4, "", START_MS))
    shard, _, _ = load(stored([([pair], -1)]))
    entry = OffsetEntry(9, 4, "", START_MS, NONE, -1)
    assert list(shard.state.durable.committed_offsets("g")) == [(TopicPartition("t", 0), entry)]


def test_long_runs_of_commits_are_read_back_each_with_its_partition() -> None:
    pairs = [commit(group, partition, partition) for partition in range(1_000) for group in "gh"]
    shard, _, _ = load(stored([(pairs, -1)]))
    expected = {(group, partition): (partition, "") for partition in range(1_000) for group in "gh"}
    assert offsets(shard.state.durable) == expected
    assert all(one is other for one, other in zip(*shard.state.durable.offsets.values(), strict=True))


def test_groups_that_read_the_same_partition_share_its_name() -> None:
    """A broker remembers millions of offsets of a few thousand partitions."""
    shard, _, _ = load(stored([([commit(group, 0, 1) for group in "gh"], -1)] * 2))
    first, second = (key for entries in shard.state.durable.offsets.values() for key in entries)
    assert first is second


def test_an_encoded_offset_can_be_written_over_and_deleted() -> None:
    shard, _, _ = load(stored([([commit("g", 0, 1), commit("g", 1, 1)], -1)]))
    key: Any = TopicPartition("t", 0)
    shard.apply((OffsetCommitted("g", "t", 0, 9, 4, "m", START_MS),), 10)
    shard.apply((OffsetDeleted("g", "t", 1),), 11)
    entry = shard.state.durable.offset("g", key)
    assert entry is not None
    assert (entry.offset, entry.leader_epoch, entry.record_offset) == (9, 4, 10)
    assert offsets(shard.state.durable) == {("g", 0): (9, "m")}


async def test_a_load_that_takes_long_says_where_it_is() -> None:
    log, notes = MemoryLog(partition_count=1), list[CoordinatorEvent]()
    for _ in range(5):
        log.append(0, [encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))] * 2_000, START_MS)
    clock = itertools.count(START_MS, 1_500)
    c = coordinator(log, notes, clock_ms=lambda: next(clock))
    await c.start()
    told = [note for note in notes if isinstance(note, ShardLoading)]
    assert [(note.partition, note.records) for note in told] == [(0, 8_000)]
    assert told[0].duration_ms >= 5_000
    await c.stop()
