"""The upsert of docs/spark.md on a PostgreSQL of its own, as it stands there but for the address."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from kohort.spark import Batch, GroupBatches
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, announced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def _upsert_of_the_docs(dsn: str) -> dict[str, Any]:
    """The names of the snippet."""
    [code] = [
        block.partition("```")[0]
        for block in (ROOT / "docs" / "spark.md").read_text().split("```python\n")[1:]
        if "psycopg.connect(" in block.partition("```")[0]
    ]
    names = runpy.run_path(str(ROOT / "examples" / "spark_upsert.py"))
    snippet = {"Batch": Batch, "newest_of_each_key": names["newest_of_each_key"]}
    exec(code.replace("postgresql:///accounts", dsn), snippet)
    return snippet


def test_a_batch_that_comes_again_is_applied_once(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, dsn: str
) -> None:
    balances, accounts, upsert = new_topic("balances", 1), group("accounts"), _upsert_of_the_docs(dsn)
    with psycopg.connect(dsn) as database:
        database.execute(upsert["SCHEMA"])

    def run() -> int:
        with GroupBatches(spark, bootstrap=side.bootstrap, group=accounts, topics=[balances]) as batches:
            return batches.run(upsert["apply"], trigger="available_now")

    side.produce(balances, {0: 50})
    assert run() == 1
    # killed between the sink and the commit: the group still stands at the announced start
    with psycopg.connect(dsn) as database:
        [(key,)] = database.execute("select key from batches").fetchall()
    side.commit(accounts, balances, {0: 0}, announced(key, end=50))
    side.send(balances, key=b"7", value=b"second", partition=0)
    side.send(balances, key=b"8", value=None, partition=0)
    assert run() == 2
    with psycopg.connect(dsn) as database:
        counts = database.execute("select count(*), sum(updates)::bigint from newest").fetchone()
        seven = database.execute("select value, at, updates from newest where key = %s", (b"7",)).fetchone()
    assert counts == (49, 50)
    assert seven == (b"second", 50, 2)
