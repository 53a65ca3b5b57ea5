"""The log cleaner of a broker that runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from pathlib import Path

import pytest

from kohort.broker import Broker
from kohort.broker.partitions import cleaner as _cleaner
from kohort.log import decode_records
from kohort.protocol import build_batch, iter_batches
from kohort.testing import running_broker
from tests.broker.wire import Wire, create_topic, offset_at, produce
from tests.waiting import until

COMPACT = {"cleanup_policy": "compact", "segment_bytes": "200", "min_cleanable_dirty_ratio": "0.01"}
SETTINGS = {"log.cleaner.backoff.ms": "20", "offsets.topic.num.partitions": "1"}
OFFSETS = "__consumer_offsets"
NOW_MS = 1_700_000_000_000


def record(key: str, value: str | None) -> bytes:
    content = None if value is None else value.encode()
    return bytes(build_batch([(key.encode(), content, ())], timestamp_ms=NOW_MS))


def offset_key(group: str) -> bytes:
    return b"\0\1" + len(group).to_bytes(2, "big") + group.encode() + b"\0\1t\0\0\0\0"


def offset_value(offset: int) -> bytes:
    return b"\0\3" + offset.to_bytes(8, "big") + b"\xff" * 4 + b"\0\0" + bytes(8)


def log_bytes(folder: Path) -> int:
    """Bytes of the segments: one that the cleaner takes away between list and look counts as nothing."""
    total = 0
    for path in folder.glob("*.log"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def contents(broker: Broker, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record of partition 0."""
    partition = broker.topics.logs.partition(topic, 0)
    out = []
    offset = partition.log_start_offset
    while records := bytes(partition.read(offset, 1 << 20).records):
        for position, header in iter_batches(records):
            out += [(o, key, value) for o, _, key, value in decode_records(records, header, position)]
            offset = header.next_offset
    return out


def write(broker: Broker, topic: str, *records: bytes) -> None:
    for one in records:
        broker.topics.logs.partition(topic, 0).append(one, now_ms=NOW_MS, from_client=False)


async def test_a_compacted_topic_keeps_the_newest_record_of_each_key() -> None:
    async with Broker(settings=SETTINGS) as broker:
        await broker.topics.create("table", 1, COMPACT)
        await broker.topics.create("stream", 1, {"segment_bytes": "200"})
        for topic in ("table", "stream"):
            write(broker, topic, *(record(f"k{n % 3}", f"{n}") for n in range(30)))
        await until(lambda: len(contents(broker, "table")) <= 5)
        left = contents(broker, "table")
        assert {key: value for _, key, value in left} == {b"k0": b"27", b"k1": b"28", b"k2": b"29"}
        assert all(value == str(offset).encode() for offset, _, value in left)
        assert len(contents(broker, "stream")) == 30


def test_clients_see_it(tmp_path: Path) -> None:
    with running_broker(data=tmp_path, log_cleaner_backoff_ms=20) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "table", 1, **COMPACT)
        for number in range(20):
            produce(wire, "table", record("k", str(number)))
        deadline = time.monotonic() + 10
        while log_bytes(tmp_path / "table-0") > 1_000:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert offset_at(wire, "table", -1).offset == 20
        assert offset_at(wire, "table", -2).offset == 0


async def test_it_can_be_switched_off() -> None:
    async with Broker(settings={**SETTINGS, "log.cleaner.enable": "false"}) as broker:
        await broker.topics.create("table", 1, COMPACT)
        write(broker, "table", *(record("k", f"{n}") for n in range(10)))
        await asyncio.sleep(0.1)
        assert len(contents(broker, "table")) == 10


@pytest.mark.parametrize("position", [20, 70, 130])
async def test_a_damaged_log_is_told_once_and_left_alone_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, position: int
) -> None:
    caplog.set_level(logging.ERROR)
    async with Broker(data=tmp_path, settings=SETTINGS) as broker:
        await broker.topics.create("bad", 1, {**COMPACT, "min_cleanable_dirty_ratio": "0.99"})
        await broker.topics.create("good", 1, COMPACT)
        write(broker, "bad", *(record("k", f"{n}") for n in range(10)))
        damaged = tmp_path / "bad-0" / f"{0:020d}.log"
        data = bytearray(damaged.read_bytes())
        data[position] ^= 1
        damaged.write_bytes(data)
        before = sorted((path.name, path.stat().st_size) for path in damaged.parent.glob("*.log"))
        write(broker, "good", *(record("k", f"{n}") for n in range(10)))
        await until(lambda: len(contents(broker, "good")) < 5)
        await asyncio.sleep(0.1)
        assert sorted((path.name, path.stat().st_size) for path in damaged.parent.glob("*.log")) == before
        write(broker, "bad", record("k", "still written"))
    told = [entry.getMessage() for entry in caplog.records if "is not compacted" in entry.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("bad-0 ")
    assert str(damaged) in told[0]


async def test_a_deleted_topic_ends_its_compaction_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(settings=SETTINGS) as broker:
        for number in range(20):
            topic = await broker.topics.create("table", 1, COMPACT)
            write(broker, "table", *(record("k", f"{n}") for n in range(20)))
            await asyncio.sleep(0.002 * number)
            await broker.topics.delete([topic])
            await broker.topics.clear()
    told = [entry for entry in caplog.records if entry.name.startswith("kohort")]
    assert not [entry for entry in told if entry.levelno >= logging.WARNING]


async def test_a_stop_compacts_the_offsets_topic_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cleaner, "ROLL_BYTES", 1_000)
    key, value = offset_key("g"), offset_value(7)
    async with Broker(data=tmp_path, settings=SETTINGS) as broker:
        commit = bytes(build_batch([(key, value, ())], timestamp_ms=NOW_MS))
        write(broker, OFFSETS, *([commit] * 50))
        assert len(contents(broker, OFFSETS)) == 50
    assert f"{OFFSETS} 0 50\n" in (tmp_path / "cleaner-offset-checkpoint").read_text()
    async with Broker(data=tmp_path, settings=SETTINGS) as broker:
        assert contents(broker, OFFSETS) == [(49, key, value)]


async def test_many_commits_of_few_keys_end_in_three_segments_worth(tmp_path: Path) -> None:
    segment_bytes, keys = 65_536, 100
    settings = {**SETTINGS, "offsets.topic.segment.bytes": str(segment_bytes)}
    async with Broker(data=tmp_path, settings=settings) as broker:
        for number in range(1_000):
            records = [(offset_key(f"group-{key}"), offset_value(number), ()) for key in range(keys)]
            write(broker, OFFSETS, bytes(build_batch(records, timestamp_ms=NOW_MS)))
            await asyncio.sleep(0)
        folder = tmp_path / f"{OFFSETS}-0"
        await until(lambda: log_bytes(folder) <= 3 * segment_bytes)
        newest = {key: value for _, key, value in contents(broker, OFFSETS)}
        assert newest == {offset_key(f"group-{key}"): offset_value(999) for key in range(keys)}


async def test_a_stop_does_not_wait_for_a_long_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cleaner, "_REST_S", 0.2)
    broker = Broker(data=tmp_path, settings=SETTINGS)
    await broker.start()
    await broker.topics.create("table", 1, COMPACT)
    write(broker, "table", *(record(f"k{n % 3}", f"{n}") for n in range(100)))
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await broker.stop()
    assert time.monotonic() - began < 5
    async with Broker(data=tmp_path, settings={**SETTINGS, "log.cleaner.enable": "false"}) as again:
        assert {value for _, _, value in contents(again, "table")} >= {b"97", b"98", b"99"}
    assert not [path for path in (tmp_path / "table-0").iterdir() if path.suffix in (".cleaned", ".swap")]
