"""Jobs of the sink in one process that is to be killed: each stands still at its step, and says so in a file.

    python -m tests.spark.killed_sink CONFIG

CONFIG is JSON: the address of the broker, and the cells.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kohort.client.transactions import Transaction
from kohort.consumer import Cluster
from kohort.spark import _transaction
from kohort.spark._batch_steps import End
from kohort.spark._sink import Attempt, TopicWriter
from kohort.spark._sink_options import read_sink_options
from kohort.spark._transaction import StepRunner

KEY = "7-f00d"
#: Steps of a job of two tasks: two at its start, two of each task, six of the commit.
STEPS = 12
COMMIT_ALL = 10
#: Stands for the moment between the two commits.
BETWEEN = -1


@dataclass(frozen=True)
class Cell:
    """A job with a topic and a ledger of its own, and the number of the step before which it stands still."""

    topic: str
    ledger: str
    step: int
    reached: str


def writer_of(bootstrap: str, cell: Cell) -> TopicWriter:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": cell.topic, "ledgerGroup": cell.ledger}
    return TopicWriter(read_sink_options(given))


def run(bootstrap: str, cell: Cell, tasks: Sequence[Sequence[str]]) -> None:
    writer = writer_of(bootstrap, cell)
    writer.start()
    written = [
        writer.write_rows(iter([pa.RecordBatch.from_pydict({"value": list(values)})]), KEY, Attempt(task))
        for task, values in enumerate(tasks)
    ]
    writer.commit(written)


def stop_at_steps(cells: Sequence[Cell]) -> None:
    """Patch the sink: each cell's job stands still for ever at its step, and the others go on."""
    of_ledger = {cell.ledger: cell for cell in cells}
    done: Counter[str] = Counter()
    first_committed = {cell.ledger: asyncio.Event() for cell in cells}

    async def stand_still(cell: Cell) -> None:
        Path(cell.reached).touch()
        await asyncio.Event().wait()

    async def carry_out(runner: StepRunner, cluster: Cluster, step: Any) -> Any:
        cell = of_ledger[runner._prefix or ""]
        if done[cell.ledger] == cell.step:
            await stand_still(cell)
        done[cell.ledger] += 1
        return await carry_out_one(runner, cluster, step)

    async def commit(cluster: Cluster, transaction: Transaction) -> End:
        ledger, _, task = transaction.name.rpartition("-")
        cell = of_ledger[ledger]
        if task == "1" and cell.step == BETWEEN:
            await first_committed[ledger].wait()
            await stand_still(cell)
        end = await commit_one(cluster, transaction)
        first_committed[ledger].set()
        return end

    carry_out_one, commit_one = StepRunner._carry_out, _transaction._commit_transaction
    StepRunner._carry_out = carry_out  # type: ignore[assignment, method-assign]
    _transaction._commit_transaction = commit


def main(file: str) -> None:
    config = json.loads(Path(file).read_text())
    cells = [Cell(**cell) for cell in config["cells"]]
    stop_at_steps(cells)

    def run_one(cell: Cell) -> None:
        try:
            run(config["bootstrap"], cell, [["a0", "b0"], ["a1", "b1"]])
        except BaseException:
            # the other jobs may stand still, and would be waited for
            traceback.print_exc()
            os._exit(1)

    with ThreadPoolExecutor(len(cells)) as threads:
        list(threads.map(run_one, cells))


if __name__ == "__main__":
    main(sys.argv[1])
