"""Programs of docs/spark-tables.md at the same time in one Spark, which is to be killed.

    python -m tests.spark.killed_tables FOLDER

FOLDER has ``NAME.py`` for each program. A program adds a line to ``NAME.batches`` when it begins a batch, and
stands still between the write and the commit if there is a file ``hold``; then it makes ``NAME.held``. When
it has come to its end, ``NAME.rows`` has what is in the table, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kohort.spark
from kohort.spark import Batch, GroupBatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What is in the table of each program.
ROWS = {
    "delta_merge": "select topic, partition, offset, customer, item from {ORDERS}",
    "delta_replace": "select topic, partition, offset, item from delta.`{ITEMS}`",
    "delta_newest": "select cast(key as string), cast(value as string) from {BALANCES}",
    "iceberg_merge": "select topic, partition, offset, customer, item from {ORDERS}",
    "postgres_ledger": "select customer, orders, cents from spent",
    "postgres_jdbc": "select topic, part, pos, customer, item from orders",
}
#: Settings of programs that have to be joined in their common session.
LISTS = {"spark.jars.packages", "spark.sql.extensions"}


def main(place: str) -> None:
    folder = Path(place)
    programs = {file.stem: file for file in folder.glob("*.py")}
    session = common_session(list(programs.values()))
    # temporary views are those of a session
    kohort.spark.spark_session = lambda *_, **__: session.newSession()
    stop_between_write_and_commit(folder)
    with ThreadPoolExecutor(len(programs)) as threads:
        list(threads.map(lambda name: run(folder, name, programs[name]), programs))
    session.stop()


def common_session(programs: list[Path]) -> SparkSession:
    """Return the session that the programs would make, if they made it together."""
    found: defaultdict[str, set[str]] = defaultdict(set)

    class Found(BaseException):
        pass

    def note(*_: object, **settings: str) -> None:
        for name, value in settings.items():
            found[name].add(value)
        raise Found

    make, kohort.spark.spark_session = kohort.spark.spark_session, note  # type: ignore[assignment]
    for program in programs:
        try:
            exec(compile(program.read_text(), str(program), "exec"), {})
        except Found:
            continue
    assert all(len(values) == 1 for name, values in found.items() if name not in LISTS)
    return make("tables", **{name: ",".join(sorted(values)) for name, values in found.items()})


def stop_between_write_and_commit(folder: Path) -> None:
    run_all, commit = GroupBatches.run, Batch.commit

    def run_and_note(self: GroupBatches, handle: Callable[[Batch], object], **options: Any) -> int:
        name = threading.current_thread().name

        def note(batch: Batch) -> None:
            with (folder / f"{name}.batches").open("a") as file:
                file.write(f"{batch!r}\n")
            handle(batch)

        return run_all(self, note, **options)

    def hold_and_commit(self: Batch) -> None:
        if (folder / "hold").exists():
            (folder / f"{threading.current_thread().name}.held").touch()
            threading.Event().wait()
        commit(self)

    GroupBatches.run = run_and_note  # type: ignore[method-assign]
    Batch.commit = hold_and_commit  # type: ignore[method-assign]


def run(folder: Path, name: str, program: Path) -> None:
    threading.current_thread().name = name
    names: dict[str, Any] = {"__name__": name}
    try:
        exec(compile(program.read_text(), str(program), "exec"), names)
        (folder / f"{name}.rows").write_text(json.dumps(rows_of(name, names)))
    except BaseException:
        # the others may stand still, and would be waited for
        traceback.print_exc()
        os._exit(1)


def rows_of(name: str, names: dict[str, Any]) -> list[list[str]]:
    query = ROWS[name].format_map(names)
    if name.startswith("postgres"):
        with names["psycopg"].connect(names["DATABASE"]) as database:
            found = database.execute(query).fetchall()
    else:
        found = names["spark"].sql(query).collect()
    return sorted([str(value) for value in row] for row in found)


if __name__ == "__main__":
    main(sys.argv[1])
