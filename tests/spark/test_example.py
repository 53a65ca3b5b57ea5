from __future__ import annotations

import runpy
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, announced

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Run = Callable[..., str]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an example as from a shell; what it printed."""

    def as_from_a_shell(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return as_from_a_shell


def test_the_job_writes_each_record_once_over_several_runs(
    run: Run, spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl, folder = new_topic("orders", partitions=2), group("etl"), tmp_path / "orders"
    arguments = [side.bootstrap, orders, "--group", etl, "--folder", str(folder), "--max-offsets", "100"]
    for _ in range(2):
        side.produce(orders, {0: 60, 1: 60})
        assert f"2 batches written to {folder}" in run("spark_job.py", *arguments)
    written = spark.read.parquet(str(folder))
    assert written.count() == 240
    assert written.select("partition", "offset").distinct().count() == 240
    assert side.lag(etl, orders) == 0


@pytest.mark.usefixtures("spark")
def test_upserts_count_each_record_once_also_when_the_group_did_not_hear_of_a_batch(
    run: Run, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    balances, accounts, database = new_topic("balances", 1), group("accounts"), tmp_path / "accounts.sqlite"
    arguments = [side.bootstrap, balances, "--group", accounts, "--database", str(database)]
    side.produce(balances, {0: 50})
    assert "1 batches applied; 50 keys, 50 updates" in run("spark_upsert.py", *arguments)
    # killed between the sink and the commit: the group still stands at the announced start
    with closing(sqlite3.connect(database)) as opened:
        [(key,)] = opened.execute("select key from batches")
    side.commit(accounts, balances, {0: 0}, announced(key, end=50))
    side.send(balances, key=b"7", value=b"second", partition=0)
    side.send(balances, key=b"8", value=None, partition=0)
    assert "2 batches applied; 49 keys, 50 updates" in run("spark_upsert.py", *arguments)
    with closing(sqlite3.connect(database)) as opened:
        [row] = opened.execute("select value, at, updates from newest where key = ?", (b"7",))
    assert row == (b"second", 50, 2)


# before, Spark ends what is available now with a single batch, and closes windows in the next one
@pytest.mark.pyspark("4.2")
def test_windows_are_counted_over_several_runs_and_the_group_follows(
    run: Run, spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    # the broker must not take records of that age for old ones
    clicks, windows = new_topic("clicks", partitions=1), group("windows")
    minute, second = 1_700_000_040_000, 1000
    arguments = [side.bootstrap, clicks, "--group", windows, "--folder", str(tmp_path)]

    def click(key: bytes, *times: int) -> None:
        for at in times:
            side.send(clicks, key=key, value=b"", timestamp_ms=minute + at * second, partition=0)

    click(b"a", 0, 10, 50, 70)
    click(b"b", 20)
    run("spark_window.py", *arguments)
    click(b"a", 80, 110, 200)  # the first two minutes are over
    run("spark_window.py", *arguments)
    counts = spark.read.parquet(str(tmp_path / "counts"))
    rows = [tuple(row) for row in counts.selectExpr("unix_millis(minute)", "key", "count").collect()]
    assert sorted(rows) == [(minute, "a", 3), (minute, "b", 1), (minute + 60_000, "a", 3)]
    assert side.lag(windows, clicks) == 0
