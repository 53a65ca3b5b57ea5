"""``kill -9`` of the programs of docs/spark-tables.md, again and again, and a rewind.

With ``--soak`` only: each start of Spark takes its time, and its jars come from Maven Central. ``make
test-spark-tables`` has the PySpark that Delta Lake and Iceberg have releases for.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyspark
import pytest

from tests.ports import free_port
from tests.postgres import postgres_server
from tests.spark.conftest import Side
from tests.spark.kills import Job
from tests.spark.loops import NewTopic
from tests.spark.snippets import snippet

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(3600)]

#: The PySpark for which the page's jars are.
PYSPARK = "4.1"
KILLS_INSIDE, LONGEST_SECONDS = 2, 6.0
#: Records of each of two partitions; the n-th has key ``n``.
ROWS_EACH = 300

SETTINGS = """
spark.master local[2]
spark.log.level OFF
spark.sql.shuffle.partitions 2
spark.python.authenticate.socketTimeout 10m
spark.databricks.delta.snapshotPartitions 1
"""

Rows = list[list[str]]


def by_position(topic: str) -> Rows:
    return [[topic, str(part), str(n), str(n), str(n)] for part in (0, 1) for n in range(ROWS_EACH)]


def items(topic: str) -> Rows:
    return [[*row[:3], item] for row in by_position(topic) for item in (row[3], "x")]


def sums(_: str) -> Rows:
    return [[str(n), "2", str(2 * n)] for n in range(ROWS_EACH)]


def newest(_: str) -> Rows:
    return [[str(n), f"new {n}"] for n in range(ROWS_EACH)]


WANTED: dict[str, Callable[[str], Rows]] = {
    "delta_merge": by_position,
    "delta_replace": items,
    "delta_newest": newest,
    "iceberg_merge": by_position,
    "postgres_ledger": sums,
    "postgres_jdbc": by_position,
}


def test_tables_have_each_row_once_whatever_is_killed_and_after_a_rewind(
    side: Side, new_topic: NewTopic, tmp_path: Path, soaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not soaks:
        pytest.skip("starts Spark six times, with jars from Maven Central: ask for it with --soak 1")
    names = [
        name for name in WANTED if pyspark.__version__.startswith(PYSPARK) or name.startswith("postgres")
    ]
    topics = {name: new_topic(name.replace("_", "-"), partitions=2) for name in names}
    for name, topic in topics.items():
        produce(side, name, topic)
    (tmp_path / "spark-defaults.conf").write_text(SETTINGS)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    draw, port = random.Random(7), free_port()

    with postgres_server(port) as dsn:
        replaced = {
            "localhost:9092": side.bootstrap,
            "/data/": f"{tmp_path}/",
            "postgresql:///shop": dsn,
            "//localhost:5432/shop": f"//127.0.0.1:{port}/postgres?user=kohort",
        }

        def write_programs(limit: int) -> None:
            for name, topic in topics.items():
                code = snippet("spark-tables.md", name, replaced)
                given = f'group="{topic}-table", topics=["{topic}"], max_offsets={limit}'
                code, number = re.subn(r'group="[^"]+", topics=\[.*?\]', given, code)
                assert number == 1
                (tmp_path / f"{name}.py").write_text(code)

        def each_row_is_there_once() -> None:
            for name, topic in topics.items():
                assert json.loads((tmp_path / f"{name}.rows").read_text()) == sorted(WANTED[name](topic)), (
                    name
                )
                assert side.lag(f"{topic}-table", topic) == 0

        write_programs(limit=100)
        run_and_kill(tmp_path, names, None)
        for _ in range(KILLS_INSIDE):
            run_and_kill(tmp_path, names, draw.uniform(0, LONGEST_SECONDS))
        run_to_end(tmp_path)
        each_row_is_there_once()

        # a rewind: the records come again in batches with other limits
        for name, topic in topics.items():
            (tmp_path / f"{name}.rows").unlink()
            side.commit(f"{topic}-table", topic, {0: 120, 1: 30})
        write_programs(limit=290)
        run_and_kill(tmp_path, names, None)
        run_to_end(tmp_path)
        each_row_is_there_once()


def produce(side: Side, name: str, topic: str) -> None:
    if name != "delta_newest":
        value = b"%d x".__mod__ if name == "delta_replace" else b"%d".__mod__
        side.produce(topic, dict.fromkeys((0, 1), ROWS_EACH), value)
        return
    for partition, word in enumerate((b"old", b"new")):
        side.produce(topic, {partition: ROWS_EACH}, lambda n, word=word: b"%s %d" % (word, n))  # type: ignore[misc]


def run_and_kill(folder: Path, names: Sequence[str], seconds: float | None) -> None:
    """Kill the programs when all have written a batch and not committed it, or so many seconds after all have
    begun one. One that had come to its end before is not waited for.
    """
    for name in names:
        (folder / f"{name}.held").unlink(missing_ok=True)
        (folder / f"{name}.batches").unlink(missing_ok=True)
    point = "held" if seconds is None else "batches"
    if seconds is None:
        (folder / "hold").touch()
    job = Job("tests.spark.killed_tables", folder)

    def there() -> bool:
        return all(any((folder / f"{name}.{end}").exists() for end in (point, "rows")) for name in names)

    try:
        assert job.reaches(there), job.printed
        time.sleep(seconds or 0)
    finally:
        job.close()
    (folder / "hold").unlink(missing_ok=True)


def run_to_end(folder: Path) -> None:
    job = Job("tests.spark.killed_tables", folder)
    try:
        assert job.end(), job.printed
    finally:
        job.close()
