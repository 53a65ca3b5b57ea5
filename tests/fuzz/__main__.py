"""``python -m tests.fuzz [--seconds N] [--report FILE] [TARGET...]``: new inputs, guided by coverage.

atheris finds them where it is installed (``pip install atheris``; Linux, Python 3.11 to 3.13), each target
in a process of its own; elsewhere they are damaged ones of the corpus, by a seed, as in the tests. An input
that crashes a target is printed and added to its corpus, so that the tests have it from then on.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import corpus
from tests.fuzz.targets import TARGETS
from tests.fuzzing import damage
from tests.reliability_report import table, write_section

MAX_INPUT_BYTES = 4_096
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a target."""

    target: str
    runs: int
    seconds: float
    crashes: list[bytes]


def guided(target: str, seconds: float) -> Outcome:
    """By atheris, which ends at the first crash."""
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name) / "corpus", Path(name) / "found"
        folder.mkdir()
        found.mkdir()
        for number, data in enumerate(corpus.read(target)):
            (folder / str(number)).write_bytes(data)
        began = time.monotonic()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.fuzz.guided", target, str(folder)),
                f"-max_total_time={seconds:.0f}",
                f"-max_len={MAX_INPUT_BYTES}",
                f"-artifact_prefix={found}/",
                "-print_final_stats=1",
                "-timeout=10",
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        crashes = [path.read_bytes() for path in sorted(found.iterdir())]
        if done.returncode:
            print(done.stdout[-3_000:], done.stderr[-3_000:], sep="\n", flush=True)
            assert crashes, f"{target}: atheris ended with {done.returncode}"
        counted = _RUNS.search(done.stderr)
        runs = int(counted[1]) if counted else 0
        return Outcome(target, runs, time.monotonic() - began, crashes)


def damaged(target: str, seconds: float) -> Outcome:
    """By chance alone."""
    kept, rng = corpus.read(target), random.Random(target)
    runs, began = 0, time.monotonic()
    crashes: list[bytes] = []
    while not crashes and time.monotonic() - began < seconds:
        data = damage(rng.choice(kept), rng)
        runs += 1
        try:
            TARGETS[target](data)
        except Exception:
            traceback.print_exc()
            crashes.append(data)
    return Outcome(target, runs, time.monotonic() - began, crashes)


def section(outcomes: list[Outcome], how: str) -> str:
    """The section of the report."""
    rows: list[tuple[object, ...]] = [
        (outcome.target, f"{outcome.runs:,}", f"{outcome.seconds:.0f}", len(outcome.crashes))
        for outcome in outcomes
    ]
    head = f"## Fuzz\n\nInputs {how}. `make fuzz`; the targets are in `tests/fuzz/targets.py`."
    return f"{head}\n\n{table(('target', 'inputs', 'seconds', 'crashes'), rows)}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for inputs that crash what reads bytes of others.")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target (default: 60)")
    parser.add_argument("--report", type=Path, help="where to write what it came to")
    options = parser.parse_args()
    with_atheris = importlib.util.find_spec("atheris") is not None
    how = "guided by coverage (atheris)" if with_atheris else "damaged by chance (atheris is not installed)"
    outcomes = []
    for target in options.targets or TARGETS:
        outcome = (guided if with_atheris else damaged)(target, options.seconds)
        print(f"{target}: {outcome.runs:,} inputs, {len(outcome.crashes)} crashes", flush=True)
        if outcome.crashes:
            corpus.write(target, outcome.crashes, "crashed it once")
        outcomes.append(outcome)
        if options.report is not None:
            write_section(options.report, "fuzz", section(outcomes, how))
    return 1 if any(outcome.crashes for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
