"""The benchmark of join storms runs on a kohort: its figures are not looked at, but that groups settle."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from benchmarks import join_storms
from benchmarks._brokers import Contender, kohort

MEMBERS = 6


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_come_and_are_replaced_until_all_have_their_partitions(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**join_storms.SETTINGS, "group.initial.rebalance.delay.ms": "200"}
    monkeypatch.setattr(join_storms, "CONTENDERS", (Contender("kohort", partial(kohort, settings)),))
    monkeypatch.setattr(join_storms, "ROWS", [join_storms._row(protocol, MEMBERS)])
    monkeypatch.setattr(join_storms, "CLASSIC_HEARTBEAT_S", 0.2)
    monkeypatch.setattr(join_storms, "CONSUMER_HEARTBEAT_S", 0.2)
    file = tmp_path / "figures.json"
    options = ["--storm-s", "0.1", "--deploy-s", "0.5", "--partitions", "12", "--json", str(file)]
    assert join_storms.main(options) == 0
    (figures,) = json.loads(file.read_text())["figures"]["kohort"][f"{protocol}_{MEMBERS}"]
    assert figures["storm_rounds"] >= 1
    assert figures["deploy_rounds"] >= 1
