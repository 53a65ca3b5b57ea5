"""Leader epochs and where they began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.log import OS_FILES, _checkpoints
from kohort.log._checkpoints import LeaderEpochs


def epochs(folder: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs(OS_FILES, str(folder / "leader-epoch-checkpoint"))
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (1, (1, 10)),  # before the first that is known: it ends where that one begins
        (2, (2, 40)),
        (3, (2, 40)),
        (5, (5, 70)),
        (6, (5, 70)),
        (7, (7, 100)),
        (8, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_begins(tmp_path: Path, asked: int, answer: tuple[int, int]) -> None:
    made = epochs(tmp_path, (2, 10), (5, 40), (7, 70))
    assert made.end_offset_for(asked, 100) == answer


def test_without_epochs_nothing_is_known(tmp_path: Path) -> None:
    made = epochs(tmp_path)
    assert made.latest == -1
    assert made.end_offset_for(0, 100) == (-1, -1)
    assert made.epoch_at(5) == -1


def test_every_change_is_on_the_disk(tmp_path: Path) -> None:
    made = epochs(tmp_path, (0, 0), (4, 50))
    made.assign(4, 60)
    made.assign(3, 60)
    path = tmp_path / "leader-epoch-checkpoint"
    assert path.read_text() == "0\n2\n0 0\n4 50\n"
    assert epochs(tmp_path).latest == 4
    made.cut_start(20)
    assert path.read_text() == "0\n2\n0 20\n4 50\n"
    made.cut_start(50)
    assert path.read_text() == "0\n1\n4 50\n"
    made.cut_end(49)
    assert path.read_text() == "0\n0\n"


def test_an_epoch_without_records_gives_way_to_the_next(tmp_path: Path) -> None:
    made = epochs(tmp_path, (0, 0), (1, 30), (2, 30))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 30\n"
    assert made.epoch_at(29) == 0
    assert made.epoch_at(30) == 2


def test_only_the_first_epoch_of_a_new_log_waits_for_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[bool] = []
    written = _checkpoints.write_epochs

    def write(*arguments: Any, durable: bool, into: list[bool] = durable) -> None:
        into.append(durable)
        written(*arguments, durable=durable)

    monkeypatch.setattr(_checkpoints, "write_epochs", write)
    made = epochs(tmp_path, (0, 0))
    # a follower that is cut at its very start knows no epoch for a moment
    made.cut_end(-1)
    made.assign(4, 0)
    assert durable == [False, True, True]
