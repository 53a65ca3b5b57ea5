"""Topics that come, grow and go: what is left of them, what it costs, what a crash or a disk makes of it.

Covers: broker/metadata/topics.py, broker/metadata/lone_control.py, broker/partitions/local_logs.py.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kohort.broker import Broker, BrokerSettings
from kohort.broker.event_loop import time_slices as _turns
from kohort.broker.metadata import lone_control as _lone_control
from kohort.broker.metadata.lone_control import LoneControl
from kohort.broker.metadata.topics import Topics
from kohort.broker.metrics import Histogram
from kohort.cluster import Create, FolderStore, deleted_topic_path
from kohort.cluster.controller import NewTopic
from kohort.log import DataFolder
from kohort.log._files import OsFileSystem
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.testing import RunningBroker, running_broker
from tests.broker.metadata.topic_requests import (
    EARLIEST,
    LATEST,
    commit,
    commit_fields,
    committed,
    create_topics,
    delete_records,
    delete_topics,
    deleted_topics,
    grow,
    mark_deleted,
)
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, part, produce


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each sync of a file or folder."""
    seen: list[int] = []
    whole = os.fsync

    def noted(descriptor: int) -> None:
        seen.append(descriptor)
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return seen


def opened(folder: DataFolder) -> tuple[Topics, LoneControl]:
    """The topics of a data folder, as a broker that is alone opens it."""
    settings = BrokerSettings()
    topics = Topics(folder, settings, lambda: 1_700_000_000_000, Histogram(), replicated=False)
    control = LoneControl(topics, FolderStore(folder.path), settings)
    control.open()
    return topics, control


async def test_others_go_on_while_many_topics_are_made_and_none_of_the_names_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_turns, "SLICE_S", 0.0)
    monkeypatch.setattr(_lone_control, "_ADDED_AT_ONCE", 1)
    async with Broker(data=tmp_path) as broker:
        making = asyncio.create_task(
            broker.topics.carry_out([NewTopic(f"t.{number}") for number in range(9)])
        )
        for _ in range(3):
            await asyncio.sleep(0)
        assert broker.topics.get("t.0") is not None
        assert broker.topics.get("t.8") is None
        for taken, code in (
            ("t.8", ErrorCode.TOPIC_ALREADY_EXISTS),
            ("t_8", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ):
            with pytest.raises(KafkaError) as refused:
                await broker.topics.create(taken, 1, {})
            assert refused.value.code == code
        await making
        assert all(broker.topics.get(f"t.{number}") for number in range(9))


def test_metadata_does_not_know_a_topic_that_is_just_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_turns, "SLICE_S", 0.0)
    monkeypatch.setattr(_lone_control, "_ADDED_AT_ONCE", 1)

    def ask(wire: Wire, name: str) -> int:
        asked = part(ApiKey.METADATA, 12, "MetadataRequestTopic", name=name, topic_id=None)
        create = name == "last"
        answer = wire.call(ApiKey.METADATA, 12, topics=[asked], allow_auto_topic_creation=create)
        code: int = answer.topics[0].error_code
        return code

    wanted = [
        part(ApiKey.CREATE_TOPICS, 7, "CreatableTopic", name=name, num_partitions=1, replication_factor=1)
        for name in [*(f"t{number}" for number in range(2_000)), "last"]
    ]
    with (
        running_broker(data=tmp_path) as broker,
        Wire(broker.bootstrap) as admin,
        Wire(broker.bootstrap) as wire,
    ):
        creating = admin.send(ApiKey.CREATE_TOPICS, 7, topics=wanted, timeout_ms=5_000, validate_only=False)
        while ask(wire, "t0"):
            pass
        codes = [ask(wire, "last")]
        while codes[-1]:
            codes.append(ask(wire, "last"))
        made = admin.receive(ApiKey.CREATE_TOPICS, 7, creating)
    assert {topic.error_code for topic in made.topics} == {0}
    assert set(codes) <= {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class TestMadeAnew:
    def test_a_topic_made_anew_begins_at_0(self, wire: Wire, name: str) -> None:
        create_topic(wire, name)
        produce(wire, name, batch(10))
        assert delete_records(wire, name, 7) == 0
        delete_topics(wire, name)
        create_topic(wire, name)
        assert produce(wire, name, batch(2)).base_offset == 0
        assert [offset_at(wire, name, each).offset for each in (EARLIEST, LATEST)] == [0, 2]
        assert fetch(wire, name, 0)[0].error_code == 0

    def test_also_after_a_crash(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            produce(wire, "orders", batch(10))
            assert delete_records(wire, "orders", 7) == 0
            delete_topics(wire, "orders")
            create_topic(wire, "orders")
            produce(wire, "orders", batch(2))
            left = tmp_path.with_name("left")
            # the recorder writes its file meanwhile
            shutil.copytree(tmp_path, left, ignore=shutil.ignore_patterns("recording.db*"))
        with running_broker(data=left) as broker, Wire(broker.bootstrap) as wire:
            assert [offset_at(wire, "orders", each).offset for each in (EARLIEST, LATEST)] == [0, 2]

    def test_after_a_crash_between_the_two(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            produce(wire, "orders", batch(10))
            assert delete_records(wire, "orders", 7) == 0
            starts = (tmp_path / "log-start-offset-checkpoint").read_bytes()
            delete_topics(wire, "orders")
        (tmp_path / "log-start-offset-checkpoint").write_bytes(starts)
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            assert produce(wire, "orders", batch(2)).base_offset == 0
            assert "orders" not in (tmp_path / "log-start-offset-checkpoint").read_text()

    @pytest.mark.parametrize("linger_ms", [-1, 30])
    def test_a_commit_right_behind_the_deletion_is_not_found_in_it(self, linger_ms: int) -> None:
        with (
            running_broker(group_coordinator_append_linger_ms=linger_ms) as broker,
            Wire(broker.bootstrap) as admin,
            Wire(broker.bootstrap) as c,
        ):
            for _ in range(10):
                create_topic(admin, "orders")
                committing = c.send(ApiKey.OFFSET_COMMIT, 5, **commit_fields("g", "orders", 1_000))
                delete_topics(admin, "orders")
                c.receive(ApiKey.OFFSET_COMMIT, 5, committing)
                create_topic(admin, "orders")
                assert committed(c, "g", "orders") == -1
                delete_topics(admin, "orders")

    def test_offsets_go_though_the_broker_died_right_after_the_deletion(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            create_topic(wire, "kept")
            assert (commit(wire, "g", "orders", 5), commit(wire, "g", "kept", 6)) == (0, 0)
        mark_deleted(tmp_path, "orders")
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            assert (committed(wire, "g", "orders"), committed(wire, "g", "kept")) == (-1, 6)

    def test_a_partition_that_does_not_say_whose_it_is_is_not_taken_for_an_empty_one(
        self, tmp_path: Path
    ) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            produce(wire, "orders", batch(3))
        FolderStore(tmp_path).commit_now(Create(deleted_topic_path(uuid4()), "orders"))
        (tmp_path / "orders-0" / "partition.metadata").write_text("junk")
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert produce(wire, "orders", batch(1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not (tmp_path / ".kafka_cleanshutdown").exists()

    async def test_a_deletion_is_remembered_while_the_groups_are_loaded(self, tmp_path: Path) -> None:
        FolderStore(tmp_path).commit_now(Create(deleted_topic_path(uuid4()), "of the last run"))
        folder = DataFolder.open(tmp_path)
        topics, control = opened(folder)
        try:
            orders = await topics.create("orders", 1, {})
            topics.logs.partition("orders", 0).append(batch(1), now_ms=1_700_000_000_000)
            await topics.delete([orders])
            await topics.clear()
            await topics.create("later", 1, {})
            assert sorted(deleted_topics(tmp_path)) == ["of the last run", "orders"]
            await control.forget_deleted()
            assert deleted_topics(tmp_path) == []
        finally:
            topics.logs.close()
            folder.close()

    async def test_a_pass_that_began_before_a_deletion_takes_it_for_no_failing_disk(
        self, tmp_path: Path
    ) -> None:
        folder = DataFolder.open(tmp_path)
        topics, _ = opened(folder)
        topic = await topics.create("orders", 1, {})
        orders = topics.logs.partition("orders", 0)
        orders.append(batch(1), now_ms=1_700_000_000_000)
        await topics.delete([topic])
        orders.apply_retention(1_700_000_000_000)
        with pytest.raises(KafkaError) as refused:
            orders.append(batch(1), now_ms=1_700_000_000_000)
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics.logs.close()
        folder.close()


class TestAFailingDisk:
    @pytest.fixture
    def stuck(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Folders whose name begins with one of these cannot be renamed."""
        names: list[str] = []
        whole = OsFileSystem.rename

        def rename(fs: OsFileSystem, old: str, new: str) -> None:
            if any(os.path.basename(old).startswith(name) for name in names):
                raise OSError(errno.EIO, "broken", old)
            whole(fs, old, new)

        monkeypatch.setattr(OsFileSystem, "rename", rename)
        return names

    def test_files_that_cannot_be_removed_do_not_stand_in_the_way_later(
        self, tmp_path: Path, stuck: list[str]
    ) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders", 2)
            for number in (0, 1):
                produce(wire, "orders", batch(5), partition=number)
            stuck.append("orders-1")
            assert delete_topics(wire, "orders") == [0]
            create_topic(wire, "orders", 2)
            assert produce(wire, "orders", batch(1), partition=0).base_offset == 0
            assert produce(wire, "orders", batch(1), partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            stuck.clear()
            assert produce(wire, "orders", batch(1), partition=1).base_offset == 0

    def test_nor_after_a_start(self, tmp_path: Path, stuck: list[str]) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            produce(wire, "orders", batch(5))
            stuck.append("orders-0")
            delete_topics(wire, "orders")
            create_topic(wire, "orders")
        stuck.clear()
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert offset_at(wire, "orders", LATEST).offset == 0
            assert produce(wire, "orders", batch(1)).base_offset == 0
        assert deleted_topics(tmp_path) == []

    def test_what_cannot_be_written_down_is_not_done(
        self, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create_topic(wire, name, 2)
        produce(wire, name, batch(3))

        def broken(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", broken)
            assert create_topics(wire, [f"{name}-a", f"{name}-b"]) == {ErrorCode.KAFKA_STORAGE_ERROR}
            assert delete_topics(wire, name) == [ErrorCode.KAFKA_STORAGE_ERROR]
            assert grow(wire, name, 3).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(wire, name, 0, 0, 0)[0].high_watermark == 3
        assert fetch(wire, name, 0, 0, 0)[2].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert create_topics(wire, [f"{name}-a", f"{name}-b"]) == {0}


async def test_a_removal_that_is_given_up_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_turns, "SLICE_S", 0.0)
    async with Broker(data=tmp_path) as broker:
        topic = await broker.topics.create("orders", 10, {})
        for index in range(10):
            partition = broker.topics.logs.partition("orders", index)
            partition.append(batch(1), now_ms=1_700_000_000_000)
        await broker.topics.delete([topic])
        clearing = asyncio.create_task(broker.topics.clear())
        for _ in range(4):
            await asyncio.sleep(0)
        clearing.cancel()
        left = [path.name for path in tmp_path.glob("orders-*")]
        assert len(left) == 10
        assert 0 < len([name for name in left if name.endswith("-delete")]) < 10
        await broker.topics.clear()
        assert not list(tmp_path.glob("orders-*"))


class TestWhatItCosts:
    def test_many_topics_are_created_and_deleted_by_a_few_syncs(
        self, wire: Wire, name: str, syncs: list[int]
    ) -> None:
        names = [f"{name}-{number}" for number in range(50)]
        assert create_topics(wire, names) == {0}
        assert len(syncs) <= 2, "the file and its folder"
        for each in names[:5]:
            produce(wire, each, batch())
        syncs.clear()
        assert delete_topics(wire, *names) == [0] * 50
        assert len(syncs) <= 3, "the file, its folder, and the names in it"

    def test_so_are_those_that_metadata_makes(self, wire: Wire, name: str, syncs: list[int]) -> None:
        wanted = [
            part(ApiKey.METADATA, 8, "MetadataRequestTopic", name=f"{name}-{number}") for number in range(50)
        ]
        answer = wire.call(ApiKey.METADATA, 8, topics=wanted, allow_auto_topic_creation=True)
        assert {(topic.error_code, len(topic.partitions)) for topic in answer.topics} == {(0, 1)}
        assert len(syncs) <= 2

    def test_so_are_configs_of_many_topics(self, wire: Wire, name: str, syncs: list[int]) -> None:
        names = [f"{name}-{number}" for number in range(20)]
        create_topics(wire, names)
        syncs.clear()
        path = ("AlterConfigsResource", "AlterableConfig")
        config = part(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, *path, name="retention.ms", value="7", config_operation=0
        )
        wanted = [
            part(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                1,
                path[0],
                resource_type=2,
                resource_name=each,
                configs=[config],
            )
            for each in names
        ]
        answer = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=wanted, validate_only=False)
        assert [one.error_code for one in answer.responses] == [0] * 20
        assert len(syncs) <= 2

    def test_delete_records_writes_only_what_it_moved(self, wire: Wire, name: str, syncs: list[int]) -> None:
        create_topic(wire, name)
        produce(wire, name, batch(10))
        syncs.clear()
        assert wire.call(ApiKey.DELETE_RECORDS, 2, topics=[], timeout_ms=1_000).topics == []
        assert delete_records(wire, name, 0) == 0
        assert syncs == []
        assert delete_records(wire, name, 4) == 0
        moved = len(syncs)
        assert moved <= 4, "the log starts and the folder, the epochs and theirs"
        assert delete_records(wire, name, 3) == 0
        assert len(syncs) == moved


class TestMost:
    def test_no_more_partitions_than_apache_kafka_gives_at_a_time(
        self, broker: RunningBroker, wire: Wire, name: str
    ) -> None:
        create_topic(wire, name)
        before = (broker.data / "kohort.json").read_bytes()
        for count in (10_002, 2_000_000_000):
            refused = grow(wire, name, count)
            assert refused.error_code == ErrorCode.POLICY_VIOLATION
            assert "at most 10000 are allowed" in refused.error_message
        assert (broker.data / "kohort.json").read_bytes() == before
        assert grow(wire, name, 10_001, validate_only=True).error_code == 0

    def test_partitions_by_default_count_too(self, wire: Wire, name: str) -> None:
        many = [f"{name}-{number}" for number in range(10_001)]
        assert create_topics(wire, many, partitions=-1) == {ErrorCode.POLICY_VIOLATION}
        wanted = [part(ApiKey.METADATA, 8, "MetadataRequestTopic", name=each) for each in many]
        answer = wire.call(ApiKey.METADATA, 8, topics=wanted, allow_auto_topic_creation=True)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}

    def test_what_is_named_twice_does_not_count(self, wire: Wire, name: str) -> None:
        topics = [
            part(
                ApiKey.CREATE_TOPICS,
                7,
                "CreatableTopic",
                name=each,
                num_partitions=count,
                replication_factor=-1,
                assignments=[],
                configs=[],
            )
            for each, count in ((f"{name}-x", 6_000), (f"{name}-x", 6_000), (f"{name}-y", 1))
        ]
        answer = wire.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5_000, validate_only=True)
        assert [one.error_code for one in answer.topics] == [ErrorCode.INVALID_REQUEST, 0]

    def test_a_record_is_not_kept_for_longer_than_it_may_wait(self, wire: Wire, name: str) -> None:
        refused = create_topic(wire, name, min_compaction_lag_ms="100", max_compaction_lag_ms="99")
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert "max.compaction.lag.ms 99" in refused.error_message
        made = create_topic(wire, name, min_compaction_lag_ms="100", max_compaction_lag_ms="100")
        assert made.error_code == 0

    def test_names_of_one_request_that_differ_in_dots_only(self, wire: Wire, name: str) -> None:
        assert create_topics(wire, [f"{name}.a", f"{name}_a"]) == {0, ErrorCode.INVALID_TOPIC_EXCEPTION}


class TestTheOffsetsTopic:
    def test_it_is_not_deleted_and_does_not_grow_and_groups_stay(self, tmp_path: Path) -> None:
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            assert [commit(wire, f"g{n}", "orders", n) for n in range(8)] == [0] * 8
            assert delete_topics(wire, "__consumer_offsets") == [ErrorCode.INVALID_TOPIC_EXCEPTION]
            assert grow(wire, "__consumer_offsets", 60).error_code == ErrorCode.INVALID_PARTITIONS
            assert commit(wire, "g0", "orders", 9) == 0
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert [committed(wire, f"g{n}", "orders") for n in range(8)] == [9, *range(1, 8)]
