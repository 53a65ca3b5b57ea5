"""What came of a client's own tests, read from what their runners print.

Each function reads whole output and the beginning of it, so that a run that was ended by its time limit, and
one that is under way, are read too. A test that began and has no end has failed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


#: Outcomes by the names of tests.
Results = dict[str, Outcome]

_GO = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.LEFT_OUT}
_PYTEST = {
    "PASSED": Outcome.PASSED,
    "XFAIL": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.FAILED,
    "XPASS": Outcome.FAILED,
    "SKIPPED": Outcome.LEFT_OUT,
}
_PYTEST_LINE = re.compile(r"^(?P<test>\S+\.py::\S+)(?: (?P<word>[A-Z]+)\b.*)?", re.M)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_LIBRDKAFKA_LINE = re.compile(
    r"^\[(?P<test>\d{4}_\w+) */[^]]*\] "
    r"(?:=+ Running test|=+ Test \S+ (?P<word>PASSED|FAILED)|WARN: SKIPPING TEST: (?P<reason>.*))"
)
#: Its own ways to say that a test needs no broker, or was left out by the command.
_LIBRDKAFKA_NOT_ASKED_FOR = ("Filtered due to", "included in TESTS_SKIP")


def read_go(text: str) -> Results:
    """The results of ``go test -json``: of subtests, and of tests without.

    A package that failed for another reason, such as not building, is one test.
    """
    found: Results = {}
    for event in _json_lines(text):
        package = str(event.get("Package", "")).split("/")[-1]
        test = event.get("Test")
        action = str(event.get("Action"))
        if test is not None and action in ("run", *_GO):
            found[f"{package}:{test}"] = _GO.get(action, Outcome.FAILED)
        elif test is None and action == "fail" and not _any_failed(found, package):
            found[f"{package}:(package)"] = Outcome.FAILED
    return _without_parents(found)


def _json_lines(text: str) -> Iterable[Mapping[str, object]]:
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _any_failed(found: Results, package: str) -> bool:
    return any(
        name.startswith(f"{package}:") and outcome is Outcome.FAILED for name, outcome in found.items()
    )


def _without_parents(found: Results) -> Results:
    """Drop a test that only holds others, except one that failed while they did not."""
    children: dict[str, list[str]] = {}
    for name in found:
        parent = name
        while "/" in parent:
            parent = parent.rsplit("/", 1)[0]
            children.setdefault(parent, []).append(name)
    return {
        name: outcome
        for name, outcome in found.items()
        if name not in children
        or (outcome is Outcome.FAILED and not any(found[child] is Outcome.FAILED for child in children[name]))
    }


def read_pytest(text: str) -> Results:
    """The results of ``pytest -v``; a test whose teardown fails has failed."""
    found: Results = {}
    for match in _PYTEST_LINE.finditer(text):
        outcome = _PYTEST.get(match["word"] or "", Outcome.FAILED)
        if outcome is not Outcome.PASSED or found.get(match["test"]) is not Outcome.FAILED:
            found[match["test"]] = outcome
    return found


def read_librdkafka(text: str) -> Results:
    """The results of librdkafka's test-runner, from the lines of each test."""
    found: Results = {}
    for line in _COLOUR.sub("", text).splitlines():
        match = _LIBRDKAFKA_LINE.match(line)
        if match is None or (match["reason"] or "").startswith(_LIBRDKAFKA_NOT_ASKED_FOR):
            continue
        if match["reason"]:
            found[match["test"]] = Outcome.LEFT_OUT
        elif match["word"]:
            found[match["test"]] = Outcome.PASSED if match["word"] == "PASSED" else Outcome.FAILED
        else:
            found.setdefault(match["test"], Outcome.FAILED)
    return found


def count(results: Results) -> str:
    """``12 passed, 1 failed, 3 left out``."""
    counts = Counter(results.values())
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
