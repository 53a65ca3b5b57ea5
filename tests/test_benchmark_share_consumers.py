"""The comparison of share consumers runs, and judges by its goals; what it measures is not judged here."""

from __future__ import annotations

import json

import pytest

from benchmarks import share_consumers
from benchmarks.consumer import table
from benchmarks.share_consumers import CLIENTS, ROWS

FEW = ["--records", "2000", "--arrivals", "520", "--rounds", "1", "--json"]


@pytest.mark.slow(12)
def test_each_row_is_measured_with_every_client_of_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_consumers, "_classpath", lambda: None)
    assert share_consumers.main(FEW) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]["kohort"]
    for row in ROWS:
        assert set(figures[row.name]) == {"confluent-kafka", "kohort"}
        for (found,) in figures[row.name].values():
            assert all(found[key] > 0 for key in row.metrics)


@pytest.mark.parametrize(("ours", "verdict"), [(150.0, "met"), (149.0, "missed")])
def test_goals_are_over_confluent_kafkas(ours: float, verdict: str) -> None:
    clients = {"confluent-kafka": 100.0, "Java": 1_000.0, "kohort": ours}
    measured = {"a": {"one": {name: [{"per_second": rate}] for name, rate in clients.items()}}}
    rows = [row for row in ROWS if row.name == "one"]
    cells = [cell.strip() for cell in table(measured, CLIENTS, rows).splitlines()[-1].split("|")]
    assert cells[-4:-1] == [f"{ours / 100:.2f}", "≥ 1.5", verdict]


@pytest.mark.parametrize("words", [["--only", "nonsense"], ["--records", "250"], ["--rounds", "0"]])
def test_wrong_use_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        share_consumers.parse(words)
