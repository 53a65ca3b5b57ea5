"""The search for the oldest unread records, on leaders that move, fail, or give little at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.admin.groups import oldest
from kohort.admin.groups.oldest import find_first_records
from kohort.client import BrokerConnectionError, FetchedPartition, OffsetAndTimestamp
from kohort.lag import Looked
from kohort.protocol import ErrorCode, TopicPartition
from tests.lag.test_unread import make_batch

PLACE = TopicPartition("t", 0)


class Leaders:
    """Two brokers; partitions are logs of batches. ``moved``: so many answers say that the leader moved."""

    def __init__(self, logs: Mapping[TopicPartition, list[tuple[int, bytes]]]) -> None:
        self.logs = logs
        self.starts = dict.fromkeys(logs, 0)
        self.fetches: list[dict[TopicPartition, int]] = []
        self.refreshed = 0
        self.moved = 0
        self.error = ErrorCode.NONE
        self.away = False

    @property
    def known_metadata(self) -> Any:
        return SimpleNamespace(errors={})

    def leader(self, place: TopicPartition) -> int:
        return place.partition % 2

    async def metadata(self, _topics: Iterable[str]) -> None:
        self.refreshed += 1

    async def list_offsets(self, at: Iterable[TopicPartition], **_: object) -> dict[TopicPartition, Any]:
        return {place: OffsetAndTimestamp(self.starts[place], -1, 0) for place in at}

    async def fetch(
        self, at: Mapping[TopicPartition, int], *, partition_max_bytes: int, **_: object
    ) -> dict[TopicPartition, FetchedPartition]:
        self.fetches.append(dict(at))
        if self.away:
            raise BrokerConnectionError("a:1", "away")
        found = {}
        for nth, (place, offset) in enumerate(at.items()):
            error = self.error
            if self.moved:
                self.moved, error = self.moved - 1, ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif offset < self.starts[place]:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            data = b"".join(batch for last, batch in self.logs[place] if last >= offset)
            first = next((len(batch) for last, batch in self.logs[place] if last >= offset), 0)
            # as brokers do: only the first partition gets a batch that is too large
            cut = b"" if nth and first > partition_max_bytes else data[: max(first, partition_max_bytes)]
            found[place] = FetchedPartition(error, 0, 0, -1 if error else self.starts[place], cut)
        return found


async def search(leaders: Any, wanted: Mapping[TopicPartition, set[int]]) -> Any:
    ends = {place: batches[-1][0] + 1 if batches else 0 for place, batches in leaders.logs.items()}
    return await find_first_records(leaders, wanted, ends)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from([30, 6_000, 200_000])), max_size=6),
        min_size=1,
        max_size=3,
    ),
    st.sets(st.integers(0, 69), min_size=1, max_size=8),
)
@settings(max_examples=60)
async def test_every_offset_gets_its_first_record_however_large_batches_are(
    batches: list[list[tuple[int, int]]], offsets: set[int]
) -> None:
    logs: dict[TopicPartition, list[tuple[int, bytes]]] = {}
    times: dict[TopicPartition, dict[int, int]] = {}
    for partition, sizes in enumerate(batches):
        place = TopicPartition("t", partition)
        logs[place], times[place] = [], {}
        for nth, (count, size) in enumerate(sizes):
            base = 10 * nth
            # gaps, as compaction leaves them, and batches that are empty
            records = {delta: base + delta for delta in range(0, count, 2)}
            padding = b"x" * size if count else b""
            logs[place].append((base + 9, make_batch(base, records, span=10, padding=padding)))
            times[place] |= {base + delta: time_ms for delta, time_ms in records.items()}
    wanted = {place: {at for at in offsets if at < 10 * len(logs[place])} for place in logs}
    found = await search(Leaders(logs), wanted)
    for place, unread in wanted.items():
        for offset in unread:
            behind = [at for at in times[place] if at >= offset]
            looked = found[place].found[offset]
            if behind:
                assert looked == Looked(min(behind), is_found=True, timestamp_ms=min(behind))
            else:
                assert looked == Looked(10 * len(logs[place]))


def one_log() -> Leaders:
    return Leaders({PLACE: [(9, make_batch(0, {0: 5, 9: 14})), (19, make_batch(10, {0: 20, 9: 29}))]})


async def test_offsets_of_one_batch_come_with_one_fetch() -> None:
    leaders = one_log()
    found = await search(leaders, {PLACE: {0, 4, 12}})
    assert {offset: looked.timestamp_ms for offset, looked in found[PLACE].found.items()} == {
        0: 5,
        4: 14,
        12: 29,
    }
    assert leaders.fetches == [{PLACE: 0}]


async def test_a_log_that_begins_later_is_read_from_there() -> None:
    leaders = one_log()
    leaders.starts[PLACE] = 10
    found = await search(leaders, {PLACE: {0, 4, 12}})
    assert found[PLACE].start == 10
    assert {offset: looked.timestamp_ms for offset, looked in found[PLACE].found.items()} == {
        0: 20,
        4: 20,
        12: 29,
    }
    leaders = one_log()
    leaders.starts[PLACE] = 20
    found = await search(leaders, {PLACE: {0}})
    assert found[PLACE].found == {0: Looked(20)}


async def test_a_leader_that_has_moved_is_looked_up_and_asked_again() -> None:
    leaders = one_log()
    leaders.moved = 2
    found = await search(leaders, {PLACE: {0}})
    assert found[PLACE].found[0].timestamp_ms == 5
    assert leaders.refreshed == 2
    leaders.moved = 99
    found = await search(leaders, {PLACE: {0}})
    assert found[PLACE].found == {}
    assert "NOT_LEADER_OR_FOLLOWER" in str(found[PLACE].error)
    assert len(leaders.fetches) == 3 + oldest._TRIES


async def test_what_may_not_be_read_or_is_out_of_reach_is_said() -> None:
    leaders = one_log()
    leaders.error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = await search(leaders, {PLACE: {0}})
    assert "TOPIC_AUTHORIZATION_FAILED" in str(found[PLACE].error)
    assert len(leaders.fetches) == 1
    leaders = one_log()
    leaders.away = True
    found = await search(leaders, {PLACE: {0}})
    assert "away" in str(found[PLACE].error)


async def test_a_batch_that_never_comes_whole_ends_the_search() -> None:
    leaders = Leaders({PLACE: [(9, make_batch(0, {0: 5, 9: 14})[:-1])]})
    found = await search(leaders, {PLACE: {5}})
    assert found[PLACE].found == {}
    assert "no record could be read at 5" in str(found[PLACE].error)
    assert len(leaders.fetches) <= 6


async def test_with_more_partitions_than_one_fetch_takes_each_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oldest, "_AT_ONCE", 2)
    logs = {TopicPartition("t", 2 * n): [(0, make_batch(0, {0: n}))] for n in range(5)}
    leaders = Leaders(logs)
    found = await search(leaders, {place: {0} for place in logs})
    assert [found[place].found[0].timestamp_ms for place in logs] == [0, 1, 2, 3, 4]
    assert [len(asked) for asked in leaders.fetches] == [2, 2, 1]
