"""The benchmark of producers shows each client's figures; what it measures with is not asked here."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import producer


def test_each_client_has_a_column_and_kohort_is_compared_with_aiokafka(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def run(client: str, job: dict[str, Any]) -> dict[str, float]:
        asked.append((client, job["size"]))
        return {"rate": 200.0 if client == "kohort" else 100.0, "cpu_us": 5.0}

    async def make_topic(_bootstrap: str) -> str:
        return "topic"

    monkeypatch.setattr(producer, "_run", run)
    monkeypatch.setattr(producer, "_make_topic", make_topic)

    assert producer.main(["--bootstrap", "127.0.0.1:1", "--only", "small", "--rounds", "1"]) == 0

    assert sorted(asked) == [("aiokafka", 100), ("confluent-kafka", 100), ("kohort", 100)]
    head, _, rate, cpu = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in capsys.readouterr().out.splitlines()[:4]
    )
    assert head[2:5] == ["aiokafka", "confluent-kafka", "kohort"]
    assert rate[2:8] == ["100", "100", "200", "2.00", "≥ 1", "met"]
    assert cpu[4:6] == ["5.0", "1.00"]


def test_records_of_varied_lengths_are_together_as_long_as_those_of_one() -> None:
    (varied,) = [row.job for row in producer.ROWS if row.name == "varied"]
    lengths = [len(value) for value in producer._values(dict(varied))]
    assert (min(lengths), max(lengths), sum(lengths)) == (20, 180, 100 * producer.WINDOW)
    assert {len(value) for value in producer._values({"size": 100})} == {100}
