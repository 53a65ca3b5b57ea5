"""DescribeLogDirs: the folder and the sizes of partitions. AlterReplicaLogDirs: there is no other folder.

Covers: broker/apis/describe_log_dirs.py, broker/apis/alter_replica_log_dirs.py.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import ApiKey
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, produce

KEY = ApiKey.DESCRIBE_LOG_DIRS


def sizes(answer: Any) -> dict[tuple[str, int], int]:
    assert answer.error_code == 0
    (folder,) = answer.results
    return {
        (topic.name, one.partition_index): one.partition_size
        for topic in folder.topics
        for one in topic.partitions
    }


def write(link: Wire, name: str, records: bytes, partition: int = 0) -> None:
    """Produce; Apache Kafka's broker hears of a new topic a moment after the client has."""
    while produce(link, name, records, partition=partition).error_code:
        time.sleep(0.05)


@pytest.mark.kafka
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_what_is_asked_for_is_told_with_its_size(link: Wire, name: str, version: int) -> None:
    create_topic(link, name, 2)
    records = batch(100)
    write(link, name, records)
    write(link, name, batch(), 1)
    answer = link.call(KEY, version, topics=[(name, [0, 1])])
    assert sizes(answer) == {(name, 0): len(records), (name, 1): len(batch())}
    (folder,) = answer.results
    assert folder.error_code == 0
    assert folder.log_dir
    assert all(
        (one.offset_lag, one.is_future_key) == (0, False)
        for topic in folder.topics
        for one in topic.partitions
    )
    if version >= 4:
        assert 0 < folder.usable_bytes <= folder.total_bytes
    else:
        assert (folder.usable_bytes, folder.total_bytes) == (-1, -1)


@pytest.mark.kafka
def test_partitions_that_are_not_there_are_left_out(link: Wire, name: str) -> None:
    create_topic(link, name, 1)
    records = batch()
    write(link, name, records)
    asked = [(name, [0, 0, 7, -1]), ("nothing-is-named-so", [0]), ("..", [0])]
    assert sizes(link.call(KEY, 4, topics=asked)) == {(name, 0): len(records)}
    assert sizes(link.call(KEY, 4, topics=[])) == {}


@pytest.mark.kafka
def test_all_partitions_are_told_where_none_is_named(link: Wire, name: str) -> None:
    create_topic(link, name, 2)
    expected = {(name, 0), (name, 1)}
    # Apache Kafka makes the logs a moment after the topic
    while not expected <= sizes(link.call(KEY, 4, topics=None)).keys():
        time.sleep(0.05)


def test_sizes_are_known_of_files_that_nobody_has_opened(tmp_path: Path) -> None:
    records = batch(100)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "t", 2)
        produce(wire, "t", records)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        answer = wire.call(KEY, 4, topics=[("t", [0, 1])])
        assert sizes(answer) == {("t", 0): len(records), ("t", 1): 0}
        (folder,) = answer.results
        assert folder.log_dir == str(tmp_path)
        assert folder.total_bytes == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
        assert folder.total_bytes == shutil.disk_usage(tmp_path).total


@pytest.mark.kafka
@pytest.mark.parametrize("version", [1, 2])
def test_replicas_are_in_the_folder_of_their_broker_and_in_no_other(
    link: Wire, name: str, version: int
) -> None:
    create_topic(link, name, 2)
    write(link, name, batch())
    write(link, name, batch(), 1)
    (folder,) = link.call(KEY, 5, topics=[]).results

    def codes(*wanted: tuple[str, list[tuple[str, list[int]]]]) -> dict[tuple[str, int], int]:
        answer = link.call(ApiKey.ALTER_REPLICA_LOG_DIRS, version, dirs=list(wanted))
        return {
            (topic.topic_name, one.partition_index): one.error_code
            for topic in answer.results
            for one in topic.partitions
        }

    path = folder.log_dir
    there = {(name, 0): 0, (name, 1): 0, (name, 7): 3, ("none", 0): 3}
    assert codes((path, [(name, [0, 1, 7]), ("none", [0])])) == there
    for other in ("/nowhere", path + "/", "relative", ""):
        assert codes((other, [(name, [0, 1, 7]), ("none", [0])])) == dict.fromkeys(there, 57)
    # the last one counts
    assert codes((path, [(name, [0, 0])]), ("/nowhere", [(name, [0])])) == {(name, 0): 57}
    assert codes(("/nowhere", [(name, [0])]), (path, [(name, [0])])) == {(name, 0): 0}
    assert codes((path, [])) == codes() == {}
