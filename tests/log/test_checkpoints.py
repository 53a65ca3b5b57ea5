"""Kafka's small text files."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from kohort.log import OS_FILES, DataFolderError, encode_uuid
from kohort.log._checkpoints import (
    claim_folder,
    read_epochs,
    read_offsets,
    read_properties,
    read_topic_id,
    write_epochs,
    write_offsets,
    write_properties,
    write_topic_id,
)
from kohort.protocol import TopicPartition

CLICKS = uuid.UUID("c2c8fbc4-1d72-4072-8545-f5459c82300c")


def test_offset_checkpoints_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("orders-a", 3): 50, TopicPartition("x", 0): 0}
    write_offsets(OS_FILES, str(path), offsets)
    assert path.read_bytes() == b"0\n2\norders-a 3 50\nx 0 0\n"
    assert read_offsets(OS_FILES, str(path)) == offsets


def test_a_checkpoint_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_offsets(OS_FILES, str(tmp_path / "none")) == {}
    assert read_epochs(OS_FILES, str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n", b"0\n1\na 0\n", b"0\n1\na zero 1\n", b"\xff\n", b"0\nx\n"],
)
def test_an_unreadable_checkpoint_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    with pytest.raises(
        DataFolderError, match=r"checkpoint cannot be read.*Restore it from a copy, or remove it"
    ):
        read_offsets(OS_FILES, str(path))


def test_leader_epochs_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    write_epochs(OS_FILES, str(path), [(0, 0), (3, 120)])
    assert path.read_bytes() == b"0\n2\n0 0\n3 120\n"
    assert read_epochs(OS_FILES, str(path)) == [(0, 0), (3, 120)]
    path.write_bytes(b"0\n1\n0 zero\n")
    with pytest.raises(DataFolderError, match="not 'epoch offset'"):
        read_epochs(OS_FILES, str(path))


def test_the_topic_id_is_written_as_kafka_does(tmp_path: Path) -> None:
    write_topic_id(OS_FILES, str(tmp_path), CLICKS)
    golden = b"version: 0\ntopic_id: wsj7xB1yQHKFRfVFnIIwDA"
    assert (tmp_path / "partition.metadata").read_bytes() == golden
    assert read_topic_id(OS_FILES, str(tmp_path)) == CLICKS
    assert encode_uuid(CLICKS) == "wsj7xB1yQHKFRfVFnIIwDA"


@pytest.mark.parametrize("content", [b"", b"version: 0\n", b"version: 0\ntopic_id: short"])
def test_unreadable_partition_metadata_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "partition.metadata").write_bytes(content)
    with pytest.raises(DataFolderError, match=r"partition\.metadata cannot be read"):
        read_topic_id(OS_FILES, str(tmp_path))


def test_a_folder_belongs_to_one_topic_id(tmp_path: Path) -> None:
    folder = str(tmp_path / "orders-0")
    with pytest.raises(DataFolderError) as caught:
        claim_folder(OS_FILES, folder, None)
    assert str(caught.value) == f"{folder} has no partition.metadata: pass the topic's id"
    assert not list(tmp_path.iterdir())
    assert claim_folder(OS_FILES, folder, CLICKS) == CLICKS
    assert claim_folder(OS_FILES, folder, None) == CLICKS
    assert claim_folder(OS_FILES, folder, CLICKS) == CLICKS
    other = uuid.UUID(int=1)
    with pytest.raises(DataFolderError) as caught:
        claim_folder(OS_FILES, folder, other)
    whose = f"{folder} belongs to topic id {CLICKS}, not {other}"
    assert str(caught.value) == f"{whose}: it is another topic's of that name, move it away"
    assert read_topic_id(OS_FILES, folder) == CLICKS


def test_properties_are_read_as_java_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    assert read_properties(OS_FILES, str(path)) is None
    path.write_text("#\n#Sat Nov 21 07:48:07 UTC 2026\nnode.id=1\ncluster.id = abc=d\n\nversion=1\n")
    assert read_properties(OS_FILES, str(path)) == {"node.id": "1", "cluster.id": "abc=d", "version": "1"}
    write_properties(OS_FILES, str(path), {"version": "1", "node.id": "7"})
    assert path.read_text() == "version=1\nnode.id=7\n"
