"""Covers: spark/status.py, admin/spark_commands.py."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from kohort.admin import spark_commands
from kohort.admin.pages.lists import ListQuery
from kohort.admin.screen import Screen
from kohort.admin.spark_commands import BATCH_HEADINGS, batch_cells, describe_announced
from kohort.cli import main
from kohort.protocol import TopicPartition
from kohort.spark._batch_log import BatchLog, BatchRow, UnderWay, encode_log
from kohort.spark._intent import add_log
from kohort.spark._offsets import Committed
from kohort.spark.status import (
    BatchHistory,
    CheckpointError,
    batch_history,
    described,
    history_in,
    read_checkpoint,
)
from kohort.ui.groups import pages as group_pages
from tests.spark.conftest import Side
from tests.spark.loops import Driver, Named, NewTopic, next_of
from tests.spark.test_batch_log import CELLS, GOOD, text_of

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
#: The last time that has a date.
LAST_MS = 253_402_300_799_999


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


ROW = BatchRow(3, 1_700_000_000_000, 10, 2, 750, rows=9, sink_ms=1_500, lag=4, lag_ms=250, replays=1, run=2)


def with_log(mark: str, log: BatchLog) -> str:
    return add_log(mark, encode_log(log))


def test_the_log_in_a_commit_is_the_job_s_history() -> None:
    log = BatchLog((ROW,), UnderWay(4, 1_700_000_009_000, 2), runs=2, applications={2: "local-1"})
    under_way = with_log('{"b":4,"e":40,"k":"f00d"}', log)
    committed = {A: Committed(10, under_way), B: Committed(7, '{"b":3}')}
    history = described("etl", committed, {A: (0, 50), B: (0, 7)}).history
    assert history == BatchHistory((ROW,), log.under_way, 2, {2: "local-1"})
    assert describe_announced(history) == " since 2023-11-14 22:13:29.000 UTC, announced again 2 times"
    assert history_in({A: under_way}) == history
    # a reset has called the batch off, and took nothing of the history
    reset = batch_history({A: Committed(0, with_log("", log))})
    assert (reset.batches, reset.announced, describe_announced(reset)) == ((ROW,), None, "")


def test_a_history_that_cannot_be_known_is_unknown_with_the_reason() -> None:
    without = batch_history({A: Committed(10, '{"b":3}')})
    assert without == BatchHistory(unknown="no commit of the group carries a log of batches")
    garbage = batch_history({A: Committed(10, add_log('{"b":3}', "byhand"))})
    assert (garbage.batches, garbage.announced) == ((), None)
    assert "cannot be decoded" in garbage.unknown
    assert history_in({A: '{"b":3}'}) == without
    assert history_in({A: "of another program", B: ""}) is history_in({}) is None


@pytest.mark.parametrize(
    "log",
    [
        # of each kind of cell the largest one that a log can have, and one that is larger
        *(
            GOOD | {"d": [[1, at, 2**63 - 1, 1, 2**63 - 1, *[2**63 - 1] * 9, 1, 0]]}
            for at in (LAST_MS, LAST_MS + 1)
        ),
        GOOD | {"d": [[1, 0, 10**400, 1, 10**400, *[10**400] * 9, 1, 0]]},
        GOOD | {"d": [[1, -(2**62), *CELLS[2:]]]},
        GOOD | {"n": [1, LAST_MS, 2**63 - 1]},
        GOOD | {"n": [1, LAST_MS + 1, 0]},
        GOOD | {"d": [[*CELLS[:13], 7, 1, 0]], "r": 7, "a": {"7": "\ud800\x1b[2J"}},
    ],
)
def test_whatever_log_a_stranger_commits_is_shown_or_said_to_be_none(
    log: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    committed = {A: Committed(10, add_log('{"b":1,"e":40,"k":"f00d"}', text_of(log)))}
    status = described("etl", committed, {A: (0, 50)})
    assert bool(status.history.unknown) != bool(status.history.batches or status.history.announced)
    group_pages.batches(status.history, ListQuery({})).encode()
    for as_json in (False, True):
        options = argparse.Namespace(watch=False, json=as_json)
        assert spark_commands._print_status(status, options, Screen(as_json=as_json)) == 0
    assert "\x1b[2J" not in capsys.readouterr().out


def test_cells_say_what_is_known_and_how_many_batches_a_sum_has() -> None:
    sums = BatchRow(15, 1_699_999_000_000, 160, 2, 500, batches=16, first=0)
    first, second = batch_cells(BatchHistory((sums, ROW), applications={2: "local-1"}))
    assert first[:6] == ("0 to 15 (16)", "2023-11-14 21:56:40 UTC", None, 160, 2, "50.0 %")
    assert set(first[6:]) == {None}
    assert second == (
        *(3, "2023-11-14 22:13:20 UTC", 2, 10, 2, "75.0 %", 9, None, None, "1.5 s", None),
        *(4, "250 ms", 1, "local-1"),
    )
    assert len(BATCH_HEADINGS) == len(first) == len(second)


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
    assert (
        "committed nothing, or only for topics that are gone or that you may not" in capsys.readouterr().err
    )
    side.produce(orders, {0: 10})
    batch = next_of(driver(etl, orders, max_offsets=4))
    assert main(ask) == 0
    shown = capsys.readouterr().out
    assert "batch 0 is under way since 2" in shown
    assert " UTC, lag 10\n" in shown
    batch.commit()
    assert main([*ask, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["batch"], found["under_way"], found["lag"]) == (0, False, 6)
    assert found["offsets"] == {orders: {"0": 4}}
    (row,) = found["history"]["batches"]
    assert (row["number"], row["offsets"], row["rows"], row["lag"]) == (0, 4, None, 6)
    assert main(ask) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:5] == ["BATCH", "STARTED", "RUN", "OFFSETS", "PARTITIONS"]
    assert lines[4].split()[0] == "0"
    assert lines[-1] == f"group {etl}: batch 0 is done, lag 6"


@pytest.mark.kafka
def test_a_watch_looks_as_often_as_asked(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    next_of(driver(etl, orders))
    ask = ["spark", "status", "--bootstrap", side.bootstrap, "--group", etl, "--watch", "--interval", "0.05"]
    assert main([*ask, "--count", "3"]) == 0
    assert capsys.readouterr().out.count("batch 0 is under way since 2") == 3
    assert main([*ask, "--count", "2", "--json"]) == 0
    looks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [look["history"]["announced"]["number"] for look in looks] == [0, 0]


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


@pytest.mark.kafka
def test_a_reset_by_kohort_s_own_command_takes_no_history(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 10, 1: 10})
    next_of(driver(etl, orders)).commit()
    announced = next_of_more(side, driver, etl, orders)
    where = ["--bootstrap", side.bootstrap]
    assert (
        main(["groups", "reset-offsets", etl, "--topic", orders, "--to-earliest", "--execute", *where]) == 0
    )
    capsys.readouterr()
    assert main(["spark", "status", "--group", etl, "--json", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["number"] for row in found["history"]["batches"]] == [0]
    assert found["history"]["announced"] is None
    assert [row["state"] for row in found["partitions"]] == ["other", "other"]
    again = next_of(driver(etl, orders))
    # a batch like any other: what was announced is called off
    assert (again.replayed, sum(span.offsets for span in again.ranges)) == (False, 30)
    assert again.key != announced


def next_of_more(side: Side, driver: Driver, group: str, topic: str) -> str:
    side.produce(topic, {0: 5, 1: 5})
    return next_of(driver(group, topic)).key
