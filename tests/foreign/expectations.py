"""What the suites last came to on each broker (``measured.json``), and how a run differs from it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.foreign.brokers import APACHE_KAFKA, KOHORT
from tests.foreign.results import Outcome, Results
from tests.foreign.suites import SUITES, Suite

MEASURED = Path(__file__).resolve().parent / "measured.json"


@dataclass(frozen=True, slots=True)
class Figures:
    """How many tests of a suite passed and were left out, and which failed."""

    version: str
    passed: int
    left_out: int
    failed: tuple[str, ...]

    @classmethod
    def of(cls, suite: Suite, results: Results) -> Figures:
        counts = Counter(results.values())
        failed = sorted(name for name, outcome in results.items() if outcome is Outcome.FAILED)
        return cls(suite.version, counts[Outcome.PASSED], counts[Outcome.LEFT_OUT], tuple(failed))


#: By suite and broker.
Measured = dict[str, dict[str, Figures]]


def complete(suite: Suite, results: Results) -> Results:
    """The results with the tests that were not run."""
    return results | dict.fromkeys(suite.left_out, Outcome.LEFT_OUT)


def differences(expected: Figures | None, found: Figures, *, same_size: bool = True) -> list[str]:
    """One line for each way in which a run was not as expected; without ``same_size`` fewer may have run."""
    if expected is None:
        return ["nothing is recorded for it yet: see the results, then run it with --update-docs"]
    lines = [f"fails: {name}" for name in found.failed if name not in expected.failed]
    if same_size:
        lines += [f"does not fail: {name}" for name in expected.failed if name not in found.failed]
        if found.passed != expected.passed:
            lines.append(f"{found.passed} passed, not {expected.passed}")
    elif not found.passed:
        lines.append("none passed")
    return lines


def load(path: Path = MEASURED) -> Measured:
    """What is recorded; nothing if there is no such file."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text())
    return {
        suite: {
            broker: Figures(one["version"], one["passed"], one["left_out"], tuple(one["failed"]))
            for broker, one in brokers.items()
        }
        for suite, brokers in stored.items()
    }


def store(measured: Measured, path: Path = MEASURED) -> None:
    """Record these figures."""
    found = {
        suite: {
            broker: {
                "version": one.version,
                "passed": one.passed,
                "left_out": one.left_out,
                "failed": list(one.failed),
            }
            for broker, one in sorted(brokers.items())
        }
        for suite, brokers in sorted(measured.items())
    }
    path.write_text(json.dumps(found, indent=2) + "\n")


def merge(old: Measured, new: Measured) -> Measured:
    """The old figures with the new ones in the place of those of the same suite and broker."""
    return {suite: old.get(suite, {}) | new.get(suite, {}) for suite in old | new}


def table() -> str:
    """For docs/compatibility.md: the figures of both brokers, then what is left out or fails, and why."""
    return render(load(), SUITES)


def render(measured: Measured, suites: tuple[Suite, ...]) -> str:
    """The table of these suites and figures."""
    lines = ["| tests of | from | kohort | Apache Kafka 4.3.1 |", "| --- | --- | --- | --- |"]
    reasons = []
    for suite in suites:
        brokers = measured.get(suite.name, {})
        cells = [_cell(brokers.get(broker)) for broker in (KOHORT, APACHE_KAFKA)]
        lines.append(f"| {suite.name} {suite.version} | {suite.source} | {' | '.join(cells)} |")
        for title, why in (
            ("left out", suite.left_out),
            ("fails on kohort", suite.known),
            ("fails on Apache Kafka", suite.known_on_apache_kafka),
        ):
            for reason in dict.fromkeys(why.values()):
                names = ", ".join(f"`{name}`" for name, other in why.items() if other == reason)
                reasons.append(f"| {suite.name} | {names} | {title}: {reason} |")
    return "\n".join([*lines, "", "| suite | tests | |", "| --- | --- | --- |", *reasons])


def _cell(figures: Figures | None) -> str:
    if figures is None:
        return "not run"
    return f"{figures.passed} passed, {len(figures.failed)} failed, {figures.left_out} left out"
