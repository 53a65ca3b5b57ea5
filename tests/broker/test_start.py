"""A start reads nothing that nobody asks for, and a broker opens no more files than it may."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kohort.log import PartitionLog
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.metadata.topic_requests import EARLIEST, LATEST, delete_records, delete_topics
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, produce
from tests.broker_process import BrokerProcess

#: Tells what a broker of its own has loaded of a client when it serves, before it loads its APIs.
ALONE = """
import asyncio, sys
from kohort.broker import Broker, broker as start
start.warm_up = lambda: None

async def main():
    async with Broker():
        print(*sorted(name for name in sys.modules if name.startswith("kohort.client.")))

asyncio.run(main())
"""


def test_a_broker_that_is_alone_loads_no_client() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["kohort.client.certificates", "kohort.client.surroundings"]


class TestAStart:
    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The folders of partitions that were opened."""
        seen: list[str] = []
        whole = PartitionLog.open.__func__  # type: ignore[attr-defined]

        def noted(cls: type[PartitionLog], path: str, *args: Any, **options: Any) -> PartitionLog:
            seen.append(os.path.basename(path))
            made: PartitionLog = whole(cls, path, *args, **options)
            return made

        monkeypatch.setattr(PartitionLog, "open", classmethod(noted))
        return seen

    def test_after_a_clean_stop_a_partition_is_opened_when_it_is_asked_for(
        self, tmp_path: Path, opened: list[str]
    ) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders", 3)
            for number in range(3):
                produce(wire, "orders", batch(3), partition=number)
        opened.clear()
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            (orders,) = (
                topic for topic in wire.call(ApiKey.METADATA, 8, topics=None).topics if topic.name == "orders"
            )
            assert [row.leader_epoch for row in orders.partitions] == [1, 1, 1]
            assert not [each for each in opened if each.startswith("orders")]
            assert offset_at(wire, "orders", LATEST, partition=1, epoch=1).offset == 3
            assert not [each for each in opened if each.startswith("orders")], "the checkpoint has the end"
            produce(wire, "orders", batch(1), partition=1)
            assert [each for each in opened if each.startswith("orders")] == ["orders-1"]
            assert offset_at(wire, "orders", LATEST, partition=1, epoch=1).offset == 4
            assert produce(wire, "orders", batch(1), partition=2).base_offset == 3
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert [offset_at(wire, "orders", LATEST, partition=n).offset for n in range(3)] == [3, 4, 4]

    def test_many_partitions_are_taken_up_without_looking_for_garbage(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert create_topic(wire, "orders", 5_000).error_code == ErrorCode.NONE
        collections: list[str] = []

        def note(phase: str, _: object) -> None:
            collections.append(phase)

        gc.callbacks.append(note)
        try:
            with running_broker(data=tmp_path):
                count = collections.count("start")
        finally:
            gc.callbacks.remove(note)
        # each partition is more than ten objects, and the collector looks after 700
        assert count < 30
        assert gc.isenabled()

    def test_after_a_stop_that_was_not_clean_all_are_read_before_anybody_asks(
        self, tmp_path: Path, opened: list[str]
    ) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders", 2)
            for number in range(2):
                produce(wire, "orders", batch(3), partition=number)
        (tmp_path / ".kafka_cleanshutdown").unlink()
        opened.clear()
        # a clean stop says of all of them that they can be trusted
        with running_broker(data=tmp_path):
            assert {"orders-0", "orders-1"} <= set(opened)

    def test_one_that_nobody_asked_for_is_deleted_with_its_topic(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            produce(wire, "orders", batch(3))
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            delete_topics(wire, "orders")
            assert not list(tmp_path.glob("orders-*"))
            create_topic(wire, "orders")
            assert offset_at(wire, "orders", LATEST).offset == 0
            assert produce(wire, "orders", batch(1)).base_offset == 0

    def test_checkpoints_keep_what_they_say_of_one_that_nobody_asked_for(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            produce(wire, "orders", batch(3))
            assert delete_records(wire, "orders", 2) == 0
        for _ in range(2):
            with running_broker(data=tmp_path) as broker:
                pass
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert offset_at(wire, "orders", EARLIEST).offset == 2

    def test_a_damaged_one_says_so_when_it_is_asked_for(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders", 2)
            for number in range(2):
                produce(wire, "orders", batch(3), partition=number)
        (tmp_path / "orders-1" / "partition.metadata").write_text("junk")
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            found = fetch(wire, "orders", 0, 0)
            assert [row.error_code for row in found] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
            assert offset_at(wire, "orders", LATEST, partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.slow(2)
def test_more_partitions_than_descriptors_are_written_and_read(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path, data=tmp_path / "data", open_files=128)
    process.start()
    try:
        with Wire(process.bootstrap) as wire:
            create_topic(wire, "orders", 150)
            for _ in range(2):
                for number in range(150):
                    assert produce(wire, "orders", batch(1), partition=number).error_code == 0
            found = fetch(wire, "orders", *[0] * 150)
            assert {(row.error_code, row.high_watermark) for row in found} == {(0, 2)}
    finally:
        process.stop()


def test_files_that_only_a_newer_version_has_stay_as_they_are(tmp_path: Path) -> None:
    newer = [tmp_path / "kohort-ledger.json", tmp_path / "kohort-ledger" / "0000.part"]
    for start in range(2):
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            if not start:
                create_topic(wire, "orders")
                newer[1].parent.mkdir()
                for path in newer:
                    path.write_bytes(b"of another build")
            produce(wire, "orders", batch(3))
    assert [path.read_bytes() for path in newer] == [b"of another build"] * 2
