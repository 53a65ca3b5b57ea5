"""Suites under way: progress, what fails once, and what takes too long."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.foreign.__main__ import _run, _watch
from tests.foreign.brokers import Target
from tests.foreign.expectations import Figures
from tests.foreign.results import Outcome, read_go
from tests.foreign.suites import SUITES, Command, LeftOutError, Suite

#: Prints the outcomes of its arguments (TEST=ACTION).
PROGRAM = """
import json, sys
for word in sys.argv[1:]:
    test, action = word.split("=")
    for each in ("run", action):
        print(json.dumps({"Action": each, "Package": "p", "Test": test}))
"""


def suite(first: Sequence[str], again: Sequence[str] = (), limit_s: float = 60.0) -> Suite:
    """Comes to ``first``, and to ``again`` when it is asked for some of its tests."""

    def command(_suite: Suite, folder: Path, _target: Target, only: Sequence[str]) -> Command:
        return Command((sys.executable, "-c", PROGRAM, *(again if only else first)), folder)

    return Suite("some", "1.0", "nowhere", lambda _suite, cache: cache, command, read_go, {}, limit_s=limit_s)


def run(one: Suite, cache: Path) -> Figures:
    (cache / "logs").mkdir()
    return _run(one, "kohort", "127.0.0.1:1", cache)


def test_a_test_that_passes_by_itself_has_passed(tmp_path: Path) -> None:
    one = suite(("A=pass", "B=fail", "C=skip"), again=("B=pass",))
    assert run(one, tmp_path) == Figures("1.0", passed=2, left_out=1, failed=())


def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    one = suite(("A=pass", "B=fail", "C=fail"), again=("B=pass", "C=fail"))
    assert run(one, tmp_path) == Figures("1.0", passed=2, left_out=0, failed=("p:C",))


def test_a_test_that_passed_is_not_judged_by_the_second_run(tmp_path: Path) -> None:
    one = suite(("A=pass", "B=fail"), again=("A=fail", "B=skip"))
    assert run(one, tmp_path) == Figures("1.0", passed=1, left_out=0, failed=("p:B",))


def test_a_suite_is_ended_when_its_time_is_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready = json.dumps({"Action": "run", "Package": "p", "Test": "A"})
    words = (sys.executable, "-c", f"print({ready!r}, flush=True)\nwhile True: pass")
    # no time at all: it is ended wherever it is
    found = _watch(suite((), limit_s=0), Command(words, tmp_path), tmp_path / "log")
    assert set(found.values()) <= {Outcome.FAILED}
    assert "ended after 0 s" in capsys.readouterr().out


def test_a_suite_for_one_port_is_left_out_on_another_cluster(tmp_path: Path) -> None:
    one = next(each for each in SUITES if each.name == "kafka-go")
    with pytest.raises(LeftOutError, match="9092"):
        _run(one, "apache-kafka", "127.0.0.1:1", tmp_path)
