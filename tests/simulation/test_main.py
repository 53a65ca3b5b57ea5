"""The long run of schedules: it goes on behind a broken one, and says which it was."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from kohort import testing
from kohort.testing.simulation import SimulationReport, Stats
from tests.simulation import __main__ as soak

#: What a long run really has.
KINDS = soak.KINDS


def run_some(seeds: range) -> SimulationReport:
    return SimulationReport(
        Stats(schedules=len(seeds), commits=7), {s: "lost commit" for s in seeds if s == 12}
    )


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "KINDS", {"groups": soak.Kind(run_some, 1, 10)})


def test_a_broken_schedule_is_told_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = soak.run_kind("groups", 0, 0.05)
    assert outcome.seeds.start == 0
    assert outcome.seeds.stop > 20
    assert outcome.stats.schedules == len(outcome.seeds)
    assert outcome.failed == {12: "lost commit"}
    assert capsys.readouterr().out == "groups: seed 12: lost commit\n"
    assert "- groups, seed 12: lost commit" in soak.report([outcome])


def test_the_section_of_the_report_is_written_and_a_broken_schedule_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.md"
    arguments = ["--seconds", "0", "--jobs", "1", "--report", str(report)]
    for first, failed, row in (
        (0, 0, "| groups | 0 to 9 | 10 |  |  | 7 |  | 0 |"),
        (10, 1, "| groups | 10 to 19 | 10 |  |  | 7 |  | 1 |"),
    ):
        monkeypatch.setattr(sys, "argv", ["", *arguments, "--seed", str(first)])
        assert soak.main() == failed
        assert row in report.read_text()


def test_the_long_run_has_schedules_of_every_simulator() -> None:
    run = {kind.run.func for kind in KINDS.values() if isinstance(kind.run, partial)}
    assert run == {getattr(testing, name) for name in testing.__all__ if name.startswith("simulate")}
