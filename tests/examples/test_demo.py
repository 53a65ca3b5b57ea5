"""The demo itself, with few flights: every stage of it, every kill, every process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "examples" / "demo" / "run.py"


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_short_run_is_equal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, RUN],
        env={**os.environ, "KOHORT_DEMO_RECORDS": "1000", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    shown = ended.stdout
    assert ended.returncode == 0, shown + ended.stderr
    assert "equal: yes" in shown
    assert "service-2 killed with SIGKILL" in shown
    assert re.search(
        r"rebalance: generation \d+, 3 members, \d of 6 partitions moved, \d+\.\d s, because", shown
    )
    assert "batch 2: 167 flights written, the planned range again" in shown
    assert "records the groups have not committed: delays 0, etl 0" in shown
    assert not list(tmp_path.glob("kohort-*"))
