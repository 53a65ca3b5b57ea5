"""Spark snippets with a name, of the tutorial and of the page for migrating, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("page", "name", "lines"),
    [
        ("tutorials/first-spark-job.md", "first_spark_job", ["batches: 1", "rows: 5"]),
        ("migrating.md", "from_spark_sql_kafka", ["rows: 5"]),
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
    topic = new_topic("orders", 2)
    side.produce(topic, {0: 2, 1: 3})
    (code,) = re.findall(rf"```python\n# {name}\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    names = {"localhost:9092": side.bootstrap, '"orders"': f'"{topic}"', '"etl"': f'"{group("etl")}"'}
    for old, new in {**names, "lake/": f"{tmp_path}/"}.items():
        code = code.replace(old, new)
    exec(code, {"__name__": name})
    assert capsys.readouterr().out.splitlines() == lines
