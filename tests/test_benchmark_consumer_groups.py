"""The benchmark of consumer groups runs on a kohort: its figures are not looked at."""

from __future__ import annotations

import pytest

from benchmarks import consumer_groups


@pytest.mark.parametrize("row", ["heartbeats", "join_100"])
def test_a_row_measures_and_prints(
    row: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_groups, "CHANGES", 1)
    assert consumer_groups.main(["--only", row, "--rounds", "1", "--effort", "0.1"]) == 0
    assert "kohort" in capsys.readouterr().out
