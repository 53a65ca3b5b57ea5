"""Both modes and the sink in a Spark Connect session. Needs grpc, which kohort does not.

Covers: spark/_dataframes.py, spark/_query.py, spark/_session.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kohort.spark import java_home
from tests.spark.conftest import Side
from tests.spark.loops import NewTopic

JOB = Path(__file__).with_name("connect_job.py")


@pytest.mark.spark
@pytest.mark.pyspark("4.2")
@pytest.mark.skipif(find_spec("grpc_status") is None, reason="Spark Connect needs grpcio and grpcio-status")
def test_both_modes_and_the_sink_work_over_spark_connect(
    side: Side, new_topic: NewTopic, tmp_path: Path
) -> None:
    orders, out = new_topic("orders", partitions=2), new_topic("out", partitions=2)
    side.produce(orders, {0: 100, 1: 50})
    everything = [150, sum(range(100)) + sum(range(50))]
    done = subprocess.run(
        [sys.executable, str(JOB), side.bootstrap, orders, out, str(tmp_path)],
        # those of the server, which has no other way to a Python with kohort
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java_home().path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.rpartition("FOUND ")[2])
    assert "connect" in found["session"]
    assert found["loop"] == [everything, everything]
    assert found["read"] == found["written"] == found["query"] == everything
    assert "set start_state_path" in found["refusal"]
    assert side.committed(f"{orders}-query", orders) == {0: 100, 1: 50}
