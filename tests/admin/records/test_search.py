"""Records are found step by step, from the end or forwards: each once, in bounded steps."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kohort.admin.records import search
from kohort.admin.records.search import (
    FoundRecords,
    OffsetSpan,
    RecordSearch,
    SearchCursor,
    StepBounds,
    read_cursor,
    read_found,
    search_step,
)
from kohort.client import Cluster, FetchedPartition
from kohort.consumer.record import Record
from kohort.producer import Producer
from kohort.protocol import KafkaError, TopicPartition

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
Place = tuple[int, int]

#: The time of the first record, in ms; each later one is a second later.
BEGAN_MS = 1_750_000_000_000


@pytest.fixture
async def cluster(bootstrap: str) -> AsyncIterator[Cluster]:
    async with Cluster(bootstrap, default_api_timeout_ms=20_000) as found:
        yield found


async def fill(bootstrap: str, topic: str, count: int, *, partitions: int = 1, **settings: Any) -> None:
    """Write records 0 to ``count - 1``, dealt in turn, a second apart, some to a batch."""
    async with Producer(bootstrap=bootstrap, **settings) as producer:
        for partition in range(partitions):
            numbers = range(partition, count, partitions)
            for first in range(0, len(numbers), 7):
                rows = [
                    (b"k%d" % number, b"v%d" % number, (), BEGAN_MS + 1_000 * number)
                    for number in numbers[first : first + 7]
                ]
                await (await producer.send_batch(topic, partition, rows))


def place_of(record: Record) -> Place:
    return record.partition, record.offset


def number_of(record: Record) -> int:
    return int((record.value or b"v-1")[1:])


async def steps(
    cluster: Cluster, asked: RecordSearch, keep: Callable[[Record], Any] = number_of, **bounds: Any
) -> list[FoundRecords[Any]]:
    """All steps of a search; each goes on from the text of the one before."""
    made: list[FoundRecords[Any]] = []
    cursor = None
    while not made or made[-1].has_more:
        made.append(await search_step(cluster, asked, keep, cursor, StepBounds(**bounds), 20))
        cursor = read_cursor(made[-1].cursor.text())
        assert cursor == made[-1].cursor
        assert len(made) < 200
    return made


async def find_all(cluster: Cluster, asked: RecordSearch, **bounds: Any) -> list[Any]:
    return [each for step in await steps(cluster, asked, **bounds) for each in step.found]


@pytest.mark.parametrize("found", [1, 9, 50, 500])
async def test_pages_have_each_record_once_in_the_order_of_time(
    cluster: Cluster, bootstrap: str, new_topic: Topics, found: int
) -> None:
    topic = new_topic("paged", partitions=3)
    await fill(bootstrap, topic, 60, partitions=3)
    newest = await find_all(cluster, RecordSearch(topic), found=found)
    oldest = await find_all(cluster, RecordSearch(topic, newest_first=False), found=found)
    assert newest == [*reversed(range(60))]
    assert oldest == [*range(60)]


async def test_a_partition_an_offset_and_times_bound_a_search(
    cluster: Cluster, bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("bounded", partitions=2)
    await fill(bootstrap, topic, 40, partitions=2)
    one = RecordSearch(topic, [1], newest_first=False)
    assert await find_all(cluster, one) == [*range(1, 40, 2)]
    assert await find_all(cluster, replace(one, offset=17)) == [35, 37, 39]
    assert await find_all(cluster, replace(one, offset=2, newest_first=True)) == [5, 3, 1]
    timed = RecordSearch(topic, since_ms=BEGAN_MS + 10_000, until_ms=BEGAN_MS + 14_000)
    assert await find_all(cluster, timed) == [14, 13, 12, 11, 10]
    assert await find_all(cluster, replace(timed, since_ms=BEGAN_MS + 10**9)) == []
    with pytest.raises(KafkaError, match="has partitions 0 to 1, not 7"):
        await search_step(cluster, replace(one, partitions=[7]), number_of)
    with pytest.raises(KafkaError, match="does not exist"):
        await search_step(cluster, RecordSearch("no-such-topic"), number_of)


async def test_records_far_behind_the_end_of_a_range_of_time_are_not_read(
    cluster: Cluster, bootstrap: str, new_topic: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "DISORDER_MS", 2_000)
    topic = new_topic("timed", partitions=1)
    await fill(bootstrap, topic, 400)
    asked = RecordSearch(topic, since_ms=BEGAN_MS + 5_000, until_ms=BEGAN_MS + 8_000, newest_first=False)
    [step] = await steps(cluster, asked)
    assert step.found == [5, 6, 7, 8]
    assert step.cursor.total == 5


async def test_a_search_for_something_rare_ends_each_step_at_its_bounds_and_goes_on(
    cluster: Cluster, bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("rare", partitions=2)
    await fill(bootstrap, topic, 3_000, partitions=2)
    asked = RecordSearch(topic, matches=lambda record: record.value in (b"v3", b"v2500"))
    made = await steps(cluster, asked, records=400)
    assert [each for step in made for each in step.found] == [2_500, 3]
    assert len(made) > 3
    looked = [step.cursor.looked_at for step in made]
    assert looked == sorted(looked)
    assert looked[-1] == made[-1].cursor.total == 3_000
    assert made[-1].cursor.records >= 3_000
    # a step that is spent has looked at no more than its bound and the batch that a window ends in
    assert max(after - before for before, after in zip([0, *looked], looked, strict=False)) <= 500


@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_step_ends_after_so_many_bytes(
    cluster: Cluster, bootstrap: str, new_topic: Topics, newest_first: bool
) -> None:
    topic = new_topic("large", partitions=1, max_message_bytes=str(2 * 1024 * 1024))
    async with Producer(bootstrap=bootstrap) as producer:
        for _ in range(24):
            await producer.send_and_wait(topic, b"x" * 900_000)
    asked = RecordSearch(topic, newest_first=newest_first, matches=lambda _: False)
    made = await steps(cluster, asked, lambda _: None, found=2, size=4_000_000)
    assert len(made) > 2
    assert made[-1].cursor.size == 24 * 900_000
    sizes = [step.cursor.size for step in made]
    assert max(after - before for before, after in zip([0, *sizes], sizes, strict=False)) <= 12_000_000


async def test_more_partitions_than_are_read_at_a_time_are_read_in_turn(
    cluster: Cluster, bootstrap: str, new_topic: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PARTITIONS_AT_ONCE", 4)
    topic = new_topic("many", partitions=13)
    await fill(bootstrap, topic, 130, partitions=13)
    for newest_first in (True, False):
        made = await steps(cluster, RecordSearch(topic, newest_first=newest_first), found=11)
        assert sorted(each for step in made for each in step.found) == [*range(130)]
        assert (made[-1].cursor.looked_at, made[-1].cursor.total) == (130, 130)
        assert all(len(step.cursor.spans) <= 4 for step in made)


async def test_an_empty_topic_has_nothing_to_find(cluster: Cluster, new_topic: Topics) -> None:
    topic = new_topic("empty", partitions=2)
    [step] = await steps(cluster, RecordSearch(topic))
    assert (step.found, step.cursor.total, step.notes) == ([], 0, [])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_batches_are_read(
    cluster: Cluster, bootstrap: str, new_topic: Topics, codec: str
) -> None:
    topic = new_topic("packed", partitions=1)
    await fill(bootstrap, topic, 30, compression=codec)
    assert await find_all(cluster, RecordSearch(topic), found=4) == [*reversed(range(30))]


async def test_records_of_open_and_aborted_transactions_are_found_unless_they_are_not_wanted(
    cluster: Cluster, bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("transactions", partitions=1)
    settings = {"bootstrap": bootstrap, "transactional_id": f"writer-of-{topic}"}
    async with Producer(**settings) as producer:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"v1")
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"v2")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"v3")
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"v4")
        asked = RecordSearch(topic)
        everything = await find_all(cluster, asked, found=2)
        committed = await find_all(cluster, replace(asked, read_committed=True), found=2)
        exported = [row async for row in exported_numbers(cluster, replace(asked, read_committed=True))]
        await producer.abort_transaction()
    assert everything == [4, 3, 2, 1]
    assert committed == [3, 1]
    assert exported == [1, 3]


async def exported_numbers(cluster: Cluster, asked: RecordSearch) -> AsyncIterator[int]:
    async for records in read_found(cluster, asked, lambda _: None, 20):
        for record in records:
            yield number_of(record)


async def test_everything_that_is_found_is_read_for_an_export(
    cluster: Cluster, bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("exported", partitions=2)
    await fill(bootstrap, topic, 40, partitions=2)
    even = RecordSearch(topic, matches=lambda record: number_of(record) % 4 < 2)
    found = [number async for number in exported_numbers(cluster, even)]
    assert found == [*range(0, 40, 4), *range(1, 40, 4)]
    # the same records as the search has from an offset back, in the order of the log
    back = RecordSearch(topic, [0], offset=3)
    assert [number async for number in exported_numbers(cluster, back)] == [0, 2, 4, 6]


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """``damage(7, 61)`` damages byte 61 of the batch that begins at offset 7, each time it is fetched."""

    def begin(base_offset: int, byte: int) -> None:
        real = Cluster.fetch

        async def fetch(cluster: Cluster, *given: Any, **more: Any) -> dict[TopicPartition, FetchedPartition]:
            answer = await real(cluster, *given, **more)
            return {
                place: replace(row, records=_broken(row.records, base_offset, byte))
                for place, row in answer.items()
            }

        monkeypatch.setattr(Cluster, "fetch", fetch)

    return begin


def _broken(records: bytes | memoryview, base_offset: int, byte: int) -> bytes:
    data, position = bytearray(records), 0
    while len(data) - position > 61:
        if int.from_bytes(data[position : position + 8], "big") == base_offset:
            data[position + byte] ^= 0xFF
            break
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return bytes(data)


@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_damaged_batch_is_passed_and_told(
    cluster: Cluster,
    bootstrap: str,
    new_topic: Topics,
    damage: Callable[[int, int], None],
    newest_first: bool,
) -> None:
    topic = new_topic("damaged", partitions=1)
    await fill(bootstrap, topic, 21)
    damage(7, 65)
    made = await steps(cluster, RecordSearch(topic, newest_first=newest_first), found=500)
    assert sorted(each for step in made for each in step.found) == [*range(7), *range(14, 21)]
    notes = [note for step in made for note in step.notes]
    assert any(f"{topic}-0: offsets" in note and "13 are damaged" in note for note in notes)


async def test_where_a_batch_does_not_say_how_long_it_is_the_rest_is_not_read(
    cluster: Cluster, bootstrap: str, new_topic: Topics, damage: Callable[[int, int], None]
) -> None:
    topic = new_topic("broken", partitions=1)
    await fill(bootstrap, topic, 21)
    # the byte of the format's version
    damage(7, 16)
    [step] = await steps(cluster, RecordSearch(topic, newest_first=False), found=500)
    assert step.found == [*range(7)]
    assert any("from offset 7 on it is damaged" in note for note in step.notes)


def test_a_cursor_survives_its_text() -> None:
    made = SearchCursor({0: OffsetSpan(0, 5), 99: OffsetSpan(2**40, 2**62)}, 100, 7, 2**62, 8, 9)
    assert read_cursor(made.text()) == made
    largest = SearchCursor(
        {number: OffsetSpan(2**62, 2**63 - 1) for number in range(100)}, 2**31, *[2**62] * 4
    )
    # an address may have about 30 KB
    assert len(largest.text()) < search._MOST_CURSOR
    assert read_cursor(largest.text()) == largest


def packed(value: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(value).encode())).decode()


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


HOSTILE: Sequence[str] = (
    "x",
    "é",
    "A" * 100_000,
    packed("no list"),
    packed([[], 1, 2, 3, 4]),
    packed([[], 1, 2, 3, 4, "5"]),
    packed([[], 1, 2, 3, 4, True]),
    packed([[], 1, 2, 3, 4, 2**70]),
    packed([[], 1, 2, 3, 4, -5]),
    packed([[[1, 2]], 1, 2, 3, 4, 5]),
    packed([[[-1, 2, 3]], 1, 2, 3, 4, 5]),
    packed([[[number, 0, 1] for number in range(101)], 1, 2, 3, 4, 5]),
    packed([[[[1], 2, 3]], 1, 2, 3, 4, 5]),
    packed([1.5] * 6),
    packed(nested(900)),
    # 50 MB of zeros
    base64.urlsafe_b64encode(zlib.compress(b"0" * 50_000_000, 9)).decode()[:12_000],
    base64.urlsafe_b64encode(zlib.compress(b"[" * 90_000, 9)).decode(),
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no place to go on from"):
        read_cursor(text)
