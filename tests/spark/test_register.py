"""``register``: once for a session, and with the archives that spark-submit has brought.

Covers: spark/_source.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from kohort.spark import register
from tests.spark.fake_session import FakeSession


def test_a_session_is_registered_in_once_as_spark_warns_of_a_second_time() -> None:
    spark: Any = FakeSession({"spark.master": "local[2]"})
    register(spark)
    register(spark)
    assert len(spark.dataSource.registered) == 1


@pytest.mark.parametrize("before", [{}, {"PYTHONPATH": "/of/mine"}])
def test_archives_of_spark_submit_reach_the_processes_that_plan_a_query_and_not_other_ones(
    before: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("kohort.zip", "pyspark.zip", "py4j-0.10.9.9-src.zip", "folder.zip"):
        (tmp_path / name).mkdir() if name == "folder.zip" else (tmp_path / name).touch()
    ours = [str(path) for path in sorted(tmp_path.iterdir())]
    monkeypatch.setattr(sys, "path", [*ours, str(tmp_path), str(tmp_path / "gone.zip")])
    spark: Any = FakeSession({"spark.master": "yarn"})
    spark.sparkContext.environment |= before
    register(spark)
    expected = [*before.values(), str(tmp_path / "kohort.zip")]
    assert spark.dataSource.environments[0]["PYTHONPATH"].split(":") == expected
    assert spark.sparkContext.environment == {"PYTHONHASHSEED": "0"} | before
