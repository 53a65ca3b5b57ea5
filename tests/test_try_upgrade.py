"""scripts/try_upgrade.py: which steps it takes, and that it notices what is lost or read twice."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.scripts import script

upgrade = script("try_upgrade")


class Log:
    """Stands for brokers and commands: a topic, how far each group has read it, and who gets partitions."""

    def __init__(self, lose: Callable[[int], bool] = lambda _: False, share: Sequence[int] = (2, 1)) -> None:
        self.share = share
        self.records: list[int] = []
        self.offsets: dict[str, int] = {}
        self.lose = lose

    def version(self, name: str) -> Any:
        return type("Version", (), {"name": name, "run": self.run})()

    def run(self, *words: str, given: str = "") -> str:
        if words[:2] == ("groups", "list"):
            return json.dumps({"groups": [{"group": f"both-{at}"} for at in range(9)]})
        if words[0] == "groups":
            return json.dumps({"members": [{"assignment": [{}] * count} for count in self.share]})
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
    monkeypatch.setattr(upgrade, "members", lambda *_: nullcontext())
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
    upgrade.try_step(0, versions, tmp_path)
    log.offsets.clear()
    with pytest.raises(RuntimeError, match="the group read 200 records"):
        upgrade.try_step(1, versions, tmp_path)
    assert brokers == ["old", "new"]


@pytest.mark.usefixtures("brokers")
def test_members_of_both_versions_that_do_not_share_a_group_end_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(upgrade, "JOIN_S", 0.0)
    with pytest.raises(RuntimeError, match="members of both versions do not share a group"):
        try_with(Log(share=(3, 0)), tmp_path)


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A version whose commands are lines of shell."""
    made = upgrade.Version("new", tmp_path)
    monkeypatch.setattr(upgrade.Version, "command", lambda _, *words: ["sh", "-c", " ".join(words)])
    return made


def test_a_command_that_does_not_end_is_named(version: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "COMMAND_S", 0.5)
    with pytest.raises(RuntimeError, match=r"kohort echo why >&2; exec sleep 9 did not end within 0 s\nwhy$"):
        version.run("echo why >&2; exec sleep 9")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exec sleep 9", "the new broker does not open the folder within 1 s"),
        (
            "trap '' TERM; echo ready on localhost:1; sleep 1; sleep 9",
            "the new broker did not end within 1 s",
        ),
    ],
)
def test_a_broker_that_is_not_ready_or_does_not_end_is_told(
    version: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    monkeypatch.setattr(upgrade, "START_S", 1.0)
    monkeypatch.setattr(upgrade, "STOP_S", 1.0)
    monkeypatch.setattr(upgrade.Version, "command", lambda *_: ["sh", "-c", script])
    with pytest.raises(RuntimeError, match=told), upgrade.broker(version, tmp_path / "d", signal.SIGTERM):
        pass


def test_all_brokers_of_a_cluster_are_stopped_though_one_does_not_end(tmp_path: Path) -> None:
    cluster, stopped = upgrade.Cluster(tmp_path, "localhost:1/try"), []

    def stop(node: int) -> None:
        stopped.append(node)
        if node == 2:
            raise RuntimeError("it did not end")

    for node in (1, 2, 3):
        stack = ExitStack()
        stack.callback(stop, node)
        cluster.running[node] = ("old", "localhost:1", stack)
    with pytest.raises(RuntimeError, match="it did not end"):
        cluster.stop()
    assert sorted(stopped) == [1, 2, 3]


def test_what_did_not_happen_is_a_sentence_with_the_place_of_the_logs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the new broker did not end within 60 s")

    monkeypatch.setattr(upgrade, "checkout", lambda _: nullcontext(tmp_path))
    monkeypatch.setattr(upgrade, "try_upgrade", fail)
    assert upgrade.main(["v1"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "v1: the new broker did not end within 60 s"
    kept = Path(second.removeprefix("The brokers' logs and data are in ").removesuffix("."))
    assert kept.is_dir()
    shutil.rmtree(kept)


def test_a_commit_that_is_not_there_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert upgrade.main(["no-such-commit"]) == 1
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("no-such-commit: git does not check it out: fatal:")
    shutil.rmtree(last.split()[-1].removesuffix("."))
