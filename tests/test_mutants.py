"""Mutation testing itself: what is drawn, how mutants are called, what is excused, what is counted."""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.scripts import script

ROOT = Path(__file__).resolve().parent.parent

MODULE = '''
"""A module."""

from functools import cache


def plain(number):
    def inner():
        return number + 1

    return inner() + 1


async def waits(number):
    return number + 1


@cache
def decorated(number):
    return number + 1


class Counter:
    start = 1 + 1

    def __init__(self):
        self.number = 1

    async def later(self):
        return self.number + 1

    @property
    def twice(self):
        return self.number * 2

    @staticmethod
    def one():
        return 1

    @classmethod
    def made(cls):
        return cls() or 1


def _private():
    return 1
'''


mutants = script("mutants")


def options(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"functions": 5, "seed": "a", **given})


def names_in(room: str) -> set[str]:
    """The functions of a room, by the names of their mutants."""
    return {
        f"{mutants._dotted(module)}.{name}"
        for module in mutants.modules_of(room)
        for name in mutants._functions(module)
    }


def test_functions_are_called_as_mutmut_calls_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = pytest.importorskip("mutmut.mutation.file_mutation")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.mutmut]\nsource_paths = ["."]\n')
    (tmp_path / "module.py").write_text(MODULE)
    made = mutation.mutate_file_contents("module.py", MODULE).mutant_names
    ours = set(mutants._functions(tmp_path / "module.py"))
    assert ours == {
        "x_plain",
        "x_waits",
        "x__private",
        "xǁCounterǁ__init__",
        "xǁCounterǁlater",
        "xǁCounterǁone",
        "xǁCounterǁmade",
    }
    assert {name.partition("__mutmut_")[0] for name in made} == ours


def test_the_same_seed_draws_the_same_functions_and_only_their_modules() -> None:
    modules = mutants.modules_of("coordinator")
    first, second = (mutants._drawn(modules, options()) for _ in range(2))
    patterns, drawn = first
    assert first == second
    assert len(set(patterns)) == 5
    assert {pattern.partition("__mutmut_*")[0] for pattern in patterns} <= names_in("coordinator")
    of_one = [f"{patterns[0].partition('*')[0]}{number}" for number in range(100)]
    assert len([name for name in of_one if fnmatch(name, patterns[0])]) == 30
    assert {pattern.rpartition(".")[0] for pattern in patterns} == {mutants._dotted(each) for each in drawn}
    assert mutants._drawn(modules, options(seed="b")) != first


def test_no_more_functions_are_drawn_than_there_are() -> None:
    module = mutants.modules_of("statemachine")[-1]
    patterns, _ = mutants._drawn([module], options(functions=99))
    assert len(patterns) == len(list(mutants._functions(module)))


def test_excuses_are_read_with_their_reasons(tmp_path: Path) -> None:
    listed = tmp_path / "mutants.toml"
    assert mutants.read_excuses(listed) == []
    listed.write_text('[[survivor]]\nmutants = "kohort.a.b.x_c__mutmut_*"\nreason = "equal"\n')
    assert mutants.read_excuses(listed) == [("kohort.a.b.x_c__mutmut_*", "equal")]
    listed.write_text('[[survivor]]\nmutants = "kohort.a.b.x_c__mutmut_*"\n')
    with pytest.raises(KeyError, match="reason"):
        mutants.read_excuses(listed)


CODES = {
    "kohort.a.b.x_f__mutmut_1": 1,
    "kohort.a.b.x_f__mutmut_2": 0,
    "kohort.a.b.x_f__mutmut_3": -24,
    "kohort.a.b.x_g__mutmut_1": 33,
    "kohort.a.b.x_g__mutmut_2": 0,
    "kohort.a.b.x_g__mutmut_3": 1,
    "kohort.a.b.x_h__mutmut_1": None,
    "kohort.a.b.x_h__mutmut_2": 2,
}


@pytest.mark.parametrize(
    ("wanted", "excused", "counted", "percent"),
    [
        ([], [], (3, 2, 1, 0, 1, 1), 50.0),
        ([], ["kohort.a.b.x_g__mutmut_*"], (3, 1, 0, 2, 1, 1), 75.0),
        ([], ["kohort.a.b.x_f__mutmut_2"], (3, 1, 1, 1, 1, 1), 60.0),
        (["kohort.a.b.x_f__mutmut_*"], [], (2, 1, 0, 0, 0, 0), 200 / 3),
        (["kohort.a.b.x_h__mutmut_*"], [], (0, 0, 0, 0, 1, 1), 100.0),
    ],
)
def test_a_mutant_is_noticed_survives_is_not_run_excused_unclear_or_untried(
    tmp_path: Path,
    wanted: list[str],
    excused: list[str],
    counted: tuple[int, ...],
    percent: float,
) -> None:
    meta = tmp_path / "mutants" / "kohort" / "a" / "b.py.meta"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"exit_code_by_key": CODES}))
    outcome = mutants._outcome("a", tmp_path, wanted, [(pattern, "") for pattern in excused], {})
    kinds = ("noticed", "survived", "untested", "excused", "unclear", "untried")
    assert tuple(len(getattr(outcome, kind)) for kind in kinds) == counted
    assert outcome.percent == pytest.approx(percent)


@pytest.mark.parametrize(
    ("noticed", "survived", "untried", "reaches"),
    [(13, 7, 0, True), (12, 8, 0, False), (1, 8, 40, True), (10, 15, 40, False)],
)
def test_a_few_mutants_of_many_say_nothing_about_the_goal(
    tmp_path: Path, noticed: int, survived: int, untried: int, reaches: bool
) -> None:
    outcome = mutants.Outcome("log", tmp_path, ["a"] * noticed, ["b"] * survived, untried=["c"] * untried)
    assert outcome.reaches(65) == reaches


def test_what_works_at_import_alone_is_asked_of_all_tests_in_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mutants"
    folder.mkdir()
    (folder / "b.py.meta").write_text(json.dumps({"exit_code_by_key": CODES}))
    found = {"kohort.a.b.x_f": ["t1"], "kohort.a.b.x_g": ["t1", "t2"], "kohort.a.b.x_h": ["t2"]}
    stats = {"duration_by_test": {"t1": 0.1, "t2": 0.1}, "tests_by_mangled_function_name": found}
    (folder / "mutmut-stats.json").write_text(json.dumps(stats))
    asked: list[str] = []

    def run(_command: list[str], *, env: dict[str, str], **_: Any) -> Any:
        asked.append(env["MUTANT_UNDER_TEST"])
        return argparse.Namespace(returncode=2)

    monkeypatch.setattr(mutants.subprocess, "run", run)
    assert mutants._ask_anew("log", tmp_path / "out of time", []) == {}
    assert mutants._ask_anew("log", tmp_path, []) == {"kohort.a.b.x_f__mutmut_2": 1}
    assert asked == ["kohort.a.b.x_f__mutmut_2"]
    assert mutants._ask_anew("log", tmp_path, ["kohort.a.b.x_g__mutmut_*"]) == {}


SLOW_MUTMUT = """#!/bin/sh
exec 3> pipe
echo began >&3
sleep 60 &
wait
"""


def test_when_its_minutes_are_over_mutmut_ends_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow"
    slow.write_text(SLOW_MUTMUT)
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    mutants._mutate(tmp_path, 1, [], 0.01)
    assert os.read(pipe, 100) == b"began\n"
    assert select.select([pipe], [], [], 10)[0], "one of them still has the pipe"
    assert os.read(pipe, 100) == b""
    os.close(pipe)


def test_a_mutmut_that_fails_is_told_with_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(SystemExit, match=r"mutmut ended with 1: see .*report.txt"):
        mutants._mutate(tmp_path, 1, [], 1)


def test_a_result_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "mutants"
    folder.mkdir()
    (folder / "half.py.meta").write_text('{"exit_code_by_key": {"kohort')
    (folder / "whole.py.meta").write_text(json.dumps({"exit_code_by_key": CODES}))
    assert mutants._codes(tmp_path) == CODES


def test_an_unknown_room_is_told_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants", "cellar"])
    assert mutants.main() == 2
    assert "no such room: cellar; there are coordinator" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("survived", "goal", "status"), [(0, "100", 0), (1, "90", 0), (1, "90.1", 1), (9, "50", 1)]
)
def test_below_the_goal_it_fails_and_names_the_survivors(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    survived: int,
    goal: str,
    status: int,
) -> None:
    def run(room: str, *_: Any) -> Any:
        names = [f"kohort.log.x_{number}" for number in range(10)]
        return mutants.Outcome(room, Path("layout"), noticed=names[survived:], survived=names[:survived])

    monkeypatch.setattr(mutants, "_run", run)
    monkeypatch.setattr(sys, "argv", ["mutants", "log", "--goal", goal])
    assert mutants.main() == status
    told = capsys.readouterr().out
    assert f"log: {100 - 10 * survived}.0 % noticed" in told
    assert told.count("  survived  kohort.log.x_") == survived
    assert ("cd layout && " in told) is bool(survived)


def test_every_excuse_is_about_a_function_that_exists() -> None:
    known = set().union(*(names_in(room) for room in mutants.ROOMS))
    for pattern, reason in mutants.read_excuses(mutants.LISTED):
        function = pattern.partition("__mutmut_")[0]
        assert any(fnmatch(name, function) for name in known), f"{pattern} names nothing"
        assert reason.strip(), f"{pattern} has no reason"


def test_what_runs_at_import_is_seen_by_the_test_that_comes_first() -> None:
    first, *_ = sorted((ROOT / "tests" / "statemachine").glob("test_*.py"))
    assert first.name == "test_answers.py"
    assert first.read_text().count("def test_") == 1


@pytest.mark.parametrize("pattern", mutants.LEFT_OUT)
def test_what_is_left_out_is_there(pattern: str) -> None:
    assert list(ROOT.glob(pattern))


@pytest.mark.parametrize("room", mutants.ROOMS)
def test_a_room_and_its_tests_exist(room: str) -> None:
    assert names_in(room)
    assert [name for name in mutants.ROOMS[room] if not (ROOT / name).exists()] == []
