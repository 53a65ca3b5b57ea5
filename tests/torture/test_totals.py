"""What a run found is in the report, whatever kept it from its end.

Covers: tests/torture/totals.py, tests/torture/processors.py.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.torture.checker import Anomaly
from tests.torture.cluster_episode import KINDS
from tests.torture.episode import Outcome
from tests.torture.processors import disorder, unfinished
from tests.torture.totals import Totals


@pytest.mark.parametrize(
    ("found", "stuck", "wrong"),
    [
        ([0, 1, 2, 3], False, False),
        ([0, 1, 2], True, False),
        ([], True, False),
        ([0, 1, 3], False, True),
        ([0, 1, 1, 2, 3], False, True),
        ([1, 0, 2, 3], False, True),
    ],
)
def test_processors_that_stand_still_are_told_from_wrong_output(
    found: list[int], stuck: bool, wrong: bool
) -> None:
    assert bool(unfinished([4], [found])) == stuck
    seen = len(found) if stuck else 4
    assert bool(disorder([seen], [found])) == wrong


def test_whatever_a_run_found_has_a_row_with_its_number() -> None:
    totals = Totals("## Runs", KINDS)
    for seed in (1, 2):
        found = [Anomaly("stuck processors", "librdkafka"), Anomaly("stuck group", "billing")]
        totals.add(Outcome(seed, 60.0, "tmpfs", Counter(SIGKILL=30), anomalies=found[: 3 - seed]))
    report = totals.report()
    assert "2 runs from seed 1 on, 2 minutes together, 60 faults" in report
    for kind, meaning in KINDS.items():
        count = {"stuck processors": 2, "stuck group": 1}.get(kind, 0)
        assert f"| {kind} | {meaning} | {count} |" in report
    assert "- seed 1: stuck group: billing" in report
