"""The benchmark of what things cost a broker runs: its figures are not looked at."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from benchmarks import _command, _processes, _sized_cluster, sizing
from benchmarks._command import Begun
from benchmarks._sized import raise_descriptor_limit
from tests.cluster import servers

pytestmark = pytest.mark.slow(4)


@pytest.fixture(autouse=True)
def _nothing_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SETTLES_S", "REGEX_S"):
        monkeypatch.setattr(sizing, name, 0.0)
    monkeypatch.setattr(sizing, "TARGET_S", 0.1)


@pytest.mark.parametrize("curve", sizing.CURVES, ids=lambda curve: curve.name)
def test_a_curve_has_a_point_for_each_of_its_counts(
    curve: sizing.Curve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = (100, 200) if max(curve.counts) > 10_000 else (4, 6)
    monkeypatch.setattr(sizing, "CURVES", (curve._replace(counts=few),))
    assert sizing.main(["--only", curve.name, "--json", str(tmp_path / "raw.json")]) == 0
    figures = json.loads((tmp_path / "raw.json").read_text())["figures"][curve.name]
    assert [count for count, *_ in figures] == list(few)
    assert all(mib > 10 for _, mib, *_ in figures)
    assert f"| {few[1]} |" in capsys.readouterr().out


def test_a_table_is_marked_where_other_programs_took_a_tenth_of_the_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processors = os.cpu_count() or 1
    for share, marked in (0.0, False), (0.05, False), (0.5, True):
        begun, found = Begun(at=time.monotonic() - 100, others=20.0), sizing.Findings()
        monkeypatch.setattr(_command, "others_seconds", lambda share=share: 20.0 + share * 100 * processors)
        found.add("groups", (), "| 1 |", begun)
        assert f"took {share:.0%} of the processors" in found.tables["sizing-groups"]
        assert ("Busy" in found.tables["sizing-groups"]) == marked


def test_what_this_process_and_its_children_took_is_not_that_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    stat = tmp_path / "stat"
    stat.write_text(
        f"cpu {3 * ticks} {4 * ticks} {5 * ticks} 9000 900 0 {ticks} {2 * ticks} 7 7\ncpu0 1 1 1\n"
    )
    monkeypatch.setattr(_processes, "STAT", stat)
    monkeypatch.setattr(_processes, "tree_seconds", lambda _root: 6.0)
    assert _processes.others_seconds() == 9.0
    stat.unlink()
    assert _processes.others_seconds() == 0.0


def test_storms_are_survived() -> None:
    found = [
        sizing.lose_connections(5),
        sizing.kill_broker(5),
        sizing.deploy(5, at_once=False),
        sizing.deploy(5, at_once=True),
        sizing.match_topic(3, 6),
        sizing.exhaust_descriptors(300),
    ]
    assert all(storm.mib > 10 for storm in found)
    assert sizing.storms_table(found).count("\n") == len(found) + 1
    assert "300 connections to a broker of as many descriptors: 2" in found[-1].title
    waits = "new connections wait: the descriptors that are left are for files"
    assert any(waits in line for line in found[-1].lines)


def test_brokers_of_clusters_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    servers.require()
    monkeypatch.setattr(_sized_cluster, "_IDLE_S", 0.5)
    one, two = _sized_cluster.grow_cluster((1, 2), 4)
    assert (one.brokers, one.led_s) == (1, 0.0)
    assert two.led_s > 0
    assert two.led_cpu_s >= 0  # ticks of 10 ms
    assert min(one.mib, two.mib) > 10
    assert sizing.clusters_table([one, two]).count("\n") == 3


def test_the_limit_of_descriptors_is_what_the_system_gives() -> None:
    assert raise_descriptor_limit() > 100
