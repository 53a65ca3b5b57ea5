"""The comparison of consumers runs, and judges by its goals; what it measures is not judged here."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks._consume_moves import Reads, member_process, until
from benchmarks._consumer_rows import ROWS
from benchmarks.consumer import parse, tables
from kohort.client.cluster import Cluster
from kohort.testing import running_broker

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow(6)
@pytest.mark.parametrize(
    ("row", "clients"),
    [
        ("batches_lz4", {"confluent-kafka", "aiokafka", "kohort"}),
        ("one_varied", {"kafka-python", "confluent-kafka", "aiokafka", "kohort"}),
    ],
)
def test_a_row_is_measured_with_every_client(row: str, clients: set[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.consumer", "--only", row, "--rounds", "1"]
    command += ["--records", "600", "--few-records", "101", "--waiting", "600", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]["kohort"][row]
    assert set(figures) == clients
    assert all(rounds[0]["per_second"] > 0 for rounds in figures.values())


@pytest.mark.parametrize(("ours", "verdict"), [(150.0, "met"), (149.0, "missed")])
def test_a_goal_is_beside_the_best_of_the_others(ours: float, verdict: str) -> None:
    clients = {"kafka-python": 10.0, "confluent-kafka": 100.0, "aiokafka": 50.0, "kohort": ours}
    measured = {"a": {"one_none": {name: [{"per_second": rate}] for name, rate in clients.items()}}}
    cells = [cell.strip() for cell in tables(measured)["consumer"].splitlines()[-1].split("|")]
    assert cells[-4:-1] == [f"{ours / 100:.2f}", "≥ 1.5", verdict]


def test_what_kohort_does_by_itself_has_a_table_of_its_own_with_what_it_is_compared_to() -> None:
    classic = {"join_ms": 8.0, "leave_ms": 10.0, "process_join_ms": 20.0, "process_leave_ms": 15.0}
    ours = {"join_ms": 4.0, "leave_ms": 6.0, "process_join_ms": 8.0, "process_leave_ms": 9.0}
    found = tables({"a": {"rebalance_protocols": {"kohort-classic": [classic], "kohort": [ours]}}})
    assert found.keys() == {"consumer-protocols"}
    lines = [[cell.strip() for cell in line.split("|")] for line in found["consumer-protocols"].splitlines()]
    assert [line[4:9] for line in lines[2:]] == [
        ["8.0", "4.0", "0.50", "≤ 0.5", "met"],
        ["10.0", "6.0", "0.60", "≤ 0.5", "missed"],
        ["20.0", "8.0", "0.40", "≤ 0.5", "met"],
        ["15.0", "9.0", "0.60", "≤ 0.5", "missed"],
    ]


@pytest.mark.slow(4)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_in_processes_of_their_own_say_when_they_stopped_and_read_the_record_that_follows(
    protocol: str,
) -> None:
    async def moved(job: dict[str, Any]) -> tuple[list[float], list[float]]:
        reads, stops = Reads(lambda _: None), [asyncio.Event(), asyncio.Event()]
        async with Cluster(job["bootstrap"]) as cluster:
            await cluster.create_topics({job["topic"]: 2})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(member_process(job, 0, reads, stops[0]))
            await until(lambda: bool(reads.owners()))
            begun = time.monotonic()
            tasks.create_task(member_process(job, 1, reads, stops[1]))
            await until(lambda: sorted(reads.owners().values()) == [0, 1])
            joined = time.monotonic()
            stops[1].set()
            await until(lambda: 1 not in reads.owners().values())
            stops[0].set()
        return reads.pauses_ms(1, begun), reads.pauses_ms(1, joined)

    with running_broker() as broker:
        job = {"bootstrap": broker.bootstrap, "topic": "moving", "group": "moving", "protocol": protocol}
        both, leave = asyncio.run(moved(job))
    # nobody else writes to this topic
    assert (len(both), len(leave)) == (2, 1)


def test_rows_have_names_of_their_own_and_unknown_ones_are_refused() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    with pytest.raises(SystemExit):
        parse(["--only", "nonsense"])
