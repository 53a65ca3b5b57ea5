"""The benchmark of clusters shows both sides' figures; what it measures with is not asked here.

Covers: benchmarks/cluster.py, benchmarks/_clusters.py, benchmarks/_comparison.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import _clusters, cluster
from benchmarks._rows import Figures, Metric


def test_one_side_runs_at_a_time_and_kohort_is_compared_with_apache_kafka(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def contender(name: str) -> _clusters.Contender:
        @contextmanager
        def start(session_ms: int) -> Iterator[_clusters.Brokers]:
            happened.append(f"{name} starts, {session_ms}")
            yield _clusters.Brokers(name, f"{name} 1", {}, int)
            happened.append(f"{name} ends")

        return _clusters.Contender(name, start)

    def run(brokers: _clusters.Brokers, _: cluster.Effort) -> Figures:
        return {"rate": 300.0 if brokers.name == "kohort" else 200.0}

    metric = Metric("rate", "records", "1/s", 0.7, more_is_better=True)
    monkeypatch.setattr(cluster, "ROWS", (cluster.Row("small", (metric,), run),))
    monkeypatch.setattr(cluster, "KOHORT", contender("kohort"))
    monkeypatch.setattr(cluster, "APACHE_KAFKA", contender("Apache Kafka"))

    assert cluster.main(["--compare", "--rounds", "2", "--session-ms", "3000"]) == 0

    assert happened == [
        "Apache Kafka starts, 3000",
        "Apache Kafka ends",
        "kohort starts, 3000",
        "kohort ends",
    ]
    line = capsys.readouterr().out.splitlines()[2]
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        *("records", "1/s", "200", "300", "1.50", "≥ 0.7", "met")
    ]


def test_a_process_that_was_not_waited_for_yet_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert _clusters.running(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not _clusters.running(process.pid)
    process.communicate()
    assert not _clusters.running(process.pid)
