"""scripts/try_upgrade.py: which steps it takes, and that it notices what is lost or read twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scripts import script

upgrade = script("try_upgrade")


class Log:
    """Stands for brokers and commands: a topic, and how far each group has read it."""

    def __init__(self, lose: Callable[[int], bool] = lambda _: False) -> None:
        self.records: list[int] = []
        self.offsets: dict[str, int] = {}
        self.lose = lose

    def version(self, name: str) -> Any:
        return type("Version", (), {"name": name, "run": self.run})()

    def run(self, *words: str, given: str = "") -> str:
        if words[0] == "produce":
            self.records += [int(line) for line in given.split() if not self.lose(int(line))]
        if words[0] != "consume":
            return ""
        group = words[words.index("--group") + 1]
        start, self.offsets[group] = self.offsets.get(group, 0), len(self.records)
        return "".join(f"{number}\n" for number in self.records[start:])


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    started: list[str] = []

    @contextmanager
    def broker(version: Any, *_: object) -> Iterator[str]:
        started.append(version.name)
        yield "localhost:1"

    monkeypatch.setattr(upgrade, "broker", broker)
    return started


def try_with(log: Log, tmp_path: Path) -> None:
    upgrade.try_upgrade({name: log.version(name) for name in ("old", "new")}, tmp_path)


def test_the_folder_goes_forward_and_back_and_forward_again(brokers: list[str], tmp_path: Path) -> None:
    try_with(Log(), tmp_path)
    assert brokers == ["old", "new", "new", "old", "old", "new"]
    assert {(server, client) for server, client, _ in upgrade.STEPS} == {
        (server, client) for server in ("old", "new") for client in ("old", "new")
    }


def test_a_cluster_is_replaced_broker_by_broker_and_back(
    brokers: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log()
    versions = {name: log.version(name) for name in ("old", "new")}
    upgrade.try_rolling(versions, tmp_path, "localhost:2181/try")
    assert brokers == ["old"] * 3 + ["new"] * 3 + ["old"] * 3
    told = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert told == [
        "brokers new, old, old",
        "brokers new, new, old",
        "brokers new, new, new",
        "brokers old, new, new",
        "brokers old, old, new",
        "brokers old, old, old",
    ]


@pytest.mark.usefixtures("brokers")
def test_a_record_that_is_lost_ends_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the group read 99 records, not 100"):
        try_with(Log(lose=lambda number: number == 250), tmp_path)


def test_an_offset_that_is_lost_ends_it(brokers: list[str], tmp_path: Path) -> None:
    log = Log()
    versions = {name: log.version(name) for name in ("old", "new")}
    upgrade.try_step(0, versions["old"], versions["old"], None, tmp_path)
    log.offsets.clear()
    with pytest.raises(RuntimeError, match="the group read 200 records"):
        upgrade.try_step(1, versions["new"], versions["new"], None, tmp_path)
    assert brokers == ["old", "new"]
