"""The benchmark of share groups runs on a kohort: its figures are not looked at."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from benchmarks import share_groups
from benchmarks._connection import WrongAnswerError
from benchmarks._share_members import Held, check_once

pytestmark = pytest.mark.slow(10)

FEW = {
    "--records": "2000",
    "--singles": "200",
    "--client-records": "2000",
    "--requests": "50",
    "--losses": "2",
    "--share-partitions": "4",
    "--in-flight": "100",
}
TOPIC = UUID(int=1)


def test_each_row_measures_what_its_lines_show(capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for option in FEW.items() for word in option]
    assert share_groups.main(["--rounds", "1", *options, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]["kohort"]
    for row in share_groups.ROWS:
        (only,) = figures[row.name]
        # memory may not have grown by a page
        assert all(only[metric.key] > 0 or row.name == "memory" for metric in row.metrics)


@pytest.mark.parametrize("again", [Held(TOPIC, 0, 3, 3, 1), Held(TOPIC, 0, 7, 8, 2)])
def test_a_record_that_comes_twice_ends_a_run(again: Held) -> None:
    given = [Held(TOPIC, 0, 5, 6, 1), Held(TOPIC, 0, 0, 4, 1), Held(TOPIC, 1, 0, 4, 1)]
    check_once(given)
    with pytest.raises(WrongAnswerError):
        check_once([*given, again])
