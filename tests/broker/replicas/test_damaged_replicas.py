"""Replicas whose files are damaged, or whose disks fail, leave their partitions to others; files that are
nobody's go.

Covers: broker/replicas/replicas.py, broker/replicas/fetcher.py, broker/partitions/partition.py.
Covers: cluster/_registration.py.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.partitions.partition import Partition
from kohort.log import CorruptLogError
from kohort.log._files import OsFile
from kohort.protocol import ErrorCode, KafkaError, build_batch
from tests.broker.clusters import Nodes, cluster, in_sync


def replica(nodes: Nodes, node_id: int, index: int = 0) -> Partition:
    return nodes.brokers[node_id].topics.logs.partition("orders", index)


def append(partition: Partition) -> None:
    partition.append(bytes(build_batch([(None, b"x", ())], timestamp_ms=0)), now_ms=0)


async def written(nodes: Nodes, count: int) -> None:
    leader = replica(nodes, nodes.state("orders").leader)
    for _ in range(count):
        append(leader)
    await nodes.until(lambda: all(replica(nodes, n).high_watermark == count for n in nodes.brokers))


def damage_records(data: Path, *, batch: int) -> Path:
    """Change a byte in the records of one of five batches, as a loss of power may where nothing was
    flushed, and only a verification sees; return the file.
    """
    [path] = (data / "orders-0").glob("*.log")
    with path.open("r+b") as file:
        file.seek((batch + 1) * path.stat().st_size // 5 - 2)
        file.write(b"\xff")
    return path


async def test_another_replica_leads_where_the_files_of_the_leader_turn_out_to_be_damaged(
    tmp_path: Path,
) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        leader = nodes.state("orders").leader
        replica(nodes, leader).damage = "somebody has changed the files"
        others = [n for n in nodes.brokers if n != leader]
        await nodes.until(lambda: nodes.state("orders", at=others[0]).leader in others)
        state = nodes.state("orders", at=others[0])
        assert set(state.isr) == set(others)
        assert state.offline == (leader,)
        with pytest.raises(KafkaError) as refused:
            replica(nodes, leader).check_usable()
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await nodes.until(lambda: replica(nodes, state.leader).leadership is not None)
        append(replica(nodes, state.leader))
        await nodes.until(lambda: replica(nodes, state.leader).high_watermark == 6)
        # its files are put right while it is stopped: it copies what it lacks
        await nodes.kill(leader)
        shutil.rmtree(tmp_path / str(leader) / "orders-0")
        await nodes.start(leader)
        await in_sync(nodes)
        assert nodes.state("orders").offline == ()
        assert replica(nodes, leader).log_end_offset == 6


async def test_a_batch_that_is_damaged_in_the_leaders_file_is_read_from_another_replica(
    tmp_path: Path,
) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        leader = nodes.state("orders").leader
        [path] = (tmp_path / str(leader) / "orders-0").glob("*.log")
        content = bytearray(path.read_bytes())
        size = len(content) // 5
        content[2 * size + 8 : 2 * size + 12] = b"\xff" * 4
        with path.open("r+b") as file:
            file.write(content)
        with pytest.raises(KafkaError) as refused:
            replica(nodes, leader).read(2, 1_000)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await nodes.until(lambda: nodes.state("orders").leader != leader)
        assert replica(nodes, nodes.state("orders").leader).read(2, 1_000).records


async def test_a_batch_that_is_damaged_in_the_only_replica_is_told(tmp_path: Path) -> None:
    async with cluster(1, data=tmp_path, offsets_topic_replication_factor=1) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        [path] = (tmp_path / "1" / "orders-0").glob("*.log")
        with path.open("r+b") as file:
            file.seek(2 * path.stat().st_size // 5 + 8)
            file.write(b"\xff" * 4)
        with pytest.raises(KafkaError) as refused:
            replica(nodes, 1).read(2, 1_000)
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
        assert replica(nodes, 1).read(4, 1_000).records


async def test_what_others_could_not_copy_is_cut_off_by_a_leader_that_was_not_in_sync(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders", configs={"unclean_leader_election_enable": True})
        leader, follower, empty = nodes.state("orders").replicas
        await nodes.kill(empty)
        await in_sync(nodes, count=2)
        await written(nodes, 5)
        await nodes.kill(follower)
        await in_sync(nodes, count=1)
        await nodes.kill(leader)
        damage_records(tmp_path / str(follower), batch=2)
        await nodes.start(follower)
        await nodes.until(lambda: replica(nodes, follower).leadership)
        append(replica(nodes, follower))
        assert "orders-0 is cut from 5 to 2, where it is damaged, and led on from there" in caplog.text
        for node_id in (empty, leader):
            await nodes.start(node_id)
        await in_sync(nodes)
        await nodes.until(lambda: all(replica(nodes, n).high_watermark == 3 for n in nodes.brokers))
        contents = [bytes(replica(nodes, n).read(0, 10_000).records) for n in nodes.brokers]
        assert contents[1:] == contents[:-1]


async def test_the_last_replica_in_sync_keeps_what_is_behind_a_damaged_batch(tmp_path: Path) -> None:
    async with cluster(1, data=tmp_path, offsets_topic_replication_factor=1) as nodes:
        await nodes.create("orders", configs={"unclean_leader_election_enable": True})
        await written(nodes, 5)
        await nodes.kill(1)
        damage_records(tmp_path / "1", batch=2)
        await nodes.start(1)
        await nodes.until(lambda: replica(nodes, 1).leadership)
        assert (replica(nodes, 1).log_end_offset, replica(nodes, 1).log.first_damaged_offset) == (5, 2)  # type: ignore[union-attr]
        assert replica(nodes, 1).read(4, 1_000).records


async def test_a_follower_whose_files_are_damaged_copies_nothing_and_holds_nothing_up() -> None:
    async with cluster() as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        leader, follower, _ = nodes.state("orders").replicas
        replica(nodes, follower).damage = "somebody has changed the files"
        replicas = nodes.brokers[follower]._require_running()._replicas
        assert replicas is not None
        assert not replicas._fetchers[leader]._partitions
        append(replica(nodes, leader))
        # long before it would be missed: it is not waited for
        await nodes.until(lambda: replica(nodes, leader).high_watermark == 6)
        assert set(nodes.state("orders").isr) == set(nodes.brokers) - {follower}


async def test_damage_that_a_follower_finds_in_cutting_its_log_is_cut_before_it_copies_on(
    tmp_path: Path,
) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        leader = nodes.state("orders").leader
        node_id = next(n for n in nodes.brokers if n != leader)
        follower = replica(nodes, node_id)
        path = damage_records(tmp_path / str(node_id), batch=1)
        with path.open("r+b") as file:
            file.seek(3 * path.stat().st_size // 5 + 8)
            file.write(b"\xff" * 4)
        assert follower.log is not None
        with pytest.raises(CorruptLogError):
            follower.log.read(3, 1_000)
        # it is known to be damaged: what stays is read again, and more is found
        replicas = nodes.brokers[node_id]._require_running()._replicas
        assert replicas is not None
        replicas._fetchers[leader]._truncate_logs([(follower, 4, False)])
        assert follower.log is not None
        assert (follower.log_end_offset, follower.log.first_damaged_offset) == (1, None)


async def test_damage_that_shows_when_other_damage_is_cut_is_cut_as_well(tmp_path: Path) -> None:
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        node_id = next(n for n in nodes.brokers if n != nodes.state("orders").leader)
        follower = replica(nodes, node_id)
        path = damage_records(tmp_path / str(node_id), batch=1)
        with path.open("r+b") as file:
            file.seek(3 * path.stat().st_size // 5 + 8)
            file.write(b"\xff" * 4)
        assert follower.log is not None
        with pytest.raises(CorruptLogError):
            follower.log.read(3, 1_000)
        follower.cut_damage("copied from its leader", now_ms=0)
        assert (follower.log_end_offset, follower.log.first_damaged_offset) == (1, None)


async def test_a_leader_whose_disk_fails_leaves_a_partition_to_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        leader = nodes.state("orders").leader

        def fails(*_: object) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as broken:
            broken.setattr(OsFile, "write", fails)
            with pytest.raises(KafkaError, match="Input/output error"):
                append(replica(nodes, leader))
        await nodes.until(lambda: nodes.state("orders").leader != leader)
        assert leader not in nodes.state("orders").isr


async def test_the_last_replica_in_sync_goes_on_serving_when_its_disk_is_full_and_when_it_is_not_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster(1, offsets_topic_replication_factor=1) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)

        def fails(*_: object) -> None:
            raise OSError(28, "no space left on device")

        with monkeypatch.context() as full:
            full.setattr(OsFile, "write", fails)
            with pytest.raises(KafkaError, match="no space left"):
                append(replica(nodes, 1))
        append(replica(nodes, 1))
        assert replica(nodes, 1).high_watermark == 6


async def test_a_partition_without_another_replica_has_no_leader_while_its_files_are_damaged(
    tmp_path: Path,
) -> None:
    async with cluster(2, data=tmp_path, offsets_topic_replication_factor=1) as nodes:
        await nodes.create("orders", configs={"unclean_leader_election_enable": False})
        first, second = nodes.state("orders").replicas
        await nodes.kill(second)
        await in_sync(nodes, count=1)
        replica(nodes, first).damage = "somebody has changed the files"
        await nodes.until(lambda: nodes.state("orders").leader == -1)
        assert nodes.state("orders").isr == (first,)
        # the other one lacks what the last one may have committed
        await nodes.start(second)
        await nodes.kill(first)
        await nodes.until(lambda: list(nodes.any().topics.image.brokers) == [second])
        assert nodes.state("orders").leader == -1
        await nodes.start(first)
        await in_sync(nodes, count=2)


async def test_a_failure_with_one_partition_keeps_no_other_from_being_led(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(2, replica_lag_time_max_ms=100, offsets_topic_replication_factor=1) as nodes:
        failed: list[int] = []
        lead = Partition.lead

        def fails_once(partition: Partition, *given: Any) -> None:
            if partition.index == 0 and not failed:
                failed.append(partition.index)
                raise RuntimeError("a mistake")
            lead(partition, *given)

        monkeypatch.setattr(Partition, "lead", fails_once)
        await nodes.create("orders", 4)
        leaders = {number: nodes.state("orders", number).leader for number in range(4)}
        await nodes.until(lambda: all(replica(nodes, at, n).leadership for n, at in leaders.items()))
        assert failed == [0]
        assert "orders-0 is neither led nor followed" in caplog.text


async def test_files_of_topics_that_were_deleted_while_a_broker_was_away_go_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(2, data=tmp_path, offsets_topic_replication_factor=1) as nodes:
        await nodes.create("orders", 2)
        await nodes.create("kept")
        await written(nodes, 1)
        away = nodes.state("orders").replicas[1]
        folder = tmp_path / str(away)
        (folder / "unknown-0").mkdir()
        for number in range(2):
            await nodes.until(lambda number=number: replica(nodes, away, number).log is not None or number)  # type: ignore[misc]
        await nodes.kill(away)
        await nodes.until(lambda: nodes.any().cluster.control.is_active)  # type: ignore[union-attr]
        topics = nodes.any().topics
        await topics.delete([topic for topic in topics.all() if topic.name == "orders"])
        assert (folder / "orders-0").exists()
        back = await nodes.start(away)
        await back.topics.clear()
        assert not (folder / "orders-0").exists()
        # nobody has deleted it, whatever topic it is of
        assert (folder / "unknown-0").exists()
        assert "were deleted, and their files go: orders-0" in caplog.text
        assert "are strays, which this broker keeps and does not serve" in caplog.text
        assert "unknown-0" in caplog.text
        await in_sync(nodes, "kept", 2)


async def test_a_leader_whose_disk_is_full_stays_and_goes_on_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as nodes:
        await nodes.create("orders", 3)
        await in_sync(nodes)
        state = nodes.state("orders")
        led = [n for n in range(3) if nodes.state("orders", n).leader == state.leader]
        for index in led:
            append(replica(nodes, state.leader, index))

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "no space left on device")

        for _ in range(3):
            with monkeypatch.context() as patch:
                patch.setattr(OsFile, "write", full)
                for index in led:
                    with pytest.raises(KafkaError) as refused:
                        append(replica(nodes, state.leader, index))
                    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            for index in led:
                assert replica(nodes, state.leader, index).damage is None
                append(replica(nodes, state.leader, index))
        await nodes.until(
            lambda: all(replica(nodes, n, index).high_watermark == 4 for n in nodes.brokers for index in led)
        )
        assert nodes.state("orders") == state


async def test_a_broker_whose_disk_is_full_leads_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster() as nodes:
        await nodes.create("orders")
        await in_sync(nodes)
        leader = nodes.state("orders").leader
        append(replica(nodes, leader))
        await nodes.until(lambda: all(replica(nodes, n).high_watermark == 1 for n in nodes.brokers))
        others = [n for n in nodes.brokers if n != leader]
        with monkeypatch.context() as patch:

            def full(*_: object, **__: object) -> None:
                raise OSError(errno.ENOSPC, "no space left on device")

            patch.setattr("kohort.log._checkpoints.write_epochs", full)
            await nodes.kill(leader)
            await nodes.until(lambda: nodes.state("orders").leader in others)
            after = nodes.state("orders").leader
            await nodes.until(lambda: replica(nodes, after).leadership is not None)
            with pytest.raises(KafkaError) as refused:
                append(replica(nodes, after))
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert replica(nodes, after).read(0, 1_000).records
        append(replica(nodes, after))
        await nodes.until(lambda: all(replica(nodes, n).high_watermark == 2 for n in others))
        log = replica(nodes, after).log
        assert log is not None
        assert log.epoch_for_offset(1) == replica(nodes, after).leader_epoch


async def test_a_follower_whose_disk_is_full_while_it_is_cut_goes_on_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # the records that nobody has asked it to copy are seen at once
    monkeypatch.setattr("kohort.broker.replicas.fetcher._ALL_AGAIN_S", 0.05)
    async with cluster(data=tmp_path) as nodes:
        await nodes.create("orders")
        await written(nodes, 5)
        state = nodes.state("orders")
        follower = next(n for n in nodes.brokers if n != state.leader)
        refused = 0
        with monkeypatch.context() as patch:

            def full(*_: object, **__: object) -> None:
                nonlocal refused
                refused += 1
                raise OSError(errno.ENOSPC, "no space left on device")

            log = replica(nodes, follower).log
            assert log is not None
            # what a leader wrote whom nobody followed
            for epoch in (state.leader_epoch, state.leader_epoch + 1):
                batch = bytes(build_batch([(None, b"y", ())], timestamp_ms=0))
                log.append(batch, now_ms=0, leader_epoch=epoch)
            patch.setattr("kohort.log._checkpoints.write_epochs", full)
            await nodes.until(lambda: refused)
            append(replica(nodes, state.leader))
            await nodes.until(lambda: follower not in nodes.state("orders").isr)
        await in_sync(nodes)
        assert replica(nodes, follower).damage is None
        append(replica(nodes, state.leader))
        await nodes.until(lambda: all(replica(nodes, n).high_watermark == 7 for n in nodes.brokers))
