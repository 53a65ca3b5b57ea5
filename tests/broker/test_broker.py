"""A broker's life: starts, stops, restarts, and what survives which end.

Covers: broker/assembly.py, broker/node.py, broker/partitions/local_logs.py.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import Broker, BrokerSettings, SettingsError
from kohort.broker.assembly import BrokerAssembly
from kohort.log import DataFolderInUseError
from kohort.protocol import ApiKey
from kohort.testing import running_broker
from tests.broker.metadata.topic_requests import commit, committed, deleted_topics, mark_deleted
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, part, produce
from tests.messages import request_of

LATEST = -1


async def test_it_serves_inside_its_block_and_not_after() -> None:
    async with Broker() as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        assert (host, int(port)) == ("127.0.0.1", broker.port)
        _, writer = await asyncio.open_connection(host, broker.port)
        writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, broker.port)


async def test_a_temporary_folder_goes_with_the_broker() -> None:
    async with Broker() as broker:
        assert broker.temporary
        folder = broker.data
        assert folder is not None
        assert (folder / "meta.properties").exists()
    assert not folder.exists()


async def test_a_folder_of_the_users_stays(tmp_path: Path) -> None:
    async with Broker(data=tmp_path / "new") as broker:
        cluster_id = broker.cluster_id
    assert (tmp_path / "new" / ".kafka_cleanshutdown").exists()
    async with Broker(data=tmp_path / "new") as broker:
        assert broker.cluster_id == cluster_id


async def test_a_folder_serves_one_broker(tmp_path: Path) -> None:
    async with Broker(data=tmp_path):
        with pytest.raises(DataFolderInUseError, match="in use"):
            await Broker(data=tmp_path).start()
    async with Broker(data=tmp_path):
        pass


async def test_a_port_that_is_taken_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use") as caught:
            await Broker(port=port, data=tmp_path).start()
        assert caught.value.errno == errno.EADDRINUSE
    async with Broker(port=port, data=tmp_path) as broker:
        assert broker.port == port


async def test_what_went_wrong_at_the_start_is_told_though_stopping_goes_wrong_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = BrokerAssembly.stop

    async def stop_and_fail(parts: BrokerAssembly) -> None:
        await stop(parts)
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(BrokerAssembly, "stop", stop_and_fail)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(OSError, match="Address already in use") as caught:
            await Broker(port=taken.getsockname()[1], data=tmp_path).start()
        assert "no space left" in caught.value.__notes__[0]


def test_settings_are_checked_when_it_is_made() -> None:
    with pytest.raises(SettingsError, match=r"num\.partitions=0 is not allowed"):
        Broker(settings={"num.partitions": "0"})


async def test_settings_may_be_an_object() -> None:
    async with Broker(settings=BrokerSettings(offsets_topic_num_partitions=3)) as broker:
        assert broker.topics.count_of("__consumer_offsets") == 3


async def test_a_stop_drops_the_requests_that_wait() -> None:
    async with Broker() as broker:
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        from kohort.protocol import encode_request

        join = request_of(ApiKey.JOIN_GROUP)(
            version=2,
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=[part(ApiKey.JOIN_GROUP, 2, "JoinGroupRequestProtocol", name="range", metadata=b"")],
        )
        writer.write(encode_request(2, 1, "x", join))
        await writer.drain()
        await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        while await reader.read(65536):
            pass
    writer.close()


def metadata_of(wire: Wire, topic: str) -> Any:
    asked = part(ApiKey.METADATA, 12, "MetadataRequestTopic", name=topic, topic_id=None)
    return wire.call(ApiKey.METADATA, 12, topics=[asked], allow_auto_topic_creation=False).topics[0]


def test_a_restart_keeps_topics_configs_records_and_offsets(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        made = create_topic(wire, "orders", 3, retention_ms="5000", cleanup_policy="compact,delete")
        produce(wire, "orders", batch(3))
        assert commit(wire, "billing", "orders", 2) == 0
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        topic = metadata_of(wire, "orders")
        assert (topic.topic_id, len(topic.partitions)) == (made.topic_id, 3)
        assert offset_at(wire, "orders", LATEST).offset == 3
        assert committed(wire, "billing", "orders") == 2
        resource = part(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            "DescribeConfigsResource",
            resource_type=2,
            resource_name="orders",
            configuration_keys=["retention.ms", "cleanup.policy"],
        )
        told = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource]).results[0].configs
        assert {row.name: row.value for row in told} == {
            "retention.ms": "5000",
            "cleanup.policy": "compact,delete",
        }


def test_a_restart_is_a_new_leader_epoch_for_what_was_written(tmp_path: Path) -> None:
    for epoch in range(3):
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            if not epoch:
                create_topic(wire, "orders", 2)
            first, second = metadata_of(wire, "orders").partitions
            assert (first.leader_epoch, second.leader_epoch) == (epoch, 0)
            produce(wire, "orders", batch())


def test_partitions_get_their_folders_when_first_written(tmp_path: Path) -> None:
    def folders() -> list[str]:
        return sorted(path.name for path in tmp_path.glob("*-*") if path.is_dir())

    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders", 4)
        assert folders() == []
        assert [one.high_watermark for one in fetch(wire, "orders", 0, 0, 0, 0)] == [0, 0, 0, 0]
        produce(wire, "orders", batch(), partition=2)
        assert folders() == ["orders-2"]
        assert (tmp_path / "orders-2" / "00000000000000000000.log").stat().st_size == len(batch())


def test_a_topic_copied_in_from_elsewhere_is_taken_in(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        topic_id = create_topic(wire, "orders", 3).topic_id
        produce(wire, "orders", batch(2), partition=2)
    (tmp_path / "kohort.json").unlink()
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        topic = metadata_of(wire, "orders")
        assert (topic.topic_id, len(topic.partitions)) == (topic_id, 3)
        assert offset_at(wire, "orders", LATEST, partition=2).offset == 2


def test_a_deleted_topic_whose_files_were_left_behind_does_not_come_back(tmp_path: Path) -> None:
    """As if the broker had died between its decision and the removal of the folders."""
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        create_topic(wire, "kept")
        produce(wire, "orders", batch())
        produce(wire, "kept", batch())
    mark_deleted(tmp_path, "orders")
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert metadata_of(wire, "orders").error_code == 3
        assert offset_at(wire, "kept", LATEST).offset == 1
    assert not (tmp_path / "orders-0").exists()
    assert deleted_topics(tmp_path) == []


def test_a_torn_tail_is_cut_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        produce(wire, "orders", batch(2))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with (tmp_path / "orders-0" / "00000000000000000000.log").open("ab") as log:
        log.write(batch()[:30])
    with (
        caplog.at_level(logging.WARNING, "kohort.broker"),
        running_broker(data=tmp_path) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        assert offset_at(wire, "orders", LATEST).offset == 2
    assert "orders-0" in caplog.text
    assert "cut 30 bytes" in caplog.text


def test_notes_of_the_coordinator_reach_the_caller() -> None:
    notes: list[Any] = []
    with running_broker(on_event=notes.append) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        commit(wire, "billing", "orders", 1)
        wire.call(ApiKey.DELETE_GROUPS, 1, groups_names=["billing"])
    assert "billing" in {note.group for note in notes}
