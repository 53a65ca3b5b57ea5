"""A broker while its groups are loaded, and one whose groups cannot all be loaded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import Broker
from kohort.coordinator import LoadError
from kohort.coordinator.engine.runner import ShardRunner
from kohort.offsets_topic import partition_for
from kohort.protocol import ApiKey, ErrorCode
from tests.broker.metadata.topic_requests import commit
from tests.broker.wire import Wire, create_topic


@pytest.mark.row("3.0/loading")
async def test_who_comes_while_groups_are_loaded_is_served_all_but_the_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached, gate = asyncio.Event(), asyncio.Event()
    load = ShardRunner.load

    async def slowly(runner: ShardRunner[Any]) -> None:
        reached.set()
        await gate.wait()
        await load(runner)

    monkeypatch.setattr(ShardRunner, "load", slowly)
    broker = Broker()
    starting = asyncio.create_task(broker.start())
    await reached.wait()
    answers = await asyncio.to_thread(ask_while_loading, broker.bootstrap)
    assert answers == {"Metadata": 1, "FindCoordinator": 0, "Heartbeat": 0, "DescribeGroups": 14}
    assert not starting.done()
    gate.set()
    await starting
    assert (await asyncio.to_thread(ask_while_loading, broker.bootstrap))["Heartbeat"] == 25
    await broker.stop()


def ask_while_loading(bootstrap: str) -> dict[str, int]:
    with Wire(bootstrap) as wire:
        found = wire.call(ApiKey.FIND_COORDINATOR, 2, key="g", key_type=0)
        beat = wire.call(ApiKey.HEARTBEAT, 3, group_id="g", generation_id=1, member_id="m")
        (group,) = wire.call(ApiKey.DESCRIBE_GROUPS, 5, groups=["g"]).groups
        brokers = wire.call(ApiKey.METADATA, 8, topics=None).brokers
    return {
        "Metadata": len(brokers),
        "FindCoordinator": found.error_code,
        "Heartbeat": beat.error_code,
        "DescribeGroups": group.error_code,
    }


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.row("5.7/unreadable", "5.7/strict")
async def test_what_is_damaged_of_the_offsets_topic_is_left_out_and_when_strict_nothing_is_served(
    tmp_path: Path, clean: bool
) -> None:
    """Whatever the last stop was: the first of two commits cannot be read, the second is."""
    async with Broker(data=tmp_path) as broker:
        await asyncio.to_thread(commit_some, broker.bootstrap)
    log = tmp_path / f"__consumer_offsets-{partition_for('g', 50)}" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 0xFF
    log.write_bytes(content)
    if not clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
        for checkpoint in tmp_path.glob("recovery-point-*"):
            checkpoint.unlink()
    with pytest.raises(LoadError, match="Restore the files"):
        await Broker(data=tmp_path, settings={"kohort.offsets.load.strict": "true"}).start()
    assert log.read_bytes() == content
    async with Broker(data=tmp_path) as broker:
        assert await asyncio.to_thread(fetched, broker.bootstrap) == 2
        assert await asyncio.to_thread(commit_more, broker.bootstrap) == 0
    async with Broker(data=tmp_path) as broker:
        assert await asyncio.to_thread(fetched, broker.bootstrap) == 3
    assert log.read_bytes().startswith(content)


def commit_some(bootstrap: str) -> None:
    with Wire(bootstrap) as wire:
        create_topic(wire, "t")
        for offset in (1, 2):
            assert commit(wire, "g", "t", offset) == 0


def commit_more(bootstrap: str) -> int:
    with Wire(bootstrap) as wire:
        return commit(wire, "g", "t", 3)


def fetched(bootstrap: str) -> int:
    """The group's only offset."""
    with Wire(bootstrap) as wire:
        answer = wire.call(ApiKey.OFFSET_FETCH, 5, group_id="g", topics=None)
        assert answer.error_code == ErrorCode.NONE
        (topic,) = answer.topics
        return int(topic.partitions[0].committed_offset)
