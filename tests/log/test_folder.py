"""A broker's data folder.

Covers: log/_errors.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kohort.log import DataFolder, DataFolderError, DataFolderInUseError, LogConfig, PartitionLog
from kohort.protocol import ErrorCode, KafkaError
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, TOPIC_ID, batch, committed
from tests.log.disks import disk
from tests.log.faulty import FaultyFiles

CLEAN = ".kafka_cleanshutdown"

T = TypeVar("T")


def made(folder: DataFolder, *partitions: int, records: int = 2) -> list[PartitionLog]:
    logs = [
        folder.open_log("orders", number, LogConfig(), now_ms=NOW_MS, topic_id=TOPIC_ID)
        for number in partitions
    ]
    for log in logs:
        log.append(batch(records), now_ms=NOW_MS)
        committed(log)
    return logs


def test_a_new_folder_gets_an_identity_that_stays(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "new" / "data", node_id=4)
    assert not folder.clean_start
    cluster_id = folder.cluster_id
    assert len(cluster_id) == 22
    folder.close()
    lines = (tmp_path / "new" / "data" / "meta.properties").read_text().splitlines()
    assert lines[:3] == ["version=1", f"cluster.id={cluster_id}", "node.id=4"]
    assert lines[3].startswith("directory.id=")
    again = DataFolder.open(tmp_path / "new" / "data", node_id=4)
    assert again.cluster_id == cluster_id
    again.close()


def test_the_newest_epoch_of_a_partition_is_known_before_it_is_opened(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    (log,) = made(folder, 1)
    log.close()
    assert folder.newest_epoch("orders", 1) == 0
    assert folder.newest_epoch("orders", 2) == -1
    path = tmp_path / "orders-1" / "leader-epoch-checkpoint"
    path.write_text("0\n2\n0 0\n7 1\n")
    assert folder.newest_epoch("orders", 1) == 7
    path.write_text("0\n1\nx\n")
    with pytest.raises(DataFolderError, match="the line 'x' is not 'epoch offset'"):
        folder.newest_epoch("orders", 1)
    path.unlink()
    path.mkdir()
    with pytest.raises(KafkaError) as caught:
        folder.newest_epoch("orders", 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert f"{path}: [Errno {errno.EISDIR}]" in str(caught.value)
    folder.close()


def test_a_folder_of_apache_kafka_keeps_its_identity(tmp_path: Path) -> None:
    text = "#\n#Sat Nov 21 07:48:07 UTC 2026\nnode.id=1\ndirectory.id=KJcS9aPQ1ZfePwkmnqCv0w\nversion=1\n"
    (tmp_path / "meta.properties").write_text(text + "cluster.id=TQT4qcGZQMaBwOvUjJPl-w\n")
    folder = DataFolder.open(tmp_path)
    assert folder.cluster_id == "TQT4qcGZQMaBwOvUjJPl-w"
    folder.close()
    assert (tmp_path / "meta.properties").read_text().startswith(text)


def test_another_nodes_folder_is_refused_and_left_unlocked(tmp_path: Path) -> None:
    DataFolder.open(tmp_path, node_id=2).close()
    with pytest.raises(DataFolderError, match=r"belongs to node 2, this is node 1: start with node\.id=2"):
        DataFolder.open(tmp_path, node_id=1)
    DataFolder.open(tmp_path, node_id=2).close()


def test_a_folder_of_a_later_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    text = "version=2\nnode.id=1\ncluster.id=TQT4qcGZQMaBwOvUjJPl-w\n"
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(DataFolderError, match="has version 2, and this broker knows versions 0 and 1"):
        DataFolder.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["meta.properties"]
    assert (tmp_path / "meta.properties").read_text() == text


def test_a_folder_without_a_cluster_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")
    with pytest.raises(DataFolderError, match=r"no cluster\.id: put it back, or remove the file"):
        DataFolder.open(tmp_path)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    with pytest.raises(DataFolderInUseError, match="in use by another broker: stop it, or choose another"):
        DataFolder.open(tmp_path)
    folder.close()
    DataFolder.open(tmp_path).close()


def test_a_clean_stop_is_said_once(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    assert not (tmp_path / CLEAN).exists()
    folder.close()
    assert (tmp_path / CLEAN).read_text() == '{"version":0,"brokerEpoch":-1}'
    folder = DataFolder.open(tmp_path)
    assert folder.clean_start
    assert not (tmp_path / CLEAN).exists()
    folder.close(clean=False)
    folder = DataFolder.open(tmp_path)
    assert not folder.clean_start
    folder.close(clean=False)


def test_partitions_are_told_from_all_else_in_the_folder(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    made(folder, 0, 10, 2)
    for name in ("__cluster_metadata-0", "orders-1.0123456789abcdef0123456789abcdef-stray", "lost+found"):
        (tmp_path / name).mkdir()
    assert folder.partitions() == [("orders", n) for n in (0, 2, 10)]
    folder.close(clean=False)


def test_partitions_that_were_being_deleted_go_at_the_open(tmp_path: Path) -> None:
    name = "orders-0.0123456789abcdef0123456789abcdef-delete"
    (tmp_path / name).mkdir()
    (tmp_path / name / "00000000000000000000.log").write_bytes(b"x")
    folder = DataFolder.open(tmp_path)
    assert folder.removed_folders == [name]
    assert not (tmp_path / name).exists()
    folder.close()


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../x", "a" * 250, "sp ace", "a\0"])
def test_no_topic_name_leads_out_of_the_folder(tmp_path: Path, topic: str) -> None:
    folder = DataFolder.open(tmp_path)
    with pytest.raises(DataFolderError, match="no topic name: 1 to 249 of"):
        folder.open_log(topic, 0, LogConfig(), now_ms=NOW_MS, topic_id=TOPIC_ID)
    folder.close()


def test_checkpoints_carry_recovery_point_log_start_and_high_watermark(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    log, other = made(folder, 0, 1, records=5)
    log.delete_records(2)
    log.flush()
    folder.write_checkpoints([log, other])
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 5\norders 1 0\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n2\norders 0 2\norders 1 0\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n2\norders 0 5\norders 1 5\n"
    folder.close(clean=False)  # a crash
    folder = DataFolder.open(tmp_path)
    log = folder.open_log("orders", 0, LogConfig(), now_ms=NOW_MS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 5, 5)
    assert log.recovery_point == 5
    folder.close(clean=False)


def test_checkpoints_keep_partitions_on_the_disk_and_forget_deleted_ones(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    first, second, third = made(folder, 0, 1, 2)
    folder.write_checkpoints([first, second, third])
    second.abandon()
    folder.remove_deleted(folder.mark_deleted("orders", 1) or "")
    folder.write_checkpoints([third])
    lines = (tmp_path / "replication-offset-checkpoint").read_text().splitlines()
    assert lines == ["0", "2", "orders 0 2", "orders 2 2"]
    folder.close(clean=False)


def test_a_partition_that_is_removed_does_not_come_back_though_its_files_are_still_there(
    tmp_path: Path,
) -> None:
    folder = DataFolder.open(tmp_path)
    (log,) = made(folder, 0)
    log.abandon()
    deleted = folder.mark_deleted("orders", 0)
    assert deleted is not None
    assert Path(deleted).is_dir()
    assert folder.mark_deleted("orders", 0) is None
    folder.close(clean=False)
    folder = DataFolder.open(tmp_path)
    assert (folder.partitions(), folder.removed_folders) == ([], [Path(deleted).name])
    folder.close(clean=False)


def test_a_partition_that_cannot_be_removed_is_still_there(tmp_path: Path) -> None:
    fs = FaultyFiles()
    folder = DataFolder.open(tmp_path, fs=fs)
    (log,) = made(folder, 0)
    log.close()
    fs.arm(1)
    with pytest.raises(OSError, match="rename"):
        folder.mark_deleted("orders", 0)
    fs.heal()
    assert folder.partitions() == [("orders", 0)]
    folder.close(clean=False)


def test_a_stop_that_cannot_be_marked_clean_is_an_error_and_unlocks(tmp_path: Path) -> None:
    fs = FaultyFiles()
    folder = DataFolder.open(tmp_path, fs=fs)
    fs.arm(1)
    with pytest.raises(KafkaError, match="No space left"):
        folder.close()
    fs.heal()
    again = DataFolder.open(tmp_path, fs=fs)
    assert not again.clean_start
    again.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataFolderError, match=r"file.* cannot be used .*choose a folder"):
        DataFolder.open(tmp_path / "file" / "data")


def test_an_ioerror_while_the_folder_is_read_unlocks_it(tmp_path: Path) -> None:
    DataFolder.open(tmp_path).close()
    fs = FaultyFiles()
    fs.arm(1)
    with pytest.raises(DataFolderError, match="cannot be used"):
        DataFolder.open(tmp_path / "x", fs=fs)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("junk")
    with pytest.raises(DataFolderError):
        DataFolder.open(tmp_path)
    os.remove(tmp_path / "recovery-point-offset-checkpoint")
    DataFolder.open(tmp_path).close()


def test_a_new_folder_outlives_a_loss_of_power() -> None:
    # found by the simulator: with the folder's own name went all that was synced in it
    disk = FaultyFileSystem()
    folder = DataFolder.open("/var/lib/kohort", fs=disk)
    (log,) = made(folder, 0)
    log.flush()
    again = DataFolder.open("/var/lib/kohort", fs=disk.only_synced())
    assert again.cluster_id == folder.cluster_id
    assert again.open_log("orders", 0, LogConfig(), now_ms=NOW_MS).log_end_offset == 2


def test_a_start_is_not_clean_again_once_power_is_lost_after_it() -> None:
    fs = FaultyFileSystem()
    DataFolder.open("/data", fs=fs).close()
    assert DataFolder.open("/data", fs=fs.only_synced()).clean_start
    folder = DataFolder.open("/data", fs=fs)
    assert folder.clean_start
    assert not DataFolder.open("/data", fs=fs.only_synced()).clean_start


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_after_an_error_of_any_operation_the_same_again_is_done_and_lasts(error: int) -> None:
    """A partition is made, written, noted in the checkpoints, removed and recreated; then power is lost."""
    failed = 0
    while folder_fails_at(failed + 1, error):
        failed += 1
    assert failed > 50


def folder_fails_at(number: int, error: int) -> bool:
    """Return whether there is such an operation, which fails then."""
    fs = disk()
    fs.fail_at(number, error)
    words: list[str] = []

    def again(step: Callable[[], T]) -> T:
        try:
            return step()
        except (DataFolderError, KafkaError, OSError) as refused:
            words.append(str(refused))
            fs.heal()
            return step()

    folder = again(lambda: DataFolder.open("/data/kohort", fs=fs))
    logs: dict[int, PartitionLog] = {}

    def online(partition: int) -> PartitionLog:
        if partition not in logs or logs[partition].offline:
            logs[partition] = folder.open_log(
                "orders", partition, LogConfig(), now_ms=NOW_MS, topic_id=TOPIC_ID
            )
            committed(logs[partition])
        return logs[partition]

    def write(partition: int) -> None:
        log = online(partition)
        log.append(batch(), now_ms=NOW_MS)
        log.flush()
        committed(log)

    def checkpoint() -> None:
        folder.write_checkpoints(map(online, (0, 1)))

    def remove(partition: int) -> None:
        if partition in logs:
            logs.pop(partition).abandon()
        deleted = folder.mark_deleted("orders", partition)
        folder.sync()
        if deleted is not None:
            folder.remove_deleted(deleted)

    def check() -> None:
        """What was flushed is there after the worst of crashes."""
        left = DataFolder.open("/data/kohort", fs=fs.only_synced())
        assert left.cluster_id == folder.cluster_id
        for number in (0, 1):
            log = left.open_log("orders", number, LogConfig(), now_ms=NOW_MS)
            # what failed may have been written all the same, and then twice
            assert log.log_start_offset == 0
            assert 1 <= log.log_end_offset <= 2

    for partition in (0, 1):
        again(lambda: write(partition))  # noqa: B023 - called at once
    check()
    again(lambda: online(1).delete_records(1))
    again(checkpoint)
    again(lambda: folder.write_log_starts(logs.values()))
    again(lambda: remove(1))
    again(lambda: write(1))
    again(checkpoint)
    check()
    assert all("/data" in each for each in words)
    return bool(fs.failed)
