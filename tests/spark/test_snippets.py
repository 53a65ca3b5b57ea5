"""Spark snippets with a name, of the tutorial and of the page for migrating, as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.cli import main
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.snippets import snippet

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("page", "name", "lines"),
    [
        ("tutorials/first-spark-job.md", "first_spark_job", ["batches: 1", "rows: 5"]),
        ("migrating.md", "from_spark_sql_kafka", ["rows: 5"]),
        ("backfill.md", "backfill_spark", ["batches: 1", "rows: 5 orders: 5"]),
        ("backfill.md", "backfill_new_place", ["batches: 1", "rows: 5"]),
    ],
)
def test_a_snippet_runs(
    page: str,
    name: str,
    lines: list[str],
    side: Side,
    new_topic: NewTopic,
    group: Named,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, etl = new_topic("orders", 2), group("etl")
    side.produce(topic, {0: 2, 1: 3})
    names = {
        "localhost:9092": side.bootstrap,
        '"orders"': f'"{topic}"',
        '"etl"': f'"{etl}"',
        '"etl-2"': f'"{group("etl-2")}"',
        "lake/": f"{tmp_path}/",
    }
    code = snippet(page, name, names)
    exec(code, {"__name__": name})
    assert capsys.readouterr().out.splitlines() == lines
    if name == "backfill_spark":
        # what the page says of a reset
        reset = ["groups", "reset-offsets", etl, "--topic", topic, "--to-earliest", "--execute"]
        assert main([*reset, "--bootstrap", side.bootstrap]) == 0
        capsys.readouterr()
        exec(code, {"__name__": name})
        assert capsys.readouterr().out.splitlines() == ["batches: 1", "rows: 10 orders: 5"]
