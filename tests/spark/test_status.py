"""Covers: spark/status.py, admin/spark_commands.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kohort.cli import main
from kohort.protocol import TopicPartition
from kohort.spark._offsets import Committed
from kohort.spark.status import CheckpointError, described, read_checkpoint
from tests.spark.conftest import Side
from tests.spark.loops import Driver, Named, NewTopic, next_of

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def checkpoint(folder: Path, topic: str) -> Path:
    """Batch 0 is done, batch 1 was under way."""
    for number, end in ((0, 10), (1, 20)):
        lines = ["v1", '{"batchWatermarkMs":0}', json.dumps({topic: {"0": end}})]
        (folder / "offsets").mkdir(exist_ok=True)
        (folder / "offsets" / str(number)).write_text("\n".join(lines))
    (folder / "commits").mkdir()
    (folder / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (folder / "commits" / ".0.crc").write_text("")
    return folder


def test_marks_tell_which_batch_is_under_way_and_which_is_done() -> None:
    committed = {A: Committed(10, '{"b":3,"e":40,"k":"f00d"}'), B: Committed(7, '{"b":2}')}
    status = described("etl", committed, {A: (0, 50), B: (0, 7)})
    assert (status.batch, status.under_way, status.lag) == (3, True, 40)
    assert [(row.state, row.planned_end, row.batch) for row in status.partitions] == [
        ("under way", 40, 3),
        ("done", None, 2),
    ]


def test_commits_of_anybody_else_are_no_batches() -> None:
    status = described("etl", {A: Committed(10, "by hand"), B: Committed(1)}, {A: (0, 50)})
    assert (status.batch, status.under_way) == (-1, False)
    assert [row.state for row in status.partitions] == ["other"]


def test_a_checkpoint_stands_where_its_last_done_batch_ended(tmp_path: Path) -> None:
    assert read_checkpoint(checkpoint(tmp_path, "orders")) == (0, {A: 10})


def test_a_folder_that_is_no_checkpoint_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has no batch that is done"):
        read_checkpoint(tmp_path)
    checkpoint(tmp_path, "orders")
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"logOffset":5}')
    with pytest.raises(CheckpointError, match="no source of it is Kafka's"):
        read_checkpoint(tmp_path)


@pytest.mark.timeout(20)
def test_without_a_broker_that_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nobody = ["--bootstrap", "127.0.0.1:1", "--group", "etl"]
    moving = ["import-checkpoint", str(checkpoint(tmp_path, "orders")), "--execute"]
    for words in (["status"], [*moving, "--timeout", "0.2"]):
        assert main(["spark", *words, *nobody]) == 3
        assert "cannot reach the cluster" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["spark", "status", *nobody, "--timeout", "soon"])


@pytest.mark.kafka
def test_rows_stay_on_one_line_in_a_pipe(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, etl = new_topic("a-topic-with-a-name-that-is-" + "long-" * 20, partitions=1), group("etl")
    side.produce(orders, {0: 10})
    next_of(driver(etl, orders))
    assert main(["spark", "status", "--bootstrap", side.bootstrap, "--group", etl]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if orders in line]
    assert row.split() == [orders, "0", "0", "under", "way", "0", "10", "10", "10"]


@pytest.mark.kafka
def test_status_shows_a_batch_under_way_and_then_done(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    ask = ["spark", "status", "--bootstrap", side.bootstrap, "--group", etl]
    assert main(ask) == 1
    assert "has committed nothing" in capsys.readouterr().err
    side.produce(orders, {0: 10})
    batch = next_of(driver(etl, orders, max_offsets=4))
    assert main(ask) == 0
    assert "batch 0 is under way, lag 10" in capsys.readouterr().out
    batch.commit()
    assert main([*ask, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["batch"], found["under_way"], found["lag"]) == (0, False, 6)
    assert found["offsets"] == {orders: {"0": 4}}


@pytest.mark.kafka
def test_a_checkpoint_is_committed_only_when_asked_to(
    side: Side, new_topic: NewTopic, group: Named, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    folder = str(checkpoint(tmp_path, orders))
    ask = ["spark", "import-checkpoint", folder, "--bootstrap", side.bootstrap, "--group", etl]
    assert main(ask) == 0
    assert "nothing is changed" in capsys.readouterr().out
    assert side.committed(etl, orders) == {}
    assert main([*ask, "--execute"]) == 0
    assert side.committed(etl, orders) == {0: 10}
    assert main([*ask[:2], str(tmp_path / "nowhere"), *ask[3:]]) == 2
