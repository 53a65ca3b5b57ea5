"""Python processes of a session take PySpark as it is installed, not from the zip file beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from kohort.spark._python import workers_python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HOME = Path(pyspark.__file__).parent
ZIP = HOME / "python" / "lib" / "pyspark.zip"


def started(*search_path: str) -> list[str]:
    """What Python says of itself: its program, the search path that it was given, and where PySpark is."""
    code = (
        "import os, sys, pyspark; print(sys.executable, os.environ['PYTHONPATH'], pyspark.__file__, sep='|')"
    )
    shown = subprocess.run(
        [workers_python(), "-c", code],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(search_path)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return shown.strip().split("|")


def test_the_zip_file_is_left_out_and_all_else_stays(tmp_path: Path) -> None:
    mine = [str(tmp_path / name) for name in ("my own", "kohort.zip", "*")]
    assert ZIP.is_file()
    assert started(str(ZIP), str(HOME / "python" / "lib" / "py4j-0.0-src.zip"), *mine) == [
        sys.executable,
        os.pathsep.join(mine),
        pyspark.__file__,
    ]
    assert started(str(ZIP))[1:] == started(str(ZIP.resolve()))[1:] == ["", pyspark.__file__]


def test_arguments_arrive_as_they_are() -> None:
    given = ["a b", "$HOME", "*", ""]
    command = [workers_python(), "-c", "import sys; print(sys.argv[1:])", *given]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == str(given)


def test_a_pyspark_that_is_found_by_a_search_path_alone_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "pyspark")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert workers_python() == sys.executable


@pytest.mark.spark
def test_tasks_of_a_session_have_the_installed_pyspark_on_the_same_python(spark: SparkSession) -> None:
    def where(_: Any) -> Iterator[tuple[str, str]]:
        import sys

        import pyspark

        yield pyspark.__file__, sys.executable

    found = spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect()
    assert found == [(pyspark.__file__, sys.executable)]
