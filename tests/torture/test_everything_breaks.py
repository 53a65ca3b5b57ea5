"""Everything that can break does, by a seed: processes, connections, disk, clock. Nothing is lost.

One run takes about 20 seconds. With ``--soak SECONDS`` they follow one another for so long, each a minute of
faults with a seed of its own, and ``--report FILE`` gets what they come to. One seed again:
``python -m tests.torture.episode FOLDER SEED SECONDS``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.reliability_report import write_section
from tests.torture.disk import DataDisk, data_disk
from tests.torture.episode import run
from tests.torture.nemesis import FAULTS
from tests.torture.totals import INTRO, Totals

pytestmark = [pytest.mark.clients, pytest.mark.slow(15), pytest.mark.timeout(14_400)]

RAMPAGE_S = 60.0

#: Says how many bytes it could add to the file of each line, or the number of the error.
WRITER = """
import sys
for line in sys.stdin:
    try:
        print(open(line.strip(), "ab", 0).write(b"x"), flush=True)
    except OSError as error:
        print(-error.errno, flush=True)
"""


def test_nothing_acknowledged_is_lost_or_there_twice(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    soak_s, report = pytestconfig.getoption("--soak"), pytestconfig.getoption("--report")
    totals, seed, end = Totals(INTRO), 1, time.monotonic() + (soak_s or 0)
    while not totals.runs or time.monotonic() < end:
        outcome = run(tmp_path / str(seed), seed, rampage_s=RAMPAGE_S if soak_s else None)
        print(outcome.summary(), *outcome.anomalies, flush=True)
        if outcome.anomalies:
            print(*outcome.story, outcome.failures, sep="\n", flush=True)
        totals.add(outcome)
        if report is not None:
            write_section(Path(report), "real processes", totals.report())
        if not outcome.anomalies:
            shutil.rmtree(tmp_path / str(seed))
        seed += 1
    assert totals.anomalies == []
    assert set(totals.faults) == {fault.name for fault in FAULTS}
    assert totals.counts["records acknowledged"] > 100
    assert totals.counts["records given to the group"] >= totals.counts["records acknowledged"]
    assert totals.counts["commits acknowledged"] > 10
    assert totals.counts["connections cut"] > 0


@pytest.mark.parametrize("mounted", [True, False])
def test_a_disk_runs_full_and_has_room_again(tmp_path: Path, mounted: bool) -> None:
    with data_disk(tmp_path / "data") as disk:
        if mounted and not disk.mounted:
            pytest.skip("mounting a tmpfs is not permitted here")
        disk = DataDisk(disk.folder, mounted=mounted)
        command = [sys.executable, "-c", WRITER]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

            def wrote(file: str) -> int:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(f"{disk.folder / file}\n")
                process.stdin.flush()
                return int(process.stdout.readline())

            assert wrote("first") == 1
            disk.fill(process.pid)
            assert wrote("second") < 0
            disk.clear(process.pid)
            assert wrote("third") == 1
