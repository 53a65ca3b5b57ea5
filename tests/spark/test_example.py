from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "spark_job.py"


@pytest.mark.spark
@pytest.mark.kafka
def test_the_example_writes_each_record_once_over_several_runs(
    spark: SparkSession,
    side: Side,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orders, etl, folder = new_topic("orders", partitions=2), group("etl"), tmp_path / "orders"
    arguments = [side.bootstrap, orders, "--group", etl, "--folder", str(folder), "--max-offsets", "100"]
    monkeypatch.setattr(sys, "argv", ["spark_job.py", *arguments])
    for _ in range(2):
        side.produce(orders, {0: 60, 1: 60})
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        assert f"2 batches written to {folder}" in capsys.readouterr().out
    written = spark.read.parquet(str(folder))
    assert written.count() == 240
    assert written.select("partition", "offset").distinct().count() == 240
    assert side.lag(etl, orders) == 0
