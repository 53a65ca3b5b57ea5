from __future__ import annotations

import subprocess
import sys

import pytest

import kohort.spark

#: Code at the beginning of which an interpreter finds no PySpark.
WITHOUT_PYSPARK = """
import sys
class Without:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
sys.meta_path.insert(0, Without())
"""

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "pydantic")


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages a fresh interpreter has loaded after this."""
    code += f"\nimport sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import kohort.spark", set()),
        ("from kohort.spark import java_home, parse_offsets, OffsetRange, DataLossError", set()),
        ("from kohort.spark._fetch import read_task", set()),
        ("from kohort.spark._dataframes import frame_by_tasks", set()),
        # what Spark asks for in processes of their own
        ("from kohort.spark._source import KohortDataSource", {"pyspark"}),
        ("from kohort.spark._task import TaskReader", {"pyspark"}),
        ("from kohort.spark import GroupBatches", {"pydantic"}),
        ("import kohort.consumer.reading.arrow", {"pyarrow", "numpy"}),
    ],
)
def test_each_part_loads_only_what_it_needs(code: str, allowed: set[str]) -> None:
    if "pyspark" in allowed:
        # numpy among them in some versions
        allowed = allowed | loaded_by("import pyspark.sql.datasource")
    assert loaded_by(code) <= allowed


@pytest.mark.parametrize("name", kohort.spark.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kohort.spark, name) is not None
    assert name in dir(kohort.spark)


@pytest.mark.parametrize("code", ["spark_session('etl')", "register", "KohortDataSource", "stream"])
def test_without_the_extra_it_is_said_what_to_install(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT_PYSPARK}import kohort.spark as spark; spark.{code}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "needs pyspark, which is not installed: pip install 'kohort[spark]'" in done.stderr


def test_a_pyspark_that_is_too_old_is_said_to_be() -> None:
    hide = "import sys; sys.modules['pyspark.sql.datasource'] = None; from kohort.spark import register"
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, timeout=60)
    assert "register needs PySpark 4.0 or newer" in done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Batches'"):
        kohort.spark.Batches  # noqa: B018
