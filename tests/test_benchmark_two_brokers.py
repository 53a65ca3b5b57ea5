"""The benchmark of two brokers measures the one that needs no ZooKeeper: its figures are not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import two_brokers


def test_a_broker_alone_serves_all_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_brokers, "ARRANGEMENTS", two_brokers.ARRANGEMENTS[:1])
    file = tmp_path / "figures.json"
    options = ["--rounds", "1", "--seconds", "0.2", "--groups", "20", "--json", str(file)]
    assert two_brokers.main(options) == 0
    measured = json.loads(file.read_text())["figures"]["one broker"]
    assert measured.keys() == {"heartbeats", "commits", "groups"}
    (beats,), (commits,), (groups,) = (measured[name] for name in ("heartbeats", "commits", "groups"))
    assert min(beats["rate"], commits["rate"]) > 0
    assert groups["carried"] == pytest.approx(1e6 / (beats["work"] / 3 + commits["work"] / 5))
